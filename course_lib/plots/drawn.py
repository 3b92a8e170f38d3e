"""A figure that does not move: its data are read from what was drawn."""

from collections.abc import Iterator

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection, QuadMesh
from matplotlib.colors import to_hex
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D

from course_lib.plots.panel import Panel, rounded


def drawn_panels(figure: Figure) -> list["DrawnPanel"]:
    """Return a panel for each Axes that has axes lines and is no colour bar."""
    return [
        DrawnPanel(axes) for axes in figure.axes if axes.axison and axes.get_label() != "<colorbar>"
    ]


class DrawnPanel(Panel):
    """One Axes that seaborn or matplotlib drew on. Its data are those of the artists on it.

    Args:
        axes: with everything already drawn.
    """

    def data(self) -> dict[str, np.ndarray]:
        """The numbers of the maps, lines, points, bars and intervals; artists of one name are joined."""
        found: dict[str, list] = {}
        for artists in (self._maps, self._lines, self._points, self._intervals, self._bars):
            for name, numbers in artists():
                found.setdefault(name, []).append(np.ma.filled(np.ma.asarray(numbers), np.nan))
        return {
            name: np.concatenate([np.ravel(some) for some in each]) for name, each in found.items()
        }

    def hover(self) -> list[dict]:
        """The exact value of each cell of a map; or of every line at the x nearest to the pointer."""
        for values in self._cells():
            names = []
            for which, count in zip("yx", values.shape, strict=True):
                ticks = getattr(self.axes, f"get_{which}ticklabels")()
                said = [tick.get_text() for tick in ticks]
                names.append(said if len(said) == count else list(map(str, range(count))))
            return [self._hover_grid(values, self._box(), *names)]
        lines = [line for line in self._visible_lines() if all(_in_data(line, self.axes))]
        if not lines or self._bar_containers():
            return []
        x = max((line.get_xdata() for line in lines), key=len)
        curves = {
            self._name(line, line.get_color(), f"line {number}"): line.get_ydata()
            for number, line in enumerate(lines)
            if np.array_equal(line.get_xdata(), x)
        }
        marked = [points.get_offsets().T for points in self._of(PathCollection)][:1]
        more = {"points": [rounded(column) for column in marked[0]]} if marked else {}
        return [self._hover_lines(x, curves, **more)]

    def _maps(self) -> Iterator[tuple]:
        for values in self._cells():
            least = np.where(np.isnan(values), -np.inf, values).round(4)
            row, column = np.unravel_index(least.argmax(), least.shape)  # ignores rounding errors
            yield from (("value", values), ("largest in row", row), ("largest in column", column))

    def _cells(self) -> Iterator[np.ndarray]:
        for image in [*self._of(QuadMesh), *self.axes.get_images()]:
            numbers = np.ma.asarray(image.get_array(), dtype=float)
            if numbers.ndim == 2 and isinstance(image, QuadMesh | AxesImage):
                yield numbers.filled(np.nan)

    def _lines(self) -> Iterator[tuple]:
        lines = self._visible_lines()
        whole = [line for line in lines if all(_in_data(line, self.axes))]
        shared = len({line.get_xdata().tobytes() for line in whole})
        for number, line in enumerate(lines):
            in_x, in_y = _in_data(line, self.axes)
            unnamed = "interval" if self._bar_containers() else "line"
            name = self._name(line, line.get_color() if in_x and in_y else None, unnamed)
            if in_x and (number == 0 or shared > 1 or not in_y):
                x = self.axes.get_xlabel() or "x"
                yield x if shared == 1 and in_y else f"{name} at", line.get_xdata()
            if in_y:
                yield name, line.get_ydata()

    def _points(self) -> Iterator[tuple]:
        for points in self._of(PathCollection):
            name = self._name(points, None, "points")
            x, y = points.get_offsets().T
            yield from ((f"{name} at", x), (name, y))

    def _intervals(self) -> Iterator[tuple]:
        for lines in self._of(LineCollection):
            drawn = [segment[[0, -1], 1] for segment in lines.get_segments() if len(segment)]
            if len(ends := np.array(drawn)):
                name = self._name(lines, lines.get_color()[0], "interval")
                yield from ((f"{name} lowest", ends.min(1)), (f"{name} highest", ends.max(1)))

    def _bars(self) -> Iterator[tuple]:
        for bars in self._bar_containers():
            across = bars.orientation == "horizontal"
            label = self.axes.get_xlabel() if across else self.axes.get_ylabel()
            name = self._name(bars, bars[0].get_facecolor(), label or "value")
            yield name, [bar.get_width() if across else bar.get_height() for bar in bars]

    def _bar_containers(self) -> list[BarContainer]:
        return [some for some in self.axes.containers if isinstance(some, BarContainer) and some]

    def _visible_lines(self) -> list[Line2D]:
        return [
            line
            for line in self.axes.get_lines()
            if line.get_visible()
            and np.isfinite(np.asarray(line.get_ydata(), dtype=float)).any()
            and (line.get_linestyle() != "None" or line.get_marker() not in ("None", "", None))
        ]

    def _of(self, kind: type) -> list:
        drawn = [artist for artist in self.axes.collections if artist.get_visible()]
        return [artist for artist in drawn if isinstance(artist, kind)]

    def _name(self, artist, colour, otherwise: str) -> str:
        """The artist's label; without one, the label in the legend of the same colour, if there is a colour."""
        label = str(artist.get_label() or "_")
        if not label.startswith("_"):
            return label
        if colour is None:
            return otherwise
        legends = [self.axes.get_legend(), *self.axes.figure.legends]
        for legend in filter(None, legends):
            for handle, text in zip(legend.legend_handles, legend.get_texts(), strict=True):
                shade = getattr(handle, "get_color", getattr(handle, "get_facecolor", None))
                if shade is not None and to_hex(_first(shade())) == to_hex(_first(colour)):
                    return text.get_text()
        return otherwise


def _in_data(line: Line2D, axes: Axes) -> tuple[bool, bool]:
    """Whether its x and its y are in data coordinates; those of `axhline` and `axvline` are only half."""
    return line.get_transform().contains_branch_seperately(axes.transData)


def _first(colour):
    """A colour, also where an artist returns an array of colours."""
    return colour if isinstance(colour, str) else np.atleast_2d(colour)[0]
