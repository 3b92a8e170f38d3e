"""Which n-grams one sentence shares with others."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from numpy.typing import ArrayLike

from course_lib.plots.panel import Panel
from course_lib.plots.style import COLOURS, blank
from course_lib.plots.tokens import labels
from course_lib.plots.words import Words, width

KINDS = ("counted", "clipped", "missing")
_LEFT = 0.09  # of the width: space for the names of the rows
_LARGEST, _SMALLEST = 11.0, 7.5  # points
_STYLES = {  # colour, width, dash of the underline
    "counted": ("main", 2.4, "solid"),
    "clipped": ("second", 2.4, (0, (2, 1))),
    "missing": ("data", 1.0, (0, (1, 2))),
}


class NgramsPanel(Panel):
    """A row of tokens above other rows; every n-gram of the first row is underlined.

    Counted n-grams have a solid line and are linked to a match below; clipped ones, which occur more often
    in the first row than below, have a dashed line, missing ones a dotted one.
    """

    def __init__(self, axes: Axes) -> None:
        super().__init__(axes)
        blank(axes, (0, 1), (1, 0))
        links = LineCollection([], color=COLOURS["main"], alpha=0.45, linewidth=1.1)
        self._links = axes.add_collection(links, autolim=False)
        self._lines = axes.add_collection(LineCollection([]), autolim=False)
        self._words = Words(axes)
        self.artists = [self._links, self._lines, self._words]

    def update(
        self,
        names: Sequence[str],
        rows: Sequence[Sequence[str]],
        n: int,
        kinds: Sequence[str],
        links: Sequence[tuple[int, int, int]],
        counts: ArrayLike,
    ) -> None:
        """Show other sentences.

        Args:
            names, rows: the name of each row, and its tokens; the first row is compared with the others.
            n: the length of an n-gram.
            kinds: of each n-gram of the first row, one of `KINDS`.
            links: of each counted n-gram: its start, the row of its match, and the start of the match.
            counts: how often each n-gram of the first row occurs in each row; shown under the pointer.
        """
        self.n, self.kinds, self.links, self.names = n, list(kinds), list(links), list(names)
        self._slots = max(map(len, rows))
        self._slot = (1 - _LEFT) / max(self._slots, 6)  # width of the slot of a token
        self.counts = np.full((len(rows), self._slots), np.nan)
        self.counts[:, : len(self.kinds)] = np.asarray(counts).reshape(len(rows), -1)
        self._height = 1 / len(rows)
        space = 0.92 * self._slot * self.axes.bbox.width * 72 / self.axes.figure.dpi  # points
        widest = max(width(token, 1.0) for row in rows for token in row)
        size = float(np.clip(space / widest, _SMALLEST, _LARGEST))
        shown = labels([token for row in rows for token in row], size, space)
        places = [(place, row) for row, tokens in enumerate(rows) for place in range(len(tokens))]
        self._words.show(
            [*names, *shown],
            [(0, self._middle(row)) for row in range(len(rows))]
            + [(_LEFT + (place + 0.5) * self._slot, self._middle(row)) for place, row in places],
            size=[9.0] * len(names) + [size] * len(places),
            align=[0.0] * len(names) + [0.5] * len(places),
            colour=[COLOURS["truth"]] * len(names) + self._colours(rows),
        )
        under = [self._underline(0, start) for start in range(len(self.kinds))]
        above = [self._underline(row, start) for _, row, start in self.links]
        styles = [_STYLES[kind] for kind in [*self.kinds, *["counted"] * len(above)]]
        self._lines.set_segments(under + above)
        self._lines.set_color([COLOURS[colour] for colour, _, _ in styles])
        self._lines.set_linewidth([wide for _, wide, _ in styles])
        self._lines.set_linestyle([dash for _, _, dash in styles])
        ends = zip([under[start] for start, _, _ in self.links], above, strict=True)
        self._links.set_segments([np.mean(pair, axis=1) for pair in ends])

    def _middle(self, row: int) -> float:
        return (row + 0.5) * self._height

    def _underline(self, row: int, start: int) -> list[tuple[float, float]]:
        """Both ends of an n-gram's line: below the first row, above the others; neighbours at different heights."""
        first, apart = min(0.06, 0.2 * self._height), min(0.03, 0.07 * self._height)
        level = (first + apart * (start % self.n)) * (1 if row == 0 else -1)
        gap = 0.12 * self._slot
        left, right = (_LEFT + edge * self._slot for edge in (start, start + self.n))
        y = self._middle(row) + level
        return [(left + gap, y), (right - gap, y)]

    def _colours(self, rows: Sequence[Sequence[str]]) -> list[str]:
        """Blue for tokens of a counted n-gram, orange for those of clipped ones only, grey for the others."""
        shades = [["truth"] * len(row) for row in rows]
        for kind in ("clipped", "counted"):
            for start, own in enumerate(self.kinds):
                if own == kind:
                    shades[0][start : start + self.n] = [_STYLES[kind][0]] * self.n
        for _, row, start in self.links:
            shades[row][start : start + self.n] = ["main"] * self.n
        return [COLOURS[shade] for row in shades for shade in row]

    def data(self) -> dict:
        """n, the kind of each n-gram of the first row, the links of the counted ones, and all counts."""
        return {
            "n": [self.n],
            "kind": [KINDS.index(kind) for kind in self.kinds],
            "linked": np.asarray(self.links).reshape(-1, 3).ravel(),
            "count": self.counts,
        }

    def hover(self) -> list[dict]:
        """How often the n-gram that starts at this position of the first row occurs in the row under the pointer."""
        box = self._box(_LEFT, 1, _LEFT + self._slot * self._slots, 0)
        starts = [str(start + 1) for start in range(self._slots)]
        what = f"count of the {self.n}-gram from position"
        names = {"row_name": "in the", "column_name": what}
        return [self._hover_grid(self.counts, box, self.names, starts, **names)]
