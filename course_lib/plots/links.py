"""Attention weights as lines from the queries on the left to the keys on the right."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from numpy.typing import ArrayLike

from course_lib.plots.panel import Panel
from course_lib.plots.style import COLOURS, blank
from course_lib.plots.tokens import TokenLabels, numbered
from course_lib.plots.words import Words

_FROM, _TO, _WORDS = 0.27, 0.6, 0.72
_MOST_LINES = 250  # the thickest ones are drawn
_FAINT = 0.4
_NAMED = 3  # keys with their weight in numbers


class LinksPanel(Panel):
    """Lines whose thickness and darkness show the weights; one query is orange, with numbers at its largest.

    Args:
        axes: where to draw.
        title: above the panel.
        chooses: the control that a click on a query sets to its number.
        row_name: what a query is called.
    """

    def __init__(
        self,
        axes: Axes,
        *,
        title: str = "",
        chooses: str | None = None,
        row_name: str = "query",
    ) -> None:
        super().__init__(axes)
        self._row_name = row_name
        self.chooses = chooses, None
        self.weights, self.queries, self.keys, self.row = np.zeros((1, 1)), [""], [""], 0
        blank(axes, (0, 1), (1.02, -0.02), title)
        self._left = TokenLabels(axes, _FROM - 0.02, across=False)
        self._right = TokenLabels(axes, _WORDS, across=False, align=0)
        self._others, self._own = LineCollection([]), LineCollection([])
        for lines in (self._others, self._own):
            axes.add_collection(lines, autolim=False)
        (self._mark,) = axes.plot([_FROM - 0.005], [0], ">", color=COLOURS["second"], markersize=6)
        self._numbers = Words(axes)
        self.static_artists = [self._left, self._right]
        self.artists = [self._others, self._own, self._mark, self._numbers]

    def update(
        self,
        weights: ArrayLike,
        queries: Sequence[str],
        keys: Sequence[str],
        *,
        row: int,
        brightest: float,
    ) -> None:
        """Show other weights, shape (query, key), from 0 to `brightest`; highlight one row."""
        self.weights, self.queries, self.keys = np.asarray(weights), list(queries), list(keys)
        self.row = row
        self._left.update(self.queries)
        self._right.update(self.keys)
        heights = [(np.arange(n) + 0.5) / n for n in self.weights.shape]
        shares = self.weights / brightest
        self._draw(self._others, _FAINT * shares, heights, COLOURS["main"])
        self._draw(
            self._own,
            shares * (np.arange(len(shares)) == row)[:, None],
            heights,
            COLOURS["second"],
        )
        self._mark.set_ydata(heights[0][[row]])
        most = np.argsort(-self.weights[row], kind="stable")[:_NAMED]
        named = [key for key in most if self.weights[row, key] >= 0.005]
        self._numbers.show(
            [f"{self.weights[row, key]:.2f}" for key in named],
            [(_WORDS - 0.02, heights[1][key]) for key in named],
            colour=COLOURS["second"],
            align=1,
        )

    def _draw(
        self, lines: LineCollection, strength: np.ndarray, heights: list, colour: str
    ) -> None:
        drawn = np.argsort(strength, axis=None)[::-1][:_MOST_LINES]
        drawn = drawn[strength.flat[drawn] > 0.01]
        rows, columns = np.unravel_index(drawn, strength.shape)
        ends = np.empty((len(drawn), 2, 2))
        ends[:, 0] = np.stack([np.full(len(drawn), _FROM), heights[0][rows]], axis=1)
        ends[:, 1] = np.stack([np.full(len(drawn), _TO), heights[1][columns]], axis=1)
        alpha = np.clip(strength.flat[drawn], 0, 1)
        lines.set_segments(ends)
        lines.set_linewidths(0.4 + 3.6 * alpha)
        lines.set_colors(np.column_stack([np.tile(to_rgb(colour), (len(drawn), 1)), alpha]))

    def static_state(self) -> tuple:
        """The tokens, and whether the lines are the visible view."""
        return self.axes.get_visible(), tuple(self.queries), tuple(self.keys)

    def data(self) -> dict:
        """The weights, and the highlighted row."""
        return {"weight": self.weights, "row": [self.row]}

    def hover(self) -> dict | None:
        """The exact weights of the highlighted row, beside their keys."""
        if not self.axes.get_visible():
            return None
        query = numbered(self.queries, self._row_name)[self.row]
        # one column of cells, a row per key
        region = self._column(_FROM, 1, self.weights[self.row], numbered(self.keys), query)
        region.pop("chooses", None)
        return region | {"row_name": "key", "column_name": self._row_name}

    def regions(self) -> list[dict]:
        """That of `hover`; before it the largest weight of each query, if a click chooses one."""
        regions = super().regions()
        if regions and any(self.chooses):
            largest = self.weights.max(axis=1)
            names = numbered(self.queries, self._row_name)
            queries = self._column(0, _FROM, largest, names, "weight")
            queries |= {"row_name": self._row_name, "column_name": "largest"}
            regions.insert(0, queries | {"at": [self.row, 0]})
        return regions

    def _column(
        self, start: float, end: float, values: np.ndarray, rows: list[str], column: str
    ) -> dict:
        """One column of cells between two places across the panel."""
        left, top, right, bottom = self._box()
        low, high = self.axes.get_ylim()[::-1]
        y = [top + (bottom - top) * (edge - low) / (high - low) for edge in (0, 1)]
        x = [left + (right - left) * edge for edge in (start, end)]
        return self._hover_grid(values[:, None], [x[0], y[0], x[1], y[1]], rows, [column])
