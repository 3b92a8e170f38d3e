"""What every panel offers."""

from collections.abc import Mapping

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.transforms import Transform
from numpy.typing import ArrayLike


class Panel:
    """One Axes with artists that can change.

    Attributes:
        axes: where it draws.
        artists: redrawn after every `update`, in this order; nothing else changes.
        chooses: for a panel with cells, the names of the controls of an explorer that the row and the column of
            a cell set when it is clicked or moved to by keyboard; None for one that sets nothing.
        sets: other controls that a cell sets, name → value.
    """

    chooses: tuple[str | None, str | None] = (None, None)
    sets: Mapping[str, object] = {}

    def __init__(self, axes: Axes) -> None:
        self.axes = axes
        self.artists: list[Artist] = []

    def hover(self) -> list[dict]:
        """Return the regions with exact values under the pointer."""
        return []

    def data(self) -> dict[str, ArrayLike]:
        """Return the data drawn now, name → numbers. Tests compare its description."""
        raise NotImplementedError

    def describe(self) -> str:
        """Describe the data drawn now: range and mean of each name, to three significant digits."""
        title = self.axes.get_title("left") or self.axes.get_xlabel()
        return f"{title}: " + "; ".join(
            f"{name} {_span(np.asarray(numbers, dtype=float))}"
            for name, numbers in self.data().items()
        )

    def _hover_lines(self, x: ArrayLike, lines: Mapping[str, ArrayLike], **more) -> dict:
        """Return a region with the values of all lines at the x nearest to the pointer."""
        return {
            "kind": "lines",
            "box": self._box(),
            "limits": [float(limit) for limit in self.axes.get_xlim()],
            "log": self.axes.get_xscale() == "log",
            "x_name": self.axes.get_xlabel(),
            "x": rounded(x),
            "lines": [[name, rounded(y)] for name, y in lines.items()],
        } | more

    def _hover_grid(
        self, values: ArrayLike, box: list[float], rows: list[str], columns: list[str], **more
    ) -> dict:
        """Return a region of cells with exact values, as float32 bytes; the axis labels name rows and columns."""
        values = np.ascontiguousarray(values, dtype="<f4")
        region = {
            "kind": "grid",
            "box": box,
            "shape": list(values.shape),
            "values": values.tobytes(),
            "row_name": self.axes.get_ylabel(),
            "column_name": self.axes.get_xlabel(),
            "rows": rows,
            "columns": columns,
        }
        chosen = {"chooses": list(self.chooses), "sets": dict(self.sets)}
        return region | (chosen if any(self.chooses) else {}) | more

    def _box(
        self, left=0, top=1, right=1, bottom=0, within: Transform | None = None
    ) -> list[float]:
        """Return a box as fractions of the figure, measured from its top left.

        Args:
            left, top, right, bottom: in coordinates of `within`; the whole Axes where left out.
            within: for example `axes.transData`; shares of the Axes where left out.
        """
        to_figure = (within or self.axes.transAxes) - self.axes.figure.transFigure
        (x0, y0), (x1, y1) = to_figure.transform([(left, top), (right, bottom)])
        return rounded([x0, 1 - y0, x1, 1 - y1])


def _span(numbers: np.ndarray) -> str:
    numbers = numbers[np.isfinite(numbers)]
    if numbers.size == 0:
        return "nowhere"
    # Values that are negligible beside the largest are rounding errors, which depend on the processor.
    least = 1e-3 * np.abs(numbers).max()
    low, high, mean = (
        short(0.0 if abs(number) < least else number)
        for number in (numbers.min(), numbers.max(), numbers.mean())
    )
    return low if numbers.size == 1 else f"{low} to {high}, mean {mean}"


def short(number: float) -> str:
    """Three significant digits without an exponent: 0.0123, 18,900."""
    rounded = float(f"{number:.3g}")
    if abs(rounded) >= 100:
        return f"{rounded:,.0f}"
    return np.format_float_positional(rounded, trim="-")


def rounded(numbers: ArrayLike) -> list[float | None]:
    """Round to seven significant digits, enough for a day among years; None for what is not finite."""
    return [
        float(f"{number:.7g}") if np.isfinite(number) else None
        for number in np.asarray(numbers, dtype=float)
    ]
