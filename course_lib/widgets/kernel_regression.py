"""The explorer of notebook 01: one query, its weights, the fit and its error."""

import math

import torch

from course_lib.data.series import Series
from course_lib.plots import FitPanel, LinesPanel, StemsPanel, figure
from course_lib.topics.pooling import KERNELS, attention_pooling, leave_one_out_error
from course_lib.validation import require_one_of
from course_lib.widgets.controls import Numbers, Powers, round_step, whole_steps
from course_lib.widgets.explorer import View, explorer, short

_CURVE_POINTS = 60
_MOST_KEYS = 500
_LOG_STEP = 0.02  # of log10 of the bandwidth: 4.7 % a step


@explorer
def kernel_regression_explorer(
    series: Series,
    *,
    bandwidth: float | None = None,
    query: float | None = None,
    kernel: str = "gaussian",
    error: bool = True,
) -> View:
    """Change the bandwidth, the kernel and the query; see the fit, the weights and the error.

    Args:
        series: at least two different keys, e.g. `nile_series()` or your own `Series`.
        bandwidth: initial bandwidth; a twentieth of the range of the keys where left out.
        query: initial query; the middle of the keys where left out.
        kernel: a name in `KERNELS`.
        error: whether there are a panel with the leave-one-out error of every bandwidth and kernel, and a menu of
            the kernels. Without, the picture is the fit and the weights alone.

    Raises:
        ValueError: for a series that `attention_pooling` cannot pool, that is too long to be drawn
            quickly or whose keys are all equal.
    """
    keys, values = series.keys.detach().float(), series.values.detach().float()
    leave_one_out_error(keys, values)  # raises if it cannot be pooled
    require_one_of(KERNELS, kernel=kernel)
    if len(keys) > _MOST_KEYS:
        raise ValueError(
            f"series has {len(keys)} keys; the explorer is quick up to {_MOST_KEYS}, so take every n-th"
        )
    first, last = keys.min().item(), keys.max().item()
    span = last - first
    if span <= 1e-6 * max(abs(first), abs(last)):
        raise ValueError(f"series.keys are all {first:g}; the explorer needs different keys")
    step = round_step(span)
    first, last = whole_steps(first, step, math.floor), whole_steps(last, step, math.ceil)
    grid = torch.arange(round((last - first) / step) + 1, dtype=keys.dtype) * step + first

    def error_at(kernel: str, bandwidth: float) -> float:
        """Return the leave-one-out error; NaN if some key has no neighbour inside the kernel window."""
        pooled = attention_pooling(
            keys, keys, values, kernel=kernel, bandwidth=bandwidth, mask=others
        )
        if (pooled.weights.sum(-1) == 0).any():
            return math.nan
        return (values - pooled.output).square().mean().item()

    others = ~torch.eye(len(keys), dtype=torch.bool)
    # from 0.5 % of the range to all of it
    bandwidths = torch.logspace(-2.3, 0, _CURVE_POINTS) * span
    ratios = (1.35, 1, 1) if error else (1.35, 1)
    fig, (left, middle, *right) = figure(10.4, 3.4, columns=len(ratios), width_ratios=ratios)
    left.set(title="fit", xlabel=series.key_label, ylabel=series.value_label)
    middle.set(title="weights of this query", xlabel=series.key_label)
    fit = FitPanel(left, keys, values, grid, series.truth(grid) if series.truth else None)
    stems = StemsPanel(middle, keys)
    panels = [fit, stems]
    for axes in right:
        axes.set(title="error by bandwidth", xlabel="bandwidth", ylabel="leave-one-out error")
        curves = {name: [error_at(name, h) for h in bandwidths.tolist()] for name in KERNELS}
        lowest = min(one for curve in curves.values() for one in curve if not math.isnan(one))
        variance = values.var(correction=0).item()
        limits = 0.9 * lowest, max(1.3 * variance, 1.2 * lowest, lowest + 1e-9)
        style = {"log_x": True, "y_limits": limits, "legend": "upper left"}
        panels.append(LinesPanel(axes, bandwidths, curves, **style))

    def update(bandwidth: float, kernel: str, query: float) -> dict[str, str]:
        queries, options = keys.new_tensor([query]), {"kernel": kernel, "bandwidth": bandwidth}
        output, weights = attention_pooling(queries, keys, values, **options)
        curve = attention_pooling(grid, keys, values, **options)
        fitted = torch.where(curve.weights.sum(-1) > 0, curve.output, torch.nan)  # a gap, not a 0
        reached = weights.sum().item() > 0
        fit.update(fitted, query, output.item() if reached else torch.nan, weights[0])
        stems.update(weights[0], query)
        nearest = weights[0].argmax()
        facts = {"kernel": kernel} if error else {}
        facts |= {"bandwidth": short(bandwidth), "query": f"{query:.5g}"}
        if reached:
            facts |= {
                "output": short(output.item()),
                "largest weight": f"{weights.max().item():.3g} at key {keys[nearest].item():.5g}",
            }
        else:
            facts["output"] = "none, because no key is inside the window"
        if not error:
            return facts
        if reached:
            effective = f"{1 / weights.square().sum().item():.3g} of {len(keys)}"
            facts["effective number of keys"] = effective
        loss = error_at(kernel, bandwidth)
        panels[-1].update(marker=(bandwidth, loss), emphasise=kernel)
        isolated = "none, because some keys have no other key inside the window"
        return facts | {"leave-one-out error": isolated if math.isnan(loss) else short(loss)}

    controls = {
        "bandwidth": Powers(bandwidths[0].item(), bandwidths[-1].item(), _LOG_STEP),
        "kernel": list(KERNELS) if error else [kernel],
        "query": Numbers(first, last, step),
    }
    start = {
        "bandwidth": span / 20 if bandwidth is None else bandwidth,
        "query": (first + last) / 2 if query is None else query,
    }
    title = f"Kernel regression of the {series.name}"
    return View(title, panels, update, controls, "kernel-regression", start=start)
