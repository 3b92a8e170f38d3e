"""One attention weight per key."""

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from course_lib.plots.panel import Panel
from course_lib.plots.style import COLOURS, changing_numbers, root_scale


class StemsPanel(Panel):
    """Weights between 0 and 1 as stems, on a square-root axis, on which 0.01 and 1 are both visible.

    Args:
        axes: where to draw.
        keys: positions of the stems, shape (key,).
        fewer: whether `update` may show fewer of them; then the numbers of the axis are drawn anew each time.
    """

    def __init__(self, axes: Axes, keys: ArrayLike, *, fewer: bool = False) -> None:
        super().__init__(axes)
        self.keys = np.asarray(keys)
        self._stems = axes.vlines(self.keys, 0, 0, color=COLOURS["main"], linewidth=1.4)
        (self._heads,) = axes.plot(self.keys, 0 * self.keys, "o", ms=3.5, color=COLOURS["main"])
        self._query = axes.axvline(self.keys[0], color=COLOURS["second"], ls="--", lw=1.4)
        axes.set_ylabel("weight (square-root scale)")
        root_scale(axes, 1.05)
        self._fit(self.keys)
        self.artists = [self._stems, self._heads, self._query]
        if fewer:
            self.artists.insert(0, changing_numbers(axes))

    def _fit(self, keys: np.ndarray) -> None:
        edge = 0.02 * max(float(np.ptp(keys)), 1.0)
        self.axes.set_xlim(keys.min() - edge, keys.max() + edge)

    def update(self, weights: ArrayLike, query: float | None = None) -> None:
        """Show other weights, of all keys or of the first ones; mark the query among the keys."""
        self.weights = np.asarray(weights)
        self._shown = keys = self.keys[: len(self.weights)]
        self._fit(keys)
        self._stems.set_segments(
            [[(key, 0), (key, w)] for key, w in zip(keys, self.weights, strict=True)]
        )
        self._heads.set_data(keys, self.weights)
        self._query.set_visible(query is not None)
        self._query.set_xdata([query, query])

    def data(self) -> dict:
        """The weights, and the query where it is marked."""
        drawn = {"weight": self.weights}
        return drawn | ({"query": self._query.get_xdata()[:1]} if self._query.get_visible() else {})

    def hover(self) -> list[dict]:
        """The weight of the key nearest to the pointer."""
        return [self._hover_lines(self._shown, {"weight": self.weights})]
