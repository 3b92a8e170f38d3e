"""Notebook 07 in a real JupyterLab: sliders along a few values, by keyboard and mouse, and a menu."""

import pytest

from course_lib.widgets import depth_explorer
from tests.helpers.lab import Explorer

NOTEBOOK = "07_transformer_blocks.ipynb"


@pytest.fixture(scope="module")
def explorer(lab, screen):
    """The explorer, from its defaults."""
    screen.open(lab, NOTEBOOK)
    screen.run("start(seed=7)")
    screen.run("depth_explorer()", timeout=60)
    return Explorer(screen.page, "Depth")


def told(depth, norm, warmup, after):
    """The words that belong below the picture."""
    summary = depth_explorer(depth=depth, norm=norm, warmup=warmup, after=after).summary
    return summary.replace(":\n  ", ": ").replace("\n  ", "; ")


def test_every_control_is_named_and_shows_what_the_kernel_draws(explorer):
    names = [one.get_attribute("aria-label") for one in explorer.root.get_by_role("slider").all()]
    assert names == ["depth", "warm-up", "after step"]
    assert explorer.summary() == told(12, "post", 0, 10)
    seen = [explorer.picture()]
    for move, settings in (
        (lambda: explorer.press("after step", "ArrowRight"), (12, "post", 0, 30)),
        (lambda: explorer.press("after step", "End"), (12, "post", 0, 300)),
        (lambda: explorer.press("warm-up", "ArrowRight", times=2), (12, "post", 100, 300)),
        (lambda: explorer.press("depth", "Home"), (2, "post", 100, 300)),
        (lambda: explorer.choose("norm", "pre"), (2, "pre", 100, 300)),
        (lambda: explorer.drag("depth", 600), (18, "pre", 100, 300)),
    ):
        move()
        assert explorer.summary() == told(*settings)
        seen.append(explorer.picture())
    assert len(set(seen)) == len(seen), "each has a picture of its own"
    explorer.reset()
    assert explorer.summary() == told(12, "post", 0, 10)


def test_the_whole_explorer_can_be_seen_at_once(explorer):
    explorer.root.scroll_into_view_if_needed()
    assert explorer.root.bounding_box()["height"] < explorer.page.viewport_size["height"]


def test_nothing_left_this_machine_and_nothing_complained(screen):
    assert screen.complaints() == []
