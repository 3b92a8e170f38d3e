"""The whole model: from token numbers to logits for the next token."""

from course_lib.transformer.config import TransformerConfig
from course_lib.transformer.decoder_only import DecoderOnly
from course_lib.transformer.model import Memory, Transformer
from course_lib.transformer.parts import InputEmbedding, TokenEmbedding

__all__ = [
    "DecoderOnly",
    "InputEmbedding",
    "Memory",
    "TokenEmbedding",
    "Transformer",
    "TransformerConfig",
]
