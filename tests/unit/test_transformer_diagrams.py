"""The diagrams of notebook 08: figure 1 of the paper, teacher forcing, and word alignments."""

import pytest
import torch
from matplotlib.colors import to_rgba
from matplotlib.patches import Circle, Rectangle

from course_lib.masks import causal_mask
from course_lib.plots import (
    COLOURS,
    alignment_diagram,
    full_transformer_diagram,
    teacher_forcing_diagram,
)
from course_lib.plots.diagrams.teacher_forcing import TARGET


def texts(made):
    return [text.get_text() for axes in made.axes for text in axes.texts]


def test_figure_1_has_every_norm_residual_connection_and_shape():
    found = texts(full_transformer_diagram())
    assert found.count("Add & Norm") == 5, "two in the encoder, three in the decoder"
    assert found.count("feed-forward network") == 2
    for name in ("self-attention", "masked self-attention", "cross-attention", "× N"):
        assert found.count(name) == (2 if name == "× N" else 1)
    # after the embedding, after the positions, into and out of each Add & Norm, and memory
    assert found.count("(B, S, d)") == 2 + 2 * 2 - 1 + 1
    assert found.count("(B, T, d)") == 2 + 2 * 3 - 1 + 1


def test_the_filled_cells_are_the_causal_mask_and_the_labels_the_shifted_target():
    made = teacher_forcing_diagram()
    size = len(TARGET) - 1
    cells = [p for p in made.axes[0].patches if isinstance(p, Rectangle)]
    grid = [p for p in cells if to_rgba(p.get_edgecolor()) == to_rgba(COLOURS["faint"])]
    assert len(grid) == size * size
    xs, ys = (sorted({round(getattr(p, f"get_{axis}")(), 3) for p in grid}) for axis in "xy")
    filled = torch.zeros(size, size, dtype=torch.bool)
    for p in grid:
        row, column = ys.index(round(p.get_y(), 3)), xs.index(round(p.get_x(), 3))
        filled[row, column] = p.get_facecolor() != to_rgba("white")
    assert torch.equal(filled, causal_mask(size))
    tokens = [t for t in made.axes[0].texts if t.get_text() in TARGET]
    rows = {}
    for token in tokens:
        rows.setdefault(round(token.get_position()[1], 3), []).append(token)
    rows = [sorted(row, key=lambda t: t.get_position()[0]) for _, row in sorted(rows.items())]
    assert [t.get_text() for t in rows[0]] == list(TARGET[:-1])
    assert [[t.get_text() for t in row] for row in rows[1:]] == [
        list(pair) for pair in zip(TARGET, TARGET[1:], strict=False)
    ]


@pytest.mark.parametrize(
    ("predicted", "dots", "crosses"),
    [(set(), 0, 0), ({(0, 0), (1, 1)}, 2, 0), ({(0, 0), (0, 1), (2, 2)}, 1, 2)],
)
def test_predicted_links_are_dots_where_they_are_possible_and_crosses_elsewhere(
    predicted, dots, crosses
):
    words = ["a", "b", "c"]
    (axes,) = alignment_diagram(words, words, {(0, 0)}, {(0, 0), (1, 1)}, predicted).axes
    circles = [p for p in axes.patches if isinstance(p, Circle)]
    legend = 1 if predicted else 0  # one of each, if there is any
    assert len(circles) == dots + legend and len(axes.lines) == crosses + legend
    shaded = [
        p
        for p in axes.patches
        if isinstance(p, Rectangle) and p.get_facecolor() != to_rgba("white")
    ]
    assert len(shaded) == 2 + 2, "two links, and two in the legend"
