"""What every panel offers."""

from collections.abc import Hashable, Mapping

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from numpy.typing import ArrayLike


class Panel:
    """One Axes with artists that can change.

    Attributes:
        axes: where it draws.
        artists: redrawn after every `update`, in this order; what is in neither list never changes.
        static_artists: artists that rarely change. They are cached in the background, below `artists`,
            and redrawn only when `static_state` changes.
        chooses: for a panel with cells, the names of the controls of an explorer that the row and the column of
            a cell set when it is clicked or moved to by keyboard; None for one that sets nothing.
    """

    chooses: tuple[str | None, str | None] = (None, None)

    def __init__(self, axes: Axes) -> None:
        self.axes = axes
        self.artists: list[Artist] = []
        self.static_artists: list[Artist] = []

    def static_state(self) -> Hashable:
        """Return what the static artists show now; a new value invalidates the cached background."""
        return None

    def hover(self) -> dict | None:
        """Return the exact values to show under the pointer, or None if there are none."""
        return None

    def regions(self) -> list[dict]:
        """Return all regions with values under the pointer; that of `hover` unless a panel has several."""
        region = self.hover()
        return [] if region is None else [region]

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

    def _hover_lines(self, x: ArrayLike, lines: Mapping[str, ArrayLike], x_name: str) -> dict:
        return {
            "kind": "lines",
            "box": self._box(),
            "limits": [float(limit) for limit in self.axes.get_xlim()],
            "log": self.axes.get_xscale() == "log",
            "x_name": x_name,
            "x": rounded(x),
            "lines": [[name, rounded(y)] for name, y in lines.items()],
        }

    def _hover_grid(
        self, weights: np.ndarray, box: list[float], rows: list[str], columns: list[str]
    ) -> dict:
        """Exact values as float32 bytes; the axis labels name rows and columns."""
        region = {
            "kind": "grid",
            "box": box,
            "shape": list(weights.shape),
            "values": np.ascontiguousarray(weights, dtype="<f4").tobytes(),
            "row_name": self.axes.get_ylabel(),
            "column_name": self.axes.get_xlabel(),
            "rows": rows,
            "columns": columns,
        }
        return region | ({"chooses": list(self.chooses)} if any(self.chooses) else {})

    def _box(self) -> list[float]:
        """Left, top, right, bottom of the Axes as fractions of the figure, measured from the top left."""
        box = self.axes.get_position()
        return rounded([box.x0, 1 - box.y1, box.x1, 1 - box.y0])

    def _unit_box(self) -> list[float]:
        """The box of 0 to 1 on both axes, for a map with words or a colour bar beside it."""
        left, top, right, bottom = self._box()
        (low, high), (down, up) = self.axes.get_xlim(), self.axes.get_ylim()
        x = [left + (right - left) * (edge - low) / (high - low) for edge in (0, 1)]
        y = [top + (bottom - top) * (edge - up) / (down - up) for edge in (0, 1)]
        return [x[0], y[0], x[1], y[1]]


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
