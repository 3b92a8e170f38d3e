"""What a whole model keeps while it generates one batch."""

import functools
import weakref
from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from course_lib.cache.layer import CrossAttentionCache, KeyValueCache
from course_lib.checks import cache as checks
from course_lib.validation import validated


def all_or_nothing(method: Callable) -> Callable:
    """Make a method with an argument `cache` leave that cache as it was where it raises."""

    @functools.wraps(method)
    def restoring(*args, cache: "ModelCache | None" = None, **kwargs):
        if cache is None or torch.compiler.is_compiling():
            return method(*args, cache=cache, **kwargs)
        before = cache.snapshot()
        try:
            return method(*args, cache=cache, **kwargs)
        except BaseException:
            cache.restore(before)
            raise

    return restoring


class BlockCache(NamedTuple):
    """The caches of one decoder block, one per attention layer."""

    self_attention: KeyValueCache
    cross_attention: CrossAttentionCache


class ModelCache:
    """The caches of all blocks of one model, for one batch. `model.new_cache()` makes it.

    Args:
        model: whose cache it is.
        blocks: the number of decoder blocks.

    Attributes:
        blocks: a `BlockCache` per block.
        padding_mask: (batch, 1, length), True where a token so far is not padding; None while empty.
    """

    def __init__(self, model: nn.Module, blocks: int) -> None:
        self._model = weakref.ref(model)
        self.blocks = [BlockCache(KeyValueCache(), CrossAttentionCache()) for _ in range(blocks)]
        self.padding_mask: Tensor | None = None

    @property
    def length(self) -> int:
        """The number of tokens so far."""
        return 0 if self.padding_mask is None else self.padding_mask.shape[-1]

    @property
    def nbytes(self) -> int:
        """How many bytes the keys and values take."""
        return sum(cache.nbytes for block in self.blocks for cache in block)

    def belongs_to(self, model: nn.Module) -> bool:
        """Say whether this model made the cache."""
        return self._model() is model

    def snapshot(self) -> tuple:
        """Return what `restore` needs; nothing is copied, since a cache replaces its tensors."""
        return self.padding_mask, [vars(cache).copy() for block in self.blocks for cache in block]

    def restore(self, before: tuple) -> None:
        """Put back the state that `snapshot` returned."""
        self.padding_mask, kept = before
        for cache, state in zip((c for block in self.blocks for c in block), kept, strict=True):
            vars(cache).update(state)

    @validated(checks.update_padding)
    def update_padding(self, new: Bool[Tensor, "batch 1 new"]) -> Bool[Tensor, "batch 1 key"]:
        """Add the padding mask of new tokens; return that of all tokens.

        Raises:
            ValueError: for another batch than the cached one.
        """
        kept = self.padding_mask
        self.padding_mask = new if kept is None else torch.cat([kept, new], dim=-1)
        return self.padding_mask

    @validated(checks.model_reorder)
    def reorder(self, rows: Int[Tensor, " new_batch"], *, same_sources: bool = False) -> None:
        """Keep these sequences of the batch, in this order, as beam search needs it.

        Args:
            rows: which.
            same_sources: whether each new sequence has the source of the row that it replaces, so that
                the cached keys and values of the sources can stay as they are.

        Raises:
            ValueError: as for `KeyValueCache.reorder`.
        """
        if self.padding_mask is not None:
            self.padding_mask = self.padding_mask[rows]
        for block in self.blocks:
            block.self_attention.reorder(rows)
            if not same_sources:
                block.cross_attention.reorder(rows)

    def __repr__(self) -> str:
        return f"ModelCache of {len(self.blocks)} blocks, {self.length} tokens, {self.nbytes} bytes"
