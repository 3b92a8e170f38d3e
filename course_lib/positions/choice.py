"""One setting chooses the encoding."""

from typing import NamedTuple

from torch import nn

from course_lib.inputs import require_divides, require_one_of
from course_lib.positions.alibi import AlibiBias
from course_lib.positions.base import AttentionPositions
from course_lib.positions.learned import LearnedPositions
from course_lib.positions.rotary import RotaryPositions
from course_lib.positions.shaw import ShawRelativePositions
from course_lib.positions.sinusoidal import SinusoidalPositions
from course_lib.positions.t5 import T5RelativeBias

#: The names that `make_positions` knows.
ENCODINGS = ("none", "sinusoidal", "learned", "shaw", "t5", "rotary", "alibi")


class Positions(NamedTuple):
    """What a model needs: `added` goes before the first layer, `inside` into attention; one is None."""

    added: nn.Module | None
    inside: AttentionPositions | None


def make_positions(
    name: str, d_model: int, num_heads: int, *, max_length: int, bidirectional: bool = True
) -> Positions:
    """Make the encoding called `name`.

    Args:
        name: one of `ENCODINGS`.
        d_model, num_heads: of the model.
        max_length: how many positions "learned" has.
        bidirectional: whether a token may look behind itself; the buckets of "t5" depend on it.

    Raises:
        ValueError: for an unknown name, and what the encoding itself refuses.
    """
    require_one_of(ENCODINGS, positions=name)
    require_divides(num_heads=num_heads, d_model=d_model)
    d_head = d_model // num_heads
    makers = {
        "none": lambda: (None, None),
        "sinusoidal": lambda: (SinusoidalPositions(d_model), None),
        "learned": lambda: (LearnedPositions(max_length, d_model), None),
        "shaw": lambda: (None, ShawRelativePositions(d_head)),
        "t5": lambda: (None, T5RelativeBias(num_heads, bidirectional=bidirectional)),
        "rotary": lambda: (None, RotaryPositions(d_head)),
        "alibi": lambda: (None, AlibiBias(num_heads)),
    }
    return Positions(*makers[name]())
