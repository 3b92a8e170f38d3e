"""Numbers as a map in colours, with the names of its rows and columns at the sides."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.transforms import IdentityTransform
from numpy.typing import ArrayLike

from course_lib.plots.panel import Panel, short
from course_lib.plots.style import COLOURS, blank, whole_ticks
from course_lib.plots.tokens import TokenLabels, labels, numbered, pooled
from course_lib.plots.words import Words, fitted

#: Blue below zero, white at zero, orange above.
SIGNED = LinearSegmentedColormap.from_list(
    "signed", [COLOURS["main"], "#ffffff", COLOURS["second"]]
)
_SIZE = 9  # points of the texts in cells
_MOST_PIXELS = 360
_MOST_SENT = 4096  # numbers that are sent to the browser again when only the frame moves
_FEW_CELLS, _FEW_COLUMNS = 36, 12  # up to so many, cells have their number printed
_SHARES = ("weight", "probability")  # numbers that are read as shares of 1
_TICKS = 6  # named, of rows or columns that are only counted
_DARK = 0.179  # relative luminance below which white has more contrast than black
_BAR = 1.02, 1.055  # left and right of the colour bar, beside a map from 0 to 1


class MapPanel(Panel):
    """A map whose numbers, rows and columns may change; a cell, a row or a column is framed. NaN is white.

    Args:
        axes: where to draw.
        name: what the numbers are.
        scale: of the colours, from 0 to the largest number: "linear", or "root" (the square root, which shows small
            weights); or "signed", from minus the largest, in blue, to plus the largest number, in orange.
        bar: whether there is a colour bar.
        sides: what is blue and what is orange, where both are amounts, and not numbers below and above zero.
        text: what the texts of the cells are, if they are to be read under the pointer too.
        space: for the names of the rows, of the columns, and for the colour bar, as shares of the map.
        chooses, sets: see `Panel`. A click on the name of a row or a column chooses it, too.
        column_sets: the control that the name of a column sets to its number, and others, name → value.
        row_name, column_name: what a row and a column are, for tokens at the sides; under the pointer, these have their
            position, and a map of few cells has its numbers in them.
    """

    def __init__(
        self,
        axes: Axes,
        *,
        name: str = "value",
        scale: str = "linear",
        bar: bool = True,
        sides: tuple[str, str] | None = None,
        text: str = "",
        space: tuple[float, float, float] = (0.1, 0.05, 0.2),
        chooses: tuple[str | None, str | None] = (None, None),
        sets: Mapping[str, object] = {},
        column_sets: tuple[str, Mapping[str, object]] | None = None,
        row_name: str = "",
        column_name: str = "",
    ) -> None:
        super().__init__(axes)
        self.chooses, self.sets, self._column_sets = chooses, sets, column_sets
        self._name, self._scale, self._sides = name, scale, sides
        self._text, self._row_name, self._column_name = text, row_name, column_name
        self.values, self.cell = np.zeros((1, 1)), None
        left, below, right = self._space = space
        blank(axes, (-left, 1 + (right if bar else 0.01)), (1 + below, -0.005))
        colours = SIGNED if scale == "signed" else colormaps["viridis"]
        self._colours = colours.with_extremes(bad="white")
        self._image = Cells(axes, (0, 1, 1, 0))
        self._row_names = TokenLabels(axes, -0.015, across=False)
        self._column_names = TokenLabels(axes, 1.013, across=True)
        self._words = Words(axes)
        edge = COLOURS["ink" if scale == "signed" else "second"]
        self._frame = axes.add_patch(Rectangle((0, 0), 1, 1, fill=False, edgecolor=edge, lw=2))
        self.artists = [self._image, self._words, self._row_names, self._column_names]
        self.artists += [self._frame]
        self._levels = self._draw_bar("" if scale == "signed" else name) if bar else []

    def _draw_bar(self, label: str) -> list[Text]:
        """Draw the colour bar, which goes with the map; return the texts at its lower end, middle and upper end."""
        left, right = _BAR
        edges, steps = np.linspace(1, 0, 65), np.linspace(0, 1, 64)
        strip = self.axes.pcolormesh([left, right], edges, steps[:, None], cmap=self._colours)
        name = self.axes.text(left, 1.015, label, va="top", fontsize=9)
        places = (1, "bottom"), (0.5, "center"), (0, "top")
        levels = [self.axes.text(right + 0.012, y, "", va=va, fontsize=9) for y, va in places]
        self.artists += [strip, name, *levels]
        return levels

    def update(
        self,
        values: ArrayLike,
        rows: Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
        *,
        cell: tuple[int | None, int | None] | None = None,
        largest: float = 1.0,
        texts: Sequence[Sequence[str]] | None = None,
        numbers: Sequence[Sequence[int]] | None = None,
        first: tuple[int, int] = (0, 0),
    ) -> None:
        """Show other numbers, shape (row, column).

        Args:
            values: at most `largest`.
            rows, columns: their names; numbers where left out.
            cell: the row and the column to frame; None for all of them.
            largest: has the last colour.
            texts: of the cells, row by row, cut to the width of a cell; none where left out.
            numbers: of the tokens that the texts stand for, written where two different ones would look alike.
            first: the numbers of the first row and column, where they are a part of a longer table.
        """
        self.values = values = np.asarray(values, dtype=float)
        self.rows, self.columns = list(rows or []), list(columns or [])
        self.cell, self.first = cell, first
        few = values.size <= _FEW_CELLS and values.shape[1] <= _FEW_COLUMNS
        if texts is None and self._row_name and few:
            texts = numbers_of(values)
        self.texts = [list(line) for line in texts or []]
        self._numbers = [one for line in numbers or [] for one in line]
        shares = values / largest
        if self._scale == "signed":
            shares = (shares + 1) / 2
        else:
            shares = pooled(np.sqrt(shares) if self._scale == "root" else shares, _MOST_PIXELS)
        colours = self._colours(shares, bytes=True)
        self._image.set_data(colours)
        self._row_names.update(self.rows or _ticks(len(values)))
        self._column_names.update(self.columns or _ticks(values.shape[1]))
        self._write(colours)
        frame = zip(cell or (None, None), values.shape, strict=True)
        (y, height), (x, width) = ((0, 1) if at is None else (at / n, 1 / n) for at, n in frame)
        self._frame.set(x=x, y=y, width=width, height=height, visible=(width, height) != (1, 1))
        middle = {"root": largest / 4, "linear": largest / 2, "signed": 0}[self._scale]
        low = 0 if self._scale != "signed" else largest if self._sides else -largest
        for text, number in zip(self._levels, (low, middle, largest), strict=False):
            text.set_text(short(float(f"{number:.2g}")))

    def _write(self, colours: np.ndarray) -> None:
        """Write the texts into cells of these colours, in black or white."""
        if not self.texts:
            return self._words.show([], [])
        rows, columns = self.values.shape
        (left, _), (right, _) = self.axes.transData.transform([(0, 0), (1, 0)])
        room = 0.92 * (right - left) / columns * 72 / self.axes.figure.dpi  # points
        levels = colours[..., :3].reshape(-1, 3) / 255
        linear = np.where(levels <= 0.04045, levels / 12.92, ((levels + 0.055) / 1.055) ** 2.4)
        dark = linear @ (0.2126, 0.7152, 0.0722) < _DARK  # WCAG 2
        texts = [text for line in self.texts for text in line]
        if self._numbers:
            words = labels(texts, _SIZE, room, numbers=self._numbers)
        else:
            words = [fitted(text, _SIZE, room) for text in texts]
        self._words.show(
            words,
            [((c + 0.5) / columns, (r + 0.5) / rows) for r, c in np.ndindex(rows, columns)],
            size=_SIZE,
            colour=np.where(dark, "white", "black").tolist(),
        )

    def data(self) -> dict:
        """The numbers, and the number of the framed row and column."""
        shown = {self._name: self.values}
        if self._sides:
            below = self.values < 0
            shown = dict(zip(self._sides, (-self.values[below], self.values[~below]), strict=True))
        names = zip(("row", "column"), self.cell or (), strict=False)
        return shown | {name: [number] for name, number in names if number is not None}

    def hover(self) -> list[dict]:
        """The exact number in each cell, and its text, not cut."""
        if not self.axes.get_visible():
            return []
        texts, values, more = self.texts, self.values, {}
        if self._sides:
            texts, values = np.where(values < 0, *self._sides).tolist(), np.abs(values)
        rows = self.rows or list(map(str, range(len(values))))
        columns = self.columns or list(map(str, range(values.shape[1])))
        if self._row_name:
            rows, columns = numbered(rows, self._row_name), numbered(columns)
            more = {"row_name": self._row_name, "column_name": self._column_name}
        if any(self.chooses):
            left, below, _ = self._space
            outer = self._box(-left, 0, 1, 1 + below, self.axes.transData)
            more |= {"first": list(self.first), "labels": [outer[0], outer[3]]}
        if self._column_sets:
            more["column_sets"] = [self._column_sets[0], dict(self._column_sets[1])]
        if self._name in _SHARES:
            more["share"] = True
        if self._text:
            more |= {"text": self._text, "texts": texts}
        if self.cell and values.size <= _MOST_SENT:  # where arrow keys begin
            row, column = self.cell
            most = int(np.nanargmax(values[row or 0])) if column is None else column
            more["at"] = [row or 0, most]
        return [
            self._hover_grid(
                values, self._box(0, 0, 1, 1, self.axes.transData), rows, columns, **more
            )
        ]


def attention_map(
    axes: Axes, chooses: str | None = None, *, row_name: str = "query", **options
) -> MapPanel:
    """Return a map of attention weights with tokens at its sides, on a square-root scale.

    Args:
        axes: where to draw.
        chooses: the control that a click on a row sets to its number.
        row_name: what a row is.
        options: further arguments of `MapPanel`.
    """
    return MapPanel(
        axes, name="weight", scale="root", space=(0.24, 0.26, 0.16),
        chooses=(chooses, None), row_name=row_name, column_name="key", **options,
    )  # fmt: skip


def numbers_of(values: ArrayLike) -> list[list[str]]:
    """Write the numbers of a map's cells, with two digits; nothing for NaN."""
    return [["" if np.isnan(one) else f"{one:.2f}" for one in line] for line in np.asarray(values)]


class Cells(AxesImage):
    """Coloured cells, row 0 at the top; `set_data` takes their colours in bytes.

    A colour is repeated for the pixels of its cell: matplotlib's own resampling makes a step 1.6 times as long.

    Args:
        axes: where to draw.
        extent: left, right, bottom, top in data coordinates.
    """

    def __init__(self, axes: Axes, extent: tuple[float, float, float, float]) -> None:
        super().__init__(axes, extent=extent, origin="upper")
        self.set_data(np.full((1, 1, 4), 255, np.uint8))
        axes.add_image(self)

    def make_image(self, renderer, magnification=1.0, unsampled=False):
        """Return what matplotlib needs: pixels from the bottom up, and their position."""
        edges = self.get_window_extent(renderer).extents * magnification
        (left, bottom, right, top), colours = map(round, edges), self.get_array()
        for axis, pixels in enumerate((top - bottom, right - left)):
            cells = (np.arange(pixels) + 0.5) * colours.shape[axis] / pixels
            colours = colours.take(cells.astype(int), axis=axis)
        return colours[::-1], left / magnification, bottom / magnification, IdentityTransform()


def _ticks(count: int) -> list[str]:
    """Return the numbers of a few rows or columns, and nothing for the others."""
    shown = whole_ticks(_TICKS).tick_values(0, count - 1)
    return [str(number) if number in shown else "" for number in range(count)]
