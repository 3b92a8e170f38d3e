"""Numbers on coloured tiles that move from one arrangement to the next."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from numpy.typing import ArrayLike

from course_lib.plots.panel import Panel
from course_lib.plots.style import COLOURS

_TILE = np.array([(-0.47, -0.47), (0.47, -0.47), (0.47, 0.47), (-0.47, 0.47)])
GROUPS = ("main", "second", "third", "truth")  # colours of up to four groups


class NumbersPanel(Panel):
    """Tiles with the numbers 0, 1, 2, …; their colour says to which group each belongs.

    Args:
        axes: where to draw.
        count: how many tiles.
        width, height: of the space they move in, in tiles.
        title: words above.
    """

    def __init__(
        self, axes: Axes, count: int, width: float, height: float, *, title: str = ""
    ) -> None:
        super().__init__(axes)
        self.places = np.zeros((count, 2))
        axes.set(
            xlim=(-1, width), ylim=(height, -1), xticks=[], yticks=[], aspect="equal", title=title
        )
        axes.grid(False)
        axes.spines[:].set_visible(False)
        self._tiles = PolyCollection([_TILE] * count, edgecolors="white", linewidths=0.8)
        axes.add_collection(self._tiles, autolim=False)
        style = {"ha": "center", "va": "center", "fontsize": 9, "color": "white", "weight": "bold"}
        self._texts = [axes.text(0, 0, str(number), **style) for number in range(count)]
        self._caption = axes.text(-0.5, height - 0.5, "", fontsize=11)
        self.artists = [self._tiles, *self._texts, self._caption]

    def update(self, places: ArrayLike, groups: Sequence[int], caption: str = "") -> None:
        """Move every tile, places of shape (count, 2) from the top left, and colour it by its group."""
        self._caption.set_text(caption)
        self.places = np.asarray(places, dtype=float)
        self._tiles.set_verts(self.places[:, None, :] + _TILE)
        self._tiles.set_facecolors([COLOURS[GROUPS[group]] for group in groups])
        for text, place in zip(self._texts, self.places, strict=True):
            text.set_position(place)

    def data(self) -> dict:
        """Where the tiles are."""
        return {"across": self.places[:, 0], "down": self.places[:, 1]}
