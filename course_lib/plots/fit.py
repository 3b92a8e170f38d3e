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
    """

    def __init__(
        self,
        axes: Axes,
        keys: ArrayLike,
        values: ArrayLike,
        grid: ArrayLike,
        truth: ArrayLike | None = None,
    ) -> None:
        super().__init__(axes)
        self.grid, self.keys, self.values = grid, keys, values
        self._truth = {} if truth is None else {"truth": truth}
        axes.scatter(keys, values, s=14, color=COLOURS["data"], label="keys and values")
        if truth is not None:
            axes.plot(grid, truth, ":", color=COLOURS["truth"], label="truth")
        (self._fit,) = axes.plot(grid, np.nan * grid, c=COLOURS["main"], lw=2, label="fit")
        orange = {"color": COLOURS["second"]}
        (self._query,) = axes.plot([], [], "--", linewidth=1.4, **orange)
        self._attended = axes.scatter(keys, values, s=0, alpha=0.55, **orange)
        style = {"markeredgecolor": "white", "markersize": 9, "label": "output at the query"}
        (self._output,) = axes.plot([], [], "D", **style, **orange)
        axes.margins(x=0.02)
        low, high = self._reach = axes.get_ylim()
        axes.set_ylim(low, high + 0.28 * (high - low))  # space for the legend above the data
        axes.legend(loc="upper left", ncols=2)
        self.artists = [self._attended, self._fit, self._query, self._output]

    def update(self, fit: ArrayLike, query: float, output: float, weights: ArrayLike) -> None:
        """Show another curve and another query; scale each key's dot by its weight."""
        self.fit, self._now = fit, {"query": query, "output": output}
        self._fit.set_ydata(fit)
        self._query.set_data([query, query], self._reach)
        self._output.set_data([query], [output])
        self._attended.set_sizes(600 * np.sqrt(np.asarray(weights)) ** 1.5)

    def data(self) -> dict:
        """The data, the curves, the query, its output, and the sizes of the dots."""
        drawn = {"keys": self.keys, "values": self.values, "fit": self.fit} | self._truth
        return drawn | self._now | {"disc": self._attended.get_sizes()}

    def hover(self) -> list[dict]:
        """The fit (and the truth) at the x nearest to the pointer, and the nearest key with its value."""
        lines, points = {"fit": self.fit} | self._truth, [rounded(self.keys), rounded(self.values)]
        return [self._hover_lines(self.grid, lines, points=points)]
