"""Path lengths: over how many steps information travels from the first token to the last."""

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from course_lib.plots.diagrams.page import Page
from course_lib.plots.diagrams.words import WORDS
from course_lib.plots.style import COLOURS, STYLE

TOKENS, WIDTH = 9, 3
STEP, RISE = 0.225, 0.62  # between tokens, and between layers


@matplotlib.rc_context(STYLE)
def path_lengths_diagram() -> Figure:
    """Paths from the first of nine tokens to the last output in four kinds of layers.

    Inputs are at the bottom, outputs at the top; the shortest path from the first input to the last output is
    drawn thick. Recurrence: 9 steps, through every hidden state. Convolution of width 3, over a position and the
    two before it: 4 layers. Dilated convolution of width 3, with dilations 1 and 3: 2 layers. Self-attention:
    1 layer, which connects every pair of tokens.
    """
    page = Page(9, 3.75)
    near, far = _earlier(1), _earlier(3)
    every = list(np.ndindex(TOKENS, TOKENS))
    along = [(i, i + 1) for i in range(TOKENS - 1)]
    straight = [(i, i) for i in range(TOKENS)]
    through = [(0, 0), *((1, i) for i in range(TOKENS))]
    _panel(page, 0.3, "recurrence", [straight], through, along)
    _panel(page, 2.5, "convolution", [near] * 4, [(i, 2 * i) for i in range(5)])
    _panel(page, 4.7, "dilated convolution", [near, far], [(0, 0), (1, 2), (2, 8)])
    _panel(page, 6.9, "self-attention", [every], [(0, 0), (1, 8)])
    return page.figure


def _earlier(dilation: int) -> list[tuple[int, int]]:
    """Return the (input, output) pairs that a convolution connects: a position and those before it."""
    pairs = np.ndindex(TOKENS, TOKENS)
    return [(i, j) for i, j in pairs if (j - i) in range(0, WIDTH * dilation, dilation)]


def _panel(page, left: float, name: str, layers: list, path: list, along: list = ()) -> None:
    """Draw layers of connections upwards, and a path of (layer, token) through them."""

    def at(layer: int, token: int) -> tuple[float, float]:
        return left + STEP * token, 2.9 - RISE * layer

    for layer, pairs in enumerate(layers):
        for start, end in pairs:
            page.rule(at(layer, start), at(layer + 1, end), "data", 0.6)
    for start, end in along:
        page.rule(at(1, start), at(1, end), "data", 0.6)
    for start, end in zip(path, path[1:], strict=False):
        page.rule(at(*start), at(*end), "second")
    for layer in range(len(layers) + 1):
        for token in range(TOKENS):
            on_path = (layer, token) in path
            colour = COLOURS["second" if on_path else "main" if layer == 0 else "data"]
            page.axes.add_patch(Circle(at(layer, token), 0.065, fc=colour, ec="white", zorder=3))
    page.note(left - 0.1, 3.12, WORDS["first input"], ha="left")
    right, top = at(len(layers), TOKENS - 1)
    page.note(right + 0.1, top - 0.2, WORDS["last output"], ha="right")
    middle = left + STEP * (TOKENS - 1) / 2
    steps = WORDS["steps" if len(path) > 2 else "one step"].format(count=len(path) - 1)
    page.words(middle, 3.42, WORDS[name], steps)
