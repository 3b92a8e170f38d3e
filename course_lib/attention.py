r"""Scaled dot-product attention, and single-head layers that project their inputs first.

$$\mathrm{Attention}(Q, K, V) = \mathrm{softmax}\!\left(\frac{Q K^\top}{\sqrt{d}}\right) V$$

$Q$ holds a query per row, shape (…, query, d), $K$ a key, (…, key, d), $V$ a value, (…, key, value size).

Source: Vaswani and others (2017), "Attention is all you need", section 3.2.1.
"""

import contextlib
import inspect
import math
from collections.abc import Iterator, Sequence
from numbers import Real
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from course_lib.inputs import (
    require_alike,
    require_attention_inputs,
    require_axes,
    require_broadcast,
    require_floating,
    require_mask,
    require_probability,
    require_same_batch,
    require_size,
    require_value_per_key,
    require_vectors,
    require_whole,
)
from course_lib.pooling import Attended
from course_lib.scoring import attend

__all__ = [
    "Attended",
    "AttentionMap",
    "CrossAttention",
    "SelfAttention",
    "SingleHeadAttention",
    "entropy",
    "mean_distance",
    "record_attention",
    "scaled_dot_product_attention",
]


def scaled_dot_product_attention(
    query: Float[Tensor, "*#batch query d"],
    key: Float[Tensor, "*#batch key d"],
    value: Float[Tensor, "*#batch key value_size"],
    mask: Bool[Tensor, "..."] | None = None,
    *,
    scale: float | None = None,
    dropout: float = 0.0,
    training: bool = False,
    need_weights: bool = True,
    bias: Float[Tensor, "..."] | None = None,
) -> Attended:
    r"""Compare every query with every key, take a softmax over the keys, average the values.

    $$\text{output} = \mathrm{dropout}(\alpha)\, V, \qquad \alpha = \mathrm{softmax}(s\, Q K^\top + B), \qquad
      s = 1/\sqrt{d}$$

    A query that may attend to nothing gets zeros.

    Args:
        query: $Q$, shape (…, query, d).
        key: $K$, shape (…, key, d).
        value: $V$, shape (…, key, value_size).
        mask: boolean, True = may attend, broadcastable to (…, query, key).
        scale: $s$; $1/\sqrt{d}$ where left out.
        dropout: the probability of dropping a weight, after the softmax.
        training: whether to drop at all.
        need_weights: where False, PyTorch's fused kernel computes the output without ever holding the
            (query, key) matrix, and the weights are None.
        bias: $B$, added to the scaled scores, broadcastable to (…, query, key); none where left out.

    Returns:
        `Attended(output, weights)`, shapes (…, query, value_size) and (…, query, key).

    Raises:
        ValueError: for queries and keys of different size, keys and values of different number, tensors of
            different dtype or device, a mask that is not boolean or does not fit, a bias that does not
            fit, a scale that is no finite number, and a dropout outside [0, 1).

    Source: Vaswani and others (2017), equation 1.
    """
    _require_attention(query, key, value, mask, scale, dropout, bias)
    if need_weights:
        scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
        # Scaled before the product: in float16 it could overflow.
        scores = (query * scale) @ key.mT  # (…, query, key)
        scores = scores if bias is None else scores + bias
        return attend(scores, value, mask, dropout=dropout, training=training)
    if bias is not None:  # the kernel takes one or the other, so the mask joins the bias
        mask = bias if mask is None else torch.where(mask, bias, -torch.inf)
    if mask is not None:
        mask = torch.atleast_2d(mask)
    fused = F.scaled_dot_product_attention(
        query, key, value, mask, dropout_p=dropout if training else 0.0, scale=scale
    )
    return Attended(fused, None)


class SingleHeadAttention(nn.Module):
    r"""One head: learned projections of queries, keys and values, then attention.

    $$\text{output} = \mathrm{Attention}(X_q W^Q,\; X_k W^K,\; X_v W^V)$$

    with a bias in each projection. Inputs are (batch, length, d_model); the output is
    (batch, query, d_head), the weights are (batch, query, key).

    Args:
        d_model: the size of the vectors that come in.
        d_head: the size of the projected vectors; `d_model` where left out.

    Source: Vaswani and others (2017), section 3.2.2, with one head and without its last projection.
    """

    def __init__(self, d_model: int, d_head: int | None = None) -> None:
        super().__init__()
        d_head = d_model if d_head is None else d_head
        require_whole(d_model=d_model, d_head=d_head)
        self.query = nn.Linear(d_model, d_head)
        self.key = nn.Linear(d_model, d_head)
        self.value = nn.Linear(d_model, d_head)

    def forward(
        self,
        query: Float[Tensor, "batch query d_model"],
        key: Float[Tensor, "batch key d_model"],
        value: Float[Tensor, "batch key d_model"],
        mask: Bool[Tensor, "..."] | None = None,
    ) -> Attended:
        """Project, then attend.

        Raises:
            ValueError: for inputs that are not (batch, length, d_model) or do not fit the parameters or
                each other, and what `scaled_dot_product_attention` refuses.
        """
        require_attention_inputs((self.query, self.key, self.value), query, key, value)
        q = self.query(query)  # (batch, query, d_head)
        k = self.key(key)  # (batch, key, d_head)
        v = self.value(value)  # (batch, key, d_head)
        return scaled_dot_product_attention(q, k, v, mask)


class SelfAttention(SingleHeadAttention):
    """A sequence looks at itself: queries, keys and values are projections of the same vectors.

    Shapes as in `SingleHeadAttention`, with as many queries as keys.
    """

    def forward(
        self,
        x: Float[Tensor, "batch length d_model"],
        mask: Bool[Tensor, "..."] | None = None,
    ) -> Attended:
        """Attend from x to x; raises as `SingleHeadAttention` does."""
        return super().forward(x, x, x, mask)


class CrossAttention(SingleHeadAttention):
    """One sequence looks at another: queries from `x`, keys and values from `memory`.

    The weights are (batch, query, key): a row per vector of `x`, a column per vector of `memory`.
    """

    def forward(
        self,
        x: Float[Tensor, "batch query d_model"],
        memory: Float[Tensor, "batch key d_model"],
        mask: Bool[Tensor, "..."] | None = None,
    ) -> Attended:
        """Attend from x to memory; raises as `SingleHeadAttention` does."""
        return super().forward(x, memory, memory, mask)


@contextlib.contextmanager
def record_attention(model: nn.Module) -> Iterator[dict[str, list[Tensor]]]:
    """Collect the weights of every attention layer in a model, while the `with` block runs::

        with record_attention(model) as maps:
            model(x)
        maps["layers.0.attention"][-1]  # (batch, heads, query, key)

    A layer is a module that returns `Attended` and is not part of another one that does. Its name is its
    place in the model, as in `model.named_modules()`; "" is the model itself. Each call adds a tensor to
    the layer's list, without gradient; a layer without heads counts as one head. Layers that leave their
    weights out to be quick are asked for them.

    Raises:
        ValueError: for what is not an nn.Module.
    """
    if not isinstance(model, nn.Module):
        raise ValueError(f"model is a {type(model).__name__}; it must be an nn.Module")
    maps: dict[str, list[Tensor]] = {}
    before: dict[
        str, dict[str, int]
    ] = {}  # layer → how much was recorded inside it before this call

    def inside(name: str) -> list[str]:
        return [other for other in maps if not name or other.startswith(f"{name}.")]

    def watch(name: str, layer: nn.Module) -> None:
        wanted = inspect.signature(layer.forward).parameters.get("need_weights")
        optional = wanted is not None and wanted.kind is wanted.KEYWORD_ONLY

        def start(_, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
            before[name] = {part: len(maps[part]) for part in inside(name)}
            return args, kwargs | {"need_weights": True} if optional else kwargs

        def end(_, args: tuple, output: object) -> None:
            if not isinstance(output, Attended) or output.weights is None:
                return
            for part in inside(name):
                del maps[part][before[name].get(part, 0) :]
                if not maps[part]:
                    del maps[part]
            maps.setdefault(name, []).append(_with_heads(output.weights.detach()))

        hooks.callback(layer.register_forward_pre_hook(start, with_kwargs=True).remove)
        hooks.callback(layer.register_forward_hook(end).remove)

    with contextlib.ExitStack() as hooks:
        for name, layer in model.named_modules():
            watch(name, layer)
        yield maps


class AttentionMap(NamedTuple):
    """One layer, for one pair of sequences: `weights` (heads, query, key) and the tokens of both sides.

    The keys are the queries where left out.
    """

    weights: Tensor
    queries: Sequence[str]
    keys: Sequence[str] | None = None


def entropy(weights: Float[Tensor, "*batch key"]) -> Float[Tensor, "*batch"]:
    r"""$-\sum_j \alpha_j \ln \alpha_j$ of each row, in nats: 0 where one key has all, $\ln n$ for $n$ alike.

    Rows of zeros, which may attend to nothing, have 0.
    """
    require_floating(weights=weights)
    return torch.special.entr(weights).sum(-1)


def mean_distance(weights: Float[Tensor, "*batch query key"]) -> Float[Tensor, "*batch"]:
    r"""How far attention reaches: $\frac1m \sum_{i} \sum_j \alpha_{ij}\, |i + n - m - j|$, in positions.

    With more keys than queries ($n > m$) the queries are the last ones, as in `causal_mask`.
    """
    require_floating(weights=weights)
    require_axes(2, "(…, query, key)", weights=weights)
    queries, keys = weights.shape[-2:]
    i = torch.arange(queries, device=weights.device)[:, None] + (keys - queries)
    j = torch.arange(keys, device=weights.device)  # (key,)
    return (weights * (i - j).abs()).sum((-2, -1)) / queries


def _with_heads(weights: Tensor) -> Tensor:
    """(batch, query, key) → (batch, 1, query, key); (query, key) → (1, 1, query, key)."""
    while weights.dim() < 4:
        weights = weights.unsqueeze(-3)
    return weights


def _require_attention(query, key, value, mask, scale, dropout, bias) -> None:
    require_vectors(query=query, key=key, value=value)
    require_alike(query=query, key=key, value=value)
    require_size(
        query.shape[-1], f"each key is compared with queries of {query.shape[-1]}", key=key
    )
    require_value_per_key(key, value)
    require_same_batch(query=query, key=key, value=value)
    require_probability(dropout=dropout)
    if query.shape[-1] == 0:
        raise ValueError(f"query has shape {tuple(query.shape)}; its vectors have no numbers")
    if scale is not None and (
        isinstance(scale, bool) or not isinstance(scale, Real) or not math.isfinite(scale)
    ):
        raise ValueError(f"scale={scale!r} must be a finite number, or None for 1/√d")
    batch = query.shape[:-2]
    if batch != key.shape[:-2]:
        batch = torch.broadcast_shapes(batch, key.shape[:-2])
    if bias is not None:
        require_floating(bias=bias)
        require_alike(query=query, bias=bias)
        require_broadcast((*batch, query.shape[-2], key.shape[-2]), "the scores", bias=bias)
    if mask is not None:
        shape = (*batch, query.shape[-2], key.shape[-2])
        names = {0: (), 1: ("batch",), 2: ("batch", "heads")}.get(len(batch))
        axes = (*names, "query", "key") if names is not None else ()
        require_mask(mask, shape, axes, device=query.device)
