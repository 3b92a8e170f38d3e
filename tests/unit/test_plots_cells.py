"""Cells of a map are drawn as `imshow` draws them."""

import io

import numpy as np
import pytest

from course_lib.plots import figure
from course_lib.plots.cells import Cells
from tests.helpers.attention_explorers import VIRIDIS, cells_of
from tests.helpers.explorers import pixels


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (12, 12), (20, 31), (150, 200)])
@pytest.mark.parametrize("dpi", [100, 130, 217])
def test_cells_equal_imshow(shape, dpi):
    shares = np.random.default_rng(0).random(shape)
    fine = max(shape) > 100  # cells of a pixel or two: neighbours must be alike to be compared
    if fine:
        y, x = np.indices(shape) / np.array(shape)[:, None, None]
        shares = (1 + np.sin(5 * x + 3 * y * y) * np.cos(4 * y - 2 * x)) / 2
    pictures = []
    for ours in (True, False):
        drawn, axes = figure(4, 3)
        axes.set(xlim=(-0.3, 1.1), ylim=(1.2, -0.1))
        axes.grid(False)
        if ours:
            Cells(axes, (0, 1, 1, 0)).show(shares)
        else:
            axes.imshow(
                shares,
                vmin=0,
                vmax=1,
                extent=(0, 1, 1, 0),
                aspect="auto",
                interpolation="nearest",
                cmap="viridis",
            )
        file = io.BytesIO()
        drawn.savefig(file, dpi=dpi)
        pictures.append(pixels(file.getvalue()))
    (left, top), (right, bottom) = axes.transData.transform([(0, 0), (1, 1)]) * dpi / drawn.dpi
    height, _, _ = pictures[0].shape
    x = left + (np.arange(shape[1]) + 0.5) / shape[1] * (right - left)
    y = height - top + (np.arange(shape[0]) + 0.5) / shape[0] * (top - bottom)
    ours, theirs = (one[np.ix_(y.astype(int), x.astype(int))] for one in pictures)
    near = 0.06 if fine else 0.02
    assert np.abs(theirs - VIRIDIS(shares)[..., :3]).max() < near, "the test looks elsewhere"
    assert np.abs(ours - theirs).max() < near
    # everywhere else too, but for a pixel at each edge of a cell
    apart = np.abs(pictures[0] - pictures[1]).max(-1) > near
    assert apart.mean() < 0.5 * (shape[0] / (top - bottom) + shape[1] / (right - left))
    outside = np.ones_like(apart)
    outside[int(height - top) - 1 : int(height - bottom) + 2, int(left) - 1 : int(right) + 2] = (
        False
    )
    assert not apart[outside].any()


def test_cells_clip_below_zero_and_above_one():
    drawn, axes = figure(3, 3)
    axes.set(xlim=(0, 1), ylim=(1, 0))
    axes.grid(False)
    Cells(axes, (0, 1, 1, 0)).show([[-1.0, 0.0], [1.0, 7.0]])
    file = io.BytesIO()
    drawn.savefig(file, dpi=100)
    box = axes.get_position()
    found = cells_of(file.getvalue(), (box.x0, 1 - box.y1, box.x1, 1 - box.y0), (2, 2))
    wanted = [[[1, 1, 1], VIRIDIS(0.0)[:3]], [VIRIDIS(1.0)[:3]] * 2]
    assert np.abs(found - np.array(wanted)).max() < 0.005
