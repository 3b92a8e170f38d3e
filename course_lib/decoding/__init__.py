"""Decoding: from a model's logits to a generated sequence."""

from course_lib.decoding.beam import Beams, BeamStep, beam_search
from course_lib.decoding.generate import DecodingSession, IncrementalDecoder, greedy, sample, stream
from course_lib.decoding.logits_processors import temperature, top_k, top_p
from course_lib.decoding.table_model import table_model

__all__ = [
    "BeamStep",
    "Beams",
    "DecodingSession",
    "IncrementalDecoder",
    "beam_search",
    "greedy",
    "sample",
    "stream",
    "table_model",
    "temperature",
    "top_k",
    "top_p",
]
