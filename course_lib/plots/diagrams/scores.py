"""From a query to its output, and the broadcasting in the additive score."""

import matplotlib
import numpy as np
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course_lib.plots.diagrams.page import Box, Page, softmax
from course_lib.plots.diagrams.words import WORDS
from course_lib.plots.style import COLOURS, STYLE

QUERY = np.array([[1, 1]])
KEY = np.array([[1, 1], [1, 0], [1, -1], [-1, 0]])
VALUE = np.array([[4, 0], [0, 4], [2, 2], [8, 8]])


@matplotlib.rc_context(STYLE)
def score_diagram() -> Figure:
    """How one query gets its output from 4 keys and 4 values, with numbers.

    The query (1, 1) is compared with each key, here by dot products: the scores are 2, 1, 0 and −1. A softmax
    turns them into the weights 0.644, 0.237, 0.087 and 0.032, which sum to 1. Each of the values (4, 0), (0, 4),
    (2, 2) and (8, 8) is multiplied by its weight, and the sum of the products is the output (3.01, 1.38).
    Another score changes only the first step.
    """
    page, y = Page(9, 2.85), 1.35
    scores = QUERY @ KEY.T  # (1, key)
    weights = softmax(scores)
    steps = (
        ("query", "(d)", 0.64, QUERY, "second", "{:.0f}"),
        ("keys", "(key, d)", 1.96, KEY, "main", "{:.0f}"),
        ("scores", "(key)", 3.33, scores.T, "truth", "{:.0f}"),
        ("weights", "(key)", 4.48, weights.T, "truth", "{:.3f}"),
        ("values", "(key, value_size)", 5.5, VALUE, "third", "{:.0f}"),
        (WORDS["products"], "(key, value_size)", 6.8, weights.T * VALUE, "third", "{:.2f}"),
        ("output", "(value_size)", 8.33, weights @ VALUE, "third", "{:.2f}"),
    )
    boxes = []
    for name, shape, x, numbers, colour, form in steps:
        box = _numbers(page, x, y, numbers, colour, form)
        page.words(x, 2.45, name, shape)
        boxes.append(box)
    query, keys, scored, weighted, values, products, output = boxes
    page.arrow(query.right, keys.left)
    page.arrow(keys.right, scored.left, step=WORDS["score"])
    page.arrow(scored.right, weighted.left, step="softmax")
    page.words((weighted.right[0] + values.left[0]) / 2, y, "×")
    page.words((values.right[0] + products.left[0]) / 2, y, "=")
    page.arrow(products.right, output.left, step=WORDS["sum of"])
    page.note(0.2, 0.2, WORDS["one query of many"], ha="left")
    return page.figure


@matplotlib.rc_context(STYLE)
def broadcast_diagram() -> Figure:
    """Broadcasting in the additive score, with 3 queries, 4 keys and 3 hidden units.

    The projected queries (query, 1, hidden) are repeated along the key axis, the projected keys
    (1, key, hidden) along the query axis; the copies are pale. Their sum has an element for each query, each
    key and each hidden unit, (query, key, hidden). The tanh is elementwise; the product with v sums over the
    hidden units and leaves one score per pair, (query, key).
    """
    page, y = Page(9, 2.65), 1.25
    rows, columns = np.indices((3, 4))
    by_query, by_key = 0.25 + 0.25 * rows, 0.2 + 0.2 * columns
    q = _stack(page, 1.15, y, by_query, "second", columns == 0)
    k = _stack(page, 3.35, y, by_key, "main", rows == 0)
    both = _stack(page, 5.75, y, (by_query + by_key) / 2, "truth", rows >= 0)
    scores = page.matrix(8.15, y, 0.15 + 0.7 * np.array(_SCORES), ["truth"], 0.29)
    page.words((q.right[0] + k.left[0]) / 2, y, "+")
    page.words((k.right[0] + both.left[0]) / 2, y, "=")
    page.arrow(both.right, scores.left, step="tanh, @ v")
    for x, name, shape in (
        (1.15, "query @ W.T", "(query, 1, hidden)"),
        (3.35, "key @ U.T", "(1, key, hidden)"),
        (5.75, WORDS["their sum"], "(query, key, hidden)"),
        (8.15, "scores", "(query, key)"),
    ):
        page.words(x, 2.2, name, shape)
    page.note(0.2, 0.2, WORDS["pale copies"], ha="left")
    return page.figure


_SCORES = [[0.2, 0.6, 0.9, 0.4], [0.5, 0.1, 0.7, 1.0], [0.8, 0.3, 0.0, 0.6]]


def _numbers(page: Page, x: float, y: float, numbers: np.ndarray, colour: str, form: str) -> Box:
    """Draw a matrix whose cells hold their numbers."""
    cell = 0.44
    box = page.matrix(x, y, np.full(numbers.shape, 0.25), [colour], cell)
    height, width = cell * np.array(numbers.shape)
    for (i, j), number in np.ndenumerate(numbers):
        at = (x - width / 2 + (j + 0.5) * cell, y - height / 2 + (i + 0.5) * cell)
        text = form.format(number).replace("-", "−")
        page.axes.text(*at, text, ha="center", va="center", fontsize=9.5)
    return box


def _stack(page: Page, x, y, tints: np.ndarray, colour: str, real: np.ndarray, cell=0.29) -> Box:
    """Draw three layers, one per hidden unit, one behind the other; cells that are not `real` are pale."""
    step, (height, width) = 0.13, cell * np.array(tints.shape)
    for layer in (2, 1, 0):
        left, top = x - width / 2 + step * (layer - 1), y - height / 2 - step * (layer - 1)
        for (i, j), dark in np.ndenumerate(tints):
            fill = np.array(to_rgba(COLOURS[colour]))
            dark = dark if real[i, j] else 0.12 * dark
            fill[:3] = 1 - dark * (1 - fill[:3])  # opaque: the layers behind must not show through
            edge = COLOURS[colour] if real[i, j] else COLOURS["data"]
            style = {"fc": fill, "ec": edge, "lw": 0.6, "ls": "-" if real[i, j] else ":"}
            corner = (left + j * cell, top + i * cell)
            page.axes.add_patch(Rectangle(corner, cell, cell, **style))
    return Box(x, y, width + 2 * step + 0.1, height + 2 * step + 0.1)
