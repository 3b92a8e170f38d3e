"""The diagrams that are drawn from data hold the numbers of attention, and can be read."""

import math

import pytest
from matplotlib.colors import to_rgba
from matplotlib.patches import Circle, Rectangle

from course_lib.plots import alignment_diagram, one_query_diagram

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


@pytest.mark.parametrize(("query", "keys", "values"), CASES.values(), ids=CASES)
def test_the_numbers_are_those_of_attention_from_left_to_right(query, keys, values):
    scores, weights, output = attention(query, keys, values)
    found = []
    for text in one_query_diagram(query, keys, values).axes[0].texts:
        word = text.get_text().replace("−", "-")
        if word.replace(".", "").lstrip("-").isdigit():
            found.append((text.get_position(), float(word)))
    columns = (*zip(*keys, strict=True), scores, weights, *zip(*values, strict=True))
    wanted = [*query, *(number for column in columns for number in column), *output]
    numbers = [number for _, number in sorted(found, key=lambda one: one[0])]
    assert numbers == pytest.approx(wanted, abs=0.006)


@pytest.mark.parametrize(("query", "keys", "values"), CASES.values(), ids=CASES)
def test_no_text_overlaps_another_or_leaves_the_page(query, keys, values):
    made = one_query_diagram(query, keys, values)
    renderer = made.canvas.get_renderer()
    boxes = [text.get_window_extent(renderer) for text in made.axes[0].texts]
    for n, box in enumerate(boxes):
        assert made.bbox.x0 <= box.x0 and box.x1 <= made.bbox.x1
        assert made.bbox.y0 <= box.y0 and box.y1 <= made.bbox.y1
        assert not any(box.overlaps(other) for other in boxes[:n])


@pytest.mark.parametrize(
    ("predicted", "dots", "crosses"),
    [(set(), 0, 0), ({(0, 0), (1, 1)}, 2, 0), ({(0, 0), (0, 1), (2, 2)}, 1, 2)],
)
def test_predicted_links_are_dots_where_they_are_possible_and_crosses_elsewhere(
    predicted, dots, crosses
):
    words = ["a", "b", "c"]
    (page,) = alignment_diagram(words, words, {(0, 0)}, {(0, 0), (1, 1)}, predicted).axes
    circles = [p for p in page.patches if isinstance(p, Circle)]
    legend = 1 if predicted else 0  # one of each, if there is any
    assert len(circles) == dots + legend and len(page.lines) == crosses + legend
    cells = [p for p in page.patches if isinstance(p, Rectangle)]
    shaded = [p for p in cells if p.get_facecolor() != to_rgba("white")]
    assert len(shaded) == 2 + 2, "two links, and two in the legend"
