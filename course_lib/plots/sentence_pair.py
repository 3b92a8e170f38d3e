"""A sentence in large type below its source; the weights of one word light the words of the other sentence."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike

from course_lib.plots.panel import Panel
from course_lib.plots.style import COLOURS, blank
from course_lib.plots.tokens import labels, numbered
from course_lib.plots.words import Words, width

_LEFT = 0.015  # of the words, as a share of the width
_NUMBERS, _SOURCE, _TARGET, _BELOW = 0.05, 0.21, 0.71, 0.97  # heights of the lines, from the top
_ROOM = 0.42  # for the lines of a sentence
_SOURCE_SIZES = range(15, 6, -1)
_TARGET_SIZES = (24, 21, 19, 17, 15, 14, 13, 12, 11, 10, 9, 8, 7)
_ONE_LINE = {"source": 10, "target": 15}  # points: a smaller sentence may have several lines
_SPACE, _GLUE = 0.45, 0.05  # between words, and between parts of a word, per size
_HALF = 0.66  # half the height of a box around a word, per size
_BRIGHTEST = 0.75  # opacity of a box: its word can still be read
_LEAST = 0.05  # a smaller weight has no number


class SentencePairPanel(Panel):
    """Two sentences, one below the other. A word of one is framed; the boxes behind the words of the other, and the lines
    to them, are the attention weights between them.

    Args:
        axes: where to draw.
        target: the control that a click on a word of the lower sentence sets to its position, and others, name → value.
        source: likewise, of the upper one.
    """

    def __init__(
        self,
        axes: Axes,
        target: tuple[str, Mapping[str, object]],
        source: tuple[str, Mapping[str, object]],
    ) -> None:
        super().__init__(axes)
        self._choices = target, source
        blank(axes, (0, 1), (1, 0))
        self._lines = axes.add_collection(LineCollection([]), autolim=False)
        self._lights = axes.add_collection(PolyCollection([], linewidths=0), autolim=False)
        frame = Rectangle((0, 0), 0, 0, fill=False, edgecolor=COLOURS["second"], lw=2)
        words = self._source, self._target, self._numbers = [Words(axes) for _ in range(3)]
        self._frame = axes.add_patch(frame)
        self.artists = [self._lines, self._lights, *words, self._frame]

    def update(
        self,
        weights: ArrayLike,
        queries: Sequence[str],
        keys: Sequence[str],
        *,
        row: int | None,
        column: int | None = None,
        written: Sequence[str],
        faint: Sequence[bool],
    ) -> None:
        """Show other sentences and weights, shape (query, key), from 0 to 1; frame one word.

        Args:
            weights, queries, keys: the attention map; `queries` are the words of the lower sentence.
            row: which query is framed; None if a key is.
            column: which key.
            written: what stands for each query, with a space in front where a word begins.
            faint: for each query whether it is small and grey, as a token that is no word.
        """
        self.weights, self.queries, self.keys = np.asarray(weights), list(queries), list(keys)
        self.row, self.column = row, column
        sources, large = [f" {key}" for key in self.keys], [False] * len(self.keys)
        upper = _SOURCE, _SOURCE_SIZES, _ONE_LINE["source"], large, column
        lower = _TARGET, _TARGET_SIZES, _ONE_LINE["target"], faint, row
        self._sources = self._write(self._source, sources, *upper)
        self._targets = self._write(self._target, written, *lower)
        if row is not None:
            self._light(self.weights[row], self._targets[row], self._sources, _NUMBERS)
        else:
            self._light(self.weights[:, column], self._sources[column], self._targets, _BELOW)

    def _write(self, words, written, height, sizes, one_line, faint, chosen) -> list[list[float]]:
        """Write the words in the largest size that fits; return left, top, right, bottom of each."""
        box = self.axes.get_window_extent()
        across, down = (side * 72 / self.axes.figure.dpi for side in (box.width, box.height))
        texts = labels([one.strip() for one in written], sizes[0])
        for size in sizes:
            each = [0.6 * size if one else size for one in faint]
            places, lines = _laid_out(written, texts, each, size, (1 - 2 * _LEFT) * across)
            step = 2 * _HALF * size / down
            if lines == 1 or (size < one_line and lines * step <= _ROOM):
                break
        boxes = []
        for (x, line), text, one in zip(places, texts, each, strict=True):
            middle = height + (line - (lines - 1) / 2) * step
            left = float(_LEFT + x / across)
            right, half = float(left + width(text, one) / across), _HALF * size / down
            boxes.append([left, middle - half, right, middle + half])
        colours = [COLOURS["truth"] if one else COLOURS["ink"] for one in faint]
        if chosen is not None:
            colours[chosen] = COLOURS["second"]
        middles = [(left, (top + bottom) / 2) for left, top, _, bottom in boxes]
        words.show(texts, middles, size=each, align=0, colour=colours)
        return boxes

    def _light(self, weights: np.ndarray, word: list, lit: list[list], numbers: float) -> None:
        """Frame a word; light the others by these weights, and draw lines to them.

        Args:
            weights: one for each word that is lit.
            word, lit: boxes.
            numbers: height at which the weights are written, if the lit words stand on one line.
        """
        left, top, right, bottom = word
        pad = 0.01
        is_below = top > lit[0][1]  # the framed word
        self._frame.set(x=left - pad, y=top, width=right - left + 2 * pad, height=bottom - top)
        colours = np.tile([*to_rgb(COLOURS["second"]), 0.0], (len(weights), 1))
        colours[:, 3] = _BRIGHTEST * np.sqrt(np.clip(weights, 0, 1))
        corners, segments = [], []
        for x, y, end, low in lit:
            sides = x - pad, end + pad
            corners.append([(sides[0], y), (sides[1], y), (sides[1], low), (sides[0], low)])
            ends = (top, low) if is_below else (bottom, y)
            segments.append([((left + right) / 2, ends[0]), ((x + end) / 2, ends[1])])
        self._lights.set_verts(corners)
        self._lights.set_facecolor(colours)
        self._lines.set_segments(segments)
        self._lines.set_linewidths(0.4 + 4.6 * weights)
        self._lines.set_colors(colours * np.where(weights > 0.01, 1, 0)[:, None])
        one_line = len({y for _, y, _, _ in lit}) == 1  # else a number would stand on a word
        named = [n for n, weight in enumerate(weights) if weight >= _LEAST and one_line]
        middles = [(x + end) / 2 for x, _, end, _ in lit]
        self._numbers.show(
            [f"{weights[n]:.2f}" for n in named], [(middles[n], numbers) for n in named]
        )

    def data(self) -> dict:
        """The weights of the framed word, and its position."""
        if self.row is None:
            return {"weight": self.weights[:, self.column], "word": [self.column]}
        return {"weight": self.weights[self.row], "word": [self.row]}

    def hover(self) -> list[dict]:
        """For each word of the framed one's sentence its largest weight, for each of the other its weight."""
        sides = ("query", numbered(self.queries)), ("key", numbered(self.keys))
        own = int(self.row is None)  # whose word is framed: 0 for the lower sentence
        regions, says = [], (("attends most to key", "key"), ("attended most by query", "query"))
        for side, boxes in enumerate((self._targets, self._sources)):
            weights = self.weights.T if side else self.weights
            (row_name, names), (_, others) = sides[side], sides[1 - side]
            control, others_set = self._choices[side]
            for number, (box, each) in enumerate(zip(boxes, weights, strict=True)):
                framed = self.row if own == 0 else self.column
                most = int(each.argmax()) if side == own else framed
                place = self._box(*box, self.axes.transData)
                query, key = (most, number) if side else (number, most)
                between = {"row_name": "query", "rows": [sides[0][1][query]]}
                between |= {"column_name": "key", "columns": [sides[1][1][key]]}
                region = self._hover_grid([[each[most]]], place, [names[number]], [others[most]])
                regions.append(
                    region
                    | {"row_name": row_name, "column_name": says[side][side != own]}
                    | {"chooses": [None, control], "sets": dict(others_set), "first": [0, number]}
                    | {"share": True}
                    | (between if side != own else {})
                )
        return regions


def _laid_out(written, texts, sizes, size, room) -> tuple[list[tuple[float, int]], int]:
    """Return where each text begins, in points, with the number of its line; and how many lines there are."""
    places, x, line = [], 0.0, 0
    for one, text, own in zip(written, texts, sizes, strict=True):
        gap = (_SPACE if one.startswith(" ") else _GLUE) * size if x else 0.0
        across = width(text, own)
        if x and x + gap + across > room:
            x, gap, line = 0.0, 0.0, line + 1
        places.append((x + gap, line))
        x += gap + across
    return places, line + 1
