"""What a whole model keeps while it writes one batch."""

import weakref
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.cache.layer import KeyValueCache, MemoryCache, require_rows


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
        rows = rows.clone()  # looked at and copied once, for all blocks
        for block in self.blocks:
            block.written._choose(rows)
            if not same_sources:
                block.memory._choose(rows)

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
