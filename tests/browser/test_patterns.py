"""The pattern explorer in a real JupyterLab: chosen by keyboard, read with the pointer."""

import math

import pytest

from tests.helpers.gestures import ask, point_at, says
from tests.helpers.lab import Explorer, running_lab, write_notebook

NOTEBOOK = "patterns.ipynb"
CELLS = (
    """
import torch
from course_lib.widgets import pattern_explorer

torch.manual_seed(0)
weights = torch.randn(16, 16).softmax(-1)
""",
    "explorer = pattern_explorer(weights, window=2)\nexplorer",
)


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lab")
    with running_lab(folder) as address:
        write_notebook(folder, NOTEBOOK, CELLS)
        yield address


@pytest.fixture(scope="module")
def opened(lab, screen):
    screen.open(lab, NOTEBOOK)
    screen.run_all()
    return screen


@pytest.fixture
def explorer(opened):
    found = Explorer(opened.page, "Sparse pattern")
    found.reset()
    return found


def test_pattern_window_and_global_tokens_by_keyboard(explorer):
    said = explorer.summary()
    assert "pattern sliding_window; window 2; scores 74 of 256 (28.9 %);" in said
    explorer.press("window or block size", "ArrowRight", times=2)
    assert "window 4; scores 124 of 256 (48.4 %);" in explorer.summary()
    before = explorer.picture()
    explorer.choose("pattern", "longformer")
    explorer.press("global tokens", "ArrowRight")
    said = explorer.summary()
    assert "pattern longformer; window 4; global tokens 2; " in said
    wanted = sum(abs(i - j) <= 4 or i < 2 or j < 2 for i in range(16) for j in range(16))
    assert f"scores {wanted} of 256 ({100 * wanted / 256:.1f} %);" in said
    assert explorer.picture() != before
    explorer.choose("pattern", "block")
    assert "pattern block; block size 4; scores 64 of 256 (25.0 %);" in explorer.summary()


def test_the_pointer_reads_the_pattern_and_the_weights(opened, explorer):
    code = "[{'box': one['box'], 'shape': one['shape']} for one in explorer.picture.hover[:2]]"
    pattern, kept = ask(opened, code)
    weights = ask(opened, "weights.tolist()")
    for row, column in ((0, 0), (5, 7), (15, 2), (9, 6)):
        sign = 1 if abs(row - column) <= 2 else -1
        cell = f"query {row}, key {column}"
        assert says(point_at(explorer, pattern, row, column), cell, sign)
        tip, side = point_at(explorer, kept, row, column).split(" (")
        assert says(tip, cell, weights[row][column])
        assert side == f"weight {'kept' if sign > 0 else 'lost'})"


def test_a_control_without_effect_cannot_be_moved(explorer):
    explorer.choose("pattern", "causal")
    before = explorer.summary()
    assert "pattern causal; scores 136 of 256 (53.1 %);" in before
    explorer.choose("pattern", "sliding_window")
    assert "window 2;" in explorer.summary()


def test_the_pointer_reads_lengths_as_whole_numbers(opened, explorer):
    cost = ask(opened, "explorer.picture.hover[2]")
    (left, top, right, bottom), limits = cost["box"], [math.log(one) for one in cost["limits"]]
    picture = explorer.image.bounding_box()
    for length in (2048, 8192, 65536):
        share = (math.log(length) - limits[0]) / (limits[1] - limits[0])
        x = picture["x"] + (left + share * (right - left)) * picture["width"]
        explorer.page.mouse.move(x, picture["y"] + (top + bottom) / 2 * picture["height"])
        assert explorer.tip().startswith(f"length of the sequence {length}: ")
    opened.page.mouse.move(1, 1)


def test_nothing_left_this_machine_and_nothing_complained(opened):
    assert opened.complaints() == []
