"""The diagram of one query: its numbers are those of attention, and it can be read."""

import math

import numpy as np
import pytest
import torch
from matplotlib.patches import Rectangle

from course_lib.plots import one_query_diagram
from course_lib.plots.diagrams import WORDS

CASES = {
    "notebook": ([1.0, 0.0], [[2.0, 0.0], [0.0, 2.0], [1.0, 1.0]], [[10, 0.0], [0, 10], [5, 5]]),
    "negative": ([0.5, -1.0], [[1.0, 2.0], [-2.0, 0.5]], [[-3.0], [4.0]]),
    "four keys": ([1.0, 1.0], [[1, 0], [0, 1], [2, 0], [0, -2]], [[1], [2], [3], [4]]),
}


def attention(query, keys, values):
    """Scores, weights and output, one number at a time."""
    scores = [sum(q * k for q, k in zip(query, key, strict=True)) for key in keys]
    total = sum(map(math.exp, scores))
    weights = [math.exp(score) / total for score in scores]
    columns = zip(*values, strict=True)
    output = [sum(w * v for w, v in zip(weights, column, strict=True)) for column in columns]
    return scores, weights, output


def texts(figure):
    return figure.axes[0].texts


def numbers(figure):
    """All numbers in the figure, from left to right and from top to bottom."""
    found = []
    for text in texts(figure):
        try:
            found.append((text.get_position(), float(text.get_text().replace("−", "-"))))
        except ValueError:
            continue
    return [number for _, number in sorted(found, key=lambda one: one[0])]


@pytest.mark.parametrize("kind", (list, np.array, torch.tensor))
@pytest.mark.parametrize(("query", "keys", "values"), CASES.values(), ids=CASES)
def test_its_numbers_are_those_of_attention(query, keys, values, kind):
    scores, weights, output = attention(query, keys, values)
    made = one_query_diagram(*(kind(one) for one in (query, keys, values)))
    columns = (*zip(*keys, strict=True), scores, weights, *zip(*values, strict=True))
    wanted = [*query, *(number for column in columns for number in column), *output]
    assert numbers(made) == pytest.approx(wanted, abs=0.006)


def test_a_larger_weight_is_darker_and_has_a_thicker_line():
    query, keys, values = CASES["notebook"]
    _, weights, _ = attention(query, keys, values)
    made = one_query_diagram(query, keys, values)
    order = list(np.argsort(weights))
    cells = [p for p in made.axes[0].patches if isinstance(p, Rectangle)]
    at = {round(text.get_position()[0], 6) for text in texts(made) if text.get_text() == "0.67"}
    mine = [p for p in cells if round(p.get_x() + p.get_width() / 2, 6) in at]
    assert list(np.argsort([p.get_facecolor()[3] for p in mine])) == order
    lines = [line for line in made.axes[0].lines if line.get_color() != "white"]
    assert list(np.argsort([line.get_linewidth() for line in lines])) == order


@pytest.mark.parametrize(("query", "keys", "values"), CASES.values(), ids=CASES)
def test_nothing_overlaps_or_leaves_the_page(query, keys, values):
    made = one_query_diagram(query, keys, values)
    renderer = made.canvas.get_renderer()
    boxes = [t.get_window_extent(renderer) for t in texts(made) if t.get_text()]
    for n, box in enumerate(boxes):
        assert made.bbox.x0 <= box.x0 and box.x1 <= made.bbox.x1
        assert made.bbox.y0 <= box.y0 and box.y1 <= made.bbox.y1
        assert not any(box.overlaps(other) for other in boxes[:n])
    assert min(text.get_fontsize() for text in texts(made)) >= 9
    prose = {WORDS[step] for step in ("dot product", "softmax", "weighted sum")}
    assert prose <= {text.get_text() for text in texts(made)}


def test_the_axes_have_the_names_of_the_notebook():
    query, keys, values = CASES["four keys"]
    made = one_query_diagram(query, keys, values, axes=("key", "d", "value_size"))
    shapes = [text.get_text() for text in texts(made) if text.get_text().startswith("(")]
    assert shapes == ["(d,)", "(key, d)", "(key,)", "(key,)", "(key, value_size)", "(value_size,)"]
