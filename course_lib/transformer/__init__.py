"""The Transformer, one idea a file, in the order in which the lessons build them.

masks and scoring, attention, cache, positions, multihead, blocks; config, parts, model and decoder_only put them
together; convert takes weights from PyTorch; decoding generates. Every public name of these files is a name of
this package: `from course_lib.transformer import MultiHeadAttention`.
"""

from course_lib.transformer.attention import *
from course_lib.transformer.blocks import *
from course_lib.transformer.cache import *
from course_lib.transformer.config import *
from course_lib.transformer.convert import *
from course_lib.transformer.decoder_only import *
from course_lib.transformer.decoding import *
from course_lib.transformer.masks import *
from course_lib.transformer.model import *
from course_lib.transformer.multihead import *
from course_lib.transformer.parts import *
from course_lib.transformer.positions import *
from course_lib.transformer.scoring import *
