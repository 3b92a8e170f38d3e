"""Named curves over one x axis."""

import math
from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from course_lib.plots.panel import Panel
from course_lib.plots.style import COLOURS

_STYLES = ("-", "--", "-.", ":")  # never colour alone
_FEW = 8  # points that can each have their name on the axis


class LinesPanel(Panel):
    """Curves that can be moved by name, and a marker that can be put anywhere.

    Args:
        axes: where to draw.
        x: shared by all curves, shape (points,).
        lines: name → y, shape (points,); the first four differ in colour and in dash.
        x_label, y_label, title: words on the Axes.
        log_x, log_y: logarithmic axes.
        y_limits: fixed limits of the y axis; chosen from the data where left out.
    """

    def __init__(
        self,
        axes: Axes,
        x: ArrayLike,
        lines: Mapping[str, ArrayLike],
        *,
        x_label: str = "",
        y_label: str = "",
        title: str = "",
        log_x: bool = False,
        log_y: bool = False,
        y_limits: tuple[float, float] | None = None,
    ) -> None:
        super().__init__(axes)
        self.x, self.lines = x, dict(lines)
        colours = [COLOURS[name] for name in ("main", "second", "third", "truth")]
        self._drawn = {
            name: axes.plot(x, y, _STYLES[i % 4], color=colours[(i + i // 4) % 4], label=name)[0]
            for i, (name, y) in enumerate(lines.items())
        }
        (self._marker,) = axes.plot([], [], "o", color=COLOURS["second"], markersize=8, zorder=5)
        axes.set(xlabel=x_label, ylabel=y_label, title=title)
        if log_x:
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(_tick)
            axes.xaxis.set_minor_formatter("")
        if len(x) <= _FEW:
            axes.set_xticks(x, [f"{point:g}" for point in x])
        if log_y:
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(_tick)
            axes.yaxis.set_minor_formatter("")
        if y_limits is not None:
            axes.set_ylim(*y_limits)
        if len(lines) > 1:
            axes.legend()
        self.artists = [*self._drawn.values(), self._marker]

    def update(
        self,
        marker: tuple[ArrayLike, ArrayLike] | None = None,
        emphasise: str | None = None,
        **lines,
    ) -> None:
        """Move the named curves; put the marker, or several of them; draw the `emphasise`d curve thick and the others faint."""
        for name, y in lines.items():
            self.lines[name] = y
            self._drawn[name].set_ydata(y)
        if emphasise is not None:
            for name, line in self._drawn.items():
                line.set(
                    linewidth=2.4 if name == emphasise else 1, alpha=1 if name == emphasise else 0.4
                )
        self._marker.set_data(*map(np.atleast_1d, marker) if marker else ([], []))

    def data(self) -> dict:
        """The curves, and the marker where there is one."""
        x, y = self._marker.get_data()
        return self.lines | ({"marker at": x, "height": y} if len(x) else {})

    def hover(self) -> dict:
        """Every curve's value at the x nearest to the pointer."""
        return self._hover_lines(self.x, self.lines, self.axes.get_xlabel())


def _tick(number: float, _: int) -> str:
    """0.01, 10, 1000; 10⁻⁴ and 2·10⁻⁷ where the zeros would have to be counted."""
    if number >= 0.001:
        return f"{number:g}"
    exponent = math.floor(math.log10(number) + 1e-9)
    factor = f"{number / 10**exponent:g}"
    power = "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return power if factor == "1" else f"{factor}·{power}"
