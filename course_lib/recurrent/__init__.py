"""Recurrent sequence-to-sequence models, without attention, with Bahdanau's and with Luong's.

An encoder reads the source once and leaves one state per token, the *memory*. A decoder writes the
target a token at a time. The three decoders differ in one thing: where the *context* comes from.
"""

from course_lib.recurrent.bahdanau import BahdanauDecoder
from course_lib.recurrent.cell import GRUCell
from course_lib.recurrent.decoder import Decoded, Step
from course_lib.recurrent.encoder import Encoded, GRUEncoder
from course_lib.recurrent.fixed_context import FixedContextDecoder
from course_lib.recurrent.luong import LuongDecoder
from course_lib.recurrent.seq2seq import Seq2Seq, Translated

__all__ = [
    "BahdanauDecoder",
    "Decoded",
    "Encoded",
    "FixedContextDecoder",
    "GRUCell",
    "GRUEncoder",
    "LuongDecoder",
    "Seq2Seq",
    "Step",
    "Translated",
]
