"""What a model keeps while a sequence is written token by token: projected keys and values."""

import weakref
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.inputs import (
    require_alike,
    require_axes,
    require_floating,
    require_value_per_key,
    short_name,
)

__all__ = ["BlockCache", "KeyValueCache", "MemoryCache", "ModelCache"]


class KeyValueCache:
    """The projected keys and values of one attention layer, of all tokens so far.

    A new token needs the keys and values of all tokens before it, and they do not change. So a layer
    projects the new token alone, adds it here, and attends to everything that is kept.

    Attributes:
        key: (batch, heads, length, d_head), None while empty; `heads` counts the heads of the keys.
        value: likewise.
    """

    def __init__(self) -> None:
        self.key: Tensor | None = None
        self.value: Tensor | None = None

    @property
    def length(self) -> int:
        """How many tokens are kept."""
        return 0 if self.key is None else self.key.shape[-2]

    @property
    def nbytes(self) -> int:
        """How many bytes the kept numbers take."""
        return 0 if self.key is None else self.key.nbytes + self.value.nbytes

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
        if self.key is None:
            _require_pair(key, value)
        else:
            for name, kept, new in (("key", self.key, key), ("value", self.value, value)):
                _require_continues(name, kept, new)
            key = torch.cat([self.key, key], dim=-2)  # (batch, heads, key, d_head)
            value = torch.cat([self.value, value], dim=-2)  # (batch, heads, key, d_value)
        self.key, self.value = key, value
        return key, value

    def select(self, rows: Int[Tensor, " new_batch"]) -> None:
        """Keep these sequences of the batch, in this order; one may be kept several times.

        Raises:
            ValueError: for rows that are not whole numbers of one axis, and that the batch does not have.
        """
        require_rows(rows, None if self.key is None else len(self.key))
        self._take(rows)

    def _take(self, rows: Tensor) -> None:
        if self.key is not None:
            # Copies whole sequences, which self.key[rows] does number by number.
            self.key, self.value = self.key.index_select(0, rows), self.value.index_select(0, rows)

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
        for axis, kept, what in ((0, 0, "sequences"), (1, -2, "tokens")):
            if memory.shape[axis] != self.key.shape[kept]:
                raise ValueError(
                    f"cache keeps a memory of {self.key.shape[kept]} {what}, but memory has "
                    f"{memory.shape[axis]}; use a new cache for each batch of sources"
                )
        return self.key, self.value


class BlockCache(NamedTuple):
    """Of one block: what its self-attention and its cross-attention keep."""

    written: KeyValueCache
    memory: MemoryCache


class ModelCache:
    """What all blocks of one model keep while it writes one batch. `model.new_cache()` makes it.

    Args:
        model: whose cache it is.
        blocks: how many blocks write.

    Attributes:
        blocks: a `BlockCache` per block.
        real: (batch, 1, length), which of the tokens so far are not padding; None while empty.
    """

    def __init__(self, model: nn.Module, blocks: int) -> None:
        self._model = weakref.ref(model)
        self.blocks = [BlockCache(KeyValueCache(), MemoryCache()) for _ in range(blocks)]
        self.real: Tensor | None = None

    @property
    def length(self) -> int:
        """How many tokens were written."""
        return 0 if self.real is None else self.real.shape[-1]

    @property
    def nbytes(self) -> int:
        """How many bytes the kept keys and values take."""
        return sum(one.nbytes for block in self.blocks for one in block)

    def extend(self, real: Tensor) -> Tensor:
        """Note which new tokens are not padding, (batch, 1, new); return it for all tokens so far.

        Raises:
            ValueError: for another batch than the one that is kept.
        """
        if self.real is not None and len(self.real) != len(real):
            raise ValueError(
                f"cache keeps {len(self.real)} sequences, but the new tokens are of {len(real)}; "
                f"use a new cache for each batch"
            )
        self.real = real if self.real is None else torch.cat([self.real, real], dim=-1)
        return self.real

    def select(self, rows: Int[Tensor, " new_batch"], *, same_sources: bool = False) -> None:
        """Keep these sequences of the batch, in this order, as beam search needs it.

        Args:
            rows: which.
            same_sources: whether each new sequence has the source of the one whose place it takes, so that
                what is kept of the memory can stay where it is.

        Raises:
            ValueError: as for `KeyValueCache.select`.
        """
        require_rows(rows, None if self.real is None else len(self.real))
        self.real = None if self.real is None else self.real[rows]
        for block in self.blocks:
            block.written._take(rows)
            if not same_sources:
                block.memory._take(rows)

    def require_memory(self, memory: Float[Tensor, "batch key d_model"]) -> None:
        """Refuse another batch or length than that of the memory that is kept, before anything is kept."""
        first = self.blocks[0].memory
        if first.length:
            first.recall(memory)

    def require_made_by(self, model: nn.Module) -> None:
        """Refuse to serve another model than the one that made it."""
        if self._model() is not model:
            raise ValueError(
                "cache was made by another model, so its keys are of no use to this one; use "
                "model.new_cache() of the model that writes"
            )

    def __repr__(self) -> str:
        return f"ModelCache of {len(self.blocks)} blocks, {self.length} tokens, {self.nbytes} bytes"


def _require_pair(key: Tensor, value: Tensor) -> None:
    require_alike(key=key, value=value)
    if key.shape[:2] != value.shape[:2]:
        raise ValueError(
            f"key has shape {tuple(key.shape)} but value has shape {tuple(value.shape)}; both must have "
            f"the same batch and heads"
        )


def _require_continues(name: str, kept: Tensor, new: Tensor) -> None:
    require_alike(**{f"the kept {name}": kept, f"the new {name}": new})
    for axis, what in ((0, "sequences"), (1, "heads"), (-1, "numbers per vector")):
        if kept.shape[axis] != new.shape[axis]:
            raise ValueError(
                f"cache keeps {kept.shape[axis]} {what}, but the new {name} has {new.shape[axis]}; "
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


def require_block_cache(cache: object) -> None:
    """Refuse what is neither None nor a cache for each of a decoder block's attentions."""
    if cache is None:
        return
    if not isinstance(cache, BlockCache):
        came = f"a {type(cache).__name__}"
    elif not isinstance(cache.written, KeyValueCache) or not isinstance(cache.memory, MemoryCache):
        came = (
            f"a BlockCache of a {type(cache.written).__name__} and a {type(cache.memory).__name__}"
        )
    else:
        return
    raise ValueError(f"cache is {came}; it must be BlockCache(KeyValueCache(), MemoryCache())")


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
