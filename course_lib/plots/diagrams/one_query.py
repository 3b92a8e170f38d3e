"""Attention of one query, with every number."""

import matplotlib
import numpy as np
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike

from course_lib.plots.diagrams.page import Box, Page, softmax
from course_lib.plots.diagrams.words import WORDS
from course_lib.plots.style import COLOURS, STYLE

CELL = 0.52, 0.34  # width and height
LANE = 0.78  # from key to key


@matplotlib.rc_context(STYLE)
def one_query_diagram(
    query: ArrayLike,
    keys: ArrayLike,
    values: ArrayLike,
    *,
    axes: tuple[str, str, str] = ("n", "d", "d_v"),
) -> Figure:
    """Attention of one query, from left to right: query → scores → softmax → weighted sum.

    The query is compared with each key: the score is their dot product. A softmax turns the scores into
    weights that sum to 1. The output is the sum of the values, each multiplied by its weight. The darker a
    weight and the thicker the line from its value, the larger the weight.

    Args:
        query: shape (d,).
        keys: shape (n, d).
        values: shape (n, d_v).
        axes: the names of the axes of length n, d and d_v, as a notebook writes them.
    """
    query, keys, values = (np.asarray(numbers, dtype=float) for numbers in (query, keys, values))
    scores = keys @ query  # (n,)
    weights = softmax(scores)  # (n,)
    count, middle = len(keys), 0.85 + LANE * (len(keys) - 1) / 2
    page = Page(9, 1.65 + LANE * (count - 1))
    names = ["query", "keys", "scores", "weights", "values", "output"]
    x = dict(zip(names, (0.8, 2.35, 3.75, 4.95, 6.3, 8.3), strict=True))
    n, d, d_v = axes
    notes = [f"({d},)", f"({n}, {d})", f"({n},)", f"({n},)", f"({n}, {d_v})", f"({d_v},)"]
    for name, note in zip(names, notes, strict=True):
        page.words(x[name], 0.2, name, note)
    q = _cells(page, x["query"], middle, query, "main")
    out = _cells(page, x["output"], middle, weights @ values, "third")
    plus = Box(out.left[0] - 0.3, middle, 0.24, 0.24)
    for j in range(count):
        y = 0.85 + LANE * j
        key = _cells(page, x["keys"], y, keys[j], "second")
        score = _cells(page, x["scores"], y, scores[j : j + 1], "truth")
        dark = 0.08 + 0.55 * weights[j]
        weight = _cells(page, x["weights"], y, weights[j : j + 1], "truth", dark)
        value = _cells(page, x["values"], y, values[j], "third")
        page.arrow(q.right, key.left, colour="main")
        page.arrow(key.right, score.left, colour="second")
        page.arrow(score.right, weight.left)
        page.note((weight.right[0] + value.left[0]) / 2, y, "×")
        page.rule(value.right, (plus.x, plus.y), "third", 0.5 + 7 * weights[j])
    page.plus(plus.x, plus.y, "third")
    page.arrow(plus.right, out.left, colour="third")
    below = 1.4 + LANE * (count - 1)
    for left, right, step in (
        ("query", "scores", "dot product"),
        ("scores", "weights", "softmax"),
        ("values", "output", "weighted sum"),
    ):
        page.note((x[left] + x[right]) / 2, below, WORDS[step])
    return page.figure


def _cells(page: Page, x: float, y: float, numbers: np.ndarray, colour: str, dark=0.15) -> Box:
    """Draw the components of a vector side by side."""
    width, height = CELL
    box = Box(x, y, width * len(numbers), height)
    style = {"fc": to_rgba(COLOURS[colour], dark), "ec": COLOURS[colour], "lw": 0.8}
    for n, number in enumerate(numbers):
        corner = box.left[0] + n * width, box.top[1]
        page.axes.add_patch(Rectangle(corner, width, height, **style))
        text = f"{number:.3g}" if abs(number) >= 1 or number == 0 else f"{number:.2f}"
        page.axes.text(corner[0] + width / 2, y, text.replace("-", "−"), ha="center", va="center")
    return Box(x, y, box.width + 0.1, height + 0.1)
