"""Where each written token looked."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike

from course_lib.plots.panel import Panel
from course_lib.plots.style import COLOURS


class AlignmentPanel(Panel):
    """A map with the target's tokens down the side and the source's along the bottom, for texts that change.

    A bar below the letter marks each place that gets more than 0.2 of the framed row's attention.

    Args:
        axes: where to draw.
        most_source, most_target: how many tokens there is room for.
        title: words above the map.
    """

    def __init__(self, axes: Axes, most_source: int, most_target: int, *, title: str = "") -> None:
        super().__init__(axes)
        self.source, self.target, self.weights = [], [], np.zeros((0, 0))
        self._most = (most_target, most_source)
        ends = (-0.5, most_source - 0.5, most_target - 0.5, -0.5)
        self._image = axes.imshow(
            _nowhere(self._most),
            cmap="viridis",
            vmin=0,
            vmax=1,
            extent=ends,
            aspect="auto",
            interpolation="nearest",
        )
        axes.set(title=title, xlim=ends[:2], ylim=ends[2:], yticks=[])
        axes.set_xticks(range(0, most_source, 5))
        axes.tick_params(
            axis="x", length=0, pad=17, labelcolor=COLOURS["truth"]
        )  # below the letters
        axes.set_xlabel("place in the source")
        axes.set_ylabel("target", labelpad=20)
        axes.grid(False)
        axes.spines[:].set_visible(False)
        axes.figure.colorbar(self._image, ax=axes, label="weight", fraction=0.03, pad=0.02)
        style = {"ha": "center", "va": "center", "fontsize": 9, "clip_on": False}
        self._columns = [axes.text(n, most_target - 0.1, "", **style) for n in range(most_source)]
        self._rows = [axes.text(-1.1, n, "", **style) for n in range(most_target)]
        self._frame = Rectangle((-0.5, -0.5), 1, 1, fill=False, edgecolor=COLOURS["second"], lw=2)
        axes.add_patch(self._frame)
        self._looked = axes.vlines([], 0, 0, color=COLOURS["second"], linewidth=2.5, clip_on=False)
        self.seldom = [self._image, *self._columns, *self._rows]
        self.artists = [self._frame, self._looked]

    def update(
        self, weights: ArrayLike, source: Sequence[str], target: Sequence[str], row: int
    ) -> None:
        """Show other texts and their weights, shape (target, source); frame one row."""
        self.weights, self.source, self.target = np.asarray(weights), list(source), list(target)
        rows, columns = self.weights.shape
        padded = _nowhere(self._most)
        padded[:rows, :columns] = self.weights
        self._image.set_data(padded)
        for texts, tokens in ((self._columns, self.source), (self._rows, self.target)):
            for place, text in enumerate(texts):
                text.set_visible(place < len(tokens))
                if place < len(tokens):
                    text.set_text(visible(tokens[place]))
        below = self._most[0] + 0.2  # under the letter of each place that this row looks at
        places = np.flatnonzero(self.weights[row] > 0.2)
        self._looked.set_segments([[(n - 0.4, below), (n + 0.4, below)] for n in places])
        self._frame.set(y=row - 0.5, width=columns)

    def seldom_state(self) -> tuple:
        """The texts and the weights."""
        return tuple(self.source), tuple(self.target), self.weights.tobytes()

    def data(self) -> dict:
        """The weights, and the framed row."""
        return {"weight": self.weights, "row": [self._frame.get_y() + 0.5]}

    def hover(self) -> dict:
        """The exact weight in each cell, as float32 bytes."""
        left, top, right, bottom = self._box()
        rows, columns = self.weights.shape
        width, height = (right - left) / self._most[1], (bottom - top) / self._most[0]
        box = [left, top, left + columns * width, top + rows * height]
        names = [
            [f"{n} {visible(token)}" for n, token in enumerate(tokens)]
            for tokens in (self.target, self.source)
        ]
        return self._hover_grid(self.weights, box, *names) | {"column_name": "source"}


def _nowhere(shape: tuple[int, int]) -> np.ma.MaskedArray:
    """A map without cells; filled cells may be written into it."""
    return np.ma.masked_array(np.zeros(shape), mask=True)


def visible(token: str) -> str:
    """A token as it can be seen: a space is drawn as ␣, the end token as ∎."""
    return {" ": "␣", "<eos>": "∎"}.get(token, token)
