r"""Multi-head attention, built three times: wasteful, split, and split all at once.

$$\mathrm{MultiHead}(X_q, X_k, X_v) = [\text{head}_1; \dots; \text{head}_h]\, W^O, \qquad
  \text{head}_i = \mathrm{Attention}(X_q W_i^Q,\; X_k W_i^K,\; X_v W_i^V)$$

Inputs are (batch, length, d_model), the output is (batch, query, d_model), the weights are
(batch, heads, query, key). Where the keys are left out they are the queries, and where the values are left
out they are the keys. A mask is boolean, True = may attend, broadcastable to (batch, query, key), the same
for all heads, or to (batch, heads, query, key).

Source: Vaswani and others (2017), section 3.2.2.
"""

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor, nn

from course_lib.attention import (
    Attended,
    SingleHeadAttention,
    scaled_dot_product_attention,
)
from course_lib.cache import KeyValueCache, MemoryCache
from course_lib.cache.layer import require_cache
from course_lib.inputs import (
    require_attention_inputs,
    require_axes,
    require_divides,
    require_mask,
    require_probability,
    require_whole,
)
from course_lib.positions.base import (
    AttentionPositions,
    require_one_sequence,
    require_positions,
)

__all__ = [
    "FullWidthMultiHead",
    "MultiHeadAttention",
    "PerHeadMultiHead",
    "merge_heads",
    "split_heads",
]

Inputs = Float[Tensor, "batch query d_model"]
Others = Float[Tensor, "batch key d_other"]
Mask = Bool[Tensor, "..."]


def split_heads(
    x: Shaped[Tensor, "*batch length width"], num_heads: int
) -> Shaped[Tensor, "*batch heads length d_head"]:
    r"""Cut each vector into `num_heads` pieces: (…, length, width) → (…, heads, length, width / heads).

    Head $i$ gets numbers $i\,d_\text{head}$ to $(i+1)\,d_\text{head} - 1$ of every vector.

    Raises:
        ValueError: for what is no tensor of at least two axes, and a width that `num_heads` does not divide.
    """
    require_axes(2, "(…, length, width)", x=x)
    require_divides(num_heads=num_heads, width=x.shape[-1])
    return x.unflatten(-1, (num_heads, -1)).transpose(-3, -2)


def merge_heads(
    heads: Shaped[Tensor, "*batch heads length d_head"],
) -> Shaped[Tensor, "*batch length width"]:
    """Put the pieces back side by side: (…, heads, length, d_head) → (…, length, heads · d_head).

    Raises:
        ValueError: for what is no tensor of at least three axes.
    """
    require_axes(3, "(…, heads, length, d_head)", heads=heads)
    return heads.transpose(-3, -2).flatten(-2)


class _HeadByHead(nn.Module):
    """A loop over heads that are layers of their own, and a projection of all their outputs."""

    def __init__(self, d_model: int, num_heads: int, d_head: int) -> None:
        super().__init__()
        self.heads = nn.ModuleList(SingleHeadAttention(d_model, d_head) for _ in range(num_heads))
        self.out = nn.Linear(num_heads * d_head, d_model)

    def forward(
        self,
        query: Inputs,
        key: Others | None = None,
        value: Others | None = None,
        mask: Mask | None = None,
    ) -> Attended:
        """Attend with one head after the other.

        Raises:
            ValueError: as `SingleHeadAttention` does.
        """
        key = query if key is None else key
        value = key if value is None else value
        attended = [head(query, key, value, mask) for head in self.heads]
        outputs = torch.cat(
            [one.output for one in attended], dim=-1
        )  # (batch, query, heads · d_head)
        weights = torch.stack(
            [one.weights for one in attended], dim=1
        )  # (batch, heads, query, key)
        return Attended(self.out(outputs), weights)


class FullWidthMultiHead(_HeadByHead):
    r"""Every head as wide as the model: $d_\text{head} = d_\text{model}$. Parameters grow with the heads.

    $4 h\, d_\text{model}^2$ weights, so a comparison of head counts compares sizes.

    Args:
        d_model: the size of the vectors that come in and go out.
        num_heads: $h$.
    """

    def __init__(self, d_model: int, num_heads: int) -> None:
        require_whole(d_model=d_model, num_heads=num_heads)
        super().__init__(d_model, num_heads, d_head=d_model)


class PerHeadMultiHead(_HeadByHead):
    r"""The heads share the width of the model: $d_\text{head} = d_\text{model} / h$, one after the other.

    $4\, d_\text{model}^2$ weights for any number of heads.

    Args:
        d_model: the size of the vectors that come in and go out.
        num_heads: $h$, which divides `d_model`.
    """

    def __init__(self, d_model: int, num_heads: int) -> None:
        require_divides(num_heads=num_heads, d_model=d_model)
        super().__init__(d_model, num_heads, d_head=d_model // num_heads)


class MultiHeadAttention(nn.Module):
    r"""All heads at once: one projection, split by a view and a transpose.

    The same function as `PerHeadMultiHead`: the rows of $W^Q$ are the rows of $W_1^Q, \dots, W_h^Q$, one
    below the other. With fewer heads for keys and values than for queries, groups of queries share them:
    multi-query attention with one, grouped-query attention with several.

    Args:
        d_model: the size of the vectors that come in and go out.
        num_heads: $h$, which divides `d_model`.
        num_kv_heads: how many heads the keys and values have; divides `num_heads`, which it is where
            left out.
        dropout: of the weights, while training.
        bias: whether the four projections add one.
        key_size, value_size: the size of the vectors that keys and values are made of, where it is not
            `d_model`.
        positions: an encoding that works inside attention, for self-attention only.

    Raises:
        ValueError: for sizes that do not divide, a dropout outside [0, 1), and positions of another kind.

    Source: Vaswani and others (2017), section 3.2.2; Shazeer (2019), "Fast Transformer decoding: one
    write-head is all you need"; Ainslie and others (2023), "GQA".
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        num_kv_heads: int | None = None,
        dropout: float = 0.0,
        bias: bool = True,
        key_size: int | None = None,
        value_size: int | None = None,
        positions: AttentionPositions | None = None,
    ) -> None:
        super().__init__()
        num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        key_size = d_model if key_size is None else key_size
        value_size = d_model if value_size is None else value_size
        require_divides(num_heads=num_heads, d_model=d_model)
        require_divides(num_kv_heads=num_kv_heads, num_heads=num_heads)
        require_whole(key_size=key_size, value_size=value_size)
        require_probability(dropout=dropout)
        require_positions(positions)
        self.num_heads, self.num_kv_heads, self.dropout = num_heads, num_kv_heads, dropout
        self.positions = AttentionPositions() if positions is None else positions
        self.positions.require_fits(num_heads=num_heads, d_head=d_model // num_heads)
        shared = num_kv_heads * (d_model // num_heads)  # the width of all keys of one token
        self.query = nn.Linear(d_model, d_model, bias)
        self.key = nn.Linear(key_size, shared, bias)
        self.value = nn.Linear(value_size, shared, bias)
        self.out = nn.Linear(d_model, d_model, bias)

    def forward(
        self,
        query: Inputs,
        key: Others | None = None,
        value: Float[Tensor, "batch key d_value"] | None = None,
        mask: Mask | None = None,
        *,
        cache: KeyValueCache | None = None,
        need_weights: bool = False,
    ) -> Attended:
        """Attend with all heads.

        Args:
            query: what looks, (batch, query, d_model).
            key: what is looked at, (batch, key, key_size); the queries where left out.
            value: what is fetched, (batch, key, value_size); the keys where left out.
            mask: see the top of this module. With a cache, its keys are all that are kept and the new ones.
            cache: keeps the projected keys and values, and gives those of earlier calls: a `KeyValueCache`
                for queries that look at themselves, a `MemoryCache` for keys that stay the same.
            need_weights: where False the weights are None, and PyTorch's fused kernel is used.

        Raises:
            ValueError: for inputs that do not fit the layer or each other, a mask that is not boolean or
                does not fit, a cache of another layer or batch, and keys of their own where there are
                positions.
        """
        key = query if key is None else key
        value = key if value is None else value
        require_attention_inputs((self.query, self.key, self.value), query, key, value)
        require_cache(cache, one_sequence=key is query)
        require_one_sequence(self.positions, query, key)
        past = 0 if cache is None or isinstance(cache, MemoryCache) else cache.length
        mask = self._over_heads(mask, query, past + key.shape[1])
        q = split_heads(self.query(query), self.num_heads)  # (batch, heads, query, d_head)
        if isinstance(cache, MemoryCache) and cache.length:
            k, v = cache.recall(key)  # projected at an earlier call
        else:
            k = split_heads(self.key(key), self.num_kv_heads)  # (batch, kv_heads, key, d_head)
            v = split_heads(self.value(value), self.num_kv_heads)  # (batch, kv_heads, key, d_head)
            q, k = self.positions.turn(q, k, past)
            if cache is not None:
                k, v = cache.extend(k, v)  # now with all keys so far
        group = self.num_heads // self.num_kv_heads
        if group > 1:  # each head of the keys serves `group` heads of the queries
            k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
        heads, weights = scaled_dot_product_attention(
            q,
            k,
            v,
            mask,
            dropout=self.dropout,
            training=self.training,
            need_weights=need_weights or self.positions.needs_weights,
            bias=self.positions.bias(q, k.shape[-2]),
        )
        heads = self.positions.move_output(heads, weights)
        output = self.out(merge_heads(heads))  # (batch, query, d_model)
        return Attended(output, weights if need_weights else None)

    def _over_heads(self, mask: Mask | None, query: Tensor, keys: int) -> Mask | None:
        """Give the mask an axis for the heads."""
        if mask is None:
            return None
        batch, queries, _ = query.shape
        if isinstance(mask, Tensor) and mask.dim() == 4:
            axes = ("batch", "heads", "query", "key")
            require_mask(mask, (batch, self.num_heads, queries, keys), axes, query.device)
            return mask
        require_mask(mask, (batch, queries, keys), ("batch", "query", "key"), query.device)
        return mask.unsqueeze(-3) if mask.dim() == 3 else mask

    @classmethod
    def from_per_head(cls, layer: PerHeadMultiHead) -> "MultiHeadAttention":
        """Copy the weights of a `PerHeadMultiHead`: the heads' matrices, one below the other.

        Raises:
            ValueError: for any other layer.
        """
        if not isinstance(layer, PerHeadMultiHead):
            raise ValueError(f"layer is a {type(layer).__name__}; it must be a PerHeadMultiHead")
        made = cls(layer.out.out_features, len(layer.heads)).to(layer.out.weight)
        with torch.no_grad():
            for name in ("query", "key", "value"):
                heads = [getattr(head, name) for head in layer.heads]
                getattr(made, name).weight.copy_(torch.cat([head.weight for head in heads]))
                getattr(made, name).bias.copy_(torch.cat([head.bias for head in heads]))
        made.out.load_state_dict(layer.out.state_dict())
        return made.train(layer.training)

    @classmethod
    def from_torch(cls, layer: nn.MultiheadAttention) -> "MultiHeadAttention":
        """Copy the weights of PyTorch's layer. (Its masks are the other way round: there True hides.)

        Raises:
            ValueError: for any other layer, and for one with `add_bias_kv` or `add_zero_attn`.
        """
        if not isinstance(layer, nn.MultiheadAttention):
            raise ValueError(
                f"layer is a {type(layer).__name__}; it must be an nn.MultiheadAttention"
            )
        if layer.bias_k is not None or layer.add_zero_attn:
            raise ValueError(
                "layer was made with add_bias_kv or add_zero_attn, which append a key that no token has; "
                "MultiHeadAttention has none"
            )
        made = cls(
            layer.embed_dim,
            layer.num_heads,
            dropout=layer.dropout,
            bias=layer.in_proj_bias is not None,
            key_size=layer.kdim,
            value_size=layer.vdim,
        ).to(layer.out_proj.weight)
        theirs = _projections(layer)
        with torch.no_grad():
            for name, tensor in theirs.items():
                made.get_parameter(name).copy_(tensor)
        return made.train(layer.training)

    def to_torch(self) -> nn.MultiheadAttention:
        """Copy the weights into PyTorch's layer, batch first. Heads that share keys get a copy each.

        Raises:
            ValueError: for a layer with positions, which PyTorch's has not.
        """
        if type(self.positions) is not AttentionPositions:
            raise ValueError(
                f"nn.MultiheadAttention has no place for {type(self.positions).__name__}"
            )
        made = nn.MultiheadAttention(
            self.query.in_features,
            self.num_heads,
            dropout=self.dropout,
            bias=self.query.bias is not None,
            kdim=self.key.in_features,
            vdim=self.value.in_features,
            batch_first=True,
        ).to(self.out.weight)
        with torch.no_grad():
            for name, tensor in _projections(made).items():
                mine = self.get_parameter(name)
                if name.startswith(("key", "value")):
                    mine = mine.unflatten(0, (self.num_kv_heads, -1))
                    mine = mine.repeat_interleave(self.num_heads // self.num_kv_heads, 0).flatten(
                        0, 1
                    )
                tensor.copy_(mine)
        return made.train(self.training)


def _projections(layer: nn.MultiheadAttention) -> dict[str, Tensor]:
    """Our name → PyTorch's parameter, or the third of one that packs queries, keys and values."""
    if layer.in_proj_weight is not None:
        weights = layer.in_proj_weight.chunk(3)
    else:
        weights = layer.q_proj_weight, layer.k_proj_weight, layer.v_proj_weight
    named = dict(zip(("query.weight", "key.weight", "value.weight"), weights, strict=True))
    named["out.weight"] = layer.out_proj.weight
    if layer.in_proj_bias is not None:
        biases = layer.in_proj_bias.chunk(3)
        named |= dict(zip(("query.bias", "key.bias", "value.bias"), biases, strict=True))
        named["out.bias"] = layer.out_proj.bias
    return named
