"""Who attends to whom, as a map with the tokens at its sides."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike

from course_lib.plots.cells import Cells
from course_lib.plots.panel import Panel
from course_lib.plots.style import COLOURS
from course_lib.plots.tokens import TokenLabels, pooled

_LEFT, _BELOW = 0.24, 0.26  # room for the tokens, as shares of the map
_MOST_PIXELS = 360
_FEW_CELLS = 36  # as many get their number printed


class TokenMapPanel(Panel):
    """A query-by-key map for sequences that change, in colours on a square-root scale; one row is framed.

    Args:
        axes: where to draw.
        title: words above the map.
    """

    def __init__(self, axes: Axes, *, title: str = "") -> None:
        super().__init__(axes)
        self.weights, self.queries, self.keys = np.zeros((1, 1)), [""], [""]
        axes.set(xlim=(-_LEFT, 1.005), ylim=(1 + _BELOW, -0.005), xticks=[], yticks=[], title=title)
        axes.grid(False)
        axes.spines[:].set_visible(False)
        self._image = Cells(axes, (0, 1, 1, 0))
        self._rows = TokenLabels(axes, -0.015, across=False)
        self._columns = TokenLabels(axes, 1.015, across=True)
        self._numbers = [
            axes.text(0, 0, "", ha="center", va="center", fontsize=8) for _ in range(_FEW_CELLS)
        ]
        self._frame = Rectangle((0, 0), 1, 1, fill=False, edgecolor=COLOURS["second"], lw=2)
        axes.add_patch(self._frame)
        self.seldom = [*self._rows.texts, *self._columns.texts]
        self.artists = [self._image, *self._numbers, self._frame]

    def update(
        self,
        weights: ArrayLike,
        queries: Sequence[str],
        keys: Sequence[str],
        *,
        row: int | None,
        brightest: float,
    ) -> None:
        """Show other weights, shape (query, key), between 0 and `brightest`; frame one row, or none."""
        self.weights, self.queries, self.keys = np.asarray(weights), list(queries), list(keys)
        shares = np.sqrt(self.weights / brightest)
        self._image.show(pooled(shares, _MOST_PIXELS))
        self._rows.update(self.queries)
        self._columns.update(self.keys)
        self._frame.set_visible(row is not None)
        if row is not None:
            self._frame.set(y=row / len(self.queries), height=1 / len(self.queries))
        self._write_numbers(shares)

    def _write_numbers(self, shares: np.ndarray) -> None:
        few = self.weights.size <= _FEW_CELLS
        height, width = self.weights.shape
        for place, text in enumerate(self._numbers):
            text.set_visible(few and place < self.weights.size)
            if text.get_visible():
                row, column = divmod(place, width)
                dark = shares[row, column] < 0.6
                text.set_position(((column + 0.5) / width, (row + 0.5) / height))
                text.set(
                    text=f"{self.weights[row, column]:.2f}",
                    color="white" if dark else COLOURS["ink"],
                )

    def seldom_state(self) -> tuple:
        """The tokens, unless another view covers the map."""
        return self.axes.get_visible(), tuple(self.queries), tuple(self.keys)

    def data(self) -> dict:
        """The weights, and the framed row where there is one."""
        row = [round(self._frame.get_y() * len(self.queries))]
        return {"weight": self.weights} | ({"row": row} if self._frame.get_visible() else {})

    def hover(self) -> dict | None:
        """The exact weight in each cell, as float32 bytes."""
        if not self.axes.get_visible():
            return None
        return self._hover_grid(
            self.weights, self._map_box(), numbered(self.queries), numbered(self.keys)
        ) | {"row_name": "query", "column_name": "key"}

    def _map_box(self) -> list[float]:
        """The box of the map alone, without the tokens."""
        left, top, right, bottom = self._box()
        (low, high), (down, up) = self.axes.get_xlim(), self.axes.get_ylim()
        x = [left + (right - left) * (edge - low) / (high - low) for edge in (0, 1)]
        y = [top + (bottom - top) * (edge - up) / (down - up) for edge in (0, 1)]
        return [x[0], y[0], x[1], y[1]]


def numbered(tokens: Sequence[str]) -> list[str]:
    """Tokens with their place, since a token may occur twice."""
    return [f"{place} {token}" for place, token in enumerate(tokens)]
