"""A sentence in large type below its source, whose words are lit by the attention weights of one of its words."""

from collections.abc import Sequence

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
_NUMBERS, _SOURCE, _TARGET = 0.04, 0.22, 0.79  # heights of the lines, from the top
_SOURCE_SIZES = range(15, 7, -1)  # points: the largest that leaves the source on one line
_TARGET_SIZES = (24, 21, 19, 17, 15, 14, 13, 12, 11, 10, 9)
_TWO_LINES = 14  # points: a smaller target may have two lines
_SPACE, _GLUE = 0.45, 0.05  # between words, and between parts of a word, per size
_HALF = 0.66  # half the height of a box around a word, per size
_BRIGHTEST = 0.75  # opacity of a box: its word can still be read
_LEAST = 0.05  # a smaller weight has no number


class SentencePairPanel(Panel):
    """Two sentences, one below the other. A word of the lower one is framed; the boxes behind the words of the upper
    one, and the lines to them, are its attention weights.

    Args:
        axes: where to draw.
        chooses: the control that a click on a word of the lower sentence sets to its position.
    """

    def __init__(self, axes: Axes, chooses: str) -> None:
        super().__init__(axes)
        self._sets = chooses
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
        row: int,
        written: Sequence[str],
        faint: Sequence[bool],
    ) -> None:
        """Show other sentences and weights, shape (query, key), from 0 to 1; frame one word.

        Args:
            weights, queries, keys: the attention map; `queries` are the words of the lower sentence.
            row: which query is framed.
            written: what stands for each query, with a space in front where a word begins.
            faint: for each query whether it is small and grey, as a token that is no word.
        """
        self.weights, self.queries, self.keys = np.asarray(weights), list(queries), list(keys)
        self.row = row
        sources, large = [f" {key}" for key in self.keys], [False] * len(self.keys)
        self._sources = self._write(self._source, sources, _SOURCE, _SOURCE_SIZES, large)
        self._targets = self._write(self._target, written, _TARGET, _TARGET_SIZES, faint, row)
        self._light(self.weights[row])

    def _write(self, words, written, height, sizes, faint, chosen=None) -> list[list[float]]:
        """Write the words in the largest size that fits; return left, top, right, bottom of each."""
        box = self.axes.get_window_extent()
        across, down = (side * 72 / self.axes.figure.dpi for side in (box.width, box.height))
        texts = labels([one.strip() for one in written], sizes[0])
        for size in sizes:
            each = [0.6 * size if one else size for one in faint]
            places, lines = _laid_out(written, texts, each, size, (1 - 2 * _LEFT) * across)
            if lines <= (2 if size < _TWO_LINES and chosen is not None else 1):
                break
        step = 2 * _HALF * size / down
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

    def _light(self, weights: np.ndarray) -> None:
        """Light the source by these weights, shape (key,), and draw lines to it from the framed word."""
        left, top, right, bottom = self._targets[self.row]
        pad = 0.01
        self._frame.set(x=left - pad, y=top, width=right - left + 2 * pad, height=bottom - top)
        colours = np.tile([*to_rgb(COLOURS["second"]), 0.0], (len(weights), 1))
        colours[:, 3] = _BRIGHTEST * np.sqrt(np.clip(weights, 0, 1))
        corners, segments = [], []
        for x, y, end, low in self._sources:
            sides = x - pad, end + pad
            corners.append([(sides[0], y), (sides[1], y), (sides[1], low), (sides[0], low)])
            segments.append([((left + right) / 2, top), ((x + end) / 2, low)])
        self._lights.set_verts(corners)
        self._lights.set_facecolor(colours)
        self._lines.set_segments(segments)
        self._lines.set_linewidths(0.4 + 4.6 * weights)
        self._lines.set_colors(colours * np.where(weights > 0.01, 1, 0)[:, None])
        named = [key for key, weight in enumerate(weights) if weight >= _LEAST]
        middles = [(x + end) / 2 for x, _, end, _ in self._sources]
        self._numbers.show(
            [f"{weights[key]:.2f}" for key in named], [(middles[key], _NUMBERS) for key in named]
        )

    def data(self) -> dict:
        """The weights of the framed word, and its position."""
        return {"weight": self.weights[self.row], "word": [self.row]}

    def hover(self) -> list[dict]:
        """For each word of the lower sentence its largest weight, for each of the upper one its weight."""
        queries, keys = numbered(self.queries), numbered(self.keys)
        regions, names = [], {"row_name": "query", "column_name": "attends most to key"}
        for number, (box, weights) in enumerate(zip(self._targets, self.weights, strict=True)):
            most, place = int(weights.argmax()), self._box(*box, self.axes.transData)
            region = self._hover_grid([[weights[most]]], place, [queries[number]], [keys[most]])
            regions.append(region | names | {"chooses": [None, self._sets], "first": [0, number]})
        names["column_name"] = "key"
        for box, weight, key in zip(self._sources, self.weights[self.row], keys, strict=True):
            place = self._box(*box, self.axes.transData)
            regions.append(self._hover_grid([[weight]], place, [queries[self.row]], [key], **names))
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
