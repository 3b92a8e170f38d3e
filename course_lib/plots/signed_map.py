"""Numbers of both signs as a map whose shape may change."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from course_lib.plots.cells import Cells
from course_lib.plots.colour_bar import ColourBar
from course_lib.plots.grid import SIGNED
from course_lib.plots.panel import Panel
from course_lib.plots.style import COLOURS

_EDGE = 0.02
_RIGHT = 0.24  # space for the colour bar, as a share of the map


class SignedMapPanel(Panel):
    """A map in blue below zero and orange above; a line marks one row.

    The map always fills its Axes; its corners are labelled with the first and last row and column.

    Args:
        axes: where to draw.
        title, x_label, y_label: labels.
        sides: what is drawn in blue and in orange, where both are amounts, and not numbers below and above zero.
    """

    def __init__(
        self,
        axes: Axes,
        *,
        title: str = "",
        x_label: str = "",
        y_label: str = "",
        sides: tuple[str, str] | None = None,
    ) -> None:
        super().__init__(axes)
        self._sides = sides
        self.values, self._row, self._largest = np.zeros((1, 1)), None, 1.0
        axes.set(xlim=(0, 1 + _RIGHT), ylim=(1, 0), xticks=[], yticks=[], title=title)
        axes.set_xlabel(x_label, labelpad=14)
        axes.set_ylabel(y_label, labelpad=22)
        axes.grid(False)
        axes.spines["bottom"].set_bounds(0, 1)
        self._image = Cells(axes, (0, 1, 1, 0), SIGNED)
        self._bar = ColourBar(axes, SIGNED, "")
        style = {"fontsize": 9, "color": COLOURS["truth"], "clip_on": False}
        self._corners = [
            axes.text(0, 1 + _EDGE, "", va="top", ha="left", **style),
            axes.text(1, 1 + _EDGE, "", va="top", ha="right", **style),
            axes.text(-_EDGE, 0, "", va="top", ha="right", **style),
            axes.text(-_EDGE, 1, "", va="bottom", ha="right", **style),
        ]
        (self._line,) = axes.plot([0, 1], [0, 0], color=COLOURS["ink"], linewidth=1.2)
        self.static_artists = [self._image, *self._corners, *self._bar.artists]
        self.artists = [self._line]

    def update(
        self,
        values: ArrayLike,
        *,
        largest: float,
        row: int | None = None,
        corners: Sequence[str] = (),
    ) -> None:
        """Show other numbers, shape (row, column), between -largest and largest; mark one row.

        `corners` names the first and last column and the first and last row; their indices where left out.
        """
        self.values, self._row = np.asarray(values, dtype=float), row
        self._largest = largest
        rows, columns = self.values.shape
        self._image.show((self.values / largest + 1) / 2)
        words = corners or ("0", str(columns - 1), "0", str(rows - 1))
        for text, word in zip(self._corners, words, strict=True):
            text.set_text(word)
        self._bar.show([largest if self._sides else -largest, 0, largest])
        self._line.set_visible(row is not None)
        if row is not None:
            self._line.set_ydata([(row + 0.5) / rows] * 2)

    def static_state(self) -> tuple:
        """The numbers, their scale and the corners."""
        corners = tuple(text.get_text() for text in self._corners)
        return self.values.shape, self.values.tobytes(), self._largest, corners

    def data(self) -> dict:
        """The numbers, and the marked row."""
        shown = {"value": self.values}
        if self._sides:
            below = self.values < 0
            shown = dict(zip(self._sides, (-self.values[below], self.values[~below]), strict=True))
        return shown | ({} if self._row is None else {"row": [self._row]})

    def hover(self) -> dict:
        """The exact number in each cell, as float32 bytes."""
        rows, columns = self.values.shape
        left, top, right, bottom = self._box()
        box = [left, top, left + (right - left) / (1 + _RIGHT), bottom]
        names = list(map(str, range(rows))), list(map(str, range(columns)))
        if not self._sides:
            return self._hover_grid(self.values, box, *names)
        texts = [[self._sides[int(value >= 0)] for value in row] for row in self.values]
        region = self._hover_grid(np.abs(self.values), box, *names)
        return region | {"text": "weight", "texts": texts}
