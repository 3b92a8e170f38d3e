"""Masks: who may attend to whom. Boolean, True = may attend, broadcastable to (batch, query, key).

This is the convention of PyTorch's `F.scaled_dot_product_attention`. Two more are in use. In
`nn.MultiheadAttention` True hides: turn such a mask around with `~mask`. An additive mask is a tensor of 0
and minus infinity that is added to the scores: `from_additive` and `to_additive` convert.
"""

import functools
from numbers import Integral

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from course_lib.inputs import require_floating, require_mask, require_whole, short_name

__all__ = [
    "causal_mask",
    "combine_masks",
    "from_additive",
    "masked_softmax",
    "padding_mask",
    "to_additive",
    "token_mask",
]

_AS_GOOD_AS_HIDDEN = -1e4  # exp of it is 0 in every dtype; -1e9 and the lowest float are below


def padding_mask(
    lengths: Int[Tensor, " batch"], max_length: int | None = None
) -> Bool[Tensor, "batch 1 key"]:
    r"""Let every query attend to the first `lengths[b]` keys of its sequence, and to none behind them.

    $$m_{b,1,j} = [\,j < \ell_b\,], \qquad j = 0, \dots, n - 1$$

    Args:
        lengths: how many keys of each sequence are real, shape (batch,); 0 is allowed.
        max_length: the number of keys $n$; the largest length where left out.

    Raises:
        ValueError: for lengths that are not whole numbers of one axis, are negative, or do not fit
            into `max_length`.
    """
    _require_whole_numbers(1, "(batch,), e.g. torch.tensor([5, 3])", lengths=lengths)
    if lengths.numel() == 0:
        raise ValueError(
            "lengths is empty (shape (0,)); it needs the length of at least one sequence"
        )
    shortest, longest = (bound.item() for bound in lengths.aminmax())
    if shortest < 0:
        raise ValueError(f"lengths holds {shortest}; a length is 0 or more")
    if max_length is None:
        max_length = longest
    require_whole(0, max_length=max_length)
    if longest > max_length:
        raise ValueError(
            f"lengths holds {longest}, but max_length={max_length}; there would be no room for the "
            f"last {longest - max_length} keys"
        )
    positions = torch.arange(max_length, device=lengths.device)  # (key,)
    return (positions < lengths[:, None])[:, None, :]  # (batch, 1, key)


def token_mask(tokens: Int[Tensor, "batch key"], pad_id: int) -> Bool[Tensor, "batch 1 key"]:
    r"""Let every query attend to whatever is not padding, wherever the padding stands.

    $$m_{b,1,j} = [\,\text{tokens}_{b,j} \ne \text{pad}\,]$$

    Raises:
        ValueError: for tokens that are not whole numbers of shape (batch, key), and a `pad_id` that is
            not a whole number.
    """
    _require_whole_numbers(2, "(batch, key), e.g. torch.tensor([[4, 7, 0]])", tokens=tokens)
    if not isinstance(pad_id, Integral):
        raise ValueError(
            f"pad_id={pad_id!r} is a {type(pad_id).__name__}; it must be a whole number"
        )
    return (tokens != pad_id)[:, None, :]


def causal_mask(
    query_length: int, key_length: int | None = None, *, device: torch.device | str | None = None
) -> Bool[Tensor, "query key"]:
    r"""Let each query attend to the key at its own place and to those before it.

    $$m_{i,j} = [\,j \le i + (n - m)\,], \qquad i = 0, \dots, m - 1, \quad j = 0, \dots, n - 1$$

    With more keys than queries ($n > m$), the queries are the last ones: as when the first $n - m$
    keys were computed earlier and kept.

    Raises:
        ValueError: for lengths that are not whole numbers above 0, and for fewer keys than queries.
    """
    key_length = query_length if key_length is None else key_length
    require_whole(query_length=query_length, key_length=key_length)
    if key_length < query_length:
        raise ValueError(
            f"key_length={key_length} is below query_length={query_length}; the queries are the last "
            f"of the keys, so there must be at least as many keys"
        )
    everyone = torch.ones(query_length, key_length, dtype=torch.bool, device=device)
    return everyone.tril(diagonal=key_length - query_length)


def combine_masks(*masks: Bool[Tensor, "..."] | None) -> Bool[Tensor, "..."] | None:
    """Allow what every mask allows. A mask that is None allows everything; without masks, None.

    Raises:
        ValueError: for masks that are not boolean or do not broadcast with each other.
    """
    given = [mask for mask in masks if mask is not None]
    for mask in given:
        require_mask(mask, getattr(mask, "shape", ()))
    try:
        return functools.reduce(torch.logical_and, given) if given else None
    except RuntimeError:
        shapes = " and ".join(str(tuple(mask.shape)) for mask in given)
        raise ValueError(f"masks have shapes {shapes}; they must broadcast to each other") from None


def to_additive(
    mask: Bool[Tensor, "*shape"], dtype: torch.dtype = torch.float32
) -> Float[Tensor, "*shape"]:
    r"""Return what to add to scores: $0$ where the mask allows, $-\infty$ where it hides.

    A row that is hidden whole gives NaN in a plain softmax; `masked_softmax` of the boolean mask does not.

    Raises:
        ValueError: for a mask that is not boolean, and a dtype that is not floating-point.
    """
    require_mask(mask, getattr(mask, "shape", ()))
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise ValueError(f"dtype={dtype} must be a floating-point dtype, e.g. torch.float32")
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(~mask, -torch.inf)


def from_additive(mask: Float[Tensor, "*shape"]) -> Bool[Tensor, "*shape"]:
    """Return the boolean mask of an additive one: True where it adds 0.

    Large negative numbers, of -10,000 and below, count as minus infinity: many programs write -1e9 or the
    lowest number of the dtype.

    Raises:
        ValueError: for anything but floating-point, and for other numbers, which are a bias that changes
            the weights and not a mask.
    """
    require_floating(mask=mask)
    allowed, hidden = mask == 0, mask <= _AS_GOOD_AS_HIDDEN
    if not (allowed | hidden).all():
        other = mask[~(allowed | hidden)][0].item()
        raise ValueError(
            f"mask holds {other:g}; an additive mask holds 0 and minus infinity (or numbers of "
            f"{_AS_GOOD_AS_HIDDEN:g} and below)"
        )
    return allowed


def masked_softmax(
    scores: Float[Tensor, "..."], mask: Bool[Tensor, "..."] | None = None, dim: int = -1
) -> Float[Tensor, "..."]:
    r"""Softmax over the entries that the mask allows; the others get exactly 0.

    $$\alpha_{ij} = \frac{m_{ij}\, e^{a_{ij}}}{\sum_k m_{ik}\, e^{a_{ik}}}, \qquad
      \alpha_{ij} = 0 \text{ for all } j \text{ if no } m_{ij} \text{ is true}$$

    A row that may attend to nothing gets all zeros, and its gradient is 0: no NaN, and not the
    uniform row that a large negative number in place of minus infinity would give. Whatever stands
    in a hidden place, NaN and infinity too, has no influence.

    Args:
        scores: $a$, of any shape.
        mask: boolean, True = may attend, broadcastable to the shape of `scores`.
        dim: the axis whose entries share the attention: the keys.

    Raises:
        ValueError: for scores that are not floating-point, a `dim` that they do not have, and a mask
            that is not boolean or does not fit.
    """
    require_floating(scores=scores)
    if scores.dim() == 0:
        raise ValueError("scores has shape (); it must have at least one axis, that of the keys")
    if not isinstance(dim, Integral) or not -scores.dim() <= dim < scores.dim():
        raise ValueError(
            f"dim={dim!r}, but scores has shape {tuple(scores.shape)}; "
            f"it must be a whole number from {-scores.dim()} to {scores.dim() - 1}"
        )
    if mask is None:
        return torch.softmax(scores, dim)
    require_mask(mask, scores.shape, device=scores.device)
    mask = mask[(None,) * (scores.dim() - mask.dim())]
    lonely = ~mask.any(dim, keepdim=True)  # rows that may attend to nothing
    hidden = scores.masked_fill(~mask, -torch.inf).masked_fill(lonely, 0.0)
    return torch.softmax(hidden, dim).masked_fill(lonely, 0.0)


def _require_whole_numbers(axes: int, shape: str, **tensors: Tensor) -> None:
    for name, tensor in tensors.items():
        came = f"is a {type(tensor).__name__}"
        if isinstance(tensor, Tensor):
            if tensor.dim() == axes and _whole(tensor):
                continue
            came = f"has shape {tuple(tensor.shape)} and dtype {short_name(tensor.dtype)}"
        raise ValueError(f"{name} {came}; it must be a tensor of whole numbers of shape {shape}")


def _whole(tensor: Tensor) -> bool:
    return not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool)
