r"""Multi-head attention, all heads at once.

$$\mathrm{MultiHead}(X_q, X_k, X_v) = [\text{head}_1; \dots; \text{head}_h]\, W^O, \qquad
  \text{head}_i = \mathrm{Attention}(X_q W_i^Q,\; X_k W_i^K,\; X_v W_i^V)$$

Inputs are (batch, length, d_model), the output is (batch, query, d_model), the weights are
(batch, heads, query, key). Where the keys are left out they are the queries, and where the values are left
out they are the keys. A mask is boolean, True = may attend, broadcastable to (batch, query, key), the same
for all heads, or to (batch, heads, query, key).

Source: Vaswani et al. (2017), section 3.2.2.
"""

from jaxtyping import Bool, Float, Shaped
from torch import Tensor, nn

from course_lib.transformer.attention import AttentionOutput
from course_lib.transformer.cache import CrossAttentionCache, KeyValueCache
from course_lib.transformer.positions import AttentionPositions
from course_lib.validation import require_divides, require_probability

__all__ = [
    "MultiHeadAttention",
    "merge_heads",
    "split_heads",
]

Query = Float[Tensor, "batch query d_model"]
Key = Float[Tensor, "batch key d_key"]
Value = Float[Tensor, "batch key d_value"]
Mask = Bool[Tensor, "..."]


def split_heads(
    x: Shaped[Tensor, "*batch length d_model"], num_heads: int
) -> Shaped[Tensor, "*batch heads length d_head"]:
    r"""Split each vector into `num_heads` parts.

    Head $i$ gets components $i\,d_\text{head}$ to $(i+1)\,d_\text{head} - 1$ of every vector.
    """
    return x.unflatten(-1, (num_heads, -1)).transpose(-3, -2)


def merge_heads(
    heads: Shaped[Tensor, "*batch heads length d_head"],
) -> Shaped[Tensor, "*batch length d_model"]:
    """Concatenate the heads."""
    return heads.transpose(-3, -2).flatten(-2)


class MultiHeadAttention(nn.Module):
    r"""All heads at once: one projection each, split into heads by a view and a transpose.

    The same function as a loop over heads of dimension $d_\text{head} = d_\text{model} / h$: the rows of $W^Q$ are
    the rows of $W_1^Q, \dots, W_h^Q$, one below the other. With fewer key/value heads than query heads, groups of
    query heads share them: multi-query attention (MQA) with one, grouped-query attention (GQA) with several.

    Args:
        d_model: the dimension of queries and output.
        num_heads: $h$, which divides `d_model`.
        num_kv_heads: the number of key/value heads, which divides `num_heads`; as many where left out.
        dropout: of the weights, in training mode.
        bias: whether the four projections add one.
        kdim, vdim: the dimension of the inputs for keys and values; `d_model` where left out.
        positions: an encoding inside attention, for self-attention only.

    Source: Vaswani et al. (2017), section 3.2.2; Shazeer (2019), "Fast Transformer decoding: one
    write-head is all you need"; Ainslie et al. (2023), "GQA".
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        num_kv_heads: int | None = None,
        dropout: float = 0.0,
        bias: bool = True,
        kdim: int | None = None,
        vdim: int | None = None,
        positions: AttentionPositions | None = None,
    ) -> None:
        super().__init__()
        self.num_heads, self.dropout = num_heads, dropout
        self.num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        require_divides(num_heads=num_heads, d_model=d_model)
        require_divides(num_kv_heads=self.num_kv_heads, num_heads=num_heads)
        require_probability(dropout=dropout)
        if not isinstance(positions, AttentionPositions | None):
            raise ValueError(
                f"positions is a {type(positions).__name__}; it must be an AttentionPositions, such as "
                f"RotaryPositions(d_head). Encodings that are added to the embeddings go before the layer"
            )
        self.positions = AttentionPositions() if positions is None else positions
        self.self_attention_only = type(self.positions) is not AttentionPositions
        for name, made_for in self.positions.layer_sizes.items():
            size = {"num_heads": num_heads, "d_head": d_model // num_heads}[name]
            if size != made_for:
                raise ValueError(
                    f"positions was made with {name}={made_for}, but the layer has {name}={size}"
                )
        d_kv = self.num_kv_heads * (d_model // num_heads)
        self.q_proj = nn.Linear(d_model, d_model, bias)
        self.k_proj = nn.Linear(d_model if kdim is None else kdim, d_kv, bias)
        self.v_proj = nn.Linear(d_model if vdim is None else vdim, d_kv, bias)
        self.out_proj = nn.Linear(d_model, d_model, bias)

    def forward(
        self,
        query: Query,
        key: Key | None = None,
        value: Value | None = None,
        mask: Mask | None = None,
        *,
        cache: KeyValueCache | None = None,
        need_weights: bool = False,
        is_causal: bool = False,
    ) -> AttentionOutput:
        """Attend with all heads.

        Args:
            query, key, value: the keys are the queries where left out, the values are the keys.
            mask: see the top of this module. A mask (batch, key) is read as (query, key), which
                fits by chance where batch = query: write mask[:, None]. With a cache, its keys are the cached and the
                new ones.
            cache: keeps the projected keys and values: a `KeyValueCache` for self-attention, which grows by
                the new tokens, a `CrossAttentionCache` for keys that stay the same and are read at the first
                call only.
            need_weights: False to use PyTorch's fused kernel; the weights are then None.
            is_causal: True for `causal_mask` beside the mask.
        """
        key = query if key is None else key
        value = key if value is None else value
        if key is not query and self.self_attention_only:
            raise ValueError(
                f"{type(self.positions).__name__} counts positions along one sequence, so this layer does "
                f"self-attention only; leave key out"
            )
        offset = 0 if cache is None else cache.length
        q = split_heads(self.q_proj(query), self.num_heads)  # (batch, heads, query, d_head)
        if isinstance(cache, CrossAttentionCache) and offset:
            # (batch, kv_heads, key, d_head), projected by an earlier call
            k, v = cache.key, cache.value
            if (len(key), key.shape[1]) != (len(k), cache.length):
                raise ValueError(
                    f"the cache holds {len(k)} sequences of {cache.length} keys, the memory has shape "
                    f"{tuple(key.shape)}; use a new cache for each batch of sources"
                )
        else:
            k = split_heads(self.k_proj(key), self.num_kv_heads)  # (batch, kv_heads, key, d_head)
            v = split_heads(self.v_proj(value), self.num_kv_heads)  # (batch, kv_heads, key, d_head)
            q, k = self.positions.rotate(q, k, offset)
            if cache is not None:
                k, v = cache.update(k, v)  # of all tokens so far
        if mask is not None and mask.dim() == 3:
            mask = mask.unsqueeze(1)  # (batch, 1, query, key): the same for all heads
        output, weights = self.positions.attend(
            q,
            k,
            v,
            mask,
            dropout=self.dropout,
            training=self.training,
            need_weights=need_weights,
            is_causal=is_causal,
            offset=offset,
        )  # (batch, heads, query, d_head), (batch, heads, query, key)
        return AttentionOutput(self.out_proj(merge_heads(output)), weights)
