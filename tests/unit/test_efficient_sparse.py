"""Sliding-window, block and Longformer attention against dense attention with the same mask, and Hugging Face's."""

import functools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from course_lib.topics.efficient import (
    PATTERNS,
    attention_pattern,
    block_attention,
    longformer_attention,
    pattern_cost,
    sliding_window_attention,
)
from tests.helpers.efficient import BATCH, compare, dense, padding, pairs, triple

WINDOW = pytest.mark.verifies(
    "course_lib.topics.efficient.sliding_window_attention",
    against="PyTorch `F.scaled_dot_product_attention` with a mask made pair by pair",
)
BLOCK = pytest.mark.verifies(
    "course_lib.topics.efficient.block_attention",
    against="PyTorch `F.scaled_dot_product_attention` with a mask made pair by pair",
)
LONGFORMER = pytest.mark.verifies(
    "course_lib.topics.efficient.longformer_attention",
    against="PyTorch `F.scaled_dot_product_attention` with a mask made pair by pair",
)


def in_window(window, causal=False):
    return lambda i, j: i - window < j <= i if causal else abs(i - j) <= window


def in_block(size, causal=False):
    return lambda i, j: i // size == j // size and (j <= i or not causal)


def near_or_global(window, globals_):
    return lambda i, j: abs(i - j) <= window or i in globals_ or j in globals_


def call(attention, rule, **marks):
    """A function, and the rule of each of its arguments that is tested."""
    return lambda *given, **options: pytest.param(
        functools.partial(attention, **options), given, rule(*given, **options), **marks
    )


window = call(sliding_window_attention, in_window, marks=WINDOW)
block = call(block_attention, in_block, marks=BLOCK)
longformer = call(longformer_attention, near_or_global, marks=LONGFORMER)


@pytest.mark.parametrize(
    ("attention", "given", "rule"),
    [
        *(window(w, causal=causal) for w in (1, 3, 40, 1000) for causal in (False, True)),
        *(block(size, causal=causal) for size in (1, 8, 1000) for causal in (False, True)),
        *(longformer(w, globals_) for w in (1, 40, 1000) for globals_ in ([], [5, 0, 6])),
    ],
)
@pytest.mark.parametrize(
    ("dtype", "length", "padded", "scale"),
    [
        (torch.float64, 7, True, None),
        (torch.float64, 71, True, None),
        (torch.float32, 71, False, 0.3),
    ],
)
def test_sparse_attention_equals_dense_attention(ledger, attention, given, rule, dtype, length, padded, scale):  # fmt: skip
    mask = pairs(length, rule)
    real = padding(length) if padded else None
    mask = mask & real if padded else mask
    compare(
        ledger,
        lambda q, k, v: attention(q, k, v, *given, padding_mask=real, scale=scale),
        lambda q, k, v: dense(q, k, v, mask, scale),
        triple(length, dtype),
    )


@WINDOW
@given(st.integers(1, 150), st.integers(1, 90), st.booleans())
def test_sliding_window_for_any_length(ledger, length, window, causal):
    mask = pairs(length, in_window(window, causal))
    compare(
        ledger,
        lambda q, k, v: sliding_window_attention(q, k, v, window, causal=causal),
        lambda q, k, v: dense(q, k, v, mask),
        triple(length),
    )


@LONGFORMER
@pytest.mark.parametrize("left_out", [None, 0, 1, 2])
def test_longformer_with_projections_of_its_own(ledger, left_out):
    """Rows of global queries are dense attention with the second triple, all others use the first."""
    length, positions = 71, [70, 3]
    first, second = triple(length), triple(length)
    mask = pairs(length, near_or_global(4, positions))
    is_global = torch.tensor([i in positions for i in range(length)])[:, None]

    def ours(q, k, v, *others):
        names = ("global_query", "global_key", "global_value")
        given_ = {name: x for i, (name, x) in enumerate(zip(names, others, strict=True)) if i != left_out}  # fmt: skip
        return longformer_attention(q, k, v, 4, torch.tensor(positions), **given_)

    def oracle(q, k, v, *others):
        both = zip((q, k, v), others, strict=True)
        others = [own if i == left_out else other for i, (own, other) in enumerate(both)]
        return torch.where(is_global, dense(*others), dense(q, k, v, mask))

    compare(ledger, ours, oracle, [*first, *second])


@pytest.mark.verifies(
    "course_lib.topics.efficient.longformer_attention",
    against="Hugging Face `LongformerSelfAttention`",
)
@pytest.mark.parametrize(
    ("window", "globals_", "padded"), [(2, [17, 2, 31], True), (4, [], False), (8, [0], True)]
)
def test_longformer_equals_hugging_face(ledger, window, globals_, padded):
    from transformers.models.longformer import modeling_longformer

    heads, d_head, length = 3, 5, 32
    config = modeling_longformer.LongformerConfig(
        hidden_size=heads * d_head, num_attention_heads=heads, attention_window=[2 * window],
        attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    theirs = modeling_longformer.LongformerSelfAttention(config, layer_id=0).double().eval()
    x = torch.randn(BATCH, length, heads * d_head, dtype=torch.float64)
    state = torch.zeros(BATCH, length, dtype=torch.float64)  # 0 is local, 1 global, -1 padding
    state[:, globals_] = 10000.0
    if padded:
        state[0, -5:], state[1, -3:] = -10000.0, -10000.0
        state[:, globals_] = state[:, globals_].where(state[:, globals_] != -10000, 10000.0)
    real = state >= 0
    (wanted,) = theirs(
        x, attention_mask=state, is_index_masked=state < 0, is_index_global_attn=state > 0,
        is_global_attn=bool(globals_),
    )  # fmt: skip

    def heads_of(layer):
        return layer(x).unflatten(-1, (heads, d_head)).transpose(1, 2)

    output = longformer_attention(
        *map(heads_of, (theirs.query, theirs.key, theirs.value)),
        window,
        globals_,
        global_query=heads_of(theirs.query_global),
        global_key=heads_of(theirs.key_global),
        global_value=heads_of(theirs.value_global),
        padding_mask=real[:, None, None],
    )
    ours = output.transpose(1, 2).flatten(-2)
    # Theirs is a softmax in float32, and zero at padding.
    ledger.compare(ours[real], wanted[real], within=1e-6)


@pytest.mark.verifies(
    "course_lib.topics.efficient.sliding_window_attention",
    against="the mask of Hugging Face's Mistral (`sliding_window_causal_mask_function`)",
)
@pytest.mark.parametrize("window", [1, 9])
def test_causal_window_is_that_of_mistral(ledger, window):
    from transformers.masking_utils import sliding_window_causal_mask_function

    rule = sliding_window_causal_mask_function(window)
    mask = pairs(40, lambda i, j: bool(rule(0, 0, torch.tensor(i), torch.tensor(j))))
    compare(
        ledger,
        lambda q, k, v: sliding_window_attention(q, k, v, window, causal=True),
        lambda q, k, v: dense(q, k, v, mask),
        triple(40),
    )


# --- patterns --------------------------------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.topics.efficient.attention_pattern",
    "course_lib.topics.efficient.PATTERNS",
    against="the rule of each kind, pair by pair",
)
@pytest.mark.parametrize("length", [1, 4, 13])
def test_patterns_equal_their_rules(ledger, length):
    window, size, globals_ = 3, 5, [0, length - 1][:length]
    rules = {
        "dense": lambda i, j: True,
        "causal": lambda i, j: j <= i,
        "sliding_window": in_window(window),
        "causal_sliding_window": in_window(window, causal=True),
        "block": in_block(size),
        "causal_block": in_block(size, causal=True),
        "longformer": near_or_global(window, globals_),
    }
    assert tuple(rules) == PATTERNS
    for kind, rule in rules.items():
        mask = attention_pattern(kind, length, window, globals_, block_size=size)
        assert mask.dtype == torch.bool
        ledger.compare(mask, pairs(length, rule), within=0)


@pytest.mark.verifies(
    "course_lib.topics.efficient.pattern_cost",
    "course_lib.topics.efficient.PatternCost",
    against="PyTorch's `FlopCounterMode`",
)
def test_cost_of_a_pattern(ledger):
    """Blocks that divide the length are small dense attentions, which PyTorch counts."""
    from torch.utils.flop_counter import FlopCounterMode

    d_head, length, size = 7, 24, 6
    cost = pattern_cost(attention_pattern("block", length, block_size=size), d_head)
    x = torch.randn(length // size, size, d_head)
    with FlopCounterMode(display=False) as counter:
        scores = x @ x.mT
        scores @ x
    counted = [counter.get_total_flops(), scores.numel() * scores.element_size()]
    ledger.compare(torch.tensor([cost.flops, cost.score_bytes]), torch.tensor(counted), within=0)
    assert cost.scores == length * size and cost.fraction == size / length
    half = pattern_cost(attention_pattern("dense", 3), d_head, bytes_per_score=2)
    assert half == (9, 1.0, 4 * 7 * 9, 18)
