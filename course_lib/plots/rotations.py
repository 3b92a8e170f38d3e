"""Two-dimensional vectors and the angles between them."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from numpy.typing import ArrayLike

from course_lib.plots.panel import Panel
from course_lib.plots.style import COLOURS, blank


class RotationsPanel(Panel):
    """Circles, each with a blue and an orange vector from its centre, and a note such as their angle.

    Args:
        axes: where to draw.
        count: how many circles, side by side.
        title: above the panel.
    """

    def __init__(self, axes: Axes, count: int, *, title: str = "") -> None:
        super().__init__(axes)
        self.vectors = np.zeros((2, count, 2))
        self._centres = np.stack([2.4 * np.arange(count), np.zeros(count)], axis=1)
        blank(axes, (-1.2, 2.4 * count - 1.2), (-1.75, 1.25), title)
        axes.set_aspect("equal")
        angle = np.linspace(0, 2 * np.pi, 100)
        for x, y in self._centres:
            axes.plot(x + np.cos(angle), y + np.sin(angle), color=COLOURS["data"], linewidth=1)
        self._lines = [
            LineCollection([], colors=COLOURS[colour], linewidths=width, capstyle="round")
            for colour, width in (("main", 4.5), ("second", 2.5))
        ]
        for lines in self._lines:
            axes.add_collection(lines, autolim=False)
        self._notes = [axes.text(x, -1.4, "", ha="center", fontsize=9) for x, _ in self._centres]
        self.artists = [*self._lines, *self._notes]

    def update(self, first: ArrayLike, second: ArrayLike, notes: list[str]) -> None:
        """Show other vectors of length at most 1: two arrays of shape (circle, 2), blue and orange."""
        self.vectors = np.stack([np.asarray(first, dtype=float), np.asarray(second, dtype=float)])
        for lines, vectors in zip(self._lines, self.vectors, strict=True):
            lines.set_segments(np.stack([self._centres, self._centres + vectors], axis=1))
        for text, note in zip(self._notes, notes, strict=True):
            text.set_text(note)

    def data(self) -> dict:
        """The components of the vectors."""
        return {"blue": self.vectors[0], "orange": self.vectors[1]}
