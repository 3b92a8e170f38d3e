"""Losses that a model is trained on."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.inputs import (
    require_axes,
    require_floating,
    require_probability,
    require_tensor,
    require_tokens,
    require_whole,
    short_name,
)


class LabelSmoothingLoss(nn.Module):
    r"""Cross-entropy, in nats, against targets that give every class a little.

    $$q_c = (1 - \varepsilon)\,[c = y] + \frac{\varepsilon}{C}, \qquad
      L = -\frac{1}{N} \sum_{i:\, y_i \ne \text{ignored}} \sum_{c=1}^{C} q_{ic} \log p_{ic}$$

    The true class gets $1 - \varepsilon + \varepsilon / C$, because the share that is given away goes to
    all $C$ classes. Logits below float32 are worked out in float32.

    Source: Szegedy and others (2016), "Rethinking the Inception architecture", section 7; Vaswani and
    others (2017), "Attention is all you need", section 5.4.

    Args:
        smoothing: $\varepsilon$, from 0 (cross-entropy) up to but not including 1.
        ignore_index: targets with this number do not count.

    Raises:
        ValueError: for a smoothing out of range; when called, unless there is one class or
            `ignore_index` for each row of logits, at least one of them to predict.
    """

    def __init__(self, smoothing: float = 0.1, ignore_index: int = -100) -> None:
        super().__init__()
        require_probability(smoothing=smoothing)
        require_whole(at_least=-(2**63), ignore_index=ignore_index)
        self.smoothing, self.ignore_index = smoothing, ignore_index

    def forward(
        self, logits: Float[Tensor, "*rows classes"], target: Int[Tensor, "*rows"]
    ) -> Float[Tensor, ""]:
        """Return the mean over the targets that are not ignored."""
        counts = self._counts(logits, target)
        log_p = logits.log_softmax(-1, dtype=torch.promote_types(logits.dtype, torch.float32))
        true = log_p.gather(-1, target.long().where(counts, 0)[..., None])[..., 0]
        # Without smoothing, a class that is ruled out (-inf) must not count: 0 · inf is NaN.
        uniform = log_p.mean(-1) if self.smoothing else 0
        loss = -(1 - self.smoothing) * true - self.smoothing * uniform
        return loss[counts].mean()

    def _counts(self, logits: Tensor, target: Tensor) -> Tensor:
        """Say which targets count, and refuse what cannot be worked out."""
        require_floating(logits=logits)
        require_axes(1, "(…, classes)", logits=logits)
        require_tensor(target=target)
        if target.shape != logits.shape[:-1] or target.dtype not in (torch.int64, torch.int32):
            raise ValueError(
                f"target has shape {tuple(target.shape)} and dtype {short_name(target.dtype)}; for "
                f"logits of shape {tuple(logits.shape)} it must be whole numbers (int64 or int32) of "
                f"shape {tuple(logits.shape[:-1])}"
            )
        counts = target != self.ignore_index
        if not counts.any():
            raise ValueError(
                f"target has shape {tuple(target.shape)} and nothing but ignore_index="
                f"{self.ignore_index}; there is nothing to predict"
            )
        lowest, highest = (bound.item() for bound in target[counts].aminmax())
        if lowest < 0 or highest >= logits.shape[-1]:
            raise ValueError(
                f"target holds {lowest if lowest < 0 else highest}; it must be a class, 0 to "
                f"{logits.shape[-1] - 1}, or ignore_index={self.ignore_index}"
            )
        return counts


def next_token_loss(
    logits: Float[Tensor, "batch length vocabulary"],
    target: Int[Tensor, "batch length_and_one"],
    *,
    pad_id: int = 0,
    smoothing: float = 0.0,
) -> Float[Tensor, ""]:
    r"""Mean cross-entropy, in nats, of each token given those before it; padding does not count.

    $$L = -\frac{1}{N} \sum_{i:\, y_{i+1} \ne \text{pad}} \log p(y_{i+1} \mid y_1, \dots, y_i)$$

    The logits at place $i$, made from `target[:, :-1]`, are held against `target[:, 1:]`: the model
    reads a token and is asked for the one behind it. With `smoothing`, see `LabelSmoothingLoss`.

    Raises:
        ValueError: unless there is one row of logits for each token but the first, and the tokens are
            in the vocabulary; for a target with nothing but padding behind its first tokens; for a
            smoothing outside [0, 1).
    """
    require_floating(logits=logits)
    require_tokens(logits.shape[-1], target=target)
    if logits.shape[:-1] != (len(target), target.shape[1] - 1):
        raise ValueError(
            f"logits has shape {tuple(logits.shape)}, target {tuple(target.shape)}; there must be one "
            f"row of logits for every target token but the first"
        )
    following = target[:, 1:]
    if (following == pad_id).all():
        raise ValueError(
            f"target has shape {tuple(target.shape)} and only padding behind its first tokens; "
            f"there is nothing to predict"
        )
    if smoothing:
        return LabelSmoothingLoss(smoothing, ignore_index=pad_id)(logits, following)
    return F.cross_entropy(logits.flatten(0, 1), following.flatten().long(), ignore_index=pad_id)
