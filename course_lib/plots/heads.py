"""All heads of a layer as thumbnails."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Colormap
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike

from course_lib.plots.map import Cells
from course_lib.plots.panel import Panel
from course_lib.plots.style import COLOURS, blank
from course_lib.plots.tokens import pooled
from course_lib.plots.words import Words

_TILE, _GAP = 72, 6  # a thumbnail's side and most cells, and the space between two
_MOST_NAMED = 16  # heads; with more, the thumbnails have no text


class HeadsPanel(Panel):
    """A thumbnail per head with a note below it, in colours on a square-root scale; one head is framed.

    Args:
        axes: where to draw.
        most: the largest number of heads.
        colours: a matplotlib colour map.
        chooses: the control that a click on a thumbnail sets to its number.
    """

    def __init__(
        self,
        axes: Axes,
        most: int,
        *,
        colours: Colormap = colormaps["viridis"],
        chooses: str | None = None,
    ) -> None:
        super().__init__(axes)
        self.chooses = None, chooses
        self.weights, self.notes, self.head = np.zeros((1, 1, 1)), [""], 0
        self._columns = most if most <= 4 else 4 if most <= _MOST_NAMED else math.ceil(most**0.5)
        self._step = _TILE + _GAP + (16 if most <= _MOST_NAMED else 0)  # with space for the notes
        high = math.ceil(most / self._columns) * self._step
        blank(axes, (0, self._columns * (_TILE + _GAP)), (high, 0))
        corners = map(self._corner, range(most))
        self._images = [Cells(axes, (x, x + _TILE, y + _TILE, y)) for x, y in corners]
        self._colours = colours
        self._words, self._named = Words(axes), most <= _MOST_NAMED
        style = {"fill": False, "edgecolor": COLOURS["second"], "lw": 2.5}
        self._frame = axes.add_patch(Rectangle((0, 0), _TILE, _TILE, **style))
        self.artists = [*self._images, self._words, self._frame]

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
        for image in self._images[len(self.weights) :]:
            image.set_visible(False)
        for image, map_ in zip(self._images, self.weights, strict=False):
            shares = pooled(np.sqrt(map_ / brightest), _TILE)
            image.set(data=self._colours(shares, bytes=True), visible=True)
        shown = self.notes if self._named else []
        corners = np.array([self._corner(number) for number in range(len(shown))])
        self._words.show(shown, corners.reshape(-1, 2) + (_TILE / 2, _TILE + 4), hanging=True)

    def data(self) -> dict:
        """The weights, and the framed head."""
        return {"weight": self.weights, "head": [self.head]}

    def hover(self) -> list[dict]:
        """The largest weight of each head, a region for each row of thumbnails, if a click chooses one."""
        regions = []
        for first in range(0, len(self.weights) if any(self.chooses) else 0, self._columns):
            largest = self.weights[first : first + self._columns].max(axis=(1, 2))  # (head,)
            top = first // self._columns * self._step
            sides = 0, top, len(largest) * (_TILE + _GAP), top + self._step
            regions.append(
                self._hover_grid(
                    largest[None],
                    self._box(*sides, self.axes.transData),
                    ["weight"],
                    [str(first + number) for number in range(len(largest))],
                    row_name="largest",
                    column_name="head",
                    first=[0, first],
                    share=True,
                )
            )
        return regions
