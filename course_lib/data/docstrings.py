"""Real text for language models: the docstrings of four Python packages, as they were in one version of each."""

import lzma
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int, UInt8
from torch import Tensor

#: The packages whose docstrings are in the text, with their versions; docstrings.licenses.txt has their licences.
DOCSTRING_PACKAGES = {
    "matplotlib": "3.11.2",
    "numpy": "2.4.6",
    "pandas": "3.1.1",
    "statsmodels": "0.15.0",
}
#: A token is the value of an ASCII character. 0 does not occur in the text, so it can be the padding.
BYTE_VOCABULARY = 128


class DocstringText(NamedTuple):
    """Text as bytes, split by source file into training text and held-out text.

    Attributes:
        training: the bytes to train on, of all files one after the other.
        held_out: the bytes of every tenth file, chosen by a hash of its path.
        versions: the packages whose docstrings these are, with their versions.
    """

    training: UInt8[Tensor, " byte"]
    held_out: UInt8[Tensor, " byte"]
    versions: dict[str, str]


@cache
def docstring_text() -> DocstringText:
    """Return the docstrings of `DOCSTRING_PACKAGES`, which the course brings along.

    They are the strings between triple quotes of all source files except tests. Paragraphs of 60 characters or
    more that occurred before are left out, since packages repeat the description of a parameter in many places: no
    such paragraph of the held-out text is in the training text. Paragraphs with other than ASCII characters are
    left out, too, and docstrings with fewer than 60 new characters.
    """
    text = lzma.decompress(Path(__file__).with_suffix(".txt.xz").read_bytes())
    parts = (np.frombuffer(part, np.uint8).copy() for part in text.split(b"\0"))
    return DocstringText(*map(torch.from_numpy, parts), DOCSTRING_PACKAGES)


def text_windows(
    text: UInt8[Tensor, " byte"], length: int, *, seed: int | None = None
) -> Int[Tensor, "window bytes"]:
    """Cut a text into windows of `length` bytes to predict: each also holds the byte before them.

    Args:
        text: of `docstring_text`.
        length: how many bytes each window predicts.
        seed: of their order; None for the order of the text.
    """
    windows = text.unfold(0, length + 1, length)  # (window, length + 1), a view
    if seed is None:
        return windows.long()
    generator = torch.Generator().manual_seed(int(seed))
    order = torch.randperm(len(windows), generator=generator, device="cpu")
    return windows[order].long()
