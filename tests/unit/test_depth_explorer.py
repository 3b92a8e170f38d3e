"""The depth explorer of notebook 07: what it draws and says is what the record holds."""

import itertools
import json
import math
import random

import numpy as np
import pytest

from course_lib.experiments import depth as experiment
from course_lib.widgets import depth_explorer
from tests.helpers.explorers import moved_at_random

DEPTHS, NORMS, WARMUPS = (2, 4, 6, 9, 12, 18), ("pre", "post"), (0, 30, 100)
AFTER = (0, 10, 30, 100, 300)
POSITIONS = {"depth": DEPTHS, "norm": NORMS, "warmup": WARMUPS, "after": AFTER}
RECORD = json.loads(experiment.RECORD.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def moved():
    """One explorer for many moves."""
    return depth_explorer()


def facts(explorer):
    """The summary, taken apart: the facts, each a name and what is said of it, in order."""
    title, *lines = explorer.summary.split("\n  ")
    assert title == "Depth:"
    return lines


def set_to(explorer, **values):
    for name, value in values.items():
        explorer.controls[name].value = value
    return explorer


def geometric_means(depth, norm, warmup, after):
    """Per block: the third root of the product of the three seeds."""
    seeds = RECORD[f"{depth} {norm} {warmup}"]["gradients"][str(after)]
    return [math.prod(block) ** (1 / 3) for block in zip(*seeds, strict=True)]


def mean_losses(depth, norm, warmup):
    seeds = RECORD[f"{depth} {norm} {warmup}"]["losses"]
    return [math.fsum(step) / 3 for step in zip(*seeds, strict=True)]


def vertices(panel, name):
    """What matplotlib has of a curve: x, y."""
    (line,) = (one for one in panel.axes.get_lines() if one.get_label() == name)
    return np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float)


def test_the_controls_offer_all_that_was_recorded():
    explorer = depth_explorer()
    offered = {name: tuple(one.options) for name, one in explorer.controls.items()}
    assert offered == POSITIONS
    assert set(RECORD) == {f"{d} {n} {w}" for d in DEPTHS for n in NORMS for w in WARMUPS}
    assert [one.description for one in explorer.controls.values()] == [
        "depth",
        "norm",
        "warm-up",
        "after step",
    ]


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("warmup", WARMUPS)
def test_the_lines_are_the_means_of_the_record(moved, depth, warmup):
    for norm, after in itertools.product(NORMS, AFTER):
        set_to(moved, depth=depth, norm=norm, warmup=warmup, after=after)
        gradients, losses = moved.picture.figure.panels
        for name in NORMS:
            wanted = geometric_means(depth, name, warmup, after)
            blocks, drawn = vertices(gradients, name)
            np.testing.assert_array_equal(blocks, np.arange(1, 19))
            np.testing.assert_allclose(drawn[:depth], wanted, rtol=1e-6)
            assert np.isnan(drawn[depth:]).all(), "there is nothing after the last block"
            np.testing.assert_array_equal(gradients.data()[name], drawn)
            steps, drawn = vertices(losses, name)
            np.testing.assert_array_equal(steps, np.arange(5, 301, 5))
            np.testing.assert_allclose(drawn, mean_losses(depth, name, warmup), rtol=1e-6)
            np.testing.assert_array_equal(losses.data()[name], drawn)


@pytest.mark.parametrize("depth", DEPTHS)
def test_the_summary_says_what_the_record_says(moved, depth):
    for norm, warmup, after in itertools.product(NORMS, WARMUPS, AFTER):
        set_to(moved, depth=depth, norm=norm, warmup=warmup, after=after)
        means = geometric_means(depth, norm, warmup, after)
        ends = sorted(run[-1] for run in RECORD[f"{depth} {norm} {warmup}"]["losses"])
        said = facts(moved)
        assert said[:3] == [f"norm {norm}", f"depth {depth}", f"warm-up {warmup} steps"]
        first, last, losses = said[3:]
        name, _, number = first.rpartition(" ")
        assert name == f"gradient norm of block 1 after {after} steps"
        assert float(number) == pytest.approx(means[0], rel=0.0501)
        name, _, number = last.rpartition(" ")
        assert name == f"of block {depth}"
        assert float(number) == pytest.approx(means[-1], rel=0.0501)
        assert losses.startswith("final losses of three seeds ")
        numbers = [
            float(one) for one in losses.removeprefix("final losses of three seeds ").split(", ")
        ]
        assert numbers == pytest.approx(ends, rel=0.0501)


def test_some_numbers_are_those_of_the_file_read_by_eye():
    """Post-norm, 12 blocks, no warm-up: the example of the notebook."""
    explorer = depth_explorer(depth=12, norm="post", warmup=0, after=10)
    runs = RECORD["12 post 0"]
    first = (
        runs["gradients"]["10"][0][0]
        * runs["gradients"]["10"][1][0]
        * runs["gradients"]["10"][2][0]
    ) ** (1 / 3)
    assert f"gradient norm of block 1 after 10 steps {first:.2g}" in explorer.summary
    assert explorer.summary.endswith("final losses of three seeds 2.7, 2.8, 2.8")


def test_every_combination_of_controls_has_a_picture_of_its_own(moved):
    pictures, summaries = {}, {}
    for position in itertools.product(*POSITIONS.values()):
        set_to(moved, **dict(zip(POSITIONS, position, strict=True)))
        assert "cannot be drawn" not in moved._problem.value
        pictures.setdefault(moved.picture.png, []).append(position)
        summaries.setdefault(moved.summary, []).append(position)
    # the rate of the first steps differs with the warm-up, so that only step 0 and its gradients are shared
    assert len(pictures) == len(summaries) == 6 * 2 * 3 * 5


def test_the_same_controls_say_and_draw_the_same():
    there = {"depth": 6, "norm": "pre", "warmup": 30, "after": 100}
    explorer = set_to(depth_explorer(), **there)
    summary, png = explorer.summary, explorer.picture.png
    set_to(explorer, depth=18, norm="post", warmup=0, after=0)
    assert explorer.summary != summary and explorer.picture.png != png
    set_to(explorer, **there)
    assert (explorer.summary, explorer.picture.png) == (summary, png)
    fresh = depth_explorer(**there)
    assert (fresh.summary, fresh.picture.png) == (summary, png)
    fresh.reset()
    assert fresh.summary == summary, "reset is where this one started"
    explorer.reset()
    assert explorer.summary == depth_explorer().summary
    assert explorer.picture.png == depth_explorer().picture.png


@pytest.mark.parametrize("norm", NORMS)
def test_the_chosen_norm_is_drawn_thick_and_the_other_faint(norm):
    explorer = set_to(depth_explorer(), norm=norm)
    for panel in explorer.picture.figure.panels:
        lines = {one.get_label(): one for one in panel.axes.get_lines() if len(one.get_xdata())}
        assert set(lines) == set(NORMS)
        (other,) = set(NORMS) - {norm}
        assert lines[norm].get_linewidth() > 2 * lines[other].get_linewidth()
        assert (lines[norm].get_alpha(), lines[other].get_alpha()) == (1, 0.4)


def test_each_control_changes_what_it_should(moved):
    def shown():
        return [
            np.concatenate([panel.data()[name] for name in NORMS])
            for panel in moved.picture.figure.panels
        ]

    def changes(**value):
        before = shown()
        set_to(moved, **value)
        return [
            not np.array_equal(one, other, equal_nan=True)
            for one, other in zip(before, shown(), strict=True)
        ]

    set_to(moved, depth=6, norm="pre", warmup=0, after=0)
    assert changes(norm="post") == [False, False], "the other line is thick"
    assert changes(warmup=30) == [False, True], "before training there was no warm-up"
    assert changes(after=100) == [True, False]
    assert changes(warmup=100) == [True, True]
    assert changes(depth=9) == [True, True]


def test_the_pointer_reads_the_exact_values():
    explorer = set_to(depth_explorer(), depth=4, warmup=100, after=30)
    gradients, losses = explorer.picture.hover
    assert (gradients["kind"], losses["kind"]) == ("lines", "lines")
    assert gradients["x"] == list(range(1, 19)) and gradients["limits"] == [0.5, 18.5]
    assert losses["x"] == list(range(5, 301, 5))
    assert [name for name, _ in gradients["lines"]] == [name for name, _ in losses["lines"]]
    for name, values in gradients["lines"]:
        assert values[:4] == pytest.approx(geometric_means(4, name, 100, 30), rel=1e-6)
        assert values[4:] == [None] * 14
    for name, values in losses["lines"]:
        assert values == pytest.approx(mean_losses(4, name, 100), rel=1e-6)


def test_no_curve_leaves_its_axes_or_runs_under_its_legend(moved):
    legends = [panel.axes.get_legend().get_window_extent() for panel in moved.picture.figure.panels]
    for position in itertools.product(*POSITIONS.values()):
        moved._update(**dict(zip(POSITIONS, position, strict=True)))
        for panel, legend in zip(moved.picture.figure.panels, legends, strict=True):
            low, high = panel.axes.get_ylim()
            for name in NORMS:
                drawn = panel.data()[name]
                drawn = drawn[np.isfinite(drawn)]
                assert low < drawn.min() and drawn.max() < high, (position, name)
                points = np.stack(vertices(panel, name), axis=-1)
                points = panel.axes.transData.transform(points[np.isfinite(points).all(-1)])
                assert not legend.count_contains(points), (position, name)
            left, right = panel.axes.get_xlim()
            assert left <= panel.x[0] and panel.x[-1] <= right


@pytest.mark.parametrize("turns", range(3))
def test_after_any_moves_the_picture_is_that_of_a_full_drawing(turns):
    moved, pictures = moved_at_random(depth_explorer, POSITIONS, random.Random(turns), turns=8)
    assert len(pictures) > 5, "the test shows too little"
    settings = {name: one.value for name, one in moved.controls.items()}
    assert depth_explorer(**settings).picture.png == moved.picture.png


def test_what_a_page_without_a_kernel_shows_says_the_same():
    explorer = depth_explorer(depth=2, after=0)
    words = explorer._repr_mimebundle_()[0]["text/plain"]
    assert words.startswith(explorer.summary + "\ngradient norm by block: pre ")
    low, high = min(geometric_means(2, "pre", 0, 0)), max(geometric_means(2, "pre", 0, 0))
    assert f"pre {low:.3g} to {high:.3g}, " in words, "what is not there does not count"
    assert "training: pre " in words


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"depth": 3}, "depth=3 must be one of 2, 4, 6, 9, 12, 18"),
        ({"depth": 0}, "depth=0 must be one of 2, 4, 6, 9, 12, 18"),
        ({"depth": -2}, "depth=-2 is below 0"),
        ({"depth": 2.0}, "depth=2.0 is a float"),
        ({"depth": "2"}, "depth='2' is a str"),
        ({"norm": "middle"}, "norm='middle' is unknown; it must be one of 'pre', 'post'"),
        ({"norm": "Post"}, "Did you mean 'post'"),
        ({"warmup": 31}, "warmup=31 must be one of 0, 30, 100"),
        ({"warmup": False}, "warmup=False is a bool"),
        ({"after": 11}, "after=11 must be one of 0, 10, 30, 100, 300"),
    ],
)
def test_what_was_not_recorded_is_refused_by_name(settings, words, without_annotations):
    with pytest.raises(ValueError, match=words):
        depth_explorer(**settings)
