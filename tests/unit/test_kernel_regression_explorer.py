"""The explorer of notebook 01: what is drawn is what `course_lib.topics.pooling` computes."""

import json

import numpy as np
import pytest
import torch

from course_lib.data import Series, wave_series
from course_lib.topics.pooling import attention_pooling, leave_one_out_error
from course_lib.widgets import kernel_regression_explorer
from course_lib.widgets.explorer import short
from tests.helpers.explorers import fact, move, panels


@pytest.fixture(scope="module")
def explorer():
    return kernel_regression_explorer(wave_series())


@pytest.mark.parametrize("kernel", ["gaussian", "boxcar", "epanechnikov"])
@pytest.mark.parametrize(("bandwidth", "query"), [(0.5, 1.0), (1.3, 4.5)])
def test_the_summary_and_the_panels_hold_what_pooling_computes(explorer, kernel, bandwidth, query):
    explorer.choose(kernel=kernel, bandwidth=bandwidth, query=query)
    series = wave_series()
    options = {"kernel": kernel, "bandwidth": bandwidth}
    wanted = attention_pooling(torch.tensor([query]), series.keys, series.values, **options)
    loss = leave_one_out_error(series.keys, series.values, **options).item()
    assert fact(explorer, "output") == short(wanted.output.item())
    assert fact(explorer, "leave-one-out error") == short(loss)
    fit, stems, errors = (panel.data() for panel in panels(explorer))
    assert np.allclose(stems["weight"], wanted.weights[0]) and stems["query"] == [query]
    assert (fit["query"], fit["output"]) == (query, pytest.approx(wanted.output.item()))
    assert errors["marker at"] == [bandwidth] and errors["height"] == [pytest.approx(loss)]
    grid = panels(explorer)[0].grid
    curve = attention_pooling(grid, series.keys, series.values, **options).output
    assert np.allclose(fit["fit"], curve) and np.allclose(fit["truth"], series.truth(grid))
    weights = next(one for one in explorer.picture.hover if one["lines"][0][0] == "weight")
    assert np.allclose(weights["lines"][0][1], wanted.weights[0], rtol=1e-3)


def test_the_curves_of_the_error_are_leave_one_out_errors(explorer):
    series, panel = wave_series(), panels(explorer)[2]
    for kernel in ("gaussian", "epanechnikov"):
        wanted = [
            leave_one_out_error(series.keys, series.values, kernel=kernel, bandwidth=h).item()
            for h in panel.x[-20::5].tolist()
        ]
        assert np.allclose(panel.lines[kernel][-20::5], wanted, rtol=1e-4)


def test_without_the_error_the_fit_and_the_weights_are_the_same(explorer):
    plain = kernel_regression_explorer(wave_series(), bandwidth=0.3, query=3.5, error=False)
    shown = {name: control.value for name, control in plain.controls.items()}
    explorer.choose(kernel="gaussian", **shown)
    assert list(shown) == ["bandwidth", "query"] and len(panels(plain)) == 2
    for one, other in zip(panels(plain), panels(explorer), strict=False):
        assert one.describe() == other.describe()
    assert "error" not in plain.summary
    assert fact(plain, "output") == fact(explorer, "output")


def test_a_query_that_no_key_answers_is_said_so_and_leaves_a_gap(explorer):
    move(explorer, kernel="boxcar", bandwidth=0.03, query=2.3)
    assert fact(explorer, "output") == "none, because no key is inside the window"
    assert panels(explorer)[0].fit.isnan().any()
    json.dumps(explorer.picture.hover, allow_nan=False)  # a gap must not break the message


@pytest.mark.usefixtures("without_annotations")
@pytest.mark.parametrize(
    ("keys", "values", "says"),
    [
        ([1.0, 1.0], [1.0, 2.0], "series.keys are all 1"),
        ([1.0], [1.0], "keys has length 1"),
        ([1.0, 2.0], [1.0, float("nan")], "values holds nan"),
        (list(range(600)), [1.0] * 600, "series has 600 keys; the explorer is quick up to 500"),
    ],
)
def test_series_that_cannot_be_explored_are_refused(keys, values, says):
    series = Series(torch.tensor(keys).float(), torch.tensor(values), "mine", "x", "y")
    with pytest.raises(ValueError, match=says):
        kernel_regression_explorer(series)


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
    assert fact(move(explorer, query=keys[1]), "output")
