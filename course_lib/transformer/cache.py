"""Key/value caches: what attention layers keep between the steps of incremental decoding."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

__all__ = ["LayerCache", "CrossAttentionCache", "KeyValueCache", "ModelCache", "StaticCache"]


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
            self._require_fit(key)
            key = torch.cat([self.key, key], dim=-2)  # (batch, heads, key, d_head)
            value = torch.cat([self.value, value], dim=-2)  # (batch, heads, key, d_value)
        self.key, self.value = key, value
        return key, value

    def _require_fit(self, key: Tensor) -> None:
        if self.key.shape[:2] != key.shape[:2] or self.key.shape[-1] != key.shape[-1]:
            raise ValueError(
                f"the cache holds keys of shape {tuple(self.key.shape)}, the new key has "
                f"{tuple(key.shape)}; use one cache per layer and per batch, and a new one for each"
            )

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


class LayerCache(NamedTuple):
    """The caches of one decoder layer, one per attention layer."""

    self_attention: KeyValueCache
    cross_attention: CrossAttentionCache


class ModelCache:
    """The caches of all layers of one model, for one batch. `model.new_cache()` makes it.

    Attributes:
        blocks: a `LayerCache` per layer.
        padding_mask: (batch, 1, length), True where a token so far is not padding; None while empty.
    """

    def __init__(self, blocks: int) -> None:
        self.blocks = [LayerCache(KeyValueCache(), CrossAttentionCache()) for _ in range(blocks)]
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
            self._require_batch(new)
            if self.blocks[-1].self_attention.length != self.length:
                raise ValueError("the last step was interrupted before all layers; use a new cache")
            new = torch.cat([self.padding_mask, new], dim=-1)
        self.padding_mask = new
        return new

    def _require_batch(self, new: Tensor) -> None:
        if len(self.padding_mask) != len(new):
            raise ValueError(
                f"the cache holds {len(self.padding_mask)} sequences, but the new tokens are of {len(new)}; "
                f"use a new cache for each batch"
            )

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
        kind, count = type(self).__name__, len(self.blocks)
        return f"{kind} of {count} blocks, {self.length} tokens, {self.nbytes} bytes"


class StaticCache(ModelCache):
    """Caches with room for `max_length` tokens: new ones are written in place, and no shape ever changes.

    A growing cache copies all its keys and values at every step, to make room for one more. Here nothing is
    copied, and a decode step is the same graph each time, which `torch.compile(fullgraph=True)` takes whole and a
    CUDA graph replays. Where shapes must not change, compiled or on a GPU, the number of tokens is a tensor, and
    attention is given all `max_length` keys with those beyond the tokens masked. Elsewhere it is given those of
    the tokens alone. For inference: gradients do not flow through it.

    Args:
        filled: the cache of a model that has read its prompt. It is emptied, layer by layer.
        max_length: how many tokens fit, those in `filled` included.

    Attributes:
        padding_mask: (batch, 1, max_length), False also where there is no token.
    """

    def __init__(self, filled: ModelCache, max_length: int) -> None:
        if filled.padding_mask is None:
            raise ValueError("filled is empty; the model must read its prompt with it first")
        if max_length < filled.length:
            raise ValueError(
                f"max_length={max_length} is too short for the {filled.length} tokens in filled"
            )
        device = filled.padding_mask.device
        self._length = torch.tensor(filled.length, device=device)  # of all tokens
        self._start = torch.zeros_like(self._length)  # of those before the newest ones
        self.padding_mask = _with_room(filled.padding_mask, max_length, axis=-1)
        layers, filled.blocks = filled.blocks[::-1], []
        self.blocks = []
        while layers:
            own, cross = layers.pop()
            self.blocks.append(LayerCache(_StaticLayer(own, max_length, self._start), cross))
        self.blocks[-1].self_attention.counts = self._length

    @property
    def length(self) -> int | Tensor:
        """The number of tokens so far; a tensor where shapes must not change."""
        return _number(self._length)

    def update_padding(self, new: Bool[Tensor, "batch 1 new"]) -> Bool[Tensor, "batch _ key"]:
        """Add the padding mask of new tokens; return who attends to which keys."""
        self._require_batch(new)
        room, start = self.padding_mask.shape[-1], self.length
        self._start.copy_(self._length)
        if isinstance(start, int):
            end = start + new.shape[-1]
            if end > room:
                raise ValueError(
                    f"the cache has room for {room} tokens and holds {start}, so {new.shape[-1]} more do not fit; "
                    f"make it with max_length={end}"
                )
            self.padding_mask[..., start:end] = new
            return self.padding_mask[..., :end]
        fits = self._start <= room - new.shape[-1]
        torch._assert_async(fits, "more tokens than a StaticCache has room for")
        at = positions_from(self._start, new.shape[-1], new.device)  # (new,)
        self.padding_mask.index_copy_(-1, at, new)
        return self.padding_mask & (torch.arange(room, device=new.device) <= at[:, None])

    def crop(self, length: int) -> None:
        """Forget all tokens but the first `length`."""
        self._length.fill_(length)


class _StaticLayer(KeyValueCache):
    """The keys and values of one layer of a `StaticCache`: (batch, heads, max_length, d_head)."""

    #: In the last layer the length of the whole cache: an interrupted step leaves it as it was.
    counts: Tensor | None = None

    def __init__(self, filled: KeyValueCache, max_length: int, start: Tensor) -> None:
        kept = (filled.key, filled.value)
        self.key, self.value = (_with_room(x, max_length, axis=-2) for x in kept)
        self._start = start  # one tensor for all layers

    @property
    def length(self) -> int | Tensor:
        """The number of tokens before those that the model is reading."""
        return _number(self._start)

    def update(
        self,
        key: Float[Tensor, "batch heads new d_head"],
        value: Float[Tensor, "batch heads new d_value"],
    ) -> tuple[Float[Tensor, "batch heads key d_head"], Float[Tensor, "batch heads key d_value"]]:
        """Write the keys and values of new tokens; return those of all tokens, or all there is room for."""
        self._require_fit(key)
        if key.requires_grad:
            raise ValueError("a StaticCache is for inference; call the model under torch.no_grad()")
        start, new = self.length, key.shape[-2]
        if self.counts is not None:
            self.counts.copy_(self._start + new)
        if isinstance(start, int):
            for kept, x in ((self.key, key), (self.value, value)):
                kept[..., start : start + new, :] = x
            return self.key[..., : start + new, :], self.value[..., : start + new, :]
        at = positions_from(start, new, key.device)
        return self.key.index_copy_(-2, at, key), self.value.index_copy_(-2, at, value)

    def reorder(self, rows: Int[Tensor, " new_batch"]) -> None:
        """Keep these sequences of the batch, in this order."""
        self.key, self.value = (x.index_select(0, rows) for x in (self.key, self.value))


def positions_from(
    offset: int | Int[Tensor, ""], length: int, device: torch.device | str | None = None
) -> Int[Tensor, " length"]:
    """Return the positions `offset`, `offset` + 1, … of so many tokens."""
    if isinstance(offset, Tensor) and length == 1:
        return offset.view(1)  # nothing to compute
    return offset + torch.arange(length, device=device)


def _number(position: Int[Tensor, ""]) -> int | Tensor:
    """Return a position as a number, where that waits for no GPU and makes no graph depend on it."""
    return position if torch.compiler.is_compiling() or not position.is_cpu else int(position)


def _with_room(x: Tensor, length: int, axis: int) -> Tensor:
    """Return a tensor whose axis is `length` long and begins with x; the rest is zero."""
    shape = list(x.shape)
    shape[axis] = length
    room = x.new_zeros(shape)
    room.narrow(axis, 0, x.shape[axis]).copy_(x)
    return room
