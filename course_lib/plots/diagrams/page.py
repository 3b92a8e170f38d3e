"""The page a diagram is drawn on. Coordinates are in inches from the top left."""

from collections import namedtuple

import numpy as np
from matplotlib.colors import to_rgba
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch, Rectangle
from matplotlib.path import Path

from course_lib.plots.style import COLOURS, figure

LINE = 0.18  # distance between lines of text


class Box(namedtuple("Box", "x y width height")):
    """The centre and the size of a drawn element. Arrows start and end at the middle of a side."""

    left = property(lambda self: (self.x - self.width / 2, self.y))
    right = property(lambda self: (self.x + self.width / 2, self.y))
    top = property(lambda self: (self.x, self.y - self.height / 2))
    bottom = property(lambda self: (self.x, self.y + self.height / 2))


class Page:
    """An empty page, and what can be drawn on it."""

    def __init__(self, width: float, height: float) -> None:
        self.figure, self.axes = figure(width, height)
        self.figure.set_layout_engine("none")
        self.axes.set(position=(0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
        self.axes.set_axis_off()

    def matrix(self, x, y, tints, colours, cell=0.15, gap=0.0, rules=(), row=None, column=None):
        """Draw cells as dark as `tints` and return their bounding box; the colours split the columns evenly.

        `gap` separates two colours, `rules` are the colours of the row axis and the column axis, and the
        cells of one `row` and one `column` are outlined.
        """
        each = tints.shape[1] // len(colours)
        height, width = cell * np.array(tints.shape) + (0, gap * (len(colours) - 1))
        left, top = x - width / 2, y - height / 2
        for (i, j), dark in np.ndenumerate(tints):
            colour = COLOURS[colours[j // each]]
            style = {"fc": to_rgba(colour, dark), "ec": to_rgba(colour, 0.7), "lw": 0.6}
            corner = left + j * cell + j // each * gap, top + i * cell
            self.axes.add_patch(Rectangle(corner, cell, cell, **style))
        outline = {"fill": False, "ec": COLOURS["ink"], "lw": 1.8}
        if row is not None:
            self.axes.add_patch(Rectangle((left, top + row * cell), width, cell, **outline))
        if column is not None:
            self.axes.add_patch(Rectangle((left + column * cell, top), cell, height, **outline))
        if rules:
            self.rule((left - 0.06, top), (left - 0.06, top + height), rules[0])
            self.rule((left, top - 0.06), (left + width, top - 0.06), rules[1])
        around = 0.2 if rules else 0.08
        return Box(x, y, width + around, height + around)

    def source(self, y: float, name: str, shape: str, length: int, colour: str) -> Box:
        """Draw an input at the left edge, with its name and shape before it."""
        self.words(1.05, y - LINE / 2, name, shape)
        return self.matrix(2.25, y, np.full((length, 4), 0.35), [colour])

    def box(self, x, y, name, note="", colour="ink", width=1.75, height=0.45) -> Box:
        """Draw a rounded box around a name and a note."""
        box = self.frame(x, y, width, height, to_rgba(COLOURS[colour], 0.12), COLOURS[colour])
        lines = note.count("\n") + 1 if note else 0
        self.words(x, y - lines * LINE / 2, name, note)
        return box

    def frame(self, x, y, width, height, fill="none", edge=COLOURS["data"], line="-") -> Box:
        """Draw a rounded frame."""
        box = Box(x, y, width, height)
        corner, rounded = (box.left[0], box.top[1]), "round,pad=0,rounding_size=0.07"
        style = {"fc": fill, "ec": edge, "lw": 1, "ls": line}
        self.axes.add_patch(FancyBboxPatch(corner, width, height, rounded, **style))
        return box

    def plus(self, x: float, y: float, colour: str) -> Box:
        """Draw a plus sign in a circle."""
        box = Box(x, y, 0.24, 0.24)
        self.axes.add_patch(Circle((x, y), 0.12, fc=COLOURS[colour], lw=0))
        for dx, dy in ((0.065, 0), (0, 0.065)):
            self.axes.plot([x - dx, x + dx], [y - dy, y + dy], color="white", lw=1.8)
        return box

    def words(self, x: float, y: float, name: str, note: str = "", ha: str = "center") -> None:
        """Write a name in bold, and a note below it in small grey letters."""
        self.axes.text(x, y, name, ha=ha, va="center", fontweight="bold")
        self.note(x, y + LINE / 2, note, ha=ha, va="top")

    def note(self, x: float, y: float, note: str, ha="center", va="center") -> None:
        """Write small grey text."""
        self.axes.text(x, y, note, ha=ha, va=va, fontsize=9, color=COLOURS["truth"])

    def code(self, x: float, y: float, code: str) -> None:
        """Write monospaced text."""
        self.axes.text(x, y, code, va="center", family="DejaVu Sans Mono")

    def rule(self, start: tuple, end: tuple, colour: str, width: float = 3) -> None:
        """Draw a line."""
        x, y = zip(start, end, strict=True)
        self.axes.plot(x, y, color=COLOURS[colour], lw=width, solid_capstyle="butt")

    def arrow(self, *points, colour="ink", step="", shape="", thick=False, line="-") -> None:
        """Draw an arrow through points, with a step above its middle and a shape below it or to its left."""
        style = {"mutation_scale": 13 if thick else 9, "lw": 3 if thick else 1.2}
        style |= {"arrowstyle": "-|>", "color": COLOURS[colour], "ls": line}
        self.axes.add_patch(FancyArrowPatch(path=Path(points), shrinkA=0, shrinkB=0, **style))
        x, y = np.mean([points[0], points[-1]], axis=0)
        if points[0][0] == points[-1][0]:
            self.note(x - 0.08, y, shape, ha="right")
        else:
            self.note(x, y - 0.05, step, va="bottom")
            self.note(x, y + 0.05, shape, va="top")


def tint(matrix: np.ndarray) -> np.ndarray:
    """Scale numbers to tints from 0.1 (smallest) to 0.9 (largest); minus infinity becomes 0."""
    low, high = matrix[np.isfinite(matrix)].min(), matrix.max()
    return np.where(np.isfinite(matrix), 0.1 + 0.8 * (matrix - low) / (high - low), 0)


def softmax(scores: np.ndarray) -> np.ndarray:
    """Return the softmax of each row."""
    powers = np.exp(scores)
    return powers / powers.sum(axis=-1, keepdims=True)
