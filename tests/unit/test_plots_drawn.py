"""The numbers compared and shown under the pointer are those that were drawn."""

import matplotlib
import numpy as np
import pytest
import seaborn
from matplotlib import pyplot

from course_lib.notebook import show
from course_lib.plots import bar_plot, drawn_panels, figure, line_plot
from course_lib.plots.style import STYLE
from course_lib.widgets.live_figure import LiveFigure
from course_lib.widgets.picture import Picture
from tests.helpers.explorers import values_of

X = np.array([16, 32, 64, 128])
RUNS = np.array([[0.9, 0.5, np.nan, 0.1], [1.0, 0.7, np.nan, 0.2], [0.8, 0.3, np.nan, 0.6]])


@pytest.fixture(autouse=True)
def style():
    with matplotlib.rc_context(STYLE):
        yield


def drawn(draw):
    """The one panel of what `draw` draws, and its Axes."""
    made, axes = figure(4, 3)
    draw(axes)
    (panel,) = drawn_panels(made)
    return panel, axes


KINDS = {  # name → what draws numbers, one of them times a factor
    "lines": lambda axes, x: line_plot(axes, X, {"a": x * X[::-1], "b": X}),
    "heat map": lambda axes, x: seaborn.heatmap(x * np.eye(2, 3), ax=axes, cmap="viridis"),
    "two runs": lambda axes, x: line_plot(axes, [1, 2], {"a": [[1.0, 2.0], [2.0, 4.0 * x]]}),
    "bars": lambda axes, x: bar_plot(axes, {"p": 0.25 * x, "q": 1.0}),
    "columns": lambda axes, x: seaborn.barplot(
        x=["p", "q"] * 2, y=[1, 2, 3, 4 * x], hue=["x", "x", "y", "y"], ax=axes
    ),
    "points": lambda axes, x: seaborn.scatterplot(x=[1, 2, 3], y=[4, 5, 6 * x], ax=axes),
    "query": lambda axes, x: (axes.plot([0, 5], [1, 1]), axes.axvline(2 * x)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_change_of_one_per_cent_changes_the_description(kind):
    draw = KINDS[kind]
    said = [drawn(lambda axes, x=x: draw(axes, x))[0].describe() for x in (1.0, 1.0, 1.01)]
    assert said[0] == said[1] != said[2]


def test_intervals_are_the_mean_and_the_extremes_and_nothing_where_there_is_none():
    panel, _ = drawn(lambda axes: line_plot(axes, X, {"one": RUNS, "two": 1 - RUNS}))
    data, runs = panel.data(), RUNS[:, [0, 1, 3]]
    np.testing.assert_allclose(data["one"], runs.sum(0) / 3)
    np.testing.assert_allclose(data["one lowest"], runs.min(0))
    np.testing.assert_allclose(data["one highest"], runs.max(0))
    np.testing.assert_allclose(data["two"], 1 - runs.sum(0) / 3)


@pytest.mark.parametrize(
    ("y", "options", "bottom"),
    [
        ([7, 7.1, 7.2, 7], {}, 0),
        ([7, 7.1, 7.2, 7], {"y_limits": (6, 8)}, 6),
        ([0.5, 1, 2, 4], {"log_y": True}, None),
        ([-1, 1, 2, 4], {}, None),
    ],
)
def test_noise_is_not_magnified(y, options, bottom):
    _, axes = drawn(lambda axes: line_plot(axes, X, {"a": y}, **options))
    assert axes.get_ylim()[0] == bottom if bottom is not None else axes.get_ylim()[0] != 0


def test_the_mean_of_several_runs_is_the_arithmetic_one_in_every_panel_of_a_shared_log_axis():
    made, panels = figure(columns=2, sharey=True)
    for axes in panels:
        line_plot(axes, [1, 2], {"a": [[1.0, 4.0], [9.0, 16.0]]}, log_x=True, log_y=True)
    assert [axes.lines[0].get_ydata().tolist() for axes in panels] == [[5, 10], [5, 10]]
    assert all(axes.get_yscale() == axes.get_xscale() == "log" for axes in panels)


def test_bars_carry_names_numbers_and_intervals():
    panel, axes = drawn(lambda axes: bar_plot(axes, {"p": [0.2, 0.4], "q": 1.0}, x_label="share"))
    data = panel.data()
    np.testing.assert_allclose(data["share"], [0.3, 1.0])
    np.testing.assert_allclose(data["interval at"][:2], [0.2, 0.4])
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["p", "q"]
    assert [text.get_text() for text in axes.texts] == ["0.3", "1"]
    assert panel.hover() == []


def test_the_values_of_a_map_under_the_pointer_are_exact():
    values = np.random.default_rng(0).random((4, 7)).astype("float32")
    made, axes = figure(3, 3)
    seaborn.heatmap(values, ax=axes, yticklabels="abcd", xticklabels=False)
    picture = Picture(LiveFigure(made, drawn_panels(made)), "map")
    (region,) = picture.hover
    np.testing.assert_array_equal(values_of(region), values)
    assert region["rows"] == list("abcd") and region["columns"] == list("0123456")
    assert len(made.axes) == 2, "a colour bar, which is no panel"


def test_a_masked_cell_has_no_value():
    panel, _ = drawn(lambda axes: seaborn.heatmap(np.eye(2), mask=np.eye(2) == 1, ax=axes))
    assert np.isnan(panel.data()["value"]).sum() == 2 and "value 0" in panel.describe()


def test_the_panels_of_a_grid_have_the_names_of_its_legend():
    table = {"x": [1, 2] * 4, "y": range(8), "task": list("aabbaabb"), "name": list("ppppqqqq")}
    grid = seaborn.relplot(table, x="x", y="y", hue="task", col="name", kind="line")
    panels = drawn_panels(grid.figure)
    assert [list(panel.data()) for panel in panels] == [["x", "a", "b"]] * 2
    np.testing.assert_array_equal(panels[1].data()["b"], [6, 7])
    pyplot.close(grid.figure)


def test_a_figure_of_pyplot_is_shown_once():
    """A notebook shows whatever pyplot still holds at the end of a cell."""
    made, axes = pyplot.subplots()
    axes.plot([0, 1], [2, 4])
    show(made, "A line.")
    assert made.number not in pyplot.get_fignums()


def test_a_diagram_has_no_numbers():
    made, axes = figure(3, 2)
    axes.set_axis_off()
    axes.plot([0, 1], [0, 1])
    assert drawn_panels(made) == []
