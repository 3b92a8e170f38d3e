"""Checks of `course_lib.masks`."""

from numbers import Integral

import torch
from torch import Tensor

from course_lib.validation import (
    require_floating,
    require_floating_dtype,
    require_mask,
    require_tensor,
    require_whole,
    short_name,
)

_MINUS_INFINITY = -1e4  # and below: exp of it is 0 in every dtype


def padding_mask(lengths, max_length=None):
    """Lengths are whole numbers from 0 to `max_length`, one per sequence."""
    _require_whole_numbers(1, "(batch,), e.g. torch.tensor([5, 3])", lengths=lengths)
    if lengths.numel() == 0:
        raise ValueError(
            "lengths is empty (shape (0,)); it needs the length of at least one sequence"
        )
    shortest, longest = (bound.item() for bound in lengths.aminmax())
    if shortest < 0:
        raise ValueError(f"lengths holds {shortest}; a length is 0 or more")
    if max_length is None:
        return
    require_whole(0, max_length=max_length)
    if longest > max_length:
        raise ValueError(
            f"lengths holds {longest}, but max_length={max_length}; the last "
            f"{longest - max_length} keys would not fit"
        )


def padding_mask_from_tokens(tokens, pad_id):
    """Tokens are whole numbers of shape (batch, key), and so is the padding token."""
    _require_whole_numbers(2, "(batch, key), e.g. torch.tensor([[4, 7, 0]])", tokens=tokens)
    require_whole(-(2**63), pad_id=pad_id)


def causal_mask(query_length, key_length=None, *, device=None):
    """There are at least as many keys as queries, and at least one query."""
    key_length = query_length if key_length is None else key_length
    require_whole(query_length=query_length, key_length=key_length)
    if key_length < query_length:
        raise ValueError(
            f"key_length={key_length} is below query_length={query_length}; the queries are the last "
            f"of the keys, so there must be at least as many keys"
        )


def combine_masks(*masks):
    """Masks are boolean, broadcast to each other, and are on one device."""
    given = [mask for mask in masks if mask is not None]
    for mask in given:
        require_mask(mask, getattr(mask, "shape", ()))
    try:
        torch.broadcast_shapes(*(mask.shape for mask in given))
    except RuntimeError:
        shapes = " and ".join(str(tuple(mask.shape)) for mask in given)
        raise ValueError(f"masks have shapes {shapes}; they must broadcast to each other") from None
    devices = sorted({str(mask.device) for mask in given if mask.dim()})
    if len(devices) > 1:
        raise ValueError(f"masks are on {' and '.join(devices)}; they must be on one device")


def to_additive(mask, dtype=torch.float32):
    """The mask is boolean, the dtype floating-point."""
    require_mask(mask, getattr(mask, "shape", ()))
    require_floating_dtype(dtype)


def from_additive(mask):
    """The mask holds 0 and minus infinity, or numbers that count as minus infinity."""
    require_floating(mask=mask)
    wrong = mask[(mask != 0) & ~(mask <= _MINUS_INFINITY)]  # NaN is wrong too
    if wrong.numel():
        raise ValueError(
            f"mask holds {wrong[0].item():g}; an additive mask holds 0 and minus infinity (or numbers of "
            f"{_MINUS_INFINITY:g} and below)"
        )


def masked_softmax(scores, mask=None, dim=-1):
    """Scores are floating-point with an axis `dim`; the mask is boolean and broadcasts to them."""
    require_floating(scores=scores)
    if scores.dim() == 0:
        raise ValueError("scores has shape (); it must have at least one axis, that of the keys")
    if (
        isinstance(dim, bool)
        or not isinstance(dim, Integral)
        or not -scores.dim() <= dim < scores.dim()
    ):
        raise ValueError(
            f"dim={dim!r}, but scores has shape {tuple(scores.shape)}; "
            f"it must be a whole number from {-scores.dim()} to {scores.dim() - 1}"
        )
    if mask is not None:
        require_mask(mask, scores.shape, device=scores.device)


def _require_whole_numbers(axes, shape, **tensors):
    for name, tensor in tensors.items():
        given = f"is a {type(tensor).__name__}"
        if isinstance(tensor, Tensor):
            require_tensor(**{name: tensor})
            if tensor.dim() == axes and _holds_whole_numbers(tensor):
                continue
            given = f"has shape {tuple(tensor.shape)} and dtype {short_name(tensor.dtype)}"
        raise ValueError(f"{name} {given}; it must be a tensor of whole numbers of shape {shape}")


def _holds_whole_numbers(tensor):
    return not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool)
