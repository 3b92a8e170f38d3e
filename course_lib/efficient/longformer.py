"""Longformer attention: a sliding window, and a few tokens that attend to all and are attended by all."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from course_lib.attention import scaled_dot_product_attention
from course_lib.checks import efficient as checks
from course_lib.efficient.blocks import (
    allowed_near,
    batch_of,
    flat,
    in_blocks,
    joined,
    near_blocks,
    present,
    unflat,
)
from course_lib.efficient.window import block_length
from course_lib.validation import validated


@validated(checks.longformer_attention)
def longformer_attention(
    query: Float[Tensor, "*#batch length d"],
    key: Float[Tensor, "*#batch length d"],
    value: Float[Tensor, "*#batch length d_value"],
    window: int,
    global_positions: Sequence[int] | Int[Tensor, " globals"],
    *,
    global_query: Float[Tensor, "*#batch length d"] | None = None,
    global_key: Float[Tensor, "*#batch length d"] | None = None,
    global_value: Float[Tensor, "*#batch length d_value"] | None = None,
    padding_mask: Bool[Tensor, "..."] | None = None,
    scale: float | None = None,
) -> Float[Tensor, "... length d_value"]:
    r"""Let each query attend to its window and to the global tokens, which attend to all: O(n · (w + g)).

    $$\text{output}_i = \sum_{|i - j| \le w \;\text{or}\; j \in G} \alpha_{ij} v_j, \qquad
      i \in G: \sum_{\text{all } j} \alpha_{ij} v_j$$

    The softmax of a query runs over window and global tokens together; a global token inside the window counts
    once. In the published model, the queries of global tokens, and the keys and values they attend to, have
    projections of their own: pass what these give as `global_query`, `global_key` and `global_value`. Every
    other query attends to the global tokens through `key` and `value`.

    Args:
        query: $Q$, shape (…, length, d).
        key: $K$, as many as queries.
        value: $V$, shape (…, length, d_value).
        window: $w$, above 0, on each side; half of Hugging Face's `attention_window`.
        global_positions: $G$, which positions are global, in every sequence of the batch; each once.
        global_query, global_key, global_value: shaped as `query`, `key` and `value`, which stand in where one
            is left out. Of `global_query`, only the global positions are used.
        padding_mask, scale: as for `sliding_window_attention`.

    Returns:
        The output, shape (…, length, d_value).

    Raises:
        ValueError: for a window below 1, global positions that are no whole numbers, repeat or are outside
            the sequence, unequal numbers of queries, keys and values, other tensors that do not fit each
            other, and a mask that is not boolean or does not fit.

    Source: Beltagy, Peters and Cohan (2020), "Longformer", section 3.1.
    """
    positions = torch.as_tensor(global_positions, dtype=torch.int64, device=query.device)
    batch = batch_of(query, key, value)
    q, k, v = (flat(x, batch) for x in (query, key, value))
    exists = present(padding_mask, k, batch)  # (merged batch or 1, length, 1)
    is_global = torch.zeros_like(exists).index_fill(-2, positions, True)

    # Every query: the global keys, then those in its window that are not global.
    window = min(window, query.shape[-2])
    size = block_length(window)
    near = (size, window, window)
    in_window = allowed_near(exists & ~is_global, *near)  # (…, block, query, key)
    attended = scaled_dot_product_attention(
        in_blocks(q, size),
        _with_global(near_blocks(k, *near), k, positions),
        _with_global(near_blocks(v, *near), v, positions),
        _with_global(in_window.mT, exists.expand(-1, -1, size), positions).mT,
        scale=scale,
        need_weights=False,
    )
    output = joined(attended.output, query.shape[-2])  # (merged batch, length, d_value)

    # The global queries: all keys, through projections of their own.
    pairs = ((query, global_query), (key, global_key), (value, global_value))
    q, k, v = (flat(own if other is None else other, batch) for own, other in pairs)
    attending = scaled_dot_product_attention(
        q.index_select(-2, positions), k, v, exists.mT, scale=scale, need_weights=False
    )
    return unflat(output.index_copy(-2, positions, attending.output), batch)


def _with_global(near: Tensor, everywhere: Tensor, positions: Tensor) -> Tensor:
    """Put what belongs to the global keys before what belongs to the keys near each block."""
    shared = everywhere.index_select(-2, positions).unsqueeze(-3)  # (…, 1, globals, ·)
    return torch.cat([shared.expand(*near.shape[:-2], -1, -1), near], dim=-2)
