"""Recurrent sequence-to-sequence models: without attention, with Bahdanau's, and with Luong's.

- A **hidden state** is the vector that a recurrent network carries from one step to the next.
- The encoder reads the source once and returns one hidden state per token: the **memory**.
- The decoder generates the target one token at a time. At each step it reads a **context vector**, which
  represents the source. The three decoders differ in how they compute the context vector and where they use it.
"""

from course_lib.topics.recurrent.decoders import (
    BahdanauDecoder,
    DecoderOutput,
    DecoderStep,
    FixedContextDecoder,
    LuongDecoder,
)
from course_lib.topics.recurrent.encoder import EncoderOutput, GRUCell, GRUEncoder
from course_lib.topics.recurrent.seq2seq import GenerationOutput, Seq2Seq

__all__ = [
    "BahdanauDecoder",
    "DecoderOutput",
    "DecoderStep",
    "EncoderOutput",
    "FixedContextDecoder",
    "GRUCell",
    "GRUEncoder",
    "GenerationOutput",
    "LuongDecoder",
    "Seq2Seq",
]
