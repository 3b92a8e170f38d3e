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
        chooses: the control that a click on a query sets to its number.
        row_name: what a query is called.
    """

    def __init__(self, axes: Axes, chooses: str | None = None, *, row_name: str = "query") -> None:
        super().__init__(axes)
        self._row_name = row_name
        self.chooses = chooses, None
        blank(axes, (0, 1), (1.02, -0.02))
        self._left = TokenLabels(axes, _FROM - 0.02, across=False)
        self._right = TokenLabels(axes, _WORDS, across=False, align=0)
        self._others = axes.add_collection(LineCollection([]), autolim=False)
        self._own = axes.add_collection(LineCollection([]), autolim=False)
        (self._mark,) = axes.plot([_FROM - 0.005], [0], ">", color=COLOURS["second"], ms=6)
        self._numbers = Words(axes)
        self.artists = [self._left, self._right, self._others, self._own, self._mark, self._numbers]

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
        own = shares * (np.arange(len(shares)) == row)[:, None]
        self._draw(self._others, _FAINT * shares, heights, COLOURS["main"])
        self._draw(self._own, own, heights, COLOURS["second"])
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
        ends = zip(*np.unravel_index(drawn, strength.shape), strict=True)
        alpha = np.clip(strength.flat[drawn], 0, 1)
        lines.set_segments([[(_FROM, heights[0][i]), (_TO, heights[1][j])] for i, j in ends])
        lines.set_linewidths(0.4 + 3.6 * alpha)
        lines.set_colors([(*to_rgb(colour), one) for one in alpha])

    def data(self) -> dict:
        """The weights, and the highlighted row."""
        return {"weight": self.weights, "row": [self.row]}

    def hover(self) -> list[dict]:
        """The exact weights of the highlighted row; before, the largest of each query, if a click chooses one."""
        if not self.axes.get_visible():
            return []
        queries, keys = numbered(self.queries, self._row_name), numbered(self.keys)
        own, largest = self.weights[self.row, :, None], self.weights.max(axis=1, keepdims=True)
        left = {"row_name": self._row_name, "column_name": "largest", "at": [self.row, 0]}
        right = {"row_name": "key", "column_name": self._row_name, "chooses": None}
        left["share"] = right["share"] = True
        sides = (0, 0, _FROM, 1), (_FROM, 0, 1, 1)
        boxes = [self._box(*side, self.axes.transData) for side in sides]
        regions = [
            self._hover_grid(largest, boxes[0], queries, ["weight"], **left),
            self._hover_grid(own, boxes[1], keys, [queries[self.row]], **right),
        ]
        return regions if any(self.chooses) else regions[1:]
