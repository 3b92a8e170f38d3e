"""Notebooks as people leave them: read with one clear error, and the Python of their cells by IPython's own rules."""

import ast
import re
from pathlib import Path

import nbformat
from IPython.core.inputtransformer2 import TransformerManager

#: Magics above a cell whose text is Python all the same.
_PYTHON = ("capture", "debug", "lprun", "memit", "mprun", "prun", "time", "timeit")


def read(path: Path) -> nbformat.NotebookNode:
    """Read a notebook of any version.

    Raises:
        ValueError: for a file that is none, whatever is wrong with it.
    """
    try:
        book = nbformat.read(path, as_version=4)
        for cell in book.cells:
            _ = cell.cell_type, cell.source.strip(), cell.metadata.get("tags")
    except Exception as error:  # its own kinds, and Python's for each field that is missing
        what = "it is empty" if not path.stat().st_size else str(error).split("\n")[0][:200]
        raise ValueError(f"{path.name} cannot be read as a notebook: {what}") from error
    return book


def language(book: nbformat.NotebookNode) -> str:
    """Return the language of a notebook as its kernel calls it; "python" where it does not say."""
    metadata = book.metadata if isinstance(book.metadata, dict) else {}
    for part, key in (("language_info", "name"), ("kernelspec", "language")):
        found = metadata.get(part)
        if isinstance(found, dict) and found.get(key):
            return str(found[key]).lower()
    return "python"


def python(source: str) -> str:
    """Return the Python that IPython makes of a cell, with `%time x` as a call; "" where it is no Python."""
    first, _, below = source.lstrip().partition("\n")
    if found := re.match(r"%%(\w+)", first):
        return python(below) if found[1] in _PYTHON else ""
    try:
        code = TransformerManager().transform_cell(source)
        ast.parse(code)
    except Exception:  # SyntaxError, ValueError of a null byte, MemoryError of many brackets
        return ""
    return code
