"""Checks of `course_lib.cache`."""

import torch
from torch import Tensor

from course_lib.validation import (
    require_alike,
    require_axes,
    require_floating,
    require_value_per_key,
    short_name,
)


def update(self, key, value):
    """Keys and values that continue the cached ones."""
    require_floating(key=key, value=value)
    require_axes(4, "(batch, heads, new, d_head)", key=key, value=value)
    require_value_per_key(key, value)
    if self.length == 0:
        require_alike(key=key, value=value)
        if key.shape[:2] != value.shape[:2]:
            raise ValueError(
                f"key has shape {tuple(key.shape)} but value has shape {tuple(value.shape)}; both must have "
                f"the same batch and heads"
            )
    else:
        _require_continues("key", self._key, key, self.batch)
        _require_continues("value", self._value, value, self.batch)


def _require_continues(name, kept, new, batch):
    require_alike(**{f"the cached {name}": kept, f"the new {name}": new})
    _, heads, _, d = kept.shape
    sizes = ((0, batch, "sequences"), (1, heads, "heads"), (-1, d, "components per vector"))
    for axis, expected, what in sizes:
        if expected != new.shape[axis]:
            raise ValueError(
                f"cache has {expected} {what}, but the new {name} has {new.shape[axis]}; "
                f"use one cache per layer and per batch, and a new one for each"
            )


def reorder(self, rows):
    """Rows that the batch has."""
    require_rows(rows, self.batch)


def update_padding(self, new):
    """The batch of the cache."""
    kept = self.padding_mask
    if kept is not None and len(kept) != len(new):
        raise ValueError(
            f"cache has {len(kept)} sequences, but the new tokens are of {len(new)}; "
            f"use a new cache for each batch"
        )


def model_reorder(self, rows, *, same_sources=False):
    """Rows that the batch has."""
    require_rows(rows, None if self.padding_mask is None else len(self.padding_mask))


def require_rows(rows, batch):
    """Refuse what does not choose sequences of a batch of this size; of any size where it is None."""
    if (
        not isinstance(rows, Tensor)
        or rows.dim() != 1
        or rows.numel() == 0
        or rows.dtype not in (torch.int64, torch.int32)
    ):
        came = (
            f"has shape {tuple(rows.shape)} and dtype {short_name(rows.dtype)}"
            if isinstance(rows, Tensor)
            else f"is a {type(rows).__name__}"
        )
        raise ValueError(
            f"rows {came}; it must be a tensor of whole numbers (int64 or int32) of shape (new batch,), "
            f"e.g. torch.tensor([0, 0, 1])"
        )
    lowest, highest = (bound.item() for bound in rows.aminmax())
    if batch is not None and (lowest < 0 or highest >= batch):
        raise ValueError(
            f"rows holds {lowest if lowest < 0 else highest}; the batch has {batch} sequences, "
            f"0 to {batch - 1}"
        )
