"""Attention that avoids the (query, key) matrix: exact in tiles, sparse in patterns, or approximate in O(n).

| exact | sparse: equal to dense attention with a mask | approximate |
|---|---|---|
| `flash_attention` | `sliding_window_attention`, `block_attention`, `longformer_attention` | `linear_attention`, `performer_attention`, `LinformerAttention` |

Queries, keys and values are (…, length, d), with any leading axes; masks are boolean, True = may attend.
"""

from course_lib.topics.efficient.flash import flash_attention
from course_lib.topics.efficient.linear import (
    LinearAttentionState,
    elu_plus_one,
    linear_attention,
    linear_attention_state,
    linear_attention_step,
)
from course_lib.topics.efficient.linformer import LinformerAttention
from course_lib.topics.efficient.patterns import (
    PATTERNS,
    PatternCost,
    attention_pattern,
    pattern_cost,
)
from course_lib.topics.efficient.performer import (
    orthogonal_projection,
    performer_attention,
    performer_features,
)
from course_lib.topics.efficient.sparse import (
    block_attention,
    longformer_attention,
    sliding_window_attention,
)

__all__ = [
    "PATTERNS",
    "LinearAttentionState",
    "LinformerAttention",
    "PatternCost",
    "attention_pattern",
    "block_attention",
    "elu_plus_one",
    "flash_attention",
    "linear_attention",
    "linear_attention_state",
    "linear_attention_step",
    "longformer_attention",
    "orthogonal_projection",
    "pattern_cost",
    "performer_attention",
    "performer_features",
    "sliding_window_attention",
]
