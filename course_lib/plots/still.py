"""Lines and bars that do not move, drawn with seaborn."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from course_lib.plots.style import COLOURS, legend_above, look, name_points, plain_log

_MOST_MARKED = 16  # with more points, a line has no markers
_RANGE = ("pi", 100)  # from the lowest to the highest run


def line_plot(
    axes: Axes,
    x: ArrayLike,
    lines: Mapping[str, ArrayLike],
    *,
    x_label: str = "",
    y_label: str = "",
    log_x: bool = False,
    log_y: bool = False,
    y_limits: tuple[float, float] | None = None,
) -> None:
    """Draw named curves with `seaborn.lineplot`; of several runs, the mean and the range.

    Args:
        axes: where to draw.
        x: shared by all curves, shape (points,).
        lines: name → y, shape (points,) or (runs, points). A bar from the lowest to the highest run is
            drawn at every point.
        x_label, y_label: labels.
        log_x, log_y: logarithmic axes.
        y_limits: limits of the y axis. Where left out, a linear axis of numbers that are nowhere negative
            starts at 0, so that noise is not magnified.
    """
    import seaborn  # takes a second; nothing else in this package needs it

    x = np.asarray(x, dtype=float)
    axes.set(xscale="linear", yscale="linear")  # on a log axis, seaborn takes geometric means
    few = len(x) <= _MOST_MARKED
    lowest = np.inf
    for number, (name, y) in enumerate(lines.items()):
        runs = np.atleast_2d(np.asarray(y, dtype=float))
        lowest = min(lowest, np.nanmin(runs))
        several = len(runs) > 1
        seaborn.lineplot(
            x=np.tile(x, len(runs)),
            y=runs.ravel(),
            ax=axes,
            label=name,
            marker="o" if few else None,
            markersize=5,
            estimator="mean" if several else None,
            errorbar=_RANGE if several else None,
            err_style="bars",
            legend=False,
            **look(number),
        )
    axes.set(xlabel=x_label, ylabel=y_label)
    plain_log(axes, x=log_x, y=log_y)
    name_points(axes, x)
    if y_limits is not None:
        axes.set_ylim(*y_limits)
    elif lowest >= 0 and not log_y:
        axes.set_ylim(bottom=0)
    if len(lines) > 1:
        legend_above(axes)


def bar_plot(axes: Axes, values: Mapping[str, ArrayLike], *, x_label: str = "") -> None:
    """Draw named horizontal bars with `seaborn.barplot`, each with its number.

    Args:
        axes: where to draw.
        values: name → a number, or one per run; of several, the mean and the range are drawn.
        x_label: label.
    """
    import seaborn

    runs = {name: np.atleast_1d(np.asarray(each, dtype=float)) for name, each in values.items()}
    several = any(len(each) > 1 for each in runs.values())
    seaborn.barplot(
        x=np.concatenate(list(runs.values())),
        y=[name for name, each in runs.items() for _ in each],
        ax=axes,
        orient="h",
        color=COLOURS["main"],
        width=0.6,
        saturation=1,
        errorbar=_RANGE if several else None,
        err_kws={"color": COLOURS["ink"], "linewidth": 1.5},
    )
    means = [each.mean() for each in runs.values()]
    ends = [each.max() for each in runs.values()]
    for row, (mean, end) in enumerate(zip(means, ends, strict=True)):
        axes.annotate(f"{mean:.3g}", (end, row), (5, 0), textcoords="offset points", va="center")
    axes.set(xlabel=x_label, ylabel="", xlim=(0, 1.14 * max(ends)))
    axes.grid(False, axis="y")
    axes.tick_params(axis="y", length=0)
