"""Losses that a model is trained on."""

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from course_lib.inputs import require_floating, require_tokens


def next_token_loss(
    logits: Float[Tensor, "batch length vocabulary"],
    target: Int[Tensor, "batch length_and_one"],
    *,
    pad_id: int = 0,
) -> Float[Tensor, ""]:
    r"""Mean cross-entropy, in nats, of each token given those before it; padding does not count.

    $$L = -\frac{1}{N} \sum_{i:\, y_{i+1} \ne \text{pad}} \log p(y_{i+1} \mid y_1, \dots, y_i)$$

    The logits at place $i$, made from `target[:, :-1]`, are held against `target[:, 1:]`: the model
    reads a token and is asked for the one behind it.

    Raises:
        ValueError: unless there is one row of logits for each token but the first, and the tokens are
            in the vocabulary; for a target with nothing but padding behind its first tokens.
    """
    require_floating(logits=logits)
    require_tokens(logits.shape[-1], target=target)
    if logits.shape[:-1] != (len(target), target.shape[1] - 1):
        raise ValueError(
            f"logits has shape {tuple(logits.shape)}, target {tuple(target.shape)}; there must be one "
            f"row of logits for every target token but the first"
        )
    following = target[:, 1:].flatten().long()
    if (following == pad_id).all():
        raise ValueError(
            f"target has shape {tuple(target.shape)} and only padding behind its first tokens; "
            f"there is nothing to predict"
        )
    return F.cross_entropy(logits.flatten(0, 1), following, ignore_index=pad_id)
