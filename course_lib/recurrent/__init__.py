"""Recurrent sequence-to-sequence models: without attention, with Bahdanau's, and with Luong's.

- A **hidden state** is the vector that a recurrent network carries from one step to the next.
- The encoder reads the source once and returns one hidden state per token: the **memory**.
- The decoder generates the target one token at a time. At each step it reads a **context vector**, which
  represents the source. The three decoders differ in how they compute the context vector and where they use it.
"""

from course_lib.recurrent.bahdanau import BahdanauDecoder
from course_lib.recurrent.cell import GRUCell
from course_lib.recurrent.decoder import DecoderStep
from course_lib.recurrent.encoder import GRUEncoder
from course_lib.recurrent.fixed_context import FixedContextDecoder
from course_lib.recurrent.luong import LuongDecoder
from course_lib.recurrent.seq2seq import GenerationOutput, Seq2Seq

__all__ = [
    "BahdanauDecoder",
    "DecoderStep",
    "FixedContextDecoder",
    "GRUCell",
    "GRUEncoder",
    "GenerationOutput",
    "LuongDecoder",
    "Seq2Seq",
]
