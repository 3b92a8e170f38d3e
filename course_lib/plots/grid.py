"""A small table of numbers in coloured cells."""

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
        rows, columns: their names.
        title: above the table.
        limits: the numbers at the ends of the colour scale; where the lower one is negative, zero is white.
        write: format of a number in its cell; None for many cells, whose colours say enough.
        x_label: label of the columns.
    """

    def __init__(
        self,
        axes: Axes,
        rows: Sequence[str],
        columns: Sequence[str],
        *,
        title: str = "",
        limits: tuple[float, float] = (0.0, 1.0),
        write: str | None = "{:.2f}",
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
        self.static_artists = [self._image, self._words]

    def update(self, values: ArrayLike, texts: Sequence[str] | None = None) -> None:
        """Show other numbers, shape (row, column); NaN leaves a cell empty.

        Args:
            values: determine the colours.
            texts: of the cells, row by row; the numbers where left out.
        """
        self.values = np.asarray(values, dtype=float)
        self._image.set_data(np.ma.masked_invalid(self.values))
        if texts is None and self._write is None:
            return
        if texts is None:
            texts = [self._write.format(value) for value in self.values.flat]
        colours = self._image.cmap(self._image.norm(self.values))[..., :3]  # (row, column, 3)
        dark = colours @ (0.3, 0.59, 0.11) < 0.55
        filled = ~np.isnan(self.values)
        self._words.show(
            [word for word, fills in zip(texts, filled.flat, strict=True) if fills],
            np.argwhere(filled)[:, ::-1],  # (column, row)
            colour=["white" if one else COLOURS["ink"] for one in dark[filled]],
        )

    def static_state(self) -> tuple:
        """The numbers and the texts in the cells."""
        return self.values.tobytes(), tuple(self._words.words)

    def data(self) -> dict:
        """The numbers."""
        return {"value": self.values}

    def hover(self) -> dict:
        """The exact number in each cell, as float32 bytes."""
        return self._hover_grid(self.values, self._box(), self.rows, self.columns)
