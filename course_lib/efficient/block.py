"""Block attention: the sequence is cut into blocks, and each attends within itself."""

from jaxtyping import Bool, Float
from torch import Tensor

from course_lib.attention import scaled_dot_product_attention
from course_lib.checks import efficient as checks
from course_lib.efficient.blocks import batch_of, flat, in_blocks, joined, present, unflat
from course_lib.masks import causal_mask
from course_lib.validation import validated


@validated(checks.block_attention)
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
        query: $Q$, shape (…, length, d).
        key: $K$, as many as queries.
        value: $V$, shape (…, length, d_value).
        block_size: $b$, above 0; the last block is shorter where $b$ does not divide the length.
        causal: whether a query attends only to keys up to its own position.
        padding_mask, scale: as for `sliding_window_attention`.

    Returns:
        The output, shape (…, length, d_value).

    Raises:
        ValueError: for a block size below 1, unequal numbers of queries, keys and values, other tensors that
            do not fit each other, and a mask that is not boolean or does not fit.

    Source: Qiu et al. (2020), "Blockwise self-attention for long document understanding", whose heads with the
    identity permutation these are.
    """
    length = query.shape[-2]
    size = min(block_size, length)
    batch = batch_of(query, key, value)
    q, k, v = (in_blocks(flat(x, batch), size) for x in (query, key, value))
    allowed = in_blocks(present(padding_mask, key, batch), size).mT  # (…, block, 1, key)
    if causal:
        allowed = allowed & causal_mask(size, device=query.device)
    attended = scaled_dot_product_attention(q, k, v, allowed, scale=scale, need_weights=False)
    return unflat(joined(attended.output, length), batch)
