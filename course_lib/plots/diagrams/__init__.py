"""Static diagrams: what a model computes, with the shape of each tensor.

The docstring of a diagram is also its text alternative.
"""

from course_lib.plots.diagrams.alignment import alignment_diagram
from course_lib.plots.diagrams.attention import (
    attention_diagram,
    heads_diagram,
    self_and_cross_diagram,
)
from course_lib.plots.diagrams.blocks import blocks_diagram, residual_diagram
from course_lib.plots.diagrams.cache import cache_diagram
from course_lib.plots.diagrams.decoder_attention import decoder_attention_diagram
from course_lib.plots.diagrams.encoder_decoder import encoder_decoder_diagram
from course_lib.plots.diagrams.full_transformer import full_transformer_diagram
from course_lib.plots.diagrams.kv_heads import kv_heads_diagram
from course_lib.plots.diagrams.one_query import one_query_diagram
from course_lib.plots.diagrams.overview import norm_axes_diagram, overview_diagram
from course_lib.plots.diagrams.paths import path_lengths_diagram
from course_lib.plots.diagrams.positions import positions_diagram
from course_lib.plots.diagrams.scores import broadcast_diagram, score_diagram
from course_lib.plots.diagrams.shifted_target import shifted_target_diagram
from course_lib.plots.diagrams.teacher_forcing import teacher_forcing_diagram
from course_lib.plots.diagrams.tiles import flash_diagram, window_blocks_diagram
from course_lib.plots.diagrams.training_flops import training_flops_diagram
from course_lib.plots.diagrams.words import WORDS

__all__ = [
    "WORDS",
    "alignment_diagram",
    "attention_diagram",
    "blocks_diagram",
    "broadcast_diagram",
    "cache_diagram",
    "decoder_attention_diagram",
    "encoder_decoder_diagram",
    "flash_diagram",
    "full_transformer_diagram",
    "heads_diagram",
    "kv_heads_diagram",
    "norm_axes_diagram",
    "one_query_diagram",
    "overview_diagram",
    "path_lengths_diagram",
    "positions_diagram",
    "residual_diagram",
    "score_diagram",
    "self_and_cross_diagram",
    "shifted_target_diagram",
    "teacher_forcing_diagram",
    "window_blocks_diagram",
    "training_flops_diagram",
]
