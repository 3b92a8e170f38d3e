"""One row per positional encoding: what it learns, and what it does to one pair of tokens.

The tests of layers, models, caches and decoding take the encodings from here. A new encoding needs one row.
"""

from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch

from course_lib.transformer.positions import (
    AlibiBias,
    AttentionPositions,
    EmbeddingPositions,
    LearnedPositions,
    RotaryPositions,
    ShawRelativePositions,
    SinusoidalPositions,
    T5RelativeBias,
)
from tests.helpers.multihead import D_HEAD

FAR = 3  # offsets beyond it are alike for Shaw and T5, so that short sequences have them


def dot_product(positions, q, k, offset):
    """The score of one query and one key before the division by √d_head."""
    return (q * k).sum()


def no_bias(positions, head, offset):
    """What is added to the scaled score."""
    return 0.0


def same_value(positions, v, offset):
    """What the output is a weighted sum of."""
    return v


class Row(NamedTuple):
    """An encoding, and an independent computation of what it does.

    Attributes:
        kind: its class.
        layer: number of heads → the encoding of a small layer with heads of dimension `D_HEAD`; None where it
            is added to the embeddings.
        count: (d_model, num_heads, max_length) → how many parameters `make_positions` gives an encoding.
        score, bias, value: of one pair of tokens, the key `offset` positions after the query.
        verifies: what the loop over pairs of tokens is an oracle of.
    """

    kind: type
    layer: Callable[[int], AttentionPositions | None] | None = None
    count: Callable[[int, int, int], int] = lambda d_model, num_heads, max_length: 0
    score: Callable = dot_product
    bias: Callable = no_bias
    value: Callable = same_value
    verifies: pytest.MarkDecorator | None = None


def rotary_score(positions, q, k, offset):
    def pairs(vector):
        if positions.layout == "half":
            return torch.complex(*vector.chunk(2))
        return torch.complex(vector[0::2], vector[1::2])

    size = len(q)
    angle = [offset / positions.base ** (2 * i / size) for i in range(size // 2)]
    angle = torch.tensor(angle, dtype=q.dtype)
    return (pairs(q).conj() * pairs(k) * torch.polar(torch.ones_like(angle), angle)).real.sum()


def partial_score(positions, q, k, offset):
    """Four of the six components are rotated."""
    return rotary_score(positions, q[:4], k[:4], offset) + (q[4:] * k[4:]).sum()


def shaw_score(positions, q, k, offset):
    return (q * (k + positions.key[max(-FAR, min(FAR, offset)) + FAR])).sum()


def shaw_value(positions, v, offset):
    return v + positions.value[max(-FAR, min(FAR, offset)) + FAR]


def t5_bias(positions, head, offset):
    from transformers.models.t5.modeling_t5 import T5Attention

    bucket = T5Attention._relative_position_bucket(
        torch.tensor(offset),
        bidirectional=positions.bidirectional,
        num_buckets=len(positions.table),
        max_distance=positions.max_distance,
    )
    return positions.table[bucket, head]


def alibi_bias(positions, head, offset):
    slopes = {3: [1 / 16, 1 / 256, 1 / 4], 4: [4**-n for n in (1, 2, 3, 4)]}
    return -abs(offset) * slopes[positions.slopes.numel()][head]


T5 = Row(
    T5RelativeBias,
    layer=lambda heads: T5RelativeBias(heads, num_buckets=8, max_distance=4),
    count=lambda d_model, num_heads, max_length: 32 * num_heads,
    bias=t5_bias,
    verifies=pytest.mark.verifies(
        "course_lib.transformer.positions.T5RelativeBias",
        against="whole layers, one pair of tokens at a time",
    ),
)
ROTARY = Row(
    RotaryPositions,
    layer=lambda heads: RotaryPositions(D_HEAD, 50.0),
    score=rotary_score,
    verifies=pytest.mark.verifies(
        "course_lib.transformer.positions.RotaryPositions",
        against="whole layers, one pair of tokens at a time",
    ),
)
ROWS = {
    "none": Row(
        type(None),
        layer=lambda heads: None,
        verifies=pytest.mark.verifies(
            "course_lib.transformer.multihead.MultiHeadAttention",
            against="whole layers, one pair of tokens at a time",
        ),
    ),
    "sinusoidal": Row(SinusoidalPositions),
    "learned": Row(
        LearnedPositions, count=lambda d_model, num_heads, max_length: max_length * d_model
    ),
    "shaw": Row(
        ShawRelativePositions,
        layer=lambda heads: ShawRelativePositions(D_HEAD, FAR),
        count=lambda d_model, num_heads, max_length: 2 * 33 * (d_model // num_heads),
        score=shaw_score,
        value=shaw_value,
        verifies=pytest.mark.verifies(
            "course_lib.transformer.positions.ShawRelativePositions",
            against="whole layers, one pair of tokens at a time",
        ),
    ),
    "t5": T5,
    "rotary": ROTARY,
    "alibi": Row(
        AlibiBias,
        layer=AlibiBias,
        bias=alibi_bias,
        verifies=pytest.mark.verifies(
            "course_lib.transformer.positions.AlibiBias",
            against="whole layers, one pair of tokens at a time",
        ),
    ),
}
#: The rows, and the same encodings with other settings.
CASES = ROWS | {
    "t5, causal": T5._replace(
        layer=lambda heads: T5RelativeBias(
            heads, bidirectional=False, num_buckets=4, max_distance=5
        ),
    ),
    "rotary, half": ROTARY._replace(layer=lambda heads: RotaryPositions(D_HEAD, layout="half")),
    "rotary, a part": ROTARY._replace(
        layer=lambda heads: RotaryPositions(D_HEAD, 50.0, partial_rotary_factor=2 / 3),
        score=partial_score,
    ),
    "rotary, half of a part": ROTARY._replace(
        layer=lambda heads: RotaryPositions(D_HEAD, layout="half", partial_rotary_factor=2 / 3),
        score=partial_score,
    ),
}


def _of_kind(base: type) -> list[str]:
    return [name for name, row in CASES.items() if issubclass(row.kind, base)]


IN_EMBEDDING = _of_kind(EmbeddingPositions)
IN_ATTENTION = ["none", *_of_kind(AttentionPositions)]
SHIFT_INVARIANT = [
    name for name, row in CASES.items() if getattr(row.kind, "shift_invariant", True)
]
WITH_BIAS = [
    name
    for name in _of_kind(AttentionPositions)
    if CASES[name].kind.bias is not AttentionPositions.bias
]
