"""Means over several runs, with the worst and the best run of each."""

from collections.abc import Mapping, Sequence

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from numpy.typing import ArrayLike

from course_lib.plots.panel import Panel
from course_lib.plots.style import COLOURS, STYLE, figure

_STYLES = (("main", "-"), ("second", "--"), ("third", "-."), ("truth", ":"))


class IntervalsPanel(Panel):
    """A line of means per name, with a bar from the lowest to the highest run at every point.

    Args:
        axes: where to draw.
        x: shared by all, shape (points,).
        runs: name → shape (runs, points); NaN where there is nothing to draw.
        title: words above.
        y_limits: of the y axis.
        log_x: a logarithmic x axis.

    Raises:
        ValueError: for more than four names.
    """

    def __init__(
        self,
        axes: Axes,
        x: ArrayLike,
        runs: Mapping[str, ArrayLike],
        *,
        title: str = "",
        y_limits: tuple[float, float] = (0.0, 1.0),
        log_x: bool = False,
    ) -> None:
        super().__init__(axes)
        if len(runs) > len(_STYLES):
            raise ValueError(
                f"runs has {len(runs)} names; at most {len(_STYLES)} can be told apart"
            )
        self.x = np.asarray(x, dtype=float)
        self.runs = {name: np.asarray(each, dtype=float) for name, each in runs.items()}
        for (name, each), (colour, dash) in zip(self.runs.items(), _STYLES, strict=False):
            style = {"color": COLOURS[colour], "linestyle": dash}
            axes.plot(self.x, each.mean(0), marker="o", markersize=4, label=name, **style)
            axes.vlines(
                self.x, each.min(0), each.max(0), color=COLOURS[colour], linewidth=3, alpha=0.35
            )
        if log_x:
            axes.set_xscale("log")
            axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xticks(self.x, [f"{point:g}" for point in self.x])
        axes.set(title=title, ylim=y_limits)

    def data(self) -> dict:
        """Mean, lowest and highest of each."""
        return {
            f"{name} {what}": reduced(each, axis=0)
            for name, each in self.runs.items()
            for what, reduced in (("mean", np.mean), ("lowest", np.min), ("highest", np.max))
        }

    def hover(self) -> dict:
        """The means at the x nearest to the pointer."""
        means = {name: each.mean(0) for name, each in self.runs.items()}
        return self._hover_lines(self.x, means, self.axes.get_xlabel())


def interval_grid(
    x: ArrayLike,
    groups: Mapping[str, Mapping[str, Sequence[Sequence[float | None]]]],
    *,
    x_label: str = "",
    columns: int = 3,
) -> tuple[Figure, list[IntervalsPanel]]:
    """Draw a small `IntervalsPanel` per group, on one scale; x is logarithmic.

    Args:
        x: shared by all.
        groups: title → name → runs, each a list over x; None where there is nothing.
        x_label: what x is.
        columns: how many panels stand side by side.
    """
    rows = -(-len(groups) // columns)
    with matplotlib.rc_context(STYLE):
        made, axes = figure(
            10.4, 1.75 * rows + 0.3, rows, columns, squeeze=False, sharex=True, sharey=True
        )
        panels = []
        for place, (title, runs) in zip(axes.flat, groups.items(), strict=False):
            numbers = {name: np.array(each, dtype=float) for name, each in runs.items()}
            panels.append(
                IntervalsPanel(place, x, numbers, title=title, y_limits=(0, 1.08), log_x=True)
            )
        for place in axes.flat[len(groups) :]:
            place.set_axis_off()
        for place in axes[-1]:
            place.set_xlabel(x_label)
        axes[0, 0].legend(loc="center right")
    return made, panels
