"""What one attention layer keeps while a sequence is written: projected keys and values."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from course_lib.inputs import (
    require_alike,
    require_axes,
    require_floating,
    require_value_per_key,
    short_name,
)


class KeyValueCache:
    """The projected keys and values of one attention layer, of all tokens so far.

    A new token needs the keys and values of all tokens before it, and they do not change. So a layer
    projects the new token alone, adds it here, and attends to everything that is kept.

    Attributes:
        key: (batch, heads, length, d_head), None while empty; `heads` counts the heads of the keys.
        value: likewise.
    """

    def __init__(self) -> None:
        self._key: Tensor | None = None
        self._value: Tensor | None = None
        self._rows: Tensor | None = None  # selected, and not copied yet

    @property
    def key(self) -> Tensor | None:
        """What is kept of the keys."""
        return self._selected()[0]

    @property
    def value(self) -> Tensor | None:
        """What is kept of the values."""
        return self._selected()[1]

    @property
    def batch(self) -> int | None:
        """How many sequences are kept; None while empty."""
        if self._key is None:
            return None
        return len(self._key if self._rows is None else self._rows)

    @property
    def length(self) -> int:
        """How many tokens are kept."""
        return 0 if self._key is None else self._key.shape[-2]

    @property
    def nbytes(self) -> int:
        """How many bytes the kept numbers take."""
        return 0 if self._key is None else self.key.nbytes + self.value.nbytes

    def extend(
        self,
        key: Float[Tensor, "batch heads new d_head"],
        value: Float[Tensor, "batch heads new d_value"],
    ) -> tuple[Float[Tensor, "batch heads key d_head"], Float[Tensor, "batch heads key d_value"]]:
        """Keep new keys and values behind the old ones; return all of them.

        Raises:
            ValueError: for keys and values of unequal number, and for those of another batch, head count,
                size, dtype or device than what is kept, as when the cache is that of another layer.
        """
        require_floating(key=key, value=value)
        require_axes(4, "(batch, heads, new, size)", key=key, value=value)
        require_value_per_key(key, value)
        if self._key is None:
            _require_pair(key, value)
        else:
            for name, kept, new in (("key", self._key, key), ("value", self._value, value)):
                _require_continues(name, kept, new, self.batch)
            key = _behind(self._key, self._rows, key)  # (batch, heads, key, d_head)
            value = _behind(self._value, self._rows, value)  # (batch, heads, key, d_value)
        self._key, self._value, self._rows = key, value, None
        return key, value

    def select(self, rows: Int[Tensor, " new_batch"]) -> None:
        """Keep these sequences of the batch, in this order; one may be kept several times.

        The copy waits until it is needed, and `extend` makes it together with its own.

        Raises:
            ValueError: for rows that are not whole numbers of one axis, and that the batch does not have.
        """
        require_rows(rows, self.batch)
        self._choose(rows.clone())

    def _choose(self, rows: Tensor) -> None:
        if self._key is not None:
            self._rows = rows if self._rows is None else self._rows[rows]

    def _selected(self) -> tuple[Tensor | None, Tensor | None]:
        if self._rows is not None:
            # index_select copies whole sequences, which self._key[rows] does number by number.
            self._key = self._key.index_select(0, self._rows)
            self._value = self._value.index_select(0, self._rows)
            self._rows = None
        return self._key, self._value

    def __repr__(self) -> str:
        return f"{type(self).__name__} of {self.length} tokens, {self.nbytes} bytes"


class MemoryCache(KeyValueCache):
    """The projected keys and values of a sequence that does not grow, such as an encoder's output.

    The first call projects and keeps them; every later one takes them from here.
    """

    def recall(self, memory: Float[Tensor, "batch key d_model"]) -> tuple[Tensor, Tensor]:
        """Return what is kept of `memory`.

        Raises:
            ValueError: for a memory of another batch or length than the one that was kept.
        """
        for axis, kept, what in ((0, self.batch, "sequences"), (1, self.length, "tokens")):
            if memory.shape[axis] != kept:
                raise ValueError(
                    f"cache keeps a memory of {kept} {what}, but memory has "
                    f"{memory.shape[axis]}; use a new cache for each batch of sources"
                )
        return self.key, self.value


def _behind(kept: Tensor, rows: Tensor | None, new: Tensor) -> Tensor:
    """Return these rows of what was kept, and the new behind it: one copy where no gradient is asked for."""
    if rows is None:
        return torch.cat([kept, new], dim=-2)
    if torch.is_grad_enabled():
        return torch.cat([kept.index_select(0, rows), new], dim=-2)
    batch, heads, added, size = new.shape
    past = kept.shape[-2]
    joined = new.new_empty(batch, heads, past + added, size)
    torch.index_select(kept, 0, rows, out=joined[:, :, :past])
    joined[:, :, past:] = new
    return joined


def _require_pair(key: Tensor, value: Tensor) -> None:
    require_alike(key=key, value=value)
    if key.shape[:2] != value.shape[:2]:
        raise ValueError(
            f"key has shape {tuple(key.shape)} but value has shape {tuple(value.shape)}; both must have "
            f"the same batch and heads"
        )


def _require_continues(name: str, kept: Tensor, new: Tensor, batch: int) -> None:
    require_alike(**{f"the kept {name}": kept, f"the new {name}": new})
    _, heads, _, size = kept.shape
    sizes = ((0, batch, "sequences"), (1, heads, "heads"), (-1, size, "numbers per vector"))
    for axis, expected, what in sizes:
        if expected != new.shape[axis]:
            raise ValueError(
                f"cache keeps {expected} {what}, but the new {name} has {new.shape[axis]}; "
                f"use one cache per layer and per batch, and a new one for each"
            )


def require_rows(rows: object, batch: int | None) -> None:
    """Refuse what does not choose sequences of a batch of this size; of any where it is None."""
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


def require_cache(cache: object, *, one_sequence: bool) -> None:
    """Refuse what is neither None nor a cache, and one that keeps a memory where the sequence grows."""
    if cache is not None and not isinstance(cache, KeyValueCache):
        raise ValueError(
            f"cache is a {type(cache).__name__}; it must be a KeyValueCache, or None for no cache"
        )
    if one_sequence and isinstance(cache, MemoryCache):
        raise ValueError(
            "cache is a MemoryCache, which keeps a sequence that does not grow; self-attention needs a "
            "KeyValueCache"
        )
