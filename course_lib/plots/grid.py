"""A small table of numbers in coloured cells, written as you like."""

from collections.abc import Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, Normalize
from numpy.typing import ArrayLike

from course_lib.plots.panel import Panel
from course_lib.plots.style import COLOURS
from course_lib.plots.words import Words

#: Blue below zero, orange above; and viridis for what is never below zero.
SIGNED = LinearSegmentedColormap.from_list(
    "signed", [COLOURS["main"], "#ffffff", COLOURS["second"]]
)
WEIGHTS = colormaps["viridis"]


class GridPanel(Panel):
    """A query-by-key table; cells without a number stay white.

    Args:
        axes: where to draw.
        rows, columns: names, one for each.
        title: words above.
        limits: the numbers at the ends of the colours; where the lower one is negative, zero is white.
        write: how a number is written in its cell.
        x_label: what a column is.
    """

    def __init__(
        self,
        axes: Axes,
        rows: Sequence[str],
        columns: Sequence[str],
        *,
        title: str = "",
        limits: tuple[float, float] = (0.0, 1.0),
        write: str = "{:.2f}",
        x_label: str = "key",
    ) -> None:
        super().__init__(axes)
        self.rows, self.columns, self._write = list(rows), list(columns), write
        self.values = np.full((len(rows), len(columns)), np.nan)
        colours = (SIGNED if limits[0] < 0 else WEIGHTS).with_extremes(bad="white")
        self._image = axes.imshow(
            self.values,
            cmap=colours,
            norm=Normalize(*limits),
            aspect="auto",
            interpolation="nearest",
        )
        axes.set(title=title, xlabel=x_label, ylabel="query")
        axes.set_xticks(range(len(columns)), self.columns)
        axes.set_yticks(range(len(rows)), self.rows)
        axes.tick_params(length=0)
        axes.grid(False)
        self._words = Words(axes)
        self.seldom = [self._image, self._words]

    def update(self, values: ArrayLike, written: Sequence[str] | None = None) -> None:
        """Show other numbers, shape (row, column); NaN leaves a cell empty.

        Args:
            values: they choose the colours.
            written: what stands in the cells, row by row, where it is not the numbers.
        """
        self.values = np.asarray(values, dtype=float)
        self._image.set_data(np.ma.masked_invalid(self.values))
        written = (
            [self._write.format(value) for value in self.values.flat]
            if written is None
            else written
        )
        colours = self._image.cmap(self._image.norm(self.values))[..., :3]  # (row, column, 3)
        dark = colours @ (0.3, 0.59, 0.11) < 0.55
        filled = ~np.isnan(self.values)
        self._words.show(
            [word for word, fills in zip(written, filled.flat, strict=True) if fills],
            np.argwhere(filled)[:, ::-1],  # (column, row)
            colour=["white" if one else COLOURS["ink"] for one in dark[filled]],
        )

    def seldom_state(self) -> tuple:
        """The numbers and what is written."""
        return self.values.tobytes(), tuple(self._words.words)

    def data(self) -> dict:
        """The numbers."""
        return {"value": self.values}

    def hover(self) -> dict:
        """The exact number in each cell, as float32 bytes."""
        return self._hover_grid(self.values, self._box(), self.rows, self.columns)
