"""Still diagrams: what a model computes, and which axes meet on the way.

A diagram's docstring is also its text for who cannot see it.
"""

from course_lib.plots.diagrams.attention import (
    attention_diagram,
    heads_diagram,
    self_and_cross_diagram,
)
from course_lib.plots.diagrams.blocks import blocks_diagram, residual_diagram
from course_lib.plots.diagrams.cache import cache_diagram
from course_lib.plots.diagrams.transformer import transformer_diagram
from course_lib.plots.diagrams.words import WORDS

__all__ = [
    "WORDS",
    "attention_diagram",
    "blocks_diagram",
    "cache_diagram",
    "heads_diagram",
    "residual_diagram",
    "self_and_cross_diagram",
    "transformer_diagram",
]
