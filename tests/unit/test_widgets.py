"""Explorers: what is drawn is what course_lib computes, at every position of every control."""

import io
import json
import re

import numpy as np
import pytest
import torch
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath
from PIL import Image
from traitlets import TraitError

from course_lib.data import Series, nile_series, wave_series
from course_lib.plots import LinesPanel, TokenMapPanel, figure
from course_lib.pooling import attention_pooling, leave_one_out_error
from course_lib.widgets import kernel_regression_explorer
from course_lib.widgets.controls import round_step
from course_lib.widgets.explorer import short


@pytest.fixture
def explorer():
    return kernel_regression_explorer(wave_series(), bandwidth=0.3, query=2.5)


def pixels(png):
    return np.asarray(Image.open(io.BytesIO(png)))


def fact(explorer, name):
    return re.search(rf"^  {name} (.*)$", explorer.summary, re.MULTILINE)[1]


@pytest.mark.parametrize("kernel", ["gaussian", "boxcar", "epanechnikov"])
@pytest.mark.parametrize(("bandwidth", "query"), [(0.5, 1.0), (1.3, 4.5)])
def test_the_summary_and_the_artists_are_what_course_lib_computes(
    explorer, kernel, bandwidth, query
):
    explorer.controls["kernel"].value = kernel
    explorer.controls["bandwidth"].value = bandwidth
    explorer.controls["query"].value = query
    series = wave_series()
    wanted = attention_pooling(
        torch.tensor([query]), series.keys, series.values, kernel=kernel, bandwidth=bandwidth
    )
    loss = leave_one_out_error(series.keys, series.values, kernel=kernel, bandwidth=bandwidth)
    assert fact(explorer, "output") == short(wanted.output.item())
    assert fact(explorer, "leave-one-out error") == short(loss.item())
    fit, stems, errors = explorer.picture.figure.panels
    assert np.allclose(stems._heads.get_ydata(), wanted.weights[0])
    assert fit._output.get_ydata()[0] == pytest.approx(wanted.output.item())
    assert errors._marker.get_ydata()[0] == pytest.approx(loss.item())
    curve = attention_pooling(
        torch.tensor(fit.grid), series.keys, series.values, kernel=kernel, bandwidth=bandwidth
    ).output
    assert np.allclose(fit._fit.get_ydata(), curve)


@pytest.mark.parametrize("kernel", ["gaussian", "boxcar"])
def test_without_the_error_the_fit_and_the_weights_are_the_same(explorer, kernel):
    explorer.controls["kernel"].value = kernel
    plain = kernel_regression_explorer(
        wave_series(), bandwidth=0.3, query=2.5, kernel=kernel, error=False
    )
    assert list(plain.controls) == ["bandwidth", "query"]
    assert len(plain.picture.figure.panels) == 2
    for made in (plain, explorer):
        made.controls["query"].value = 3.5
    for one, other in zip(
        plain.picture.figure.panels, explorer.picture.figure.panels, strict=False
    ):
        assert one.data() == other.data()
    assert "error" not in plain.summary and "effective" not in plain.summary
    assert fact(plain, "output") == fact(explorer, "output")


def test_every_control_changes_the_picture_at_once(explorer):
    for name, value in (("bandwidth", 1.0), ("kernel", "boxcar"), ("query", 4.0)):
        before = explorer.picture.png
        explorer.controls[name].value = value
        assert explorer.picture.png != before, name


def test_a_blitted_picture_is_the_same_as_a_full_redraw(explorer):
    explorer.controls["query"].value = 4.0
    live = explorer.picture.figure
    moved = pixels(live.png())
    live.redraw_background()
    assert np.array_equal(moved, pixels(live.png()))


def test_reset_returns_to_the_start(explorer):
    start = explorer.summary
    explorer.controls["bandwidth"].value = 1.0
    explorer.controls["kernel"].value = "boxcar"
    assert explorer.summary != start
    explorer.reset()
    assert explorer.summary == start


def test_a_query_that_no_key_answers_is_said_so_and_leaves_a_gap(explorer):
    explorer.controls["kernel"].value = "boxcar"
    explorer.controls["bandwidth"].value = 0.03
    explorer.controls["query"].value = 2.3
    assert fact(explorer, "output") == "none, because no key is inside the window"
    assert np.isnan(explorer.picture.figure.panels[0].fit).any()
    json.dumps(explorer.picture.hover, allow_nan=False)  # a gap must not break the message


def test_what_cannot_be_drawn_is_said_in_words_and_the_picture_stays(explorer):
    before, png = explorer.summary, explorer.picture.png
    explorer._update = lambda **_: (_ for _ in ()).throw(ValueError("query='x' is not a number"))
    explorer.refresh()
    assert "cannot be drawn: query=&#x27;x&#x27; is not a number." in explorer._problem.value
    assert (explorer.summary, explorer.picture.png) == (before, png)


def test_the_place_without_a_kernel_gets_a_picture_and_the_summary(explorer):
    data, metadata = explorer._repr_mimebundle_()
    assert data["text/plain"].startswith(explorer.summary + "\nfit: keys 0.0137 to 4.99, mean")
    assert explorer.summary == explorer.picture.summary
    assert metadata["image/png"] == {"width": 1040, "height": 340}
    assert "application/vnd.jupyter.widget-view+json" in data


def test_the_same_state_gives_the_same_bytes():
    one, other = (kernel_regression_explorer(wave_series()) for _ in range(2))
    assert one.picture.png == other.picture.png
    assert one.picture.figure.svg() == other.picture.figure.svg()


def test_any_number_of_explorers_live_side_by_side(explorer):
    others = [kernel_regression_explorer(nile_series()) for _ in range(3)]
    before = [other.summary for other in others]
    explorer.controls["bandwidth"].value = 1.0
    assert [other.summary for other in others] == before


def test_saving_writes_the_present_state_and_refuses_other_formats(explorer, tmp_path):
    assert pixels(explorer.save(tmp_path / "a.png").read_bytes()).shape == (442, 1352, 3)
    svg = explorer.save(tmp_path / "a.svg").read_text()
    assert svg.startswith("<?xml") and "bandwidth 0.3" in svg
    with pytest.raises(ValueError, match="must end in .png or .svg"):
        explorer.save(tmp_path / "a.gif")
    after = explorer.picture.png
    explorer.refresh()
    assert explorer.picture.png == after, "saving disturbed the live picture"


def test_the_hover_values_are_the_drawn_values(explorer):
    weights = next(region for region in explorer.picture.hover if region["lines"][0][0] == "weight")
    series = wave_series()
    wanted = attention_pooling(
        torch.tensor([2.5]),
        series.keys,
        series.values,
        bandwidth=explorer.controls["bandwidth"].value,
    ).weights[0]
    assert np.allclose(weights["lines"][0][1], wanted, rtol=1e-3)
    left, top, right, bottom = weights["box"]
    assert 0 < left < right < 1 and 0 < top < bottom < 1


def test_lines_differ_in_dash_and_not_in_colour_alone():
    _, axes = figure()
    panel = LinesPanel(axes, [0, 1], {"a": [0, 1], "b": [1, 0], "c": [1, 1]})
    assert len({line.get_linestyle() for line in panel._curves.values()}) == 3


def test_up_to_sixteen_lines_each_have_a_look_of_their_own():
    _, axes = figure()
    lines = {str(n): [n, n] for n in range(16)}
    drawn = LinesPanel(axes, [0, 1], lines)._curves.values()
    assert len({(line.get_linestyle(), line.get_color()) for line in drawn}) == 16


@pytest.mark.usefixtures("without_annotations")
@pytest.mark.parametrize(
    ("keys", "values", "settings", "says"),
    [
        ([1.0, 1.0], [1.0, 2.0], {}, "series.keys are all 1"),
        ([1.0], [1.0], {}, "keys has length 1"),
        ([], [], {}, "keys has length 0"),
        ([1.0, 2.0], [1.0, float("nan")], {}, "values holds nan"),
        ([1.0, 2.0], [1.0, 2.0], {"kernel": "box"}, "kernel='box' is unknown"),
        ([1.0, 2.0], [1.0, 2.0], {"bandwidth": 0}, "bandwidth=0 is not a finite number above 0"),
        (
            [1.0, 2.0],
            [1.0, 2.0],
            {"query": 99},
            "query=99 is far from the keys, which go from 1 to 2",
        ),
        (list(range(600)), [1.0] * 600, {}, "series has 600 keys; the explorer is quick up to 500"),
    ],
)
def test_series_that_cannot_be_explored_are_refused(keys, values, settings, says):
    series = Series(torch.tensor(keys).float(), torch.tensor(values), "mine", "x", "y")
    with pytest.raises(ValueError, match=says):
        kernel_regression_explorer(series, **settings)


@pytest.mark.parametrize(
    ("keys", "values"),
    [
        ([3.0, 1.0, 2.0], [1.0, 2.0, 0.0]),
        ([1e-5, 2e-5, 4e-5], [5.0, 5.0, 5.0]),
        ([-1e6, 0.0, 1e6], [1e5, -1e5, 0.0]),
    ],
)
def test_unusual_series_can_be_explored(keys, values):
    series = Series(torch.tensor(keys).double(), torch.tensor(values).double(), "mine", "x", "y")
    explorer = kernel_regression_explorer(series)
    explorer.controls["query"].value = keys[1]
    assert "output" in explorer.summary


def test_a_reset_that_fails_does_not_switch_the_explorer_off(explorer):
    explorer.controls["kernel"].options = ["boxcar"]
    with pytest.raises(TraitError):
        explorer.reset()
    before = explorer.picture.png
    explorer.controls["query"].value = 4.0
    assert explorer.picture.png != before


@pytest.mark.parametrize(("span", "step"), [(99, 0.5), (5, 0.02), (1, 0.005), (2000, 10)])
def test_slider_steps_are_round(span, step):
    assert round_step(span) == pytest.approx(step)


@pytest.mark.parametrize(
    ("number", "said"), [(0.01234, "0.0123"), (18925.0, "18,900"), (2.5, "2.5")]
)
def test_numbers_are_short(number, said):
    assert short(number) == said


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ((1e-5, 1.0), ["10⁻⁵", "10⁻⁴", "0.001", "0.01", "0.1", "1"]),
        ((0.1, 1000.0), ["0.1", "1", "10", "100", "1,000"]),
        ((2e-4, 8e-4), ["2·10⁻⁴", "3·10⁻⁴", "4·10⁻⁴"]),
    ],
)
def test_a_logarithmic_axis_has_no_zeros_to_count(limits, said):
    drawn, axes = figure(4, 3)
    LinesPanel(axes, [0, 1], {"a": list(limits)}, log_y=True, y_limits=limits)
    if said[0].startswith("2"):
        axes.set_yticks([2e-4, 3e-4, 4e-4])
    drawn.canvas.draw()
    seen = [tick.get_text() for tick in axes.get_yticklabels()]
    assert [one for one in seen if one in said] == said
    assert not any("e" in one for one in seen)


def test_words_below_a_map_stand_upright_and_single_letters_do_not():
    panel = TokenMapPanel(figure(3, 3)[1])
    panel.update([[0.5, 0.3, 0.2]], ["x"], ["cat", ".", "a"], row=None, brightest=1.0)

    def shapes():
        return {
            word: path.get_extents().height / path.get_extents().width
            for word, path in zip(panel._columns.words, panel._columns.get_paths(), strict=True)
        }

    upright = TextPath((0, 0), "a", prop=FontProperties(family="DejaVu Sans")).get_extents()
    assert shapes()["cat"] > 2  # reads upwards
    assert shapes()["a"] == pytest.approx(upright.height / upright.width, rel=1e-3)
    panel.update([[0.7, 0.3]], ["x"], ["a", "cat"], row=None, brightest=1.0)
    assert shapes()["cat"] > 2 and 0.8 < shapes()["a"] < 1.5
