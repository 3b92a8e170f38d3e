"""The attention weights of each generated token over the source."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike

from course_lib.plots.cells import Cells
from course_lib.plots.panel import Panel
from course_lib.plots.style import COLOURS
from course_lib.plots.tick_numbers import TickNumbers
from course_lib.plots.words import Words


class AlignmentPanel(Panel):
    """A map with the target's tokens down the side and the source's along the bottom, for texts that change.

    A bar below the token marks each source position with a weight above 0.2 in the framed row.

    Args:
        axes: where to draw.
        most_source, most_target: the largest numbers of tokens.
        title: above the map.
    """

    def __init__(self, axes: Axes, most_source: int, most_target: int, *, title: str = "") -> None:
        super().__init__(axes)
        self.source, self.target, self.weights = [], [], np.zeros((0, 0))
        self._most = (most_target, most_source)
        ends = (-0.5, most_source - 0.5, most_target - 0.5, -0.5)
        self._image = Cells(axes, ends)
        axes.set(title=title, xlim=ends[:2], ylim=ends[2:], yticks=[])
        axes.set_xlabel("source position", labelpad=17)
        self._numbers = TickNumbers(axes, below=0.11, colour=COLOURS["truth"])  # below the tokens
        axes.set_ylabel("target", labelpad=20)
        axes.grid(False)
        axes.spines[:].set_visible(False)
        scale = ScalarMappable(Normalize(0, 1), "viridis")
        axes.figure.colorbar(scale, ax=axes, label="weight", fraction=0.03, pad=0.02)
        self._columns, self._rows = Words(axes), Words(axes, axes.get_yaxis_transform())
        self._frame = Rectangle((-0.5, -0.5), 1, 1, fill=False, edgecolor=COLOURS["second"], lw=2)
        axes.add_patch(self._frame)
        self._attended = axes.vlines(
            [], 0, 0, color=COLOURS["second"], linewidth=2.5, clip_on=False
        )
        self.static_artists = [self._image, self._columns, self._rows, self._numbers]
        self.artists = [self._frame, self._attended]

    def update(
        self, weights: ArrayLike, source: Sequence[str], target: Sequence[str], row: int
    ) -> None:
        """Show other texts and their weights, shape (target, source); frame one row."""
        self.weights, self.source, self.target = np.asarray(weights), list(source), list(target)
        rows, columns = self.weights.shape
        padded = np.full((self._most[0], columns), -1.0)  # white
        padded[:rows] = self.weights
        self._image.show(padded)
        self._image.set_extent((-0.5, columns - 0.5, self._most[0] - 0.5, -0.5))
        self.axes.set_xlim(-0.5, columns - 0.5)
        self._numbers.update(range(0, columns, 5))
        self._columns.show(
            [visible(token) for token in self.source],
            [(n, self._most[0] - 0.1) for n in range(len(self.source))],
        )
        self._rows.show(
            [visible(token) for token in self.target],
            [(-0.025, n) for n in range(len(self.target))],
        )
        below = self._most[0] + 0.2  # under each token that this row attends to
        attended = np.flatnonzero(self.weights[row] > 0.2)
        self._attended.set_segments([[(n - 0.4, below), (n + 0.4, below)] for n in attended])
        self._frame.set(y=row - 0.5, width=columns)

    def static_state(self) -> tuple:
        """The texts and the weights."""
        return tuple(self.source), tuple(self.target), self.weights.tobytes()

    def data(self) -> dict:
        """The weights, and the framed row."""
        return {"weight": self.weights, "row": [self._frame.get_y() + 0.5]}

    def hover(self) -> dict:
        """The exact weight in each cell, as float32 bytes."""
        left, top, right, bottom = self._box()
        rows, _ = self.weights.shape
        box = [left, top, right, top + (bottom - top) * rows / self._most[0]]
        names = [
            [f"{n} {visible(token)}" for n, token in enumerate(tokens)]
            for tokens in (self.target, self.source)
        ]
        return self._hover_grid(self.weights, box, *names) | {"column_name": "source"}


def visible(token: str) -> str:
    """Return a visible form of a token: ␣ for a space, ∎ for the end token."""
    return {" ": "␣", "<eos>": "∎"}.get(token, token)
