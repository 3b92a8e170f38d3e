"""Diagrams that are drawn from data; the others are SVG files in `img/`. Coordinates are in inches from the top left."""

from collections.abc import Collection, Sequence

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, Rectangle
from matplotlib.path import Path
from numpy.typing import ArrayLike

from course_lib.plots.style import COLOURS, STYLE, figure

_CELL, _LANE = (0.52, 0.34), 0.78  # a number: width and height; from key to key
_WIDE, _HIGH = 0.57, 0.3  # a link
_LEGEND = ("sure link", "possible link", "predicted, right", "predicted, wrong")


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
    weights = np.exp(scores) / np.exp(scores).sum()  # (n,)
    bottom = _LANE * (len(keys) - 1)
    middle = 0.85 + bottom / 2
    made, page = _page(7.8, 1.65 + bottom)
    n, d, d_v = axes
    x = {"query": 0.6, "keys": 1.95, "scores": 3.1, "weights": 4.0, "values": 5.1, "output": 7.2}
    shapes = (f"({d},)", f"({n}, {d})", f"({n},)", f"({n},)", f"({n}, {d_v})", f"({d_v},)")
    for (name, centre), shape in zip(x.items(), shapes, strict=True):
        page.text(centre, 0.2, name, ha="center", va="center", fontweight="bold")
        _note(page, centre, 0.29, shape, va="top")

    def cells(name: str, y: float, numbers: np.ndarray, colour: str, dark: float = 0.15):
        return _cells(page, x[name], y, numbers, colour, dark)

    _, from_query = cells("query", middle, query, "main")
    to_output, _ = cells("output", middle, weights @ values, "third")
    plus = to_output - 0.3
    for j, weight in enumerate(weights):
        y = 0.85 + _LANE * j
        to_key, from_key = cells("keys", y, keys[j], "second")
        to_score, from_score = cells("scores", y, scores[j : j + 1], "truth")
        to_weight, from_weight = cells(
            "weights", y, weights[j : j + 1], "truth", 0.08 + 0.55 * weight
        )
        to_value, from_value = cells("values", y, values[j], "third")
        _arrow(page, (from_query, middle), (to_key, y), "main")
        _arrow(page, (from_key, y), (to_score, y), "second")
        _arrow(page, (from_score, y), (to_weight, y), "ink")
        _note(page, (from_weight + to_value) / 2, y, "×")
        line = {"color": COLOURS["third"], "lw": 0.5 + 7 * weight, "solid_capstyle": "butt"}
        page.plot([from_value, plus], [y, middle], **line)
    page.add_patch(Circle((plus, middle), 0.12, fc=COLOURS["third"], lw=0))
    for across, down in ((0.065, 0), (0, 0.065)):
        ends = [plus - across, plus + across], [middle - down, middle + down]
        page.plot(*ends, color="white", lw=1.8)
    _arrow(page, (plus + 0.12, middle), (to_output, middle), "third")
    steps = (("query", "scores", "dot product"), ("scores", "weights", "softmax"))
    for left, right, step in (*steps, ("values", "output", "weighted sum")):
        _note(page, (x[left] + x[right]) / 2, 1.4 + bottom, step)
    return made


@matplotlib.rc_context(STYLE)
def alignment_diagram(
    source: Sequence[str],
    target: Sequence[str],
    sure: Collection[tuple[int, int]],
    possible: Collection[tuple[int, int]],
    predicted: Collection[tuple[int, int]],
) -> Figure:
    """A row for each word of the target, a column for each of the source, and the links in the cells.

    Args:
        source, target: the words.
        sure, possible: (position in the source, position in the target) of the true links; a sure link is also
            possible.
        predicted: the links of an aligner. A filled dot is a predicted link that is possible, a cross one that is
            not. Without any, the legend leaves them out.
    """
    left, top = 1.5, 0.55
    right = left + _WIDE * len(source)
    made, page = _page(max(right + 2.3, 6.4), top + _HIGH * len(target) + 0.2)
    for column, word in enumerate(source):
        _note(page, left + (column + 0.5) * _WIDE, top - 0.16, word)
    for row, word in enumerate(target):
        _note(page, left - 0.1, top + (row + 0.5) * _HIGH, word, ha="right")
        for column in range(len(source)):
            link = column, row
            kind = "sure" if link in sure else "possible" if link in possible else ""
            dot = ("right" if kind else "wrong") if link in predicted else ""
            _link(page, left + column * _WIDE, top + row * _HIGH, kind, dot)
    samples = (("sure", ""), ("possible", ""), ("", "right"), ("", "wrong"))
    for number, sample in enumerate(samples[: 4 if predicted else 2]):
        y = top + 0.36 * number
        _link(page, right + 0.25, y, *sample)
        _note(page, right + 0.33 + _WIDE, y + _HIGH / 2, _LEGEND[number], ha="left")
    return made


def _page(width: float, height: float) -> tuple[Figure, Axes]:
    made, page = figure(width, height)
    made.set_layout_engine("none")
    page.set(position=(0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
    page.set_axis_off()
    return made, page


def _note(
    page: Axes, x: float, y: float, text: str, ha: str = "center", va: str = "center"
) -> None:
    page.text(x, y, text, ha=ha, va=va, fontsize=9, color=COLOURS["truth"])


def _arrow(page: Axes, start: tuple, end: tuple, colour: str) -> None:
    style = {"arrowstyle": "-|>", "mutation_scale": 9, "lw": 1.2, "color": COLOURS[colour]}
    page.add_patch(FancyArrowPatch(path=Path([start, end]), shrinkA=0, shrinkB=0, **style))


def _cells(page: Axes, x: float, y: float, numbers: np.ndarray, colour: str, dark: float):
    """Draw the components of a vector side by side; return where arrows end at its left and start at its right."""
    width, height = _CELL
    half = width * len(numbers) / 2
    style = {"fc": to_rgba(COLOURS[colour], dark), "ec": COLOURS[colour], "lw": 0.8}
    for n, number in enumerate(numbers):
        left = x - half + n * width
        page.add_patch(Rectangle((left, y - height / 2), width, height, **style))
        text = f"{number:.3g}" if abs(number) >= 1 or number == 0 else f"{number:.2f}"
        page.text(left + width / 2, y, text.replace("-", "−"), ha="center", va="center")
    return x - half - 0.05, x + half + 0.05


def _link(page: Axes, x: float, y: float, kind: str, dot: str) -> None:
    """Draw a cell: shaded for a true link, with a dot or a cross for a predicted one."""
    dark = {"sure": 0.6, "possible": 0.2}.get(kind)
    fill = "white" if dark is None else to_rgba(COLOURS["main"], dark)
    page.add_patch(Rectangle((x, y), _WIDE, _HIGH, fc=fill, ec=COLOURS["faint"], lw=1))
    centre = x + _WIDE / 2, y + _HIGH / 2
    if dot == "right":
        page.add_patch(Circle(centre, 0.075, fc=COLOURS["second"], ec="white", lw=1))
    elif dot == "wrong":
        page.plot(*centre, "x", color=COLOURS["second"], markersize=8, markeredgewidth=2)
