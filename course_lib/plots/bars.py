"""Named horizontal bars, one below the other."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from numpy.typing import ArrayLike

from course_lib.plots.panel import Panel
from course_lib.plots.style import COLOURS
from course_lib.plots.tokens import labels
from course_lib.plots.words import Words

_TICKS = (0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.7, 1)
_END = 1.16  # of the axis: space for a number after a bar of 1
_LEFT = -0.02  # where the names end
_SIZE = 9.5  # points of a name


class BarsPanel(Panel):
    """Values between 0 and 1 as bars with their names and numbers; optionally a wider pale bar behind each.

    Args:
        axes: where to draw.
        count: the largest number of bars.
        root: whether the axis has a square-root scale, on which 0.01 and 1 are both visible.
        headed: whether to leave space for a heading above the bars.
        names: what to call a bar, its filled part and its pale part under the pointer.
        name_width: space for the names of the bars, left of 0, in units of the axis.
        chooses: what is done with the number of a bar that is clicked, or left by Enter; see `Panel`.
    """

    def __init__(
        self,
        axes: Axes,
        count: int,
        *,
        root: bool = False,
        headed: bool = False,
        names: tuple[str, str, str] = ("bar", "value", "before"),
        name_width: float = 0.16,
        chooses: str | None = None,
    ) -> None:
        super().__init__(axes)
        self.chooses = chooses, None
        self._scale = np.sqrt if root else np.asarray
        self._bar_name, self._value_name, self._before_name = names
        self.most, self.names = count, []
        self.values = self.before = np.zeros(0)
        self.removed = np.zeros(0, dtype=bool)
        ticks = _TICKS if root else (0, 0.2, 0.4, 0.6, 0.8, 1)
        axes.set_xticks(self._scale(ticks), [f"{tick:g}" for tick in ticks])
        # The names are left of 0, inside the Axes, so that the layout includes them.
        axes.set(xlim=(-name_width, _END), ylim=(count - 0.4, -1.7 if headed else -0.6), yticks=[])
        axes.spines["left"].set_visible(False)
        axes.spines["bottom"].set_bounds(0, 1)
        axes.axvline(0, color=COLOURS["data"], linewidth=0.8)
        self._pale = PolyCollection([], fc=COLOURS["faint"], ec=COLOURS["data"], lw=0.8)
        self._crossed = PolyCollection([], fc="white", ec=COLOURS["truth"], lw=0.8, hatch="/////")
        self._filled = PolyCollection([])
        for bars in (self._pale, self._crossed, self._filled):
            axes.add_collection(bars, autolim=False)
        self._words = Words(axes)
        self.artists = [self._pale, self._crossed, self._filled, self._words]

    def update(
        self,
        names: Sequence[str],
        values: ArrayLike,
        *,
        before: ArrayLike | None = None,
        removed: ArrayLike | None = None,
        notes: Sequence[str] | None = None,
        colours: Sequence[str] | None = None,
        heading: str = "",
    ) -> None:
        """Show other bars.

        Args:
            names, values: one per bar.
            before: values of the pale bars; none are drawn where left out.
            removed: which bars have no filled part; their pale bar is hatched.
            notes: text after each bar; its value where left out.
            colours: names in `COLOURS` of the filled bars; blue where left out.
            heading: text above the bars.
        """
        self.names, self.values = list(names), np.asarray(values, dtype=float)
        count = len(self.names)
        self.before = np.asarray([] if before is None else before, dtype=float)
        self.removed = np.asarray(np.zeros(count) if removed is None else removed, dtype=bool)
        rows, stays = np.arange(count), ~self.removed
        behind = np.zeros(count) if before is None else self._scale(self.before)
        self._pale.set_verts(_bars(behind[stays], rows[stays], 0.38))
        self._crossed.set_verts(_bars(behind[~stays], rows[~stays], 0.38))
        self._filled.set_verts(_bars(self._scale(self.values)[stays], rows[stays], 0.22))
        shades = np.array(["main"] * count if colours is None else colours)
        self._filled.set_facecolor([COLOURS[shade] for shade in shades[stays]])
        notes = [f"{value:.3f}" for value in self.values] if notes is None else list(notes)
        ends = np.maximum(behind, self._scale(self.values)) + 0.02
        edge = self.axes.transData.transform([(_LEFT, 0)])[0, 0] - self.axes.bbox.x0  # pixels
        room = edge * 72 / self.axes.figure.dpi
        self._words.show(
            [heading, *labels(self.names, _SIZE, room), *notes],
            [(0.01, -1.1), *((_LEFT, row) for row in rows), *zip(ends, rows, strict=True)],
            align=[0.0] + [1.0] * count + [0.0] * count,
            size=[10.5] + [_SIZE] * count + [9.0] * count,
        )

    def data(self) -> dict:
        """The filled bars, the pale ones where there are any, and which are removed."""
        drawn = {self._value_name: self.values}
        if len(self.before):
            drawn |= {self._before_name: self.before, "removed": self.removed}
        return drawn

    def hover(self) -> list[dict]:
        """The exact values of the bar under the pointer."""
        rows = list(self.names)
        for row, number in enumerate(self.before):
            rows[row] += f", {self._before_name} {number:.4g}"
        box = self._box(0, -0.5, 1, len(rows) - 0.5, self.axes.get_yaxis_transform())
        names = {"row_name": self._bar_name, "column_name": "exact", "share": True}
        names |= {"acts": True} if any(self.chooses) else {}
        return [self._hover_grid(self.values[:, None], box, rows, [self._value_name], **names)]


def _bars(lengths: np.ndarray, rows: np.ndarray, half: float) -> np.ndarray:
    """Corners of bars from 0 to these lengths, shape (bars, 4, 2)."""
    corners = np.zeros((len(lengths), 4, 2))
    corners[:, 1:3, 0] = lengths[:, None]
    corners[:, :2, 1], corners[:, 2:, 1] = (rows - half)[:, None], (rows + half)[:, None]
    return corners
