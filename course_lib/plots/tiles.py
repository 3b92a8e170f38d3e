"""Numbered tiles that move from one arrangement to the next."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from numpy.typing import ArrayLike

from course_lib.plots.panel import Panel
from course_lib.plots.style import COLOURS, blank
from course_lib.plots.words import Words

_TILE = np.array([(-0.47, -0.47), (0.47, -0.47), (0.47, 0.47), (-0.47, 0.47)])
_NUMBER = 0.85  # within so many tiles, the number of a tile would touch the number above it
GROUPS = ("main", "second", "third", "truth")  # colours of up to four groups


class TilesPanel(Panel):
    """Tiles numbered 0, 1, 2, …, coloured by group, with names beside their rows and above their blocks.

    A tile that is partly covered by another has no number, so that no two overlap.

    Args:
        axes: where to draw.
        count: how many tiles.
        x_limits, y_limits: of the area they move in, in tiles; y points down.
    """

    def __init__(
        self,
        axes: Axes,
        count: int,
        x_limits: tuple[float, float],
        y_limits: tuple[float, float],
    ) -> None:
        super().__init__(axes)
        blank(axes, x_limits, y_limits[::-1])
        axes.set_aspect("equal")
        tiles = PolyCollection([_TILE] * count, edgecolors="white", linewidths=0.8)
        self._tiles = axes.add_collection(tiles, autolim=False)
        self._numbers, self._names = Words(axes), Words(axes)
        self.artists = [self._tiles, self._numbers, self._names]

    def update(
        self,
        positions: ArrayLike,
        groups: Sequence[int],
        names: Sequence[tuple[str, float, float, float]] = (),
    ) -> None:
        """Move every tile to its position, shape (count, 2), and colour it by its group.

        Args:
            positions: of the centres.
            groups: of each tile.
            names: text, x, y and the share of its width that lies left of x.
        """
        self.positions = np.asarray(positions, dtype=float)
        self._tiles.set_verts(self.positions[:, None, :] + _TILE)
        self._tiles.set_facecolors([COLOURS[GROUPS[group]] for group in groups])
        near = np.abs(self.positions[:, None] - self.positions).max(axis=-1) < _NUMBER
        covered = np.triu(near, 1).any(axis=1)  # later tiles are drawn above earlier ones
        self.numbered = np.flatnonzero(~covered)
        shown = [str(number) for number in self.numbered]
        self._numbers.show(shown, self.positions[self.numbered], colour="white", size=10)
        texts, x, y, align = zip(*names, strict=True) if names else ((), (), (), ())
        self._names.show(texts, np.column_stack([x, y]), align=align, size=10)

    def data(self) -> dict:
        """The positions of the tiles."""
        return {"across": self.positions[:, 0], "down": self.positions[:, 1]}
