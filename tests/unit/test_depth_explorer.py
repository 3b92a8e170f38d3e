"""The depth explorer of notebook 07: what it draws and says is what the record holds."""

import itertools
import math

import numpy as np
import pytest

from course_lib.experiments.runs import read, where
from course_lib.widgets import depth_explorer
from tests.helpers.explorers import fact, move, panels

DEPTHS, NORMS, WARMUPS = (2, 4, 6, 9, 12, 18), ("pre", "post"), (0, 30, 100)
AFTER = (0, 10, 30, 100, 300)
POSITIONS = {"depth": DEPTHS, "norm": NORMS, "warmup": WARMUPS, "after": AFTER}
ROWS = read("depth")


def geometric_means(depth, norm, warmup, after):
    """Per block: the third root of the product of the three seeds."""
    runs = where(ROWS, depth=depth, norm=norm, warmup=warmup)
    seeds = [run["gradients"][AFTER.index(after)] for run in runs]
    return [math.prod(block) ** (1 / 3) for block in zip(*seeds, strict=True)]


def vertices(panel, name):
    """What matplotlib has of a curve: x, y."""
    (line,) = (one for one in panel.axes.get_lines() if one.get_label() == name)
    return np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float)


def test_the_controls_offer_all_that_was_recorded():
    controls = depth_explorer().controls.items()
    assert {name: tuple(one._options_values) for name, one in controls} == POSITIONS
    recorded = {(row["depth"], row["norm"], row["warmup"]) for row in ROWS}
    assert recorded == set(itertools.product(DEPTHS, NORMS, WARMUPS))


def test_the_lines_are_the_means_of_the_record_and_stay_inside_their_axes():
    explorer = depth_explorer()
    (gradients,) = panels(explorer)
    legends = [panel.axes.get_legend().get_window_extent() for panel in panels(explorer)]
    for depth, warmup, after in itertools.product(DEPTHS, WARMUPS, AFTER):
        explorer._update(depth=depth, norm="pre", warmup=warmup, after=after)
        for name in NORMS:
            blocks, drawn = vertices(gradients, name)
            np.testing.assert_array_equal(blocks, np.arange(18))
            wanted = geometric_means(depth, name, warmup, after)
            np.testing.assert_allclose(drawn[:depth], wanted, rtol=1e-6)
            assert np.isnan(drawn[depth:]).all(), "there is nothing after the last block"
            np.testing.assert_array_equal(gradients.data()[name], drawn)
            for panel, legend in zip(panels(explorer), legends, strict=True):
                points = np.stack(vertices(panel, name), axis=-1)
                points = points[np.isfinite(points).all(-1)]
                low, high = panel.axes.get_ylim()
                assert low < points[:, 1].min() and points[:, 1].max() < high, (depth, name)
                assert not legend.count_contains(panel.axes.transData.transform(points))


@pytest.mark.parametrize(("depth", "warmup", "after"), [(2, 0, 0), (12, 0, 10), (18, 100, 300)])
@pytest.mark.parametrize("norm", NORMS)
def test_the_summary_and_the_thick_line_are_of_the_chosen_norm(norm, depth, warmup, after):
    explorer = move(depth_explorer(), depth=depth, norm=norm, warmup=warmup, after=after)
    means = geometric_means(depth, norm, warmup, after)
    for block, name in ((0, f"gradient norm of block 0 after {after} steps"), (-1, f"of block {depth - 1}")):  # fmt: skip
        assert float(fact(explorer, name)) == pytest.approx(means[block], rel=0.0501)
    for panel in panels(explorer):
        lines = {one.get_label(): one for one in panel.axes.get_lines() if len(one.get_xdata())}
        assert {name: line.get_alpha() for name, line in lines.items()} == {
            name: 1 if name == norm else 0.4 for name in NORMS
        }


def test_the_pointer_reads_the_exact_values():
    (gradients,) = depth_explorer(depth=4, warmup=100, after=30).picture.hover
    assert gradients["x"] == list(range(18)) and gradients["limits"] == [-0.5, 17.5]
    for name, values in gradients["lines"]:
        assert values[:4] == pytest.approx(geometric_means(4, name, 100, 30), rel=1e-6)
        assert values[4:] == [None] * 14
