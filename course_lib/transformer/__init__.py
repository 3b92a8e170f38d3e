"""The whole model: from token numbers to a score for every token that could come next."""

from course_lib.transformer.config import TransformerConfig
from course_lib.transformer.decoder_only import DecoderOnly
from course_lib.transformer.embedding import TokenEmbedding
from course_lib.transformer.model import Memory, Transformer

__all__ = ["DecoderOnly", "Memory", "TokenEmbedding", "Transformer", "TransformerConfig"]
