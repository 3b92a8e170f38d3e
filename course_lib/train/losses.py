"""Losses that a model is trained on, and the learning rate of each step."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.validation import is_traced, require_probability

__all__ = ["LabelSmoothingLoss", "linear_schedule_with_warmup", "next_token_loss"]


class LabelSmoothingLoss(nn.Module):
    r"""Cross-entropy, in nats, against targets that give every class a small probability.

    $$q_c = (1 - \varepsilon)\,[c = y] + \frac{\varepsilon}{C}, \qquad
      L = -\frac{1}{N} \sum_{i:\, y_i \ne \text{ignored}} \sum_{c=1}^{C} q_{ic} \log p_{ic}$$

    The true class gets $1 - \varepsilon + \varepsilon / C$, because the probability mass $\varepsilon$ is
    spread over all $C$ classes. Logits with less precision than float32 are converted to float32.

    Source: Szegedy and others (2016), "Rethinking the Inception architecture", section 7; Vaswani and
    others (2017), "Attention is all you need", section 5.4.

    Args:
        smoothing: $\varepsilon$, from 0 (cross-entropy) up to but not including 1.
        ignore_index: targets with this number do not count.
    """

    def __init__(self, smoothing: float = 0.1, ignore_index: int = -100) -> None:
        super().__init__()
        require_probability(smoothing=smoothing)
        self.smoothing, self.ignore_index = smoothing, ignore_index

    def forward(
        self, logits: Float[Tensor, "*rows classes"], target: Int[Tensor, "*rows"]
    ) -> Float[Tensor, ""]:
        """Return the mean over the targets that are not ignored."""
        if target.shape != logits.shape[:-1]:
            raise ValueError(
                f"target has shape {tuple(target.shape)}; for logits of shape {tuple(logits.shape)} it must be "
                f"{tuple(logits.shape[:-1])}"
            )
        _require_some(target, self.ignore_index)
        counts = target != self.ignore_index  # (*rows)
        log_p = logits.log_softmax(-1, dtype=torch.promote_types(logits.dtype, torch.float32))
        true = log_p.gather(-1, target.long().where(counts, 0)[..., None])[..., 0]  # (*rows)
        # Without smoothing, a class that is ruled out (-inf) must not count: 0 · inf is NaN.
        uniform = log_p.mean(-1) if self.smoothing else 0
        loss = -(1 - self.smoothing) * true - self.smoothing * uniform
        return loss.where(counts, 0).sum() / counts.sum()


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
    `target[:, 1:]`, the token at position $i + 1$. With `smoothing`, see `LabelSmoothingLoss`. Logits with
    less precision than float32 are converted to float32.
    """
    labels = target[:, 1:]  # (batch, length)
    if logits.shape[:-1] != labels.shape:
        raise ValueError(
            f"logits has shape {tuple(logits.shape)}, target {tuple(target.shape)}; there must be one "
            f"row of logits for every target token but the first"
        )
    if smoothing:
        return LabelSmoothingLoss(smoothing, ignore_index=pad_id)(logits, labels)
    _require_some(labels, pad_id)
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten().long(), ignore_index=pad_id)


def _require_some(target: Tensor, ignored: int) -> None:
    """Refuse a mean over nothing, which is NaN."""
    if not is_traced() and not (target != ignored).any():
        raise ValueError(f"target has nothing but padding ({ignored}); there is nothing to predict")


def linear_schedule_with_warmup(step: int, peak_lr: float, steps: int, warmup: int) -> float:
    r"""Rise linearly to `peak_lr` during the warm-up, then decay linearly towards 0.

    $$\eta_t = \eta \cdot \min\!\left(\frac{t}{w},\ \frac{T + 1 - t}{T + 1 - w}\right),
      \qquad t = 1, \dots, T$$

    Args:
        step: $t$, from 1 to `steps`.
        peak_lr: $\eta$, the largest learning rate.
        steps: $T$, the number of training steps.
        warmup: $w$, the step with the largest learning rate, from 1 to `steps`.
    """
    return peak_lr * min(step / warmup, (steps + 1 - step) / (steps + 1 - warmup))
