"""What a Transformer is stacked from: a norm, a network, a way around both, and the two blocks they make."""

from course_lib.blocks.decoder import DecoderBlock
from course_lib.blocks.dropout import Dropout
from course_lib.blocks.encoder import EncoderBlock
from course_lib.blocks.feed_forward import ACTIVATIONS, FeedForward
from course_lib.blocks.norm import LayerNorm
from course_lib.blocks.residual import NORMS, Residual

__all__ = [
    "ACTIVATIONS",
    "DecoderBlock",
    "Dropout",
    "EncoderBlock",
    "FeedForward",
    "LayerNorm",
    "NORMS",
    "Residual",
]
