"""Real text for language models: the documentation inside installed Python packages."""

import hashlib
import inspect
import re
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int, UInt8
from torch import Tensor

#: The packages whose docstrings are read; the course depends on each.
DOCSTRING_PACKAGES = ("matplotlib", "numpy", "pandas", "statsmodels")
#: A token is the value of an ASCII character. 0 does not occur in the text, so it can be the padding.
BYTE_VOCABULARY = 128
#: A docstring counts if it has this many new characters; a paragraph that long is kept once.
_SHORTEST = 60
#: What stands between triple quotes: parsing the files would find the same and take twenty times as long.
_TRIPLE_QUOTED = re.compile(r'"""(.*?)"""', re.DOTALL)
#: One source file in so many is held out.
_HELD_OUT_SHARE = 10


class DocstringText(NamedTuple):
    """Text as bytes, split by source file into training text and held-out text.

    Attributes:
        training: the bytes to train on, of all files one after the other.
        held_out: the bytes of every tenth file, chosen by a hash of its path.
        versions: the packages that were read, with their versions.
        sha256: the checksum of both texts: equal checksums, equal text.
    """

    training: UInt8[Tensor, " byte"]
    held_out: UInt8[Tensor, " byte"]
    versions: dict[str, str]
    sha256: str


@cache
def docstring_text(packages: tuple[str, ...] = DOCSTRING_PACKAGES) -> DocstringText:
    """Return the docstrings of installed packages; nothing is imported or downloaded.

    Read are the strings between triple quotes of all source files except tests. Paragraphs of 60 characters or
    more that occurred before are left out, since packages repeat the description of a parameter in many places: no
    such paragraph of the held-out text is in the training text. Paragraphs with other than ASCII characters are
    left out, too.

    Args:
        packages: their names. Other versions have other text; `sha256` tells.
    """
    versions = {package: version(package) for package in packages}
    parts: dict[bool, list[str]] = {False: [], True: []}
    seen: set[str] = set()
    for package in packages:
        root = Path(find_spec(package).origin).parent
        for path in sorted(root.rglob("*.py"), key=lambda path: path.relative_to(root).as_posix()):
            name = path.relative_to(root.parent).as_posix()
            if "tests" not in path.parts:
                parts[_is_held_out(name)].extend(_new_text(path, seen))
    training, held_out = ("\n\n".join(parts[side]).encode("ascii") for side in (False, True))
    return DocstringText(
        *(torch.from_numpy(np.frombuffer(side, np.uint8).copy()) for side in (training, held_out)),
        versions,
        hashlib.sha256(training + b"\0" + held_out).hexdigest(),
    )


def _is_held_out(name: str) -> bool:
    """Choose a file by a hash of its name, so that the choice does not change when files are added."""
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % _HELD_OUT_SHARE == 0


def _new_text(path: Path, seen: set[str]) -> Iterator[str]:
    """Yield the docstrings of one file without the paragraphs in `seen`, and add theirs to it."""
    for docstring in _TRIPLE_QUOTED.findall(path.read_text(encoding="utf-8")):
        new = []
        for paragraph in inspect.cleandoc(docstring).split("\n\n"):
            if paragraph.isascii() and (len(paragraph) < _SHORTEST or paragraph not in seen):
                new.append(paragraph)
                seen.add(paragraph)
        if sum(map(len, new)) >= _SHORTEST:
            yield "\n\n".join(new)


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
