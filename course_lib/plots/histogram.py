"""The distribution of numbers."""

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from course_lib.plots.panel import Panel
from course_lib.plots.style import COLOURS, root_scale


class HistogramPanel(Panel):
    """The share of numbers in each bin, on a square-root axis that shows narrow and wide distributions.

    Args:
        axes: where to draw.
        edges: of the bins, shape (bins + 1,), equally spaced; numbers outside them are not drawn.
        largest: the top of the axis, a share.
    """

    def __init__(self, axes: Axes, edges: np.ndarray, *, largest: float = 1.0) -> None:
        super().__init__(axes)
        self.edges = edges
        self._bars = axes.stairs(0 * edges[1:], edges, fill=True, color=COLOURS["main"])
        axes.set(xlim=edges[[0, -1]], ylabel="share (square-root scale)")
        root_scale(axes, largest)
        self.artists = [self._bars]

    def update(self, numbers: ArrayLike) -> None:
        """Count other numbers."""
        numbers = np.asarray(numbers).ravel()
        self.shares = np.histogram(numbers, self.edges)[0] / numbers.size
        self._bars.set_data(self.shares)

    def data(self) -> dict:
        """The shares."""
        return {"share": self.shares}

    def hover(self) -> list[dict]:
        """The share of the bin under the pointer."""
        return [self._hover_lines((self.edges[1:] + self.edges[:-1]) / 2, self.data())]
