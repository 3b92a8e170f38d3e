"""Attention: its matrices, their inputs, and its heads."""

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from course_lib.plots.diagrams.page import Box, Page, softmax, tint
from course_lib.plots.diagrams.words import WORDS
from course_lib.plots.style import STYLE

AXES = {"query": "main", "key": "second", "d": "ink", "d_value": "third"}  # their colours
HEADS = ("main", "second", "third", "truth")  # their colours


@matplotlib.rc_context(STYLE)
def attention_diagram() -> Figure:
    """Scaled dot-product attention as matrices, with 3 queries, 5 keys, d = 4 and d_value = 2.

    The query (query, d) is left of the scores (query, key), and the transposed key (d, key) above them:
    each score is the product of a row and a column, query @ key.mT / √d. The mask (query, key) sets some
    scores to −∞. A softmax turns each row into weights (query, key) that sum to 1. The value
    (key, d_value) is above the output (query, d_value), which is weights @ value. From the query to
    the output, a row belongs to the same query in every matrix.
    """
    numbers = np.random.default_rng(4)
    query, key, value = (numbers.normal(size=size) for size in ((3, 4), (5, 4), (5, 2)))
    scores = query @ key.T / 2
    mask = np.tri(3, 5, k=2, dtype=bool)  # causal
    masked = np.where(mask, scores, -np.inf)
    weights = softmax(masked)
    page, upper, lower = Page(9, 4.15), 0.95, 2.65

    def draw(name, x, y, tints, colour, axes, note="", row=1, column=None) -> Box:
        rules = [AXES[axis] for axis in axes.split()]
        box = page.matrix(x, y, tints, [colour], 0.19, 0, rules, row, column)
        line = box.top[1] - 0.09 if y == upper else box.bottom[1] + 0.09
        page.words(x, line, name, note)
        return box

    k = draw("key", 0.72, upper, tint(key), "second", "key d")
    k_transposed = draw("key.mT", 2.6, upper, tint(key.T), "second", "d key", row=None, column=1)
    m = draw("mask", 4.6, upper, 0.5 * mask, "truth", "query key")
    v = draw("value", 8.25, upper, tint(value), "third", "key d_value", row=None)
    q = draw("query", 0.72, lower, tint(query), "main", "query d")
    note = "query @ key.mT / √d"
    s = draw("scores", 2.6, lower, tint(scores), "truth", "query key", note, column=1)
    masked_scores = draw(
        WORDS["masked"], 4.6, lower, tint(masked), "truth", "query key", WORDS["minus infinity"]
    )
    w = draw("weights", 6.6, lower, weights / weights.max(), "truth", "query key", WORDS["sum"])
    note = "weights @ value\n(query, d_value)"
    o = draw("output", 8.25, lower, tint(weights @ value), "third", "query d_value", note)

    page.arrow(k.right, k_transposed.left, shape="(key, d)", step="transpose")
    page.arrow(k_transposed.bottom, s.top, shape="(d, key)")
    page.arrow(m.bottom, masked_scores.top, shape="(query, key)")
    page.arrow(v.bottom, o.top, shape="(key, d_value)")
    page.arrow(q.right, s.left, shape="(query, d)")
    page.arrow(s.right, masked_scores.left, shape="(query, key)")
    page.arrow(masked_scores.right, w.left, shape="(query, key)", step="softmax")
    page.arrow(w.right, o.left, shape="(query, key)")

    page.note(*m.right, WORDS["mask"], ha="left")
    page.note(0.3, 3.7, WORDS["one colour"], ha="left")
    for i, (axis, colour) in enumerate(AXES.items()):
        page.rule((3.0 + i, 3.7), (3.25 + i, 3.7), colour)
        page.note(3.32 + i, 3.7, axis, ha="left")
    page.note(0.3, 3.95, WORDS["one query"], ha="left")
    return page.figure


@matplotlib.rc_context(STYLE)
def self_and_cross_diagram() -> Figure:
    """Self-attention above cross-attention; they differ only in the inputs of the projections.

    In self-attention, x (batch, length, d_model) is the input of the query, key and value projections. In
    cross-attention, x (batch, query, d_model) is the input of the query projection, and memory
    (batch, key, d_model) that of the key and value projections. The rest is the same: query
    (batch, query, d_head) and key (batch, key, d_head) give the weights (batch, query, key), and the output
    (batch, query, d_head) is the weighted sum of the value (batch, key, d_head).
    """
    page = Page(9, 4.9)
    x = page.source(1.45, "x", "(batch, length, d_model)\nquery = key = length", 4, "main")
    _attend(page, 0.2, WORDS["self"], [x, x, x], ["main"] * 3, (4, 4))
    x = page.source(3.3, "x", "(batch, query, d_model)", 3, "main")
    memory = page.source(4.2, "memory", "(batch, key, d_model)", 5, "second")
    colours = ["main", "second", "second"]  # of where query, key and value come from
    _attend(page, 2.65, WORDS["cross"], [x, memory, memory], colours, (3, 5))
    return page.figure


def _attend(page, y: float, title: str, sources: list, colours: list, shape: tuple) -> None:
    """Draw projections of three sources, in their colours, and attention with weights of this shape."""
    page.words(0.3, y, title, ha="left")
    lines = y + 0.65 + 0.6 * np.arange(3)
    shapes = ["(batch, query, d_head)"] + ["(batch, key, d_head)"] * 2
    q, k, v = map(page.box, [3.9] * 3, lines, ["query", "key", "value"], shapes, colours)
    for source, box, colour in zip(sources, (q, k, v), colours, strict=True):
        page.arrow(source.right, (2.72, source.y), (2.72, box.y), box.left, colour=colour)
    weights = softmax(np.random.default_rng(1).normal(size=shape))
    w = page.matrix(5.9, q.y, weights / weights.max(), ["truth"])
    page.words(q.x, q.y - 0.6, "", WORDS["projections"])
    page.words(w.x, q.y - 0.6, "weights", "(batch, query, key)")
    output = page.box(7.8, q.y, "output", shapes[0], colours[2])
    page.arrow(q.right, w.left, colour=colours[0])
    page.arrow(k.right, (w.x, k.y), w.bottom, colour=colours[1])
    page.arrow(w.right, output.left, colour="ink")
    page.arrow(v.right, (output.x, v.y), output.bottom, colour=colours[2])


@matplotlib.rc_context(STYLE)
def heads_diagram() -> Figure:
    """How a projection is split into four heads and merged into one output; each head has its own colour.

    Above, from left to right: x (batch, length, d_model) is projected; unflatten splits its columns into
    heads, (batch, length, heads, d_head); transpose separates the heads, (batch, heads, length, d_head).
    Each head has its own attention weights, (batch, heads, query, key). Below, from right to left, the
    inverse: transpose, flatten to (batch, length, d_model), and the output projection, which mixes heads.
    """
    page = Page(9, 4.1)
    axes = ["length, d_model", "length, d_model", "length, heads, d_head", "heads, length, d_head"]
    heads_x = 7.01 + 0.56 * np.arange(4)

    def side(y: float, line: float, name: str) -> list[Box]:
        """Draw a tensor whole, coloured by head, split, and separated, with its shapes along a line."""
        for x, shape in zip((0.98, 2.95, 5.08, 7.85), axes, strict=True):
            page.words(x, line, "", f"(batch, {shape})")
        page.words(0.98, line, name)
        wide, head = np.full((3, 8), 0.55), np.full((3, 2), 0.55)
        return [
            page.matrix(0.98, y, 0.4 * wide, ["data"]),
            page.matrix(2.95, y, wide, HEADS),
            page.matrix(5.08, y, wide, HEADS, gap=0.1),
            *(page.matrix(x, y, head, [HEADS[i]]) for i, x in enumerate(heads_x)),
        ]

    above, below = side(1.0, 0.3, "x"), side(3.3, 3.67, "output")
    for i, step in enumerate((WORDS["projection"], "unflatten", "transpose")):
        page.arrow(above[i].right, above[i + 1].left, step=step)
    for i, step in enumerate((WORDS["output projection"], "flatten", "transpose")):
        page.arrow(below[i + 1].left, below[i].right, step=step)
    numbers = np.random.default_rng(2)
    for head, (start, end, colour) in enumerate(zip(above[3:], below[3:], HEADS, strict=True)):
        weights = softmax(2 * numbers.normal(size=(3, 3)))
        w = page.matrix(start.x, 2.15, weights, [colour], cell=0.13)
        page.note(start.x, start.top[1] - 0.1, WORDS["head"].format(number=head))
        page.arrow(start.bottom, w.top, colour=colour)
        page.arrow(w.bottom, end.top, colour=colour)
    page.words(5.6, 2.07, WORDS["attention"], "weights (batch, heads, query, key)")
    page.note(0.38, 2.15, WORDS["own columns"], ha="left")
    return page.figure
