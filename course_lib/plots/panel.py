"""What every panel offers."""

from collections.abc import Hashable, Mapping

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from numpy.typing import ArrayLike


class Panel:
    """One Axes with artists that move.

    Attributes:
        axes: where it draws.
        artists: what `update` moves, in drawing order; everything else stands still.
        seldom: what `update` changes only now and then; drawn below `artists`, and drawn anew when
            `seldom_state` changes.
    """

    def __init__(self, axes: Axes) -> None:
        self.axes = axes
        self.artists: list[Artist] = []
        self.seldom: list[Artist] = []

    def seldom_state(self) -> Hashable:
        """Return what the seldom changing artists show now."""
        return None

    def hover(self) -> dict | None:
        """Say which exact values stand where on the Axes, or None if nothing is worth reading off."""
        return None

    def data(self) -> dict[str, ArrayLike]:
        """Return what is drawn now, name → numbers. Tests compare a description of it."""
        raise NotImplementedError

    def describe(self) -> str:
        """Say in numbers what is drawn now: range and mean of each thing, to three digits."""
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
        """Exact values as float32 bytes; the axes' labels say what a row and a column is."""
        return {
            "kind": "grid",
            "box": box,
            "shape": list(weights.shape),
            "values": np.ascontiguousarray(weights, dtype="<f4").tobytes(),
            "row_name": self.axes.get_ylabel(),
            "column_name": self.axes.get_xlabel(),
            "rows": rows,
            "columns": columns,
        }

    def _box(self) -> list[float]:
        """Left, top, right, bottom of the Axes as fractions of the figure, measured from the top left."""
        box = self.axes.get_position()
        return rounded([box.x0, 1 - box.y1, box.x1, 1 - box.y0])


def _span(numbers: np.ndarray) -> str:
    numbers = numbers[np.isfinite(numbers)]
    if numbers.size == 0:
        return "nowhere"
    # What is next to nothing beside the rest has last digits that depend on the processor.
    least = 1e-3 * np.abs(numbers).max()
    low, high, mean = (
        f"{0.0 if abs(number) < least else number:.3g}"
        for number in (numbers.min(), numbers.max(), numbers.mean())
    )
    return low if numbers.size == 1 else f"{low} to {high}, mean {mean}"


def rounded(numbers: ArrayLike) -> list[float | None]:
    """Seven significant digits: a day among years, and short to send. None where there is no finite number."""
    return [
        float(f"{number:.7g}") if np.isfinite(number) else None
        for number in np.asarray(numbers, dtype=float)
    ]
