"""Losses that a model is trained on, and the learning rate of each step."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from course_lib.validation import is_traced, require_probability

__all__ = ["linear_schedule_with_warmup", "next_token_loss"]


def next_token_loss(
    logits: Float[Tensor, "batch length vocabulary"],
    target: Int[Tensor, "batch length_and_one"],
    *,
    pad_id: int = 0,
    smoothing: float = 0.0,
) -> Float[Tensor, ""]:
    r"""Mean cross-entropy, in nats, of each token given those before it; padding does not count.

    $$L = -\frac{1}{N} \sum_{i:\, y_{i+1} \ne \text{pad}} \log p(y_{i+1} \mid y_1, \dots, y_i)$$

    The model reads `target[:, :-1]` (teacher forcing); its logits at position $i$ are compared with
    `target[:, 1:]`, the token at position $i + 1$. Logits with less precision than float32 are converted to float32.

    Args:
        logits: of the model that read `target[:, :-1]`.
        target: token ids, at least one after the first that is no padding.
        pad_id: the token that does not count.
        smoothing: $\varepsilon$ of label smoothing, from 0 up to but not including 1. The true token then has the
            probability $1 - \varepsilon + \varepsilon / C$, every other of the $C$ tokens $\varepsilon / C$.

    Source: Szegedy et al. (2016), "Rethinking the Inception architecture", section 7, for label smoothing.
    """
    require_probability(smoothing=smoothing)
    labels = target[:, 1:]  # (batch, length)
    if logits.shape[:-1] != labels.shape:
        raise ValueError(
            f"logits has shape {tuple(logits.shape)}, target {tuple(target.shape)}; there must be one "
            f"row of logits for every target token but the first"
        )
    if not is_traced() and not (labels != pad_id).any():  # a mean over nothing is NaN
        raise ValueError(f"target has nothing but padding ({pad_id}); there is nothing to predict")
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32)).flatten(0, 1)
    labels = labels.flatten().long()
    return F.cross_entropy(logits, labels, ignore_index=pad_id, label_smoothing=smoothing)


def linear_schedule_with_warmup(step: int, peak_lr: float, steps: int, warmup: int) -> float:
    r"""Rise linearly to `peak_lr` during the warm-up, then decay linearly towards 0.

    $$\eta_t = \eta \cdot \min\!\left(\frac{t}{w},\ \frac{T + 1 - t}{T + 1 - w}\right),
      \qquad t = 1, \dots, T$$

    Args:
        step: $t$, from 1 to `steps`; after the last one the rate is 0.
        peak_lr: $\eta$, the largest learning rate.
        steps: $T$, the number of training steps.
        warmup: $w$, the step with the largest learning rate, from 1 to `steps`.
    """
    if not 1 <= warmup <= steps:
        raise ValueError(f"warmup={warmup} must be a step of the training, from 1 to steps={steps}")
    return peak_lr * max(0.0, min(step / warmup, (steps + 1 - step) / (steps + 1 - warmup)))
