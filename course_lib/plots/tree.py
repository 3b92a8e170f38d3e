"""A tree that grows from left to right, a column per step."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.path import Path
from numpy.typing import ArrayLike

from course_lib.plots.panel import Panel
from course_lib.plots.style import COLOURS, blank
from course_lib.plots.tokens import labels
from course_lib.plots.words import Words

COLUMNS = 8  # as many as are visible of a larger tree
KINDS = ("kept", "dropped", "complete")
_HALF_WIDTH, _HALF_HEIGHT = 0.37, 0.4  # of a node, in columns and rows
_SIZE = 9  # points of the texts
_STYLES = {  # fill, edge, width of the edge, dash, words
    "kept": ("#d6e4f3", COLOURS["main"], 1.2, "solid", COLOURS["ink"]),
    "dropped": ("white", COLOURS["truth"], 0.9, (0, (2.5, 2)), COLOURS["truth"]),
    "complete": (COLOURS["faint"], COLOURS["ink"], 1.4, "solid", COLOURS["ink"]),
}


class TreePanel(Panel):
    """Nodes with a word and a number in columns, linked to their parents; the thickness shows the share.

    Kept nodes are filled and round, dropped ones hollow and dashed, complete ones square. One path is
    orange.

    Args:
        axes: where to draw.
        value_name: what to call the numbers under the pointer.
        columns: how many are visible, the last ones.
    """

    def __init__(self, axes: Axes, value_name: str, columns: int = COLUMNS) -> None:
        super().__init__(axes)
        self._value_name, self._visible = value_name, columns
        blank(axes, (-0.5, columns - 0.5), (1, 0))
        self._lines = axes.add_collection(LineCollection([], capstyle="round"), autolim=False)
        nodes = PathCollection([], transform=axes.transData)
        self._nodes = axes.add_collection(nodes, autolim=False)
        self._words = Words(axes)
        self.artists = [self._lines, self._nodes, self._words]

    def update(
        self,
        columns: Sequence[int],
        rows: Sequence[int],
        parents: Sequence[int],
        kinds: Sequence[str],
        words: Sequence[str],
        notes: Sequence[str],
        *,
        values: ArrayLike,
        shares: ArrayLike,
        path: Sequence[int] = (),
        height: int = 4,
    ) -> None:
        """Show another tree; its last columns are visible.

        Args:
            columns, rows: position of each node, from the left and from the top.
            parents: index of each node's parent, -1 for none.
            kinds: of `KINDS`.
            words, notes: the two lines of text in each node.
            values: the numbers under the pointer.
            shares: from 0 to 1, thickness of the line from the parent.
            path: the nodes of the orange path.
            height: the number of rows that fit.
        """
        self.columns, self.rows = np.asarray(columns), np.asarray(rows)
        self.values, self.shares = np.asarray(values, dtype=float), np.asarray(shares, dtype=float)
        self.path, self._height = set(path), height
        self._first = max(0, self.columns.max() - self._visible + 1)
        seen = [node for node, column in enumerate(self.columns) if column >= self._first]
        x, y = self.columns - float(self._first), (self.rows + 0.5) / height
        half = _HALF_HEIGHT * min(1 / height, 0.14)
        self._nodes.set_paths([_outline(x[n], y[n], half, kinds[n] == "complete") for n in seen])
        styles = [_STYLES[kinds[node]] for node in seen]
        for n, (fill, _, _, *others) in enumerate(styles):
            if seen[n] in self.path:
                styles[n] = fill, COLOURS["second"], 2.6, *others
        self._nodes.set_facecolor([style[0] for style in styles])
        self._nodes.set_edgecolor([edge for _, edge, *_ in styles])
        self._nodes.set_linewidth([wide for _, _, wide, *_ in styles])
        self._nodes.set_linestyle([dash for *_, dash, _ in styles])
        self._link([node for node in seen if parents[node] >= 0], x, y, parents)
        headed = range(self._first, self._first + self._visible)
        heads = [f"step {n}" if n else "" for n in headed if n <= self.columns.max()]
        shift = 0.45 * half
        room = 1.76 * _HALF_WIDTH / self._visible * self.axes.bbox.width * 72 / self.axes.figure.dpi
        self._words.show(
            labels([words[n] for n in seen], _SIZE, room) + [notes[n] for n in seen] + heads,
            [(x[n], y[n] - shift if notes[n] else y[n]) for n in seen]
            + [(x[n], y[n] + 1.25 * shift) for n in seen]
            + [(column, -0.02) for column in range(len(heads))],
            colour=2 * [style[4] for style in styles] + [COLOURS["truth"]] * len(heads),
        )

    def _link(self, nodes: list[int], x: np.ndarray, y: np.ndarray, parents) -> None:
        left, right = x - _HALF_WIDTH, x + _HALF_WIDTH
        self._lines.set_segments(
            [[(right[parents[n]], y[parents[n]]), (left[n], y[n])] for n in nodes]
        )
        self._lines.set_linewidth(0.6 + 4.4 * self.shares[nodes])
        self._lines.set_color(
            [
                COLOURS["second"] if n in self.path else (COLOURS["main"], 0.3 + 0.7 * share)
                for n, share in zip(nodes, self.shares[nodes], strict=True)
            ]
        )

    def data(self) -> dict:
        """The positions of the nodes, their numbers and shares, and which are on the orange path."""
        return {
            "step": self.columns,
            "row": self.rows,
            self._value_name: self.values,
            "share": self.shares,
            "path": sorted(self.path),
        }

    def hover(self) -> list[dict]:
        """The exact number of the node under the pointer."""
        numbers = np.full((self._height, self._visible), np.nan)
        seen = self.columns >= self._first
        numbers[self.rows[seen], self.columns[seen] - self._first] = self.values[seen]
        columns = [f"{self._first + n}, {self._value_name}" for n in range(self._visible)]
        rows = [str(row + 1) for row in range(self._height)]
        names = {"row_name": "candidate", "column_name": "step"}
        return [self._hover_grid(numbers, self._box(), rows, columns, **names)]


def _outline(x: float, y: float, half: float, square: bool) -> Path:
    """The outline of a node: a rectangle, with its corners cut off unless `square`."""
    across, up = (0.0, 0.0) if square else (0.12, 0.45)
    w, h = _HALF_WIDTH, half
    corners = [
        *((w, h * (1 - up)), (w * (1 - across), h), (-w * (1 - across), h), (-w, h * (1 - up))),
        *((-w, -h * (1 - up)), (-w * (1 - across), -h), (w * (1 - across), -h), (w, -h * (1 - up))),
    ]
    return Path(np.array([*corners, corners[0]]) + (x, y), closed=True)
