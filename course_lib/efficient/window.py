r"""Sliding-window attention: each query attends to the keys near it, in O(n · w) time and memory.

The queries are cut into blocks of $b$. The block that begins at position $i$ needs the keys from $i - w$ to
$i + b - 1 + w$ and no others, so that there are $n/b$ small attentions of $b$ queries and $b + 2w$ keys, of
which a band is masked. Neighbouring blocks share keys: they are views of one tensor, not copies.
"""

from jaxtyping import Bool, Float
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
from course_lib.validation import validated


def block_length(window: int) -> int:
    """Return how many queries share one block: half a window, but no fewer than matrix products need."""
    return max(32, window // 2)


@validated(checks.sliding_window_attention)
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
        query: $Q$, shape (…, length, d).
        key: $K$, as many as queries.
        value: $V$, shape (…, length, d_value).
        window: $w$, above 0; may exceed the length.
        causal: whether a query attends only to keys up to its own position.
        padding_mask: boolean, True = may attend, broadcastable to (…, 1, length); `padding_mask(lengths)`
            for inputs (batch, length, d), and with an axis for the heads, `[:, None]`, for
            (batch, heads, length, d).
        scale: of the scores; $1/\sqrt{d}$ where left out.

    Returns:
        The output, shape (…, length, d_value).

    Raises:
        ValueError: for a window below 1, unequal numbers of queries, keys and values, other tensors that do
            not fit each other, and a mask that is not boolean or does not fit.

    Source: Beltagy, Peters and Cohan (2020), "Longformer", section 3.1; causal: Child et al. (2019),
    "Generating long sequences with sparse Transformers"; Jiang et al. (2023), "Mistral 7B".
    """
    window = min(window, query.shape[-2])
    before, after = (window - 1, 0) if causal else (window, window)
    near = (block_length(window), before, after)
    batch = batch_of(query, key, value)
    q, k, v = (flat(x, batch) for x in (query, key, value))  # (merged batch, length, d)
    attended = scaled_dot_product_attention(
        in_blocks(q, block_length(window)),  # (merged batch, block, query, d)
        near_blocks(k, *near),  # (merged batch, block, key, d)
        near_blocks(v, *near),
        allowed_near(present(padding_mask, k, batch), *near),  # (…, block, query, key)
        scale=scale,
        need_weights=False,
    )
    return unflat(joined(attended.output, query.shape[-2]), batch)
