"""Numbered tiles that move from one arrangement to the next."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from numpy.typing import ArrayLike

from course_lib.plots.panel import Panel
from course_lib.plots.style import COLOURS, blank

_TILE = np.array([(-0.47, -0.47), (0.47, -0.47), (0.47, 0.47), (-0.47, 0.47)])
GROUPS = ("main", "second", "third", "truth")  # colours of up to four groups


class TilesPanel(Panel):
    """Tiles numbered 0, 1, 2, …, coloured by group.

    Args:
        axes: where to draw.
        count: how many tiles.
        width, height: of the area they move in, in tiles.
    """

    def __init__(self, axes: Axes, count: int, width: float, height: float) -> None:
        super().__init__(axes)
        blank(axes, (-1, width), (height, -1))
        axes.set_aspect("equal")
        tiles = PolyCollection([_TILE] * count, edgecolors="white", linewidths=0.8)
        self._tiles = axes.add_collection(tiles, autolim=False)
        style = {"ha": "center", "va": "center", "fontsize": 9, "color": "white", "weight": "bold"}
        self._texts = [axes.text(0, 0, str(number), **style) for number in range(count)]
        self._caption = axes.text(-0.5, height - 0.5, "", fontsize=11)
        self.artists = [self._tiles, *self._texts, self._caption]

    def update(self, positions: ArrayLike, groups: Sequence[int], caption: str = "") -> None:
        """Move every tile to its position, shape (count, 2) from the top left, and colour it by its group."""
        self._caption.set_text(caption)
        self.positions = np.asarray(positions, dtype=float)
        self._tiles.set_verts(self.positions[:, None, :] + _TILE)
        self._tiles.set_facecolors([COLOURS[GROUPS[group]] for group in groups])
        for text, position in zip(self._texts, self.positions, strict=True):
            text.set_position(position)

    def data(self) -> dict:
        """The positions of the tiles."""
        return {"across": self.positions[:, 0], "down": self.positions[:, 1]}
