"""Patterns of sparse attention as masks, to look at and to test with, and what computing them costs."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from course_lib.validation import require_one_of

#: The patterns that `attention_pattern` knows.
PATTERNS = (
    "dense",
    "causal",
    "sliding_window",
    "causal_sliding_window",
    "block",
    "causal_block",
    "longformer",
)


def attention_pattern(
    kind: str,
    length: int,
    window: int | None = None,
    global_positions: Sequence[int] | Int[Tensor, " globals"] = (),
    *,
    block_size: int | None = None,
    device: torch.device | str | None = None,
) -> Bool[Tensor, "length length"]:
    """Return the mask, True = may attend, for which dense attention equals a sparse one.

    It has length² entries: it is for pictures and tests. A mask on dense attention saves neither time nor
    memory, because every score is computed before it is masked.

    | kind | query i attends to key j |
    |---|---|
    | `"dense"` | all |
    | `"causal"` | j ≤ i |
    | `"sliding_window"` | at most `window` positions away |
    | `"causal_sliding_window"` | i − `window` < j ≤ i |
    | `"block"` | in the same block of `block_size` |
    | `"causal_block"` | j ≤ i in the same block |
    | `"longformer"` | at most `window` positions away, or i or j is in `global_positions` |

    Args:
        kind: a name of `PATTERNS`.
        length: how many queries and keys there are.
        window: for the kinds that have one.
        global_positions: for "longformer".
        block_size: for the kinds with blocks.
        device: where to create the mask; PyTorch's default device where left out.
    """
    require_one_of(PATTERNS, kind=kind)
    key = torch.arange(length, device=device)
    query = key[:, None]
    mask = torch.ones(length, length, dtype=torch.bool, device=device)
    if "window" in kind or kind == "longformer":
        mask &= (query - key).abs() <= window - ("causal" in kind)
    if "block" in kind:
        mask &= query // block_size == key // block_size
    if "causal" in kind:
        mask &= key <= query
    if kind == "longformer":
        positions = torch.as_tensor(global_positions, dtype=torch.int64, device=key.device)
        is_global = torch.isin(key, positions)
        mask |= is_global | is_global[:, None]
    return mask


class PatternCost(NamedTuple):
    """What attention with a pattern costs, if it computes the allowed scores and no others.

    Attributes:
        scores: how many scores are computed, per head.
        fraction: of the scores of dense attention.
        flops: of the two matrix products, scores and weighted sum, a multiplication and an addition each.
        score_bytes: what the scores would occupy, were they held all at once.
    """

    scores: int
    fraction: float
    flops: int
    score_bytes: int


def pattern_cost(
    mask: Bool[Tensor, "query key"], d_head: int, *, bytes_per_score: int = 4
) -> PatternCost:
    r"""Count the allowed pairs, and what they cost in one head.

    $$\text{flops} = 4\, d_\text{head} \cdot \text{scores}$$

    Args:
        mask: a pattern, (query, key).
        d_head: the dimension of queries, keys and values.
        bytes_per_score: 4 for float32, 2 for bfloat16.
    """
    scores = int(mask.sum())
    return PatternCost(scores, scores / mask.numel(), 4 * d_head * scores, bytes_per_score * scores)
