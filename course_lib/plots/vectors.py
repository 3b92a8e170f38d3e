"""Vectors in the plane: one query and several keys."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from numpy.typing import ArrayLike

from course_lib.plots.panel import Panel
from course_lib.plots.style import COLOURS

_LARGEST = 260.0  # area of the disc of a weight of 1, in points²
#: From the tip of a unit vector to its label: 40° to the right, so that a parallel query does not hide it.
_LABEL = 0.55 * np.array([[0.77, 0.64], [-0.64, 0.77]])


class VectorsPanel(Panel):
    """Fixed keys as orange vectors from the origin, each with a disc as large as its weight; the query in blue.

    Args:
        axes: where to draw.
        keys: shape (key, 2).
        limit: the axes reach from -limit to limit.
        title: above the panel.
    """

    def __init__(self, axes: Axes, keys: ArrayLike, limit: float, *, title: str = "") -> None:
        super().__init__(axes)
        self.keys = np.asarray(keys, dtype=float)
        self.query, self.weights = np.zeros(2), np.zeros(len(self.keys))
        axes.set(xlim=(-limit, limit), ylim=(-limit, limit), aspect="equal", title=title)
        axes.set(xlabel="component 0", ylabel="component 1")
        origin = np.zeros_like(self.keys)
        style = {"colors": COLOURS["second"], "linewidths": 2.2, "capstyle": "round"}
        axes.add_collection(LineCollection(np.stack([origin, self.keys], axis=1), **style))
        for number, key in enumerate(self.keys):
            x, y = key + _LABEL @ key / np.hypot(*key)
            axes.text(x, y, f"k{number}", ha="center", va="center")
        self._discs = axes.scatter(*self.keys.T, s=self.weights, color=COLOURS["second"], zorder=3)
        self._line = LineCollection([], colors=COLOURS["main"], linewidths=3, capstyle="round")
        axes.add_collection(self._line, autolim=False)
        (self._tip,) = axes.plot([], [], "o", color=COLOURS["main"], markersize=6, zorder=4)
        self.artists = [self._discs, self._line, self._tip]

    def update(self, query: ArrayLike, weights: ArrayLike) -> None:
        """Show another query, shape (2,), and the weights of the keys, shape (key,)."""
        self.query, self.weights = np.asarray(query, dtype=float), np.asarray(weights, dtype=float)
        self._discs.set_sizes(_LARGEST * self.weights)
        self._line.set_segments([np.stack([np.zeros(2), self.query])])
        self._tip.set_data(self.query[:1], self.query[1:])

    def data(self) -> dict:
        """The components of the vectors, and the weights."""
        return {"keys": self.keys, "query": self.query, "weight": self.weights}
