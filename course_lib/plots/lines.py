"""Named curves over one x axis."""

from collections.abc import Hashable, Mapping

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from course_lib.plots.panel import Panel, rounded, short
from course_lib.plots.style import COLOURS, name_points, plain_log
from course_lib.plots.tick_numbers import TickNumbers, whole_ticks
from course_lib.plots.words import Words

_STYLES = ("-", "--", "-.", ":")  # never colour alone


class LinesPanel(Panel):
    """Curves that can be updated by name, and a marker; beyond the limits it is an arrow at the edge, with its height.

    Args:
        axes: where to draw.
        x: shared by all curves, shape (points,).
        lines: name → y, shape (points,); the first four differ in colour and in dash.
        x_label, y_label, title: labels.
        log_x, log_y: logarithmic axes.
        y_limits: fixed limits of the y axis; chosen from the data where left out.
        unit: what 1 on the x axis stands for, where that may change; `update` takes another one, and the labels
            of the axis, whole numbers, the marker and the values under the pointer follow it.
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
        unit: float | None = None,
    ) -> None:
        super().__init__(axes)
        self._unit = unit or 1.0
        self.x, self.lines = x, dict(lines)
        colours = [COLOURS[name] for name in ("main", "second", "third", "truth")]
        self._curves = {
            name: axes.plot(x, y, _STYLES[i % 4], color=colours[(i + i // 4) % 4], label=name)[0]
            for i, (name, y) in enumerate(lines.items())
        }
        (self._marker,) = axes.plot([], [], "o", color=COLOURS["second"], markersize=8, zorder=5)
        axes.set(xlabel=x_label, ylabel=y_label, title=title)
        for which, is_log in (("x", log_x), ("y", log_y)):
            if is_log:
                plain_log(axes, which)
        name_points(axes, np.asarray(x))
        if y_limits is not None:
            axes.set_ylim(*y_limits)
        if len(lines) > 1:
            axes.legend()
        # beyond the limits: at the edge, an arrow in the direction of the marker, with its height
        self._marked: tuple[np.ndarray, np.ndarray] = (np.array([]), np.array([]))
        self._beyond = [
            axes.plot(
                [],
                [],
                arrow,
                color=COLOURS["second"],
                markersize=9,
                zorder=5,
                transform=axes.transAxes,
            )[0]
            for arrow in "^v<>"
        ]
        self._heights = Words(axes, axes.transAxes)
        for one in (*self._beyond, self._heights):
            one.set_in_layout(False)
        self.artists = [*self._curves.values(), self._marker, *self._beyond, self._heights]
        if unit is not None:
            self._ticks = TickNumbers(axes)
            self._ticks.update(_within(x, unit), unit=unit)
            self.static_artists = [self._ticks]

    def static_state(self) -> Hashable:
        """What 1 on the x axis stands for, which its labels say."""
        return self._unit

    def update(
        self,
        marker: tuple[ArrayLike, ArrayLike] | None = None,
        emphasise: str | None = None,
        unit: float | None = None,
        **lines,
    ) -> None:
        """Update the named curves; place one or several markers; draw the `emphasise`d curve thick, the others faint."""
        if unit is not None:
            self._unit = unit
            self._ticks.update(_within(self.x, unit), unit=unit)
        for name, y in lines.items():
            self.lines[name] = y
            self._curves[name].set_ydata(y)
        if emphasise is not None:
            for name, line in self._curves.items():
                line.set(
                    linewidth=2.4 if name == emphasise else 1, alpha=1 if name == emphasise else 0.4
                )
        self._mark(*map(np.atleast_1d, marker or ([], [])))

    def _mark(self, x: np.ndarray, y: np.ndarray) -> None:
        """Place the markers; pin those beyond the limits to the edge."""
        self._marked = x, y
        (left, right), (bottom, top) = self.axes.get_xlim(), self.axes.get_ylim()
        tests = (y > top, y < bottom, x < left, x > right)
        which = np.select(tests, range(4), default=4)  # for each marker
        at = np.clip(x, left, right), np.clip(y, bottom, top)
        self._marker.set_data(at[0][which == 4], at[1][which == 4])
        across, up = self._shares(*at)
        across, up = np.clip(across, 0.02, 0.98), np.clip(up, 0.03, 0.97)
        for number, arrows in enumerate(self._beyond):
            arrows.set_data(across[which == number], up[which == number])
        named = [n for n in range(len(x)) if which[n] < 2]
        self._heights.show(
            [short(y[n]) for n in named],
            [(across[n], up[n] + (-0.07 if which[n] == 0 else 0.07)) for n in named],
            colour=COLOURS["second"],
        )

    def _shares(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return points as shares of the width and the height of the axes."""
        if not len(x):
            return x, y
        points = self.axes.transData.transform(np.column_stack([x, y]))
        return tuple(self.axes.transAxes.inverted().transform(points).T)

    def data(self) -> dict:
        """The curves, and the marker where there is one."""
        x, y = self._marked
        marker = {"marker at": np.asarray(x) * self._unit, "height": y}
        return self.lines | (marker if len(x) else {})

    def hover(self) -> dict:
        """Every curve's value at the x nearest to the pointer."""
        shown = self._hover_lines(self.x, self.lines, self.axes.get_xlabel())
        if self._unit != 1:
            shown["x"] = rounded(np.asarray(self.x) * self._unit)
            shown["limits"] = [limit * self._unit for limit in shown["limits"]]
        return shown


def _within(x: ArrayLike, unit: float) -> list[float]:
    """Return whole numbers for an axis on which 1 stands for `unit`."""
    return whole_ticks(unit * float(np.min(x)), unit * float(np.max(x)))
