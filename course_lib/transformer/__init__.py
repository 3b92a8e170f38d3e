"""The Transformer, one idea a file, in the order in which the lessons build them.

masks and scoring, attention, cache, positions, multihead, norms, layers; config, embeddings, stacks, model and
decoder_only put them together; convert takes weights from PyTorch; decoding generates. Every public name of these
files is a name of this package: `from course_lib.transformer import MultiHeadAttention`.
"""

from course_lib.transformer.attention import *
from course_lib.transformer.cache import *
from course_lib.transformer.config import *
from course_lib.transformer.convert import *
from course_lib.transformer.decoder_only import *
from course_lib.transformer.decoding import *
from course_lib.transformer.embeddings import *
from course_lib.transformer.layers import *
from course_lib.transformer.masks import *
from course_lib.transformer.model import *
from course_lib.transformer.multihead import *
from course_lib.transformer.norms import *
from course_lib.transformer.positions import *
from course_lib.transformer.scoring import *


def __getattr__(name: str):
    if name in ("EncoderBlock", "DecoderBlock"):  # in learners' own copies of lesson 07
        return globals()[name.replace("Block", "Layer")]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
