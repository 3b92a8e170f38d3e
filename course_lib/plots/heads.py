"""All heads of a layer as thumbnails."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike

from course_lib.plots.cells import Cells
from course_lib.plots.panel import Panel
from course_lib.plots.style import COLOURS, blank
from course_lib.plots.tokens import pooled
from course_lib.plots.words import Words

_TILE = 72  # pixels of a thumbnail's side
_GAP = 6
_MOST_NAMED = 16  # heads; with more, the thumbnails have no text


class HeadsPanel(Panel):
    """A thumbnail per head with a note below it, in colours on a square-root scale; one head is framed.

    Args:
        axes: where to draw.
        most: the largest number of heads.
        title: above the panel.
        colours: a matplotlib colour map, or its name.
        chooses: the control that a click on a thumbnail sets to its number.
    """

    def __init__(
        self,
        axes: Axes,
        most: int,
        *,
        title: str = "",
        colours: Colormap | str = "viridis",
        chooses: str | None = None,
    ) -> None:
        super().__init__(axes)
        self.chooses = None, chooses
        self.weights, self.notes, self.head = np.zeros((1, 1, 1)), [""], 0
        self._columns = math.ceil(math.sqrt(most)) if most > 4 else most
        self._columns = 4 if 4 < most <= _MOST_NAMED else self._columns
        self._rows = math.ceil(most / self._columns)
        self._below = 16 if most <= _MOST_NAMED else 0  # pixels for the note of each thumbnail
        blank(axes, (0, self._columns * (_TILE + _GAP)), (self._rows * self._step, 0), title)
        self._size = self._rows * self._step, self._columns * (_TILE + _GAP)
        self._image = Cells(axes, (0, self._size[1], self._size[0], 0), colours)
        self._words = Words(axes)
        self._frame = Rectangle(
            (0, 0), _TILE, _TILE, fill=False, edgecolor=COLOURS["second"], lw=2.5
        )
        axes.add_patch(self._frame)
        self.static_artists = [self._image, self._words]
        self.artists = [self._frame]

    @property
    def _step(self) -> int:
        return _TILE + _GAP + self._below

    def _corner(self, head: int) -> tuple[int, int]:
        """Left and top of a head's thumbnail, in pixels."""
        row, column = divmod(head, self._columns)
        return column * (_TILE + _GAP) + _GAP // 2, row * self._step + _GAP // 2

    def update(
        self, weights: ArrayLike, notes: Sequence[str], *, head: int, brightest: float
    ) -> None:
        """Show other weights, shape (heads, query, key), with a note for each; frame one head."""
        self.head = head
        self._frame.set_xy(self._corner(head))
        if np.array_equal(weights, self.weights) and list(notes) == self.notes:
            return
        self.weights, self.notes = np.asarray(weights), list(notes)
        canvas = np.full(self._size, -1.0)  # white between the heads
        for number, map_ in enumerate(self.weights):
            x, y = self._corner(number)
            canvas[y : y + _TILE, x : x + _TILE] = _thumbnail(np.sqrt(map_ / brightest))
        self._image.show(canvas)
        shown = self.notes if self._below else []
        corners = np.array([self._corner(number) for number in range(len(shown))])
        self._words.show(shown, corners.reshape(-1, 2) + (_TILE / 2, _TILE + 4), hanging=True)

    def static_state(self) -> tuple:
        """The weights and their notes."""
        return self.weights.tobytes(), tuple(self.notes)

    def data(self) -> dict:
        """The weights, and the framed head."""
        return {"weight": self.weights, "head": [self.head]}

    def regions(self) -> list[dict]:
        """The largest weight of each head, a region for each row of thumbnails, if a click chooses one."""
        if not any(self.chooses):
            return []
        left, top, right, bottom = self._box()
        across, down = self._size[1], self._size[0]
        regions = []
        for first in range(0, len(self.weights), self._columns):
            row = self.weights[first : first + self._columns]
            y = first // self._columns * self._step
            box = [
                left,
                top + (bottom - top) * y / down,
                left + (right - left) * len(row) * (_TILE + _GAP) / across,
                top + (bottom - top) * (y + self._step) / down,
            ]
            heads = [str(first + number) for number in range(len(row))]
            largest = row.reshape(1, len(row), -1).max(axis=-1)  # (1, head)
            region = self._hover_grid(largest, box, ["weight"], heads)
            regions.append(
                region | {"row_name": "largest", "column_name": "head", "first": [0, first]}
            )
        return regions


def _thumbnail(shares: np.ndarray) -> np.ndarray:
    """Resize a map to _TILE rows and columns."""
    small = pooled(shares, _TILE)
    rows, columns = (np.arange(_TILE) * n // _TILE for n in small.shape)
    return small[np.ix_(rows, columns)]
