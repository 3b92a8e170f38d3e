r"""FlashAttention written out: exact attention, tile by tile, without the (query, key) matrix.

The softmax of a row is computed *online*: with each further tile of keys, the largest score so far $m$ and the
sum so far $\ell$ are updated, and what was summed before is rescaled,

$$m' = \max(m, \max_j a_j), \qquad \ell' = e^{m - m'} \ell + \sum_j e^{a_j - m'}, \qquad
  o' = e^{m - m'} o + \sum_j e^{a_j - m'} v_j$$

so that $o / \ell$ at the end is the output. The backward pass computes the scores of each tile a second time from
what was saved: the output and $L = m + \log \ell$, one number per query.

Source: Milakov and Gimelshein (2018), "Online normalizer calculation for softmax"; Dao et al. (2022),
"FlashAttention", algorithms 1 and 4; Dao (2023), "FlashAttention-2", whose order of loops this is.
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from course_lib.topics.efficient.blocks import batch_of
from course_lib.topics.efficient.precision import in_full_precision
from course_lib.validation import require_mask, require_whole


@in_full_precision
def flash_attention(
    query: Float[Tensor, "*#batch query d"],
    key: Float[Tensor, "*#batch key d"],
    value: Float[Tensor, "*#batch key d_value"],
    mask: Bool[Tensor, "..."] | None = None,
    *,
    causal: bool = False,
    block_size: int = 64,
    scale: float | None = None,
) -> Float[Tensor, "... query d_value"]:
    r"""Attend exactly, in tiles of `block_size` queries by `block_size` keys.

    $$\text{output} = \mathrm{softmax}(s\, Q K^\top)\, V, \qquad s = 1/\sqrt{d}$$

    Besides inputs and output it holds one tile of scores at a time, and one number per query for the backward
    pass. It computes tiles in a Python loop, to be read; the kernels behind
    `scaled_dot_product_attention(need_weights=False)` run the same algorithm fast. Second derivatives are not
    implemented. A fully masked query gets the zero vector.

    Args:
        query, key, value: $Q$, $K$ and $V$.
        mask: boolean, True = may attend, broadcastable to (…, query, key).
        causal: whether a query attends only to keys up to its own position. With more keys than queries, the
            queries are at the last positions, as in `causal_mask`; tiles that are masked whole are skipped.
        block_size: how many queries and how many keys a tile has; lengths need not be divisible by it.
        scale: $s$; $1/\sqrt{d}$ where left out.

    Returns:
        The output in the dtype of the query; computed in float32 at least.

    Source: Dao et al. (2022), algorithms 1 and 4.
    """
    batch = batch_of(query, key, value)
    query, key, value = (x.expand(*batch, *x.shape[-2:]) for x in (query, key, value))
    require_whole(block_size=block_size)
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(
            f"key has shape {tuple(key.shape)} but value has shape {tuple(value.shape)}; there must be one "
            f"value per key"
        )
    if causal and key.shape[-2] < query.shape[-2]:
        raise ValueError(
            f"query has {query.shape[-2]} queries but key has {key.shape[-2]} keys; with causal=True the "
            f"queries are the last of the keys, so there must be at least as many keys"
        )
    if mask is not None:
        require_mask(mask, (*batch, query.shape[-2], key.shape[-2]))
        mask = mask.expand(*batch, query.shape[-2], key.shape[-2])  # a view
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    return _FlashAttention.apply(query, key, value, mask, causal, block_size, scale)


class _FlashAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, query, key, value, mask, causal, block_size, scale):
        output = query.new_empty(*query.shape[:-1], value.shape[-1])  # (…, query, d_value)
        log_sum = query.new_empty(*query.shape[:-1], 1)  # (…, query, 1)
        for rows in _blocks(query.shape[-2], block_size):
            q = scale * query[..., rows, :]
            o = torch.zeros_like(output[..., rows, :])
            ell = torch.zeros_like(log_sum[..., rows, :])
            m = torch.full_like(ell, -torch.inf)
            for columns in _blocks(_last_key(query, key, rows, causal), block_size):
                scores = q @ key[..., columns, :].mT  # (…, block, block)
                scores = _masked(scores, query, key, mask, causal, rows, columns)
                new_m = torch.maximum(m, scores.amax(-1, keepdim=True))
                safe_m = new_m.masked_fill(new_m == -torch.inf, 0.0)  # no key so far
                powers, rescale = torch.exp(scores - safe_m), torch.exp(m - safe_m)
                ell = rescale * ell + powers.sum(-1, keepdim=True)
                o = rescale * o + powers @ value[..., columns, :]
                m = new_m
            output[..., rows, :] = o / ell.masked_fill(ell == 0, 1.0)
            log_sum[..., rows, :] = m + torch.log(ell)
        # The exponential of a score minus infinity is 0: no weight in a fully masked row.
        log_sum.masked_fill_(log_sum == -torch.inf, torch.inf)
        ctx.save_for_backward(query, key, value, mask, output, log_sum)
        ctx.options = (causal, block_size, scale)
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx, d_output):
        query, key, value, mask, output, log_sum = ctx.saved_tensors
        causal, block_size, scale = ctx.options
        d_query, d_key, d_value = (torch.zeros_like(x) for x in (query, key, value))
        delta = (d_output * output).sum(-1, keepdim=True)  # (…, query, 1)
        for rows in _blocks(query.shape[-2], block_size):
            q, d_o = scale * query[..., rows, :], d_output[..., rows, :]
            for columns in _blocks(_last_key(query, key, rows, causal), block_size):
                scores = q @ key[..., columns, :].mT  # (…, block, block), a second time
                scores = _masked(scores, query, key, mask, causal, rows, columns)
                weights = torch.exp(scores - log_sum[..., rows, :])
                d_weights = d_o @ value[..., columns, :].mT
                d_scores = weights * (d_weights - delta[..., rows, :])
                d_value[..., columns, :] += weights.mT @ d_o
                d_query[..., rows, :] += scale * d_scores @ key[..., columns, :]
                d_key[..., columns, :] += d_scores.mT @ q
        return d_query, d_key, d_value, None, None, None, None


def _blocks(length: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, length)) for start in range(0, length, size)]


def _last_key(query: Tensor, key: Tensor, rows: slice, causal: bool) -> int:
    """Return up to which key any of these queries attends; the queries are the last of the keys."""
    queries, keys = query.shape[-2], key.shape[-2]
    return min(keys, rows.stop + keys - queries) if causal else keys


def _masked(scores, query, key, mask, causal, rows: slice, columns: slice) -> Tensor:
    """Return a tile of scores with minus infinity where the mask, or the order, allows no attention."""
    past = key.shape[-2] - query.shape[-2]
    if mask is not None:
        scores = scores.masked_fill(~mask[..., rows, columns], -torch.inf)
    if causal and columns.stop > rows.start + past + 1:
        row = torch.arange(rows.start, rows.stop, device=scores.device)[:, None]
        column = torch.arange(columns.start, columns.stop, device=scores.device)
        scores = scores.masked_fill(column > row + past, -torch.inf)
    return scores
