"""The parts of a Transformer: normalisation, feed-forward network, residual connection, and the two blocks."""

from course_lib.blocks.decoder import DecoderBlock
from course_lib.blocks.dropout import Dropout
from course_lib.blocks.encoder import EncoderBlock
from course_lib.blocks.feed_forward import ACTIVATIONS, FeedForward
from course_lib.blocks.norm import NORM_TYPES, LayerNorm, RMSNorm, make_norm
from course_lib.blocks.residual import NORMS, Residual

__all__ = [
    "ACTIVATIONS",
    "DecoderBlock",
    "Dropout",
    "EncoderBlock",
    "FeedForward",
    "LayerNorm",
    "NORMS",
    "NORM_TYPES",
    "RMSNorm",
    "Residual",
    "make_norm",
]
