"""Masks: which queries may attend to which keys. Boolean, broadcastable to (batch, query, key).

**True = may attend**, as in PyTorch's `F.scaled_dot_product_attention`. Three other conventions are in
use:

- In `nn.MultiheadAttention`, True = masked. Invert such a mask: `~mask`.
- The integer `attention_mask` of Hugging Face is (batch, key), with 1 = may attend and 0 = padding. Convert
  it: `attention_mask.bool()[:, None, :]`.
- An additive mask is added to the scores and holds 0 and minus infinity. `from_additive` and `to_additive`
  convert.
"""

import functools

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from course_lib.validation import is_traced, require_mask

__all__ = [
    "causal_mask",
    "combine_masks",
    "from_additive",
    "masked_softmax",
    "padding_mask",
    "padding_mask_from_tokens",
    "to_additive",
]


def padding_mask(
    lengths: Int[Tensor, " batch"], max_length: int | None = None
) -> Bool[Tensor, "batch 1 key"]:
    r"""Let every query attend to the first `lengths[b]` keys of its sequence, and mask the rest.

    $$m_{b,1,j} = [\,j < \ell_b\,], \qquad j = 0, \dots, n - 1$$

    Args:
        lengths: $\ell$, how many keys of each sequence are not padding; 0 is allowed.
        max_length: the number of keys $n$; the largest length where left out.
    """
    max_length = int(lengths.max()) if max_length is None else max_length
    fits = is_traced() or (0 <= lengths.min() and lengths.max() <= max_length)
    if lengths.dim() != 1 or not fits:
        raise ValueError(
            f"lengths={lengths.tolist()} and max_length={max_length}; lengths must hold one number from 0 "
            f"to max_length per sequence"
        )
    positions = torch.arange(max_length, device=lengths.device)  # (key,)
    return positions < lengths[:, None, None]


def padding_mask_from_tokens(
    tokens: Int[Tensor, "batch key"], pad_id: int
) -> Bool[Tensor, "batch 1 key"]:
    r"""Let every query attend to every token that is not padding, wherever the padding is.

    $$m_{b,1,j} = [\,\text{tokens}_{b,j} \ne \text{pad}\,]$$
    """
    return (tokens != pad_id).unsqueeze(-2)


def causal_mask(
    query_length: int, key_length: int | None = None, *, device: torch.device | str | None = None
) -> Bool[Tensor, "query key"]:
    r"""Let each query attend to the key at its own position and to those before it.

    $$m_{i,j} = [\,j \le i + (n - m)\,], \qquad i = 0, \dots, m - 1, \quad j = 0, \dots, n - 1$$

    With more keys than queries ($n > m$), the queries are at the last positions: the first $n - m$ keys
    come from a key/value cache.

    Args:
        query_length: the number of queries $m$.
        key_length: the number of keys $n$; as many as queries where left out.
        device: where to create the mask; PyTorch's default device where left out.
    """
    key_length = query_length if key_length is None else key_length
    if key_length < query_length:
        raise ValueError(
            f"key_length={key_length} is below query_length={query_length}; the queries are the last "
            f"of the keys, so there must be at least as many keys"
        )
    every_pair = torch.ones(query_length, key_length, dtype=torch.bool, device=device)
    return every_pair.tril(diagonal=key_length - query_length)


def combine_masks(*masks: Bool[Tensor, "..."] | None) -> Bool[Tensor, "..."] | None:
    """Allow what every mask allows. A mask that is None allows everything; without masks, None."""
    given = [mask for mask in masks if mask is not None]
    for mask in given:
        require_mask(mask, mask.shape)
    return functools.reduce(torch.logical_and, given) if given else None


def to_additive(
    mask: Bool[Tensor, "*shape"], dtype: torch.dtype = torch.float32
) -> Float[Tensor, "*shape"]:
    r"""Return what to add to scores: $0$ where the mask is True, $-\infty$ where it is False.

    A fully masked row gives NaN in a plain softmax; `masked_softmax` with the boolean mask gives zeros.
    """
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(~mask, -torch.inf)


def from_additive(mask: Float[Tensor, "*shape"]) -> Bool[Tensor, "*shape"]:
    """Return the boolean mask of an additive one: True where it adds 0.

    Numbers of -10,000 and below count as minus infinity, because programs also write -1e9 or the lowest
    number of the dtype; the softmax turns all of them into weights of 0.
    """
    if mask.dtype == torch.bool:
        raise ValueError("mask is boolean already; an additive mask holds 0 and minus infinity")
    other = () if is_traced() else mask[(mask != 0) & ~(mask <= -1e4)]  # NaN too
    if len(other):
        raise ValueError(
            f"mask holds {other[0].item():g}; an additive mask holds 0 and minus infinity (or numbers of "
            f"-10000 and below)"
        )
    return mask == 0


def masked_softmax(
    scores: Float[Tensor, "*shape"], mask: Bool[Tensor, "..."] | None = None, dim: int = -1
) -> Float[Tensor, "*shape"]:
    r"""Softmax over the entries that the mask allows; the masked ones get exactly 0.

    $$\alpha_{ij} = \frac{m_{ij}\, e^{a_{ij}}}{\sum_k m_{ik}\, e^{a_{ik}}}, \qquad
      \alpha_{ij} = 0 \text{ for all } j \text{ if no } m_{ij} \text{ is true}$$

    A fully masked row gets all-zero weights and gradient 0: no NaN, and not the uniform weights that a large
    negative number in place of minus infinity would give. A score of minus infinity counts as masked. Masked
    scores have no influence, even if they are NaN or infinite; another score that is NaN or plus infinity
    makes the weights of its row NaN.

    Args:
        scores: $a$.
        mask: $m$, True = may attend, broadcastable to the shape of `scores`.
        dim: the axis along which the weights sum to 1: the keys.
    """
    if mask is not None:
        require_mask(mask, scores.shape)
        scores = torch.where(mask, scores, -torch.inf)
    if scores.numel() == 0:
        return torch.softmax(scores, dim)
    fully_masked = scores.detach().amax(dim, keepdim=True) == -torch.inf  # (…, query, 1)
    if scores.is_cpu and not is_traced() and not fully_masked.any():
        return torch.softmax(scores, dim)
    # A softmax of -inf alone is NaN.
    return torch.softmax(scores.masked_fill(fully_masked, 0.0), dim).masked_fill(fully_masked, 0.0)
