"""One attention weight per key."""

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from course_lib.plots.panel import Panel
from course_lib.plots.style import COLOURS, root_scale


class StemsPanel(Panel):
    """Weights between 0 and 1 as stems, on a square-root axis where 0.01 and 1 can both be seen.

    Args:
        axes: where to draw.
        keys: where the stems stand, shape (key,).
        key_label, title: words on the Axes.
    """

    def __init__(
        self,
        axes: Axes,
        keys: ArrayLike,
        *,
        key_label: str = "key",
        title: str = "attention weights",
    ) -> None:
        super().__init__(axes)
        self.keys = np.asarray(keys)
        self.weights = np.zeros_like(self.keys)
        self._stems = axes.vlines(self.keys, 0, 0, color=COLOURS["main"], linewidth=1.4)
        (self._heads,) = axes.plot(
            self.keys, self.weights, "o", color=COLOURS["main"], markersize=3.5
        )
        self._query = axes.axvline(
            self.keys[0], color=COLOURS["second"], linestyle="--", linewidth=1.4
        )
        axes.margins(x=0.02)
        axes.set(xlabel=key_label, ylabel="weight (square-root scale)", title=title)
        root_scale(axes, 1.05)
        self.artists = [self._stems, self._heads, self._query]

    def update(self, weights: ArrayLike, query: float | None = None) -> None:
        """Give each key its weight; mark the query where it stands among the keys."""
        self.weights = np.asarray(weights)
        self._stems.set_segments(
            [[(key, 0), (key, w)] for key, w in zip(self.keys, self.weights, strict=True)]
        )
        self._heads.set_ydata(self.weights)
        self._query.set_visible(query is not None)
        if query is not None:
            self._query.set_xdata([query, query])

    def data(self) -> dict:
        """The weights, and the query where it is marked."""
        drawn = {"weight": self.weights}
        return drawn | ({"query": self._query.get_xdata()[:1]} if self._query.get_visible() else {})

    def hover(self) -> dict:
        """The weight of the key nearest to the pointer."""
        return self._hover_lines(self.keys, {"weight": self.weights}, self.axes.get_xlabel())
