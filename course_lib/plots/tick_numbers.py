"""The numbers below an axis whose limits change."""

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from course_lib.plots.style import COLOURS
from course_lib.plots.words import Words

_PAD = 14  # points between the axes and the label, which leave room for the numbers


def whole_ticks(low: float, high: float, most: int = 8) -> list[float]:
    """Return up to about `most` multiples of 1, 2, 5, 10, 20, … from `low` to `high`."""
    ticks = MaxNLocator(most, integer=True, steps=(1, 2, 5, 10)).tick_values(low, high)
    return [float(tick) for tick in ticks if low <= tick <= high]


class TickNumbers(Words):
    """Numbers along the x axis; matplotlib's own take many times as long to redraw.

    Args:
        axes: whose own numbers and marks are switched off.
        below: where the numbers hang from, as a share of the height of the axes below its lower edge.
        colour: of the numbers.
    """

    def __init__(self, axes: Axes, *, below: float = 0.025, colour: str = COLOURS["ink"]) -> None:
        super().__init__(axes, axes.get_xaxis_transform())
        self._below, self._colour = below, colour
        axes.tick_params(axis="x", labelbottom=False, length=0)
        axes.grid(False, axis="x")
        axes.xaxis.labelpad += _PAD

    def update(self, ticks: ArrayLike | None = None, *, unit: float = 1.0) -> None:
        """Write other numbers.

        Args:
            ticks: where left out, round numbers within the limits of the axis.
            unit: what 1 on the axis stands for; the numbers are multiples of it.
        """
        low, high = (unit * limit for limit in sorted(self.axes.get_xlim()))
        if ticks is None:
            ticks = whole_ticks(low, high)
        ticks = [tick for tick in ticks if low <= tick <= high]
        self.show(
            [f"{tick:g}" for tick in ticks],
            [(tick / unit, -self._below) for tick in ticks],
            size=10,
            colour=self._colour,
            hanging=True,
        )
