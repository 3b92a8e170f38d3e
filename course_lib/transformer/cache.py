"""Key/value caches: what attention layers keep between the steps of incremental decoding."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

__all__ = ["BlockCache", "CrossAttentionCache", "KeyValueCache", "ModelCache"]


class KeyValueCache:
    """The projected keys and values of one self-attention layer, of all tokens so far.

    A new token needs the keys and values of all tokens before it, and these do not change. So the layer
    projects the new token alone, adds it to the cache, and attends to everything in it.

    Attributes:
        key, value: (batch, heads, length, d_head) with one head per key/value head; None while empty.
    """

    def __init__(self) -> None:
        self.key: Tensor | None = None
        self.value: Tensor | None = None

    @property
    def length(self) -> int:
        """The number of tokens."""
        return 0 if self.key is None else self.key.shape[-2]

    @property
    def nbytes(self) -> int:
        """How many bytes the keys and values take."""
        return 0 if self.key is None else self.key.nbytes + self.value.nbytes

    def update(
        self,
        key: Float[Tensor, "batch heads new d_head"],
        value: Float[Tensor, "batch heads new d_value"],
    ) -> tuple[Float[Tensor, "batch heads key d_head"], Float[Tensor, "batch heads key d_value"]]:
        """Add the keys and values of new tokens; return those of all tokens."""
        if self.key is not None:
            if self.key.shape[:2] != key.shape[:2] or self.key.shape[-1] != key.shape[-1]:
                raise ValueError(
                    f"the cache holds keys of shape {tuple(self.key.shape)}, the new key has "
                    f"{tuple(key.shape)}; use one cache per layer and per batch, and a new one for each"
                )
            key = torch.cat([self.key, key], dim=-2)  # (batch, heads, key, d_head)
            value = torch.cat([self.value, value], dim=-2)  # (batch, heads, key, d_value)
        self.key, self.value = key, value
        return key, value

    def reorder(self, rows: Int[Tensor, " new_batch"]) -> None:
        """Keep these sequences of the batch, in this order; one may be kept several times."""
        if self.key is not None:
            self.key, self.value = (x.index_select(0, rows) for x in (self.key, self.value))

    def __repr__(self) -> str:
        return f"{type(self).__name__} of {self.length} tokens, {self.nbytes} bytes"


class CrossAttentionCache(KeyValueCache):
    """The projected keys and values of a sequence that does not grow: the encoder's output.

    The first call of a layer projects and stores them; later calls use what is stored.
    """


class BlockCache(NamedTuple):
    """The caches of one decoder block, one per attention layer."""

    self_attention: KeyValueCache
    cross_attention: CrossAttentionCache


class ModelCache:
    """The caches of all blocks of one model, for one batch. `model.new_cache()` makes it.

    Attributes:
        blocks: a `BlockCache` per block.
        padding_mask: (batch, 1, length), True where a token so far is not padding; None while empty.
    """

    def __init__(self, blocks: int) -> None:
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

    def update_padding(self, new: Bool[Tensor, "batch 1 new"]) -> Bool[Tensor, "batch 1 key"]:
        """Add the padding mask of new tokens; return that of all tokens."""
        if self.padding_mask is not None:
            if len(self.padding_mask) != len(new):
                raise ValueError(
                    f"the cache holds {len(self.padding_mask)} sequences, but the new tokens are of {len(new)}; "
                    f"use a new cache for each batch"
                )
            if self.blocks[-1].self_attention.length != self.length:
                raise ValueError("the last step was interrupted before all layers; use a new cache")
            new = torch.cat([self.padding_mask, new], dim=-1)
        self.padding_mask = new
        return new

    def reorder(self, rows: Int[Tensor, " new_batch"], *, same_sources: bool = False) -> None:
        """Keep these sequences of the batch, in this order, as beam search needs it.

        Args:
            rows: which.
            same_sources: whether each new sequence has the source of the row that it replaces, so that
                the cached keys and values of the sources can stay as they are.
        """
        if self.padding_mask is not None:
            self.padding_mask = self.padding_mask.index_select(0, rows)
        for block in self.blocks:
            block.self_attention.reorder(rows)
            if not same_sources:
                block.cross_attention.reorder(rows)

    def __repr__(self) -> str:
        return f"ModelCache of {len(self.blocks)} blocks, {self.length} tokens, {self.nbytes} bytes"
