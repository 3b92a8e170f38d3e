"""Decoding: from a model's logits to a generated sequence."""

from course_lib.transformer.decoding.beam import Beams, BeamStep, beam_search
from course_lib.transformer.decoding.generate import (
    DecodingSession,
    IncrementalDecoder,
    greedy,
    sample,
    stream,
)
from course_lib.transformer.decoding.logits_processors import temperature, top_k, top_p
from course_lib.transformer.decoding.speculative import prompt_lookup

__all__ = [
    "BeamStep",
    "Beams",
    "DecodingSession",
    "IncrementalDecoder",
    "beam_search",
    "greedy",
    "prompt_lookup",
    "sample",
    "stream",
    "temperature",
    "top_k",
    "top_p",
]
