"""Numbers as a map in colours, with the names of its rows and columns at the sides."""

from collections.abc import Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike

from course_lib.plots.cells import Cells
from course_lib.plots.colour_bar import ColourBar
from course_lib.plots.panel import Panel
from course_lib.plots.style import COLOURS, blank
from course_lib.plots.tick_numbers import whole_ticks
from course_lib.plots.tokens import TokenLabels, numbered, pooled
from course_lib.plots.words import Words, width

#: Blue below zero, white at zero, orange above.
SIGNED = LinearSegmentedColormap.from_list(
    "signed", [COLOURS["main"], "#ffffff", COLOURS["second"]]
)
_SIZE = 9  # points of the texts in cells
_MOST_PIXELS = 360
_MOST_SENT = 4096  # numbers that are sent to the browser again when only the frame moves
_FEW_CELLS, _FEW_COLUMNS = 36, 12  # up to so many, cells have their number printed
_TICKS = 6  # named, of rows or columns that are only counted
_DARK = 0.179  # relative luminance below which white has more contrast than black


class MapPanel(Panel):
    """A map whose numbers, rows and columns may change; a cell, a row or a column is framed. NaN is white.

    Args:
        axes: where to draw.
        title, x_label, y_label: labels.
        name: what the numbers are.
        scale: of the colours, from 0 to the largest number: "linear", or "root" (the square root, which shows small
            weights); or "signed", from minus the largest, in blue, to plus the largest number, in orange.
        bar: whether there is a colour bar.
        sides: what is blue and what is orange, where both are amounts, and not numbers below and above zero.
        text: what the texts of the cells are, if they are to be read under the pointer too.
        space: for the names of the rows, of the columns, and for the colour bar, as shares of the map.
        chooses: see `Panel`.
        row_name, column_name: what a row and a column are, for tokens at the sides; under the pointer, these have their
            position, and a map of few cells has its numbers in them.
        steady: whether the frame moves more often than the numbers change; these are then kept in the background.
    """

    def __init__(
        self,
        axes: Axes,
        *,
        title: str = "",
        x_label: str = "",
        y_label: str = "",
        name: str = "value",
        scale: str = "linear",
        bar: bool = True,
        sides: tuple[str, str] | None = None,
        text: str = "",
        space: tuple[float, float, float] = (0.1, 0.05, 0.2),
        chooses: tuple[str | None, str | None] = (None, None),
        row_name: str = "",
        column_name: str = "",
        steady: bool = True,
    ) -> None:
        super().__init__(axes)
        self.chooses, self._name, self._scale, self._sides = chooses, name, scale, sides
        self._text, self._row_name, self._column_name = text, row_name, column_name
        self.values, self.rows, self.columns = np.zeros((1, 1)), [""], [""]
        self.cell, self.largest, self.texts, self.first = None, 1.0, [], (0, 0)
        self._version, self._now = 0, None
        left, below, right = space
        blank(axes, (-left, 1 + (right if bar else 0.01)), (1 + below, -0.005), title)
        axes.set(xlabel=x_label, ylabel=y_label)
        colours = SIGNED if scale == "signed" else colormaps["viridis"]
        self._image = Cells(axes, (0, 1, 1, 0), colours)
        self._bar = ColourBar(axes, colours, "" if scale == "signed" else name) if bar else None
        self._row_names = TokenLabels(axes, -0.015, across=False)
        self._column_names = TokenLabels(axes, 1.013, across=True)
        self._words = Words(axes)
        edge = COLOURS["ink" if scale == "signed" else "second"]
        self._frame = Rectangle((0, 0), 1, 1, fill=False, edgecolor=edge, lw=2)
        axes.add_patch(self._frame)
        self.static_artists = [self._row_names, self._column_names]
        self.static_artists += self._bar.artists if self._bar else []
        self.artists = [self._frame]
        cells = self.static_artists if steady else self.artists
        cells[:0] = [self._image, self._words]
        self._steady = steady

    def update(
        self,
        values: ArrayLike,
        rows: Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
        *,
        cell: tuple[int | None, int | None] | None = None,
        largest: float = 1.0,
        texts: Sequence[Sequence[str]] | None = None,
        first: tuple[int, int] = (0, 0),
    ) -> None:
        """Show other numbers, shape (row, column).

        Args:
            values: at most `largest`.
            rows, columns: their names; numbers where left out.
            cell: the row and the column to frame; None for all of them.
            largest: has the last colour.
            texts: of the cells, row by row, cut to the width of a cell; none where left out.
            first: the numbers of the first row and column, where they are a part of a longer table.
        """
        values = np.asarray(values, dtype=float)
        self.cell, self.first = cell, first
        self._move_frame(*(cell or (None, None)), *values.shape)
        few = values.size <= _FEW_CELLS and values.shape[1] <= _FEW_COLUMNS
        if texts is None and self._row_name and few:
            texts = [["" if np.isnan(one) else f"{one:.2f}" for one in line] for line in values]
        now = list(rows or []), list(columns or []), [list(line) for line in texts or []], largest
        if np.array_equal(values, self.values, equal_nan=True) and now == self._now:
            return
        self._version, self._now, self.values = self._version + 1, now, values
        self.rows, self.columns, self.texts, self.largest = now
        shares = self._shares()
        self._image.show(shares if self._scale == "signed" else pooled(shares, _MOST_PIXELS))
        names = (self._row_names, self.rows), (self._column_names, self.columns)
        for (labels, written), count in zip(names, values.shape, strict=True):
            labels.update(written or _ticks(count))
        if self._bar:
            middle = {"root": largest / 4, "linear": largest / 2, "signed": 0}[self._scale]
            low = 0 if self._scale != "signed" else largest if self._sides else -largest
            self._bar.show([low, middle, largest])
        self._write(shares)

    def _move_frame(self, row: int | None, column: int | None, rows: int, columns: int) -> None:
        self._frame.set(
            x=0 if column is None else column / columns,
            width=1 if column is None else 1 / columns,
            y=0 if row is None else row / rows,
            height=1 if row is None else 1 / rows,
            visible=(row, column) != (None, None),
        )

    def _shares(self) -> np.ndarray:
        """Return where each number lies between the first and the last colour; -1 for NaN."""
        shares = self.values / self.largest
        if self._scale == "signed":
            shares = (shares + 1) / 2
        elif self._scale == "root":
            shares = np.sqrt(shares)
        return np.where(np.isnan(shares), -1, shares)

    def _write(self, shares: np.ndarray) -> None:
        """Write the texts into the cells, in black or white."""
        rows, columns = self.values.shape
        (left, _), (right, _) = self.axes.transData.transform([(0, 0), (1, 0)])
        room = 0.92 * (right - left) / columns * 72 / self.axes.figure.dpi  # points
        places = (np.argwhere(np.full((rows, columns), True))[:, ::-1] + 0.5) / (columns, rows)
        dark = self._image.luminance(shares).ravel() < _DARK
        self._words.show(
            [_fitted(text, room) for line in self.texts for text in line],
            places if self.texts else [],
            size=_SIZE,
            colour=np.where(dark, "white", "black").tolist() if self.texts else "black",
        )

    def static_state(self) -> tuple:
        """How often something else than the frame has changed, and whether the map is the visible view."""
        names = tuple(self.rows), tuple(self.columns), self.largest
        return self._version if self._steady else names, self.axes.get_visible()

    def data(self) -> dict:
        """The numbers, and the number of the framed row and column."""
        shown = {self._name: self.values}
        if self._sides:
            below = self.values < 0
            shown = dict(zip(self._sides, (-self.values[below], self.values[~below]), strict=True))
        names = zip(("row", "column"), self.cell or (), strict=False)
        return shown | {name: [number] for name, number in names if number is not None}

    def hover(self) -> dict | None:
        """The exact number in each cell, as float32 bytes, and its text, not cut."""
        if not self.axes.get_visible():
            return None
        texts, values = self.texts, self.values
        if self._sides:
            texts = np.where(values < 0, *self._sides).tolist()
            values = np.abs(values)
        rows, columns = (
            names or list(map(str, range(count)))
            for names, count in zip((self.rows, self.columns), values.shape, strict=True)
        )
        if self._row_name:
            rows, columns = numbered(rows, self._row_name), numbered(columns)
        region = self._hover_grid(values, self._unit_box(), rows, columns)
        if self._row_name:
            region |= {"row_name": self._row_name, "column_name": self._column_name}
        if any(self.chooses):
            region["first"] = list(self.first)
        if self._text:
            region |= {"text": self._text, "texts": texts}
        if self.cell and values.size <= _MOST_SENT:  # where arrow keys begin
            row, column = self.cell
            most = int(np.nanargmax(values[row or 0])) if column is None else column
            region["at"] = [row or 0, most]
        return region


def attention_map(
    axes: Axes, *, title: str, chooses: str | None = None, row_name: str = "query"
) -> MapPanel:
    """Return a map of attention weights with tokens at its sides, on a square-root scale.

    Args:
        axes: where to draw.
        title: above the map.
        chooses: the control that a click on a row sets to its number.
        row_name: what a row is.
    """
    return MapPanel(
        axes, title=title, name="weight", scale="root", space=(0.24, 0.26, 0.16),
        chooses=(chooses, None), row_name=row_name, column_name="key", steady=False,
    )  # fmt: skip


def _ticks(count: int) -> list[str]:
    """Return the numbers of a few rows or columns, and nothing for the others."""
    shown = whole_ticks(0, count - 1, _TICKS)
    return [str(number) if number in shown else "" for number in range(count)]


def _fitted(text: str, room: float) -> str:
    """Cut a text to so many points."""
    kept = text
    while kept and width(text, _SIZE) > room:
        kept = kept[:-1]
        text = f"{kept}…"
    return text
