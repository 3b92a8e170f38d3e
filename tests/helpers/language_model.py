"""The pre-trained language model, where it is installed, and texts for it."""

import functools
from pathlib import Path

import pytest

from course_lib.topics.pretrained import load_smollm2
from course_lib.topics.pretrained.weights_file import INSTALL, is_installed

needs_model = pytest.mark.skipif(
    not is_installed(), reason=f"the language model is not installed: {INSTALL}"
)

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
TEXTS = [
    "The capital of France is",
    "2, 4, 6, 8,",
    "def fibonacci(n):\n    if n < 2:\n        return n\n    return",
    "<|im_start|>user\nName three colours.<|im_end|>\n<|im_start|>assistant\n",
    "Once upon a time, in a village by the sea,",
    "Der Hund läuft über die Straße, und 東京 liegt in",
    "    \n\n\tx",
    README[:300],
    README[300:900],
    README[:1400],
]


@functools.cache
def smollm2():
    """The model in float32 and its tokenizer, loaded once for all tests of a process."""
    return load_smollm2()
