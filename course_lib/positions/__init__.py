"""Where a token stands: six ways to tell a model, one idea per file.

Two kinds. An encoding of the first kind is *added* to the vectors before the first layer: called as
`positions(x, offset)`, it returns x with the positions in it. One of the second kind works *inside*
attention, between the projections and the softmax; it is an `AttentionPositions`, and
`MultiHeadAttention(positions=…)` takes it.
"""

from course_lib.positions.alibi import AlibiBias, alibi_bias, alibi_slopes
from course_lib.positions.base import AttentionPositions, relative_positions
from course_lib.positions.choice import ENCODINGS, Positions, make_positions
from course_lib.positions.learned import LearnedPositions
from course_lib.positions.rotary import RotaryPositions, rotary
from course_lib.positions.shaw import ShawRelativePositions
from course_lib.positions.sinusoidal import SinusoidalPositions, sinusoidal_table
from course_lib.positions.t5 import T5RelativeBias, t5_bucket

__all__ = [
    "AlibiBias",
    "AttentionPositions",
    "ENCODINGS",
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
