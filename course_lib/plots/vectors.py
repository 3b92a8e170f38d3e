"""Vectors in the plane."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from numpy.typing import ArrayLike

from course_lib.plots.panel import Panel
from course_lib.plots.style import COLOURS

_LARGEST, _TIP = 260.0, 36.0  # areas of the disc of a weight of 1, and of a blue tip, in points²


class VectorsPanel(Panel):
    """Blue and orange vectors; with weights, each orange one ends in a disc as large as its weight.

    Args:
        axes: where to draw, with limits that stay.
        centres: where the vectors begin: one for all, or one for each pair of a blue and an orange one.
        names: of the blue and of the orange vectors.
        widths: of their lines, in points.
    """

    def __init__(
        self,
        axes: Axes,
        centres: Sequence[tuple[float, float]],
        names: tuple[str, str],
        widths: tuple[float, float],
    ) -> None:
        super().__init__(axes)
        self._centres, self._names = np.asarray(centres, dtype=float), names
        axes.set_aspect("equal")
        self._lines = []
        for colour, wide in zip(("main", "second"), widths, strict=True):
            lines = LineCollection([], colors=COLOURS[colour], lw=wide, capstyle="round")
            self._lines.append(axes.add_collection(lines, autolim=False))
        self._ends = axes.scatter([], [], zorder=3)
        self._notes = [axes.text(x, y - 1.4, "", ha="center", fontsize=9) for x, y in self._centres]
        self.artists = [*self._lines, self._ends, *self._notes]

    def update(
        self,
        blue: ArrayLike,
        orange: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        """Show other vectors, shape (vector, 2); weights of the orange ones; a note below each centre."""
        self.vectors = [np.asarray(one, dtype=float) for one in (blue, orange)]
        self.weights = weights
        for lines, vectors in zip(self._lines, self.vectors, strict=True):
            ends = self._centres + vectors
            lines.set_segments(np.stack([ends - vectors, ends], axis=1))
        if weights is not None:
            counts = list(map(len, self.vectors))
            self._ends.set_offsets(self._centres + np.concatenate(self.vectors))
            self._ends.set_sizes([*[_TIP] * counts[0], *(_LARGEST * np.asarray(weights))])
            self._ends.set_color(np.repeat([COLOURS["main"], COLOURS["second"]], counts))
        for text, note in zip(self._notes, notes, strict=False):
            text.set_text(note)

    def data(self) -> dict:
        """The components of the vectors, and the weights."""
        drawn = dict(zip(self._names, self.vectors, strict=True))
        return drawn | ({} if self.weights is None else {"weight": self.weights})
