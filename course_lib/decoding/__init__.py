"""Decoding: from a model's logits to the sequence it writes."""

from course_lib.decoding.greedy import greedy
from course_lib.decoding.writer import Writer

__all__ = ["Writer", "greedy"]
