"""Positional encodings: how a model is told the order of its tokens, one encoding per module.

There are two kinds. An `EmbeddingPositions` is *added* to the embeddings before the first block: called as
`positions(x, offset)`, it returns x with the positions added. An `AttentionPositions` works *inside*
attention, between the projections and the softmax; `MultiHeadAttention(positions=…)` takes it.

This file lists every encoding by name. A configuration chooses one, and explorers, experiments, notebooks and
tests go through the list.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from course_lib.transformer.positions.alibi import AlibiBias, alibi_bias, alibi_slopes
from course_lib.transformer.positions.base import (
    AttentionPositions,
    EmbeddingPositions,
    relative_positions,
)
from course_lib.transformer.positions.learned import LearnedPositions
from course_lib.transformer.positions.rotary import RotaryPositions, rotary
from course_lib.transformer.positions.shaw import ShawRelativePositions
from course_lib.transformer.positions.sinusoidal import SinusoidalPositions, sinusoidal_table
from course_lib.transformer.positions.t5 import T5RelativeBias, t5_bucket
from course_lib.validation import require_one_of


class ModelSizes(NamedTuple):
    """What an encoding may depend on; arguments of `make_positions`."""

    d_model: int
    num_heads: int
    d_head: int
    max_length: int
    bidirectional: bool
    rope_theta: float
    rope_layout: str
    partial_rotary_factor: float


Encoding = EmbeddingPositions | AttentionPositions | None

#: Name → how the encoding is made for a model of these sizes.
REGISTRY: Mapping[str, Callable[[ModelSizes], Encoding]] = MappingProxyType(
    {
        "none": lambda m: None,
        "sinusoidal": lambda m: SinusoidalPositions(m.d_model),
        "learned": lambda m: LearnedPositions(m.max_length, m.d_model),
        "shaw": lambda m: ShawRelativePositions(m.d_head),
        "t5": lambda m: T5RelativeBias(m.num_heads, bidirectional=m.bidirectional),
        "rotary": lambda m: RotaryPositions(
            m.d_head,
            m.rope_theta,
            layout=m.rope_layout,
            partial_rotary_factor=m.partial_rotary_factor,
        ),
        "alibi": lambda m: AlibiBias(m.num_heads),
    }
)

#: The names that `make_positions` knows.
ENCODINGS = tuple(REGISTRY)


class Positions(NamedTuple):
    """Where a model uses an encoding; at most one of the two is not None.

    Attributes:
        embedding: added to the embeddings before the first block.
        attention: used inside every attention layer; layers may share one without parameters.
    """

    embedding: EmbeddingPositions | None = None
    attention: AttentionPositions | None = None


def make_positions(
    name: str,
    d_model: int,
    num_heads: int,
    *,
    max_length: int,
    bidirectional: bool = True,
    rope_theta: float = 10000.0,
    rope_layout: str = "interleaved",
    partial_rotary_factor: float = 1.0,
) -> Positions:
    """Make the encoding called `name`.

    Args:
        name: one of `ENCODINGS`.
        d_model, num_heads: of the model.
        max_length: how many positions "learned" has.
        bidirectional: whether a token may attend to later ones; the buckets of "t5" depend on it.
        rope_theta, rope_layout, partial_rotary_factor: `base`, `layout` and the share that is rotated of "rotary"; see
            `rotary`.
    """
    require_one_of(ENCODINGS, positions=name)
    d_head = d_model // num_heads
    sizes = ModelSizes(
        d_model,
        num_heads,
        d_head,
        max_length,
        bidirectional,
        rope_theta,
        rope_layout,
        partial_rotary_factor,
    )
    made = REGISTRY[name](sizes)
    kind = "embedding" if isinstance(made, EmbeddingPositions) else "attention"
    return Positions(**{kind: made})


__all__ = [
    "AlibiBias",
    "AttentionPositions",
    "ENCODINGS",
    "EmbeddingPositions",
    "LearnedPositions",
    "Positions",
    "RotaryPositions",
    "ShawRelativePositions",
    "SinusoidalPositions",
    "T5RelativeBias",
    "alibi_bias",
    "alibi_slopes",
    "make_positions",
    "relative_positions",
    "rotary",
    "sinusoidal_table",
    "t5_bucket",
]
