"""The two kinds of positional encoding, and what a model and its decoding may ask of each.

To add an encoding, touch three places; CONTRIBUTING.md goes through them with an example:

1. a module of its own in `course_lib/transformer/positions/`, with a subclass of one of the two classes below;
2. its import and its line in `REGISTRY`, in `course_lib/transformer/positions/__init__.py`;
3. its row in `tests/helpers/encodings.py`, with an independent computation of what it does.

Configuration, models, caches, decoding, experiments, notebooks and their tests take it from there.
"""

from collections.abc import Mapping
from types import MappingProxyType

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn

from course_lib.transformer.attention import AttentionOutput, scaled_dot_product_attention


class EmbeddingPositions(nn.Module):
    """Base of the encodings that are added to the embeddings, before the first block.

    A subclass overrides `forward`. It is called with the embeddings of new tokens and the position of the first
    of them, `offset`: 0 in a full pass, the number of cached tokens in incremental decoding; a tensor with a
    `StaticCache` on a GPU or compiled. `positions_from` takes both. The rows must not depend on how many tokens are
    passed at once.

    Attributes:
        max_length: how many positions there are; None where there is no end.
        shift_invariant: whether the output of a causal model stays the same when all positions are shifted
            by the same amount. Decoding pads shorter prompts on the left only where this holds. False here:
            each position has a vector of its own.
    """

    max_length: int | None = None
    shift_invariant = False

    def forward(
        self, x: Float[Tensor, "batch length d_model"], offset: int | Int[Tensor, ""] = 0
    ) -> Float[Tensor, "batch length d_model"]:
        """Return x with positions `offset`, `offset` + 1, … added."""
        raise NotImplementedError

    def reserve(self, length: int, like: Tensor) -> None:
        """Prepare for tensors of positions below `length`, on the device and in the dtype of `like`."""


class AttentionPositions(nn.Module):
    """Base of the encodings inside attention; each overrides the hook that it needs.

    - `rotate` changes the projected queries and keys of new tokens, before the keys go into a cache, so it must
      depend on the position of each token alone, counted from `offset`. (RoPE)
    - `bias` is added to the scaled scores of the queries against all keys so far. The queries are the last
      tokens, as in `causal_mask`; `relative_positions` counts them so. (ALiBi, T5)
    - `attend` replaces attention as a whole, where neither is enough. (Shaw, who changes the values too)

    Layers share an encoding without parameters; one that learns is made for each layer. Every encoding of this
    kind sees positions through differences, so it is shift-invariant (see `EmbeddingPositions`), or says
    `shift_invariant = False`.

    Attributes:
        layer_sizes: the sizes that a layer must have, "num_heads" or "d_head"; a layer of another size raises a
            ValueError.
    """

    shift_invariant = True
    layer_sizes: Mapping[str, int] = MappingProxyType({})

    def rotate(
        self,
        query: Float[Tensor, "batch heads query d_head"],
        key: Float[Tensor, "batch kv_heads new d_head"],
        offset: int | Int[Tensor, ""] = 0,
    ) -> tuple[Tensor, Tensor]:
        """Transform the projected queries and keys, whose first position is `offset`."""
        return query, key

    def reserve(self, length: int, like: Tensor) -> None:
        """Prepare for tensors of positions below `length`, on the device and in the dtype of `like`."""

    def bias(
        self, query: Float[Tensor, "batch heads query d_head"], key_length: int
    ) -> Float[Tensor, "..."] | None:
        """Return what is added to the scaled scores, broadcastable to (batch, heads, query, key), or None."""
        return None

    def attend(
        self,
        query: Float[Tensor, "batch heads query d_head"],
        key: Float[Tensor, "batch kv_heads key d_head"],
        value: Float[Tensor, "batch kv_heads key d_value"],
        mask: Tensor | None = None,
        *,
        dropout: float = 0.0,
        training: bool = False,
        need_weights: bool = False,
        is_causal: bool = False,
        offset: int | Int[Tensor, ""] = 0,
    ) -> AttentionOutput:
        """Return scaled dot-product attention with the bias of this encoding.

        Where `offset` is a tensor, it is the position of the first query, and keys after the last query are masked;
        otherwise the queries are the last of the keys.
        """
        bias, (_, heads, queries, _) = self.bias(query, key.shape[-2]), query.shape
        if bias is not None:
            bias = in_place(bias, offset, queries)
        options = {"dropout": dropout, "training": training, "need_weights": need_weights}
        if queries == 1 and key.shape[1] < heads and not need_weights and bias is None:
            # One token: a group of query heads is as many queries of its key/value head, whose keys are read once.
            if mask is None or mask.dim() < 3 or mask.shape[-3] == 1:
                # (batch, kv_heads, group, d)
                query = query.squeeze(-2).unflatten(1, (key.shape[1], -1))
                output = scaled_dot_product_attention(query, key, value, mask, **options).output
                return AttentionOutput(output.flatten(1, 2).unsqueeze(-2), None)
        options |= {"bias": bias, "enable_gqa": True, "is_causal": is_causal}
        return scaled_dot_product_attention(query, key, value, mask, **options)


def in_place(
    pairs: Shaped[Tensor, "*shape key"], offset: int | Int[Tensor, ""], queries: int
) -> Shaped[Tensor, "*shape key"]:
    """Move what holds for queries that are the last of the keys to queries from position `offset` on."""
    if isinstance(offset, int):
        return pairs
    keys = torch.arange(pairs.shape[-1], device=pairs.device)
    return pairs.index_select(-1, (keys - offset - queries) % pairs.shape[-1])


def relative_positions(
    query_length: int, key_length: int, device: torch.device | str | None = None
) -> Int[Tensor, "query key"]:
    r"""Return the relative positions $j - i$: positive where the key comes after the query.

    With more keys than queries, the queries are the last ones, as in `causal_mask`.
    """
    if key_length < query_length:
        raise ValueError(
            f"key_length={key_length} is below query_length={query_length}; the queries are the last "
            f"of the keys, so there must be at least as many keys"
        )
    i = torch.arange(key_length - query_length, key_length, device=device)[:, None]  # (query, 1)
    j = torch.arange(key_length, device=device)  # (key,)
    return j - i
