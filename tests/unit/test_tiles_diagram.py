"""The diagrams of notebook 10 show as many cells as their captions say."""

import numpy as np
from matplotlib.colors import to_rgba
from matplotlib.patches import Rectangle

from course_lib.plots import COLOURS, flash_diagram, window_blocks_diagram
from course_lib.plots.diagrams import tiles


def cells(figure):
    """(x, y, width, face colour) of each cell."""
    (axes,) = figure.axes
    return [
        (*one.get_xy(), one.get_width(), one.get_facecolor())
        for one in axes.patches
        if type(one) is Rectangle and one.get_fill()
    ]


def is_filled(colour):
    return any(
        np.allclose(colour, to_rgba(COLOURS[name], 0.6), atol=1e-6) for name in ("main", "second")
    )


def test_the_blocks_of_a_window_hold_108_scores_of_which_72_are_used():
    found = cells(window_blocks_diagram())
    left = [one for one in found if one[0] < 4]
    right = [one for one in found if one[0] >= 4]
    assert len(left) == tiles.LENGTH**2 == 144 and len(right) == 108
    assert sum(is_filled(one[3]) for one in left) == 72
    assert sum(is_filled(one[3]) for one in right) == 72


def test_one_tile_is_computed_and_those_before_it_are_done():
    found = cells(flash_diagram())
    now = [one for one in found if np.allclose(one[3], to_rgba(COLOURS["main"], 0.6))]
    done = [one for one in found if np.allclose(one[3], to_rgba(COLOURS["faint"], 1.0))]
    assert len(now) == 1 + 1  # and its sample in the legend
    assert len(done) == tiles.NOW[0] * tiles.TILES + tiles.NOW[1] + 1
