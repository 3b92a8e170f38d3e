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
        x_label, title: labels.
        largest: the top of the axis, a share.
    """

    def __init__(
        self,
        axes: Axes,
        edges: ArrayLike,
        *,
        x_label: str = "",
        title: str = "",
        largest: float = 1.0,
    ) -> None:
        super().__init__(axes)
        self.edges = np.asarray(edges, dtype=float)
        self.shares = np.zeros(len(self.edges) - 1)
        self._bars = axes.stairs(self.shares, self.edges, fill=True, color=COLOURS["main"])
        axes.set(
            xlim=self.edges[[0, -1]],
            xlabel=x_label,
            ylabel="share (square-root scale)",
            title=title,
        )
        root_scale(axes, largest)
        self.artists = [self._bars]

    def update(self, numbers: ArrayLike) -> None:
        """Count other numbers."""
        numbers = np.asarray(numbers).ravel()
        counts, _ = np.histogram(numbers, self.edges)
        self.shares = counts / max(1, numbers.size)
        self._bars.set_data(self.shares)

    def data(self) -> dict:
        """The shares."""
        return {"share": self.shares}

    def hover(self) -> dict:
        """The share of the bin under the pointer."""
        middles = (self.edges[1:] + self.edges[:-1]) / 2
        return self._hover_lines(middles, {"share": self.shares}, self.axes.get_xlabel())
