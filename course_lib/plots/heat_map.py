"""Attention weights as a map: one row per query, one column per key."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from numpy.typing import ArrayLike

from course_lib.plots.panel import Panel
from course_lib.plots.style import COLOURS

_FEW_CELLS = 40  # as many get their number printed


class HeatMapPanel(Panel):
    """A query-by-key map in viridis, brighter for larger weights; a small one has its numbers printed.

    Args:
        axes: where to draw.
        weights: shape (query, key).
        title: words above the map.
        largest: the weight at the bright end of the colour bar; the largest present where left out.
        root_scale: colours on a square-root scale, which tells small weights apart.
        query_names, key_names: what stands at the rows and columns; their indices where left out.
            Where there are many, only every so-maniest is written at the axis.
    """

    def __init__(
        self,
        axes: Axes,
        weights: ArrayLike,
        *,
        title: str = "",
        largest: float | None = None,
        root_scale: bool = False,
        query_names: Sequence[str] | None = None,
        key_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(axes)
        self.weights = np.asarray(weights)
        rows, columns = self.weights.shape
        self.query_names = list(query_names or map(str, range(rows)))
        self.key_names = list(key_names or map(str, range(columns)))
        top = self.weights.max() if largest is None else largest
        self._image = axes.imshow(
            self.weights,
            cmap="viridis",
            norm=PowerNorm(0.5 if root_scale else 1, vmin=0, vmax=float(top)),
            aspect="auto",
            interpolation="nearest",
        )
        ends = [-0.5, columns - 0.5]
        self._marks = [
            axes.plot([end], [0], sign, color=COLOURS["second"], markersize=9, clip_on=False)[0]
            for end, sign in zip(ends, "><", strict=True)
        ]
        axes.set(xlim=ends, ylim=(rows - 0.5, -0.5))
        axes.grid(False)
        axes.set(xlabel="key", ylabel="query", title=title)
        axes.figure.colorbar(self._image, ax=axes, label="weight")
        axes.set_xticks(*_few(self.key_names))
        axes.set_yticks(*_few(self.query_names))
        self._numbers = []
        if self.weights.size <= _FEW_CELLS:
            self._numbers = [
                axes.text(column, row, "", ha="center", va="center", fontsize=8)
                for row, column in np.ndindex(rows, columns)
            ]
        self.artists = [self._image, *self._numbers, *self._marks]
        self._write_numbers()
        self._point_at(None)

    def update(self, weights: ArrayLike, query: int | None = None) -> None:
        """Show other weights; point at the row of `query`."""
        self.weights = np.asarray(weights)
        self._image.set_data(self.weights)
        self._write_numbers()
        self._point_at(query)

    def _write_numbers(self) -> None:
        for number, weight in zip(self._numbers, self.weights.flat, strict=False):
            dark = self._image.norm(weight) < 0.6
            number.set(text=f"{weight:.2f}", color="white" if dark else COLOURS["ink"])

    def _point_at(self, query: int | None) -> None:
        for mark in self._marks:
            mark.set_visible(query is not None)
            mark.set_ydata([0 if query is None else query])

    def data(self) -> dict:
        """The map, and the place of its largest weight."""
        rounded = self.weights.round(4)  # rounding errors do not choose among equals
        row, column = np.unravel_index(rounded.argmax(), rounded.shape)
        return {"weight": self.weights, "largest in row": [row], "largest in column": [column]}

    def hover(self) -> dict:
        """The exact weight in each cell, as float32 bytes."""
        return self._hover_grid(self.weights, self._box(), self.query_names, self.key_names)


def _few(names: list[str], most: int = 7) -> tuple[list[int], list[str]]:
    """Places and names for at most `most` ticks, evenly spaced."""
    every = math.ceil(len(names) / most)
    places = list(range(0, len(names), every))
    return places, [names[place] for place in places]
