"""Attention weights as a map, with the tokens at its sides."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike

from course_lib.plots.cells import Cells
from course_lib.plots.colour_bar import ColourBar
from course_lib.plots.panel import Panel
from course_lib.plots.style import COLOURS
from course_lib.plots.tokens import TokenLabels, pooled
from course_lib.plots.words import Words

_LEFT, _BELOW = 0.24, 0.26  # space for the tokens, as shares of the map
_RIGHT = 0.16  # space for the colour bar
_MOST_PIXELS = 360
_MOST_SENT = 4096  # weights that are sent to the browser at every step
_FEW_CELLS = 36  # up to so many cells have their number printed


class TokenMapPanel(Panel):
    """A query-by-key map for sequences that change, in colours on a square-root scale; one row is framed.

    Args:
        axes: where to draw.
        title: above the map.
        chooses: the control that a click on a row sets to its number.
        row_name: what a row is.
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
        self.weights, self.queries, self.keys = np.zeros((1, 1)), [""], [""]
        axes.set(
            xlim=(-_LEFT, 1 + _RIGHT), ylim=(1 + _BELOW, -0.005), xticks=[], yticks=[], title=title
        )
        axes.grid(False)
        axes.spines[:].set_visible(False)
        self._image = Cells(axes, (0, 1, 1, 0))
        self._bar = ColourBar(axes, "viridis", "weight")
        self._rows = TokenLabels(axes, -0.015, across=False)
        self._columns = TokenLabels(axes, 1.015, across=True)
        self._numbers = Words(axes)
        self._frame = Rectangle((0, 0), 1, 1, fill=False, edgecolor=COLOURS["second"], lw=2)
        axes.add_patch(self._frame)
        self.static_artists = [self._rows, self._columns, *self._bar.artists]
        self.artists = [self._image, self._numbers, self._frame]

    def update(
        self,
        weights: ArrayLike,
        queries: Sequence[str],
        keys: Sequence[str],
        *,
        row: int | None,
        brightest: float,
    ) -> None:
        """Show other weights, shape (query, key), from 0 to `brightest`; frame one row, or none."""
        self.weights, self.queries, self.keys = np.asarray(weights), list(queries), list(keys)
        shares = np.sqrt(self.weights / brightest)
        self._image.show(pooled(shares, _MOST_PIXELS))
        self._bar.show([0, brightest / 4, brightest])  # the square root halves at a quarter
        self._rows.update(self.queries)
        self._columns.update(self.keys)
        self._frame.set_visible(row is not None)
        if row is not None:
            self._frame.set(y=row / len(self.queries), height=1 / len(self.queries))
        self._write_numbers(shares)

    def _write_numbers(self, shares: np.ndarray) -> None:
        few = self.weights.size <= _FEW_CELLS
        positions = (np.argwhere(np.isfinite(shares))[:, ::-1] + 0.5) / self.weights.shape[::-1]
        self._numbers.show(
            [f"{weight:.2f}" for weight in self.weights.flat] if few else [],
            positions if few else [],
            colour=["white" if share < 0.6 else COLOURS["ink"] for share in shares.flat]
            if few
            else "white",
        )

    def static_state(self) -> tuple:
        """The tokens, the numbers of the colour bar, and whether the map is the visible view."""
        tokens = tuple(self.queries), tuple(self.keys)
        return self.axes.get_visible(), *tokens, self._bar.numbers()

    def data(self) -> dict:
        """The weights, and the framed row where there is one."""
        row = [round(self._frame.get_y() * len(self.queries))]
        return {"weight": self.weights} | ({"row": row} if self._frame.get_visible() else {})

    def hover(self) -> dict | None:
        """The exact weight in each cell, as float32 bytes."""
        if not self.axes.get_visible():
            return None
        region = self._hover_grid(
            self.weights,
            self._unit_box(),
            numbered(self.queries, self._row_name),
            numbered(self.keys),
        ) | {"row_name": self._row_name, "column_name": "key"}
        light = self.weights.size <= _MOST_SENT  # or every move of the frame would send them again
        if light and any(self.chooses) and self._frame.get_visible():  # where arrow keys begin
            row = round(self._frame.get_y() * len(self.queries))
            region["at"] = [row, int(self.weights[row].argmax())]
        return region


def numbered(tokens: Sequence[str], side: str = "") -> list[str]:
    """Tokens with their positions, since a token may occur twice.

    One that says its position, as "5 F" does, or "head 0" on the side "head", does not get it again.
    """
    names = []
    for position, token in enumerate(tokens):
        own = token.removeprefix(f"{side} ")
        says = own.startswith(f"{position} ") or (own != token and own == str(position))
        names.append(own if says else f"{position} {token}")
    return names
