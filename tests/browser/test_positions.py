"""Notebook 06 in a real JupyterLab: the sinusoidal table."""

import pytest

from course_lib.widgets import sinusoid_explorer
from tests.helpers.lab import Explorer

NOTEBOOK = "06_positional_encodings.ipynb"


@pytest.fixture(scope="module")
def explorer(lab, screen):
    """The first explorer, after the first two cells have run."""
    screen.open(lab, NOTEBOOK)
    screen.run("start(seed=6)")
    screen.run("explorer = sinusoid_explorer()")
    return Explorer(screen.page, "The sinusoidal table")


def press(explorer, slider, key, times):
    """Press a key on a slider, counted from the first: `Explorer.press` would go by its name."""
    before = explorer.picture()
    explorer.root.get_by_role("slider").nth(slider).focus()
    for _ in range(times):
        explorer.page.keyboard.press(key)
    explorer._settled(before)


def said_by(**settings):
    """The words that belong below the picture."""
    summary = sinusoid_explorer(**settings).summary
    return summary.replace(":\n  ", ": ").replace("\n  ", "; ")


def test_every_slider_has_its_own_name(explorer):
    names = [
        handle.get_attribute("aria-label") for handle in explorer.root.get_by_role("slider").all()
    ]
    assert names == ["length", "d", "base", "position"]


def test_moved_sliders_show_what_course_lib_computes(explorer):
    assert explorer.summary() == said_by()
    press(explorer, 1, "ArrowLeft", times=2)  # d
    press(explorer, 2, "ArrowLeft", times=3)  # base
    assert explorer.summary() == said_by(d_model=16, base=10)


def test_a_dragged_position_beyond_the_table_is_its_last_row(explorer):
    explorer.reset()
    explorer.drag("position", 400)
    assert explorer.value("position") == 63, "the control ends where the table ends"
    assert explorer.summary() == said_by(position=63)
    explorer.reset()
    assert explorer.summary() == said_by()


def test_nothing_left_this_machine_and_nothing_complained(screen):
    assert screen.complaints() == []
