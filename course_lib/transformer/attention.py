r"""Scaled dot-product attention, and layers with one head that project their inputs first.

$$\mathrm{Attention}(Q, K, V) = \mathrm{softmax}\!\left(\frac{Q K^\top}{\sqrt{d}}\right) V$$

$Q$ holds one query per row, shape (…, query, d), $K$ one key, (…, key, d), $V$ one value, (…, key, d_value).

Source: Vaswani et al. (2017), "Attention is all you need", section 3.2.1.
"""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from course_lib.transformer.masks import causal_mask, combine_masks, masked_softmax
from course_lib.validation import require_broadcast, require_mask

__all__ = [
    "Attention",
    "AttentionOutput",
    "CrossAttention",
    "SelfAttention",
    "SingleHeadAttention",
    "attend",
    "scaled_dot_product_attention",
]

Mask = Bool[Tensor, "..."]


class AttentionOutput(NamedTuple):
    """The result of an attention function or layer.

    Attributes:
        output: the weighted sums of the values, (…, query, d_value).
        weights: the attention weights, (…, query, key); None where they were not asked for.
    """

    output: Tensor
    weights: Tensor | None


def scaled_dot_product_attention(
    query: Float[Tensor, "*#batch query d"],
    key: Float[Tensor, "*#kv_batch key d"],
    value: Float[Tensor, "*#kv_batch key d_value"],
    mask: Mask | None = None,
    *,
    scale: float | None = None,
    bias: Float[Tensor, "..."] | None = None,
    dropout: float = 0.0,
    training: bool = False,
    need_weights: bool = True,
    enable_gqa: bool = False,
    is_causal: bool = False,
) -> AttentionOutput:
    r"""Compare every query with every key, apply a softmax over the keys, average the values.

    $$\text{output} = \mathrm{dropout}(\alpha)\, V, \qquad \alpha = \mathrm{softmax}(s\, Q K^\top + B), \qquad
      s = 1/\sqrt{d}$$

    A fully masked query gets all-zero weights, so its output is the zero vector. So does one whose bias is
    minus infinity for every key. A NaN in a masked key has no influence on the weights; a NaN or infinity
    in a masked value makes its component of the output NaN, because 0 · NaN is NaN.

    Args:
        query, key, value: $Q$, $K$ and $V$.
        mask: boolean, True = may attend, broadcastable to (…, query, key).
        scale: $s$; $1/\sqrt{d}$ where left out.
        bias: $B$, added to the scaled scores, broadcastable to (…, query, key).
        dropout: the probability with which a weight is dropped, after the softmax.
        training: whether dropout is applied.
        need_weights: False to use PyTorch's fused kernel, which never holds the (query, key) matrix; the
            weights are then None. (With other than three or four axes, where PyTorch has no fused kernel for the
            inputs, and in an exported model, the same is computed with the matrix.)
        enable_gqa: whether keys and values may have fewer heads than the queries, a divisor of their number;
            each key/value head then serves a group of query heads. All three are (batch, heads, length, d).
        is_causal: True for `causal_mask` beside `mask`: both must allow. Where there is no mask, the fused kernel
            skips what it masks.

    Source: Vaswani et al. (2017), equation 1; Ainslie et al. (2023), "GQA", for groups of heads.
    """
    queries, keys = query.shape[-2], key.shape[-2]
    # bool, because torch.jit.trace makes sizes tensors
    grouped = bool(enable_gqa and key.shape[-3] != query.shape[-3])
    if keys != value.shape[-2] or (grouped and key.shape[-3] != value.shape[-3]):
        raise ValueError(  # the fused kernel reads past the end
            f"key has shape {tuple(key.shape)} but value has shape {tuple(value.shape)}; there must be one "
            f"value per key, and as many heads of both"
        )
    is_causal = bool(is_causal and queries > 1)  # the last token may attend to all
    # Exporters write the kernel out as a softmax that knows no row without keys: in ONNX (opset 20, PyTorch 2.13) it
    # gives the mean of all values, with a bias NaN. So an exported model computes what stands below.
    fused = not need_weights and not torch.compiler.is_exporting()
    # The kernel masks before it scales (PyTorch 2.13): −∞ times 0 is NaN, times a negative number +∞.
    rising = scale is None or scale > 0
    in_kernel = fused and rising and mask is None and bias is None and keys == queries
    if is_causal and not in_kernel:
        mask = combine_masks(mask, causal_mask(queries, keys, device=query.device))
        is_causal = False
    if fused:
        p = dropout if training else 0.0
        output = _fused(query, key, value, mask, bias, p, is_causal, scale, grouped)
        return AttentionOutput(output, None)
    if grouped:
        group = query.shape[-3] // key.shape[-3]
        key, value = (x.repeat_interleave(group, dim=-3) for x in (key, value))
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = (query * scale) @ key.mT  # (…, query, key); scaled first, so float16 does not overflow
    if bias is not None:
        require_broadcast(scores.shape, bias=bias)
        scores = scores + bias
    return attend(scores, value, mask, dropout=dropout, training=training)


def _fused(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    bias: Tensor | None,
    dropout: float,
    is_causal: bool,
    scale: float | None,
    grouped: bool,
) -> Float[Tensor, "*batch query d_value"]:
    """Call PyTorch's kernel, which takes (batch, heads, length, d), and a mask or a bias or `is_causal`."""
    batch, kv_batch = query.shape[:-2], key.shape[:-2]
    if batch != kv_batch and not grouped:
        batch = torch.broadcast_shapes(batch, kv_batch)
    shape = (*batch, query.shape[-2], key.shape[-2])
    if mask is not None:
        require_mask(mask, shape)
    if bias is not None:
        require_broadcast(shape, bias=bias)
    mask = kernel_mask(mask, bias, query.dtype, query.device.type)
    mask = None if mask is None else torch.atleast_2d(mask)
    one_head = query.ndim == key.ndim == value.ndim == 3 and not grouped
    if one_head:
        query, key, value = (x[:, None] for x in (query, key, value))
        mask = mask[:, None] if mask is not None and mask.ndim == 3 else mask
    output = F.scaled_dot_product_attention(
        query, key, value, mask, dropout, is_causal, scale=scale, enable_gqa=grouped
    )
    return output[:, 0] if one_head else output


def kernel_mask(
    mask: Mask | None, bias: Float[Tensor, "..."] | None, dtype: torch.dtype, device: str
) -> Tensor | None:
    """Return mask and bias as one, in the form that PyTorch's kernels compute rightly on this type of device.

    On a CPU that is a boolean mask. On a GPU in half precision, also under autocast, such a mask goes to cuDNN (PyTorch
    2.11, cuDNN 9.19), where a query without a key attends to every key, and at lengths of 64, 192, 320 its gradients
    are NaN. With the additive mask all kernels give zeros; those of float32 make it themselves.
    """
    if bias is None and (mask is None or device == "cpu"):
        return mask
    if mask is None:
        return bias
    zero = torch.zeros((), dtype=dtype, device=mask.device)
    return torch.where(mask, zero if bias is None else bias, -torch.inf)


def attend(
    scores: Float[Tensor, "*#batch query key"],
    value: Float[Tensor, "*#batch key d_value"],
    mask: Mask | None = None,
    *,
    dropout: float = 0.0,
    training: bool = False,
) -> AttentionOutput:
    r"""Turn scores into attention weights, and average the values with them.

    $$\alpha = \mathrm{softmax}(a), \qquad \text{output} = \mathrm{dropout}(\alpha)\, V$$

    Args:
        scores: $a$.
        value: $V$.
        mask: boolean, True = may attend, broadcastable to (…, query, key).
        dropout: the probability with which a weight is dropped; the others are divided by 1 − dropout. The
            weights that are returned are those before dropout.
        training: whether dropout is applied.
    """
    weights = masked_softmax(scores, mask)  # (…, query, key)
    if value.is_floating_point():  # whole numbers would round the weights to 0 and 1
        weights = weights.to(value.dtype)  # under autocast, scores have a dtype of their own
    return AttentionOutput(F.dropout(weights, dropout, training) @ value, weights)


class Attention(nn.Module):
    r"""Attention with any scoring function: score, softmax, weighted sum.

    $$\text{output}_i = \sum_j \alpha_{ij}\, v_j, \qquad \alpha_{ij} = \mathrm{softmax}_j\, a(q_i, k_j)$$

    Args:
        score: a module from (…, query, d_q) and (…, key, d_k) to (…, query, key).
        dropout: of the weights, in training mode.
    """

    def __init__(self, score: nn.Module, dropout: float = 0.0) -> None:
        super().__init__()
        self.score, self.dropout = score, dropout

    def forward(
        self,
        query: Float[Tensor, "*#batch query d_query"],
        key: Float[Tensor, "*#batch key d_key"],
        value: Float[Tensor, "*#batch key d_value"],
        mask: Mask | None = None,
    ) -> AttentionOutput:
        """Attend."""
        scores = self.score(query, key)  # (…, query, key)
        return attend(scores, value, mask, dropout=self.dropout, training=self.training)


class SingleHeadAttention(nn.Module):
    r"""One head: learned projections of queries, keys and values, then attention.

    $$\text{output} = \mathrm{Attention}(X_q W^Q,\; X_k W^K,\; X_v W^V)$$

    with a bias in each projection. Inputs are (batch, length, d_model); the output is
    (batch, query, d_head), the weights are (batch, query, key).

    Args:
        d_model: the dimension of the inputs.
        d_head: the dimension of queries, keys and values; `d_model` where left out.

    Source: Vaswani et al. (2017), section 3.2.2, with one head and without the output projection.
    """

    def __init__(self, d_model: int, d_head: int | None = None) -> None:
        super().__init__()
        d_head = d_model if d_head is None else d_head
        self.q_proj = nn.Linear(d_model, d_head)
        self.k_proj = nn.Linear(d_model, d_head)
        self.v_proj = nn.Linear(d_model, d_head)

    def forward(
        self,
        query: Float[Tensor, "batch query d_model"],
        key: Float[Tensor, "batch key d_model"],
        value: Float[Tensor, "batch key d_model"],
        mask: Mask | None = None,
    ) -> AttentionOutput:
        """Project, then attend."""
        q = self.q_proj(query)  # (batch, query, d_head)
        k = self.k_proj(key)  # (batch, key, d_head)
        v = self.v_proj(value)  # (batch, key, d_head)
        return scaled_dot_product_attention(q, k, v, mask)


class SelfAttention(SingleHeadAttention):
    """Attention within one sequence: queries, keys and values are projections of the same vectors.

    Shapes as in `SingleHeadAttention`, with as many queries as keys.
    """

    def forward(
        self, x: Float[Tensor, "batch length d_model"], mask: Mask | None = None
    ) -> AttentionOutput:
        """Attend from x to x."""
        return super().forward(x, x, x, mask)


class CrossAttention(SingleHeadAttention):
    """Attention from one sequence to another: queries from `x`, keys and values from `memory`.

    The weights are (batch, query, key): a row per vector of `x`, a column per vector of `memory`.
    """

    def forward(
        self,
        x: Float[Tensor, "batch query d_model"],
        memory: Float[Tensor, "batch key d_model"],
        mask: Mask | None = None,
    ) -> AttentionOutput:
        """Attend from x to memory."""
        return super().forward(x, memory, memory, mask)
