"""Notebooks 04 and 05 in a real JupyterLab: type a sentence, step through layers, heads and queries."""

import re

import pytest

from tests.browser.lab import Explorer

FOUR, FIVE = "04_self_and_cross_attention.ipynb", "05_multi_head_attention.ipynb"
LAST = "def progress_of_all"  # stands in no cell


def weights_of(screen, text, layer="self-attention"):
    """What the model in the kernel says: (heads, query, key), as nested lists."""
    source = f"WEIGHTS = read({text!r})[{layer!r}].weights.tolist()\nprint(WEIGHTS)"
    return eval(screen.in_the_kernel(source), {})
