"""The exercises, one module per notebook, in the order of the course."""

from types import MappingProxyType

from course_lib.exercises.catalogue import (
    decoding_and_bleu,
    kernel_regression,
    multi_head_attention,
    positional_encodings,
    scoring_functions,
    self_and_cross_attention,
    seq2seq_with_attention,
    start_here,
    transformer,
    transformer_blocks,
)
from course_lib.exercises.exercise import Exercise

_MODULES = (
    start_here,
    kernel_regression,
    scoring_functions,
    seq2seq_with_attention,
    self_and_cross_attention,
    multi_head_attention,
    positional_encodings,
    transformer_blocks,
    transformer,
    decoding_and_bleu,
)

#: Every exercise and bug hunt by name.
EXERCISES: MappingProxyType[str, Exercise] = MappingProxyType(
    {exercise.name: exercise for module in _MODULES for exercise in module.EXERCISES}
)
