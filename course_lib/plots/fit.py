"""Data, the curve fitted to them, and one query."""

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from course_lib.plots.panel import Panel, rounded
from course_lib.plots.style import COLOURS


class FitPanel(Panel):
    """A scatter of keys and values, the fitted curve, and one query with its output.

    Args:
        axes: where to draw.
        keys, values: the data, shape (key,).
        grid: where the fitted curve is drawn, shape (points,).
        truth: the true function on the grid, if it is known.
        key_label, value_label, title: labels.
    """

    def __init__(
        self,
        axes: Axes,
        keys: ArrayLike,
        values: ArrayLike,
        grid: ArrayLike,
        *,
        truth: ArrayLike | None = None,
        key_label: str = "key",
        value_label: str = "value",
        title: str = "",
    ) -> None:
        super().__init__(axes)
        self.grid, self.fit, self.truth = np.asarray(grid), np.full(len(grid), np.nan), truth
        self._points = np.column_stack([keys, values])
        axes.scatter(keys, values, s=14, color=COLOURS["data"], label="keys and values")
        if truth is not None:
            axes.plot(grid, truth, ":", color=COLOURS["truth"], label="truth")
        (self._fit,) = axes.plot(grid, self.fit, color=COLOURS["main"], linewidth=2, label="fit")
        (self._query,) = axes.plot([], [], "--", color=COLOURS["second"], linewidth=1.4)
        self._attended = axes.scatter(keys, values, s=0, color=COLOURS["second"], alpha=0.55)
        (self._output,) = axes.plot(
            [],
            [],
            "D",
            color=COLOURS["second"],
            markeredgecolor="white",
            markersize=9,
            label="output at the query",
        )
        axes.set(xlabel=key_label, ylabel=value_label, title=title)
        axes.margins(x=0.02)
        low, high = self._reach = axes.get_ylim()
        axes.set_ylim(low, high + 0.28 * (high - low))  # space for the legend above the data
        axes.legend(loc="upper left", ncols=2)
        self.artists = [self._attended, self._fit, self._query, self._output]

    def update(
        self,
        fit: ArrayLike,
        query: float | None = None,
        output: float | None = None,
        weights: ArrayLike | None = None,
    ) -> None:
        """Update the curve; with a query, scale each key's dot by its weight and mark the output."""
        self.fit = np.asarray(fit)
        self._fit.set_ydata(self.fit)
        self._query.set_visible(query is not None)
        if query is not None:
            self._query.set_data([query, query], self._reach)
            self._output.set_data([query], [output])
            self._attended.set_sizes(600 * np.sqrt(np.asarray(weights)) ** 1.5)

    def data(self) -> dict:
        """The data, the curves and the output."""
        drawn = {"keys": self._points[:, 0], "values": self._points[:, 1], "fit": self.fit}
        if self.truth is not None:
            drawn["truth"] = self.truth
        if self._query.get_visible():
            drawn |= {"query": self._output.get_xdata(), "output": self._output.get_ydata()}
            drawn["disc"] = self._attended.get_sizes()
        return drawn

    def hover(self) -> dict:
        """The fit (and the truth) at the x nearest to the pointer, and the nearest key with its value."""
        lines = {"fit": self.fit} | ({} if self.truth is None else {"truth": self.truth})
        region = self._hover_lines(self.grid, lines, self.axes.get_xlabel())
        return region | {"points": [rounded(column) for column in self._points.T]}
