r"""Sparse attention: each query attends to the keys near it, to those of its block, or also to a few global ones.

For a sliding window, the queries are cut into blocks of $b$. The block that begins at position $i$ needs the keys
from $i - w$ to $i + b - 1 + w$ and no others, so that there are $n/b$ small attentions of $b$ queries and
$b + 2w$ keys, of which a band is masked. Neighbouring blocks share keys: they are views of one tensor, not copies.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from course_lib.topics.efficient.blocks import (
    allowed_near,
    batch_of,
    flat,
    in_blocks,
    joined,
    near_blocks,
    present,
    require_one_length,
    unflat,
)
from course_lib.transformer.attention import scaled_dot_product_attention
from course_lib.transformer.masks import causal_mask
from course_lib.validation import require_whole


def _block_length(window: int) -> int:
    """Return how many queries share one block: half a window, but no fewer than matrix products need."""
    return max(32, window // 2)


def sliding_window_attention(
    query: Float[Tensor, "*#batch length d"],
    key: Float[Tensor, "*#batch length d"],
    value: Float[Tensor, "*#batch length d_value"],
    window: int,
    *,
    causal: bool = False,
    padding_mask: Bool[Tensor, "..."] | None = None,
    scale: float | None = None,
) -> Float[Tensor, "... length d_value"]:
    r"""Let query $i$ attend to the keys within `window` positions: no (query, key) matrix, O(n · w).

    $$\text{output}_i = \sum_{|i - j| \le w} \alpha_{ij} v_j, \qquad
      \text{causal: } i - w < j \le i$$

    That is up to $2w + 1$ keys, and up to $w$ with `causal=True`, the query's own among them. Hugging Face's
    `sliding_window` of Mistral is the causal `window`; the `attention_window` of Longformer counts both sides,
    so it is `2 * window`. A query whose keys are all padding gets the zero vector.

    Args:
        query, key, value: $Q$, $K$ and $V$.
        window: $w$, above 0; may exceed the length.
        causal: whether a query attends only to keys up to its own position.
        padding_mask: boolean, True = may attend, broadcastable to (…, 1, length); `padding_mask(lengths)`
            for inputs (batch, length, d), and with an axis for the heads, `[:, None]`, for
            (batch, heads, length, d).
        scale: of the scores; $1/\sqrt{d}$ where left out.

    Source: Beltagy, Peters and Cohan (2020), "Longformer", section 3.1; causal: Child et al. (2019),
    "Generating long sequences with sparse Transformers"; Jiang et al. (2023), "Mistral 7B".
    """
    require_whole(window=window)
    require_one_length(query, key, value)
    window = min(window, query.shape[-2])
    before, after = (window - 1, 0) if causal else (window, window)
    near = (_block_length(window), before, after)
    batch = batch_of(query, key, value)
    q, k, v = (flat(x, batch) for x in (query, key, value))  # (merged batch, length, d)
    attended = scaled_dot_product_attention(
        in_blocks(q, _block_length(window)),  # (merged batch, block, query, d)
        near_blocks(k, *near),  # (merged batch, block, key, d)
        near_blocks(v, *near),
        allowed_near(present(padding_mask, k, batch), *near),  # (…, block, query, key)
        scale=scale,
        need_weights=False,
    )
    return unflat(joined(attended.output, query.shape[-2]), batch)


def block_attention(
    query: Float[Tensor, "*#batch length d"],
    key: Float[Tensor, "*#batch length d"],
    value: Float[Tensor, "*#batch length d_value"],
    block_size: int,
    *,
    causal: bool = False,
    padding_mask: Bool[Tensor, "..."] | None = None,
    scale: float | None = None,
) -> Float[Tensor, "... length d_value"]:
    r"""Let each query attend to the keys of its own block: a block-diagonal pattern, O(n · b) time and memory.

    $$\text{output}_i = \sum_{\lfloor j/b \rfloor = \lfloor i/b \rfloor} \alpha_{ij} v_j$$

    No information passes from block to block, in no number of layers, unless the blocks of another layer are cut
    at other positions. A query whose keys are all padding gets the zero vector.

    Args:
        query, key, value: $Q$, $K$ and $V$.
        block_size: $b$, above 0; the last block is shorter where $b$ does not divide the length.
        causal: whether a query attends only to keys up to its own position.
        padding_mask, scale: as for `sliding_window_attention`.

    Source: Qiu et al. (2020), "Blockwise self-attention for long document understanding", whose heads with the
    identity permutation these are.
    """
    require_whole(block_size=block_size)
    require_one_length(query, key, value)
    length = query.shape[-2]
    size = min(block_size, length)
    batch = batch_of(query, key, value)
    q, k, v = (in_blocks(flat(x, batch), size) for x in (query, key, value))
    allowed = in_blocks(present(padding_mask, key, batch), size).mT  # (…, block, 1, key)
    if causal:
        allowed = allowed & causal_mask(size, device=query.device)
    attended = scaled_dot_product_attention(q, k, v, allowed, scale=scale, need_weights=False)
    return unflat(joined(attended.output, length), batch)


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
        query, key, value: $Q$, $K$ and $V$.
        window: $w$, above 0, on each side; half of Hugging Face's `attention_window`.
        global_positions: $G$, which positions are global, in every sequence of the batch; each once.
        global_query, global_key, global_value: shaped as `query`, `key` and `value`, which stand in where one
            is left out. Of `global_query`, only the global positions are used.
        padding_mask, scale: as for `sliding_window_attention`.

    Source: Beltagy, Peters and Cohan (2020), "Longformer", section 3.1.
    """
    require_whole(window=window)
    require_one_length(query, key, value)
    if isinstance(global_positions, Sequence) and len(set(global_positions)) < len(
        global_positions
    ):
        raise ValueError(f"global_positions={global_positions} holds a position more than once")
    positions = torch.as_tensor(global_positions, dtype=torch.int64, device=query.device)
    batch = batch_of(query, key, value)
    q, k, v = (flat(x, batch) for x in (query, key, value))
    exists = present(padding_mask, k, batch)  # (merged batch or 1, length, 1)
    is_global = torch.zeros_like(exists).index_fill(-2, positions, True)

    # Every query: the global keys, then those in its window that are not global.
    window = min(window, query.shape[-2])
    size = _block_length(window)
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
