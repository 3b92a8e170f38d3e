"""Decoding: from a model's logits to the sequence it writes."""

from course_lib.decoding.beam import Beams, BeamStep, beam_search
from course_lib.decoding.by_prefix import table_model
from course_lib.decoding.filters import temperature, top_k, top_p
from course_lib.decoding.greedy import greedy
from course_lib.decoding.sampling import sample
from course_lib.decoding.writer import Writer

__all__ = [
    "BeamStep",
    "Beams",
    "Writer",
    "beam_search",
    "greedy",
    "sample",
    "table_model",
    "temperature",
    "top_k",
    "top_p",
]
