"""Named curves over one x axis."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from course_lib.plots.panel import Panel, short
from course_lib.plots.style import COLOURS, changing_numbers, look, name_points, plain_log
from course_lib.plots.words import Words


class LinesPanel(Panel):
    """Curves that can be updated by name, and a marker; beyond the limits it is an arrow at the edge, with its height.

    Args:
        axes: where to draw.
        x: shared by all curves, shape (points,).
        lines: name → y, shape (points,); the first four differ in colour and in dash.
        log_x, log_y: logarithmic axes.
        y_limits: fixed limits of the y axis; chosen from the data where left out.
        legend: its place, which must stay when the lines change.
        whole: whether the x axis, whose numbers are whole, follows another x.
    """

    def __init__(
        self,
        axes: Axes,
        x: ArrayLike,
        lines: Mapping[str, ArrayLike],
        *,
        log_x: bool = False,
        log_y: bool = False,
        y_limits: tuple[float, float] | None = None,
        legend: str = "upper right",
        whole: bool = False,
    ) -> None:
        super().__init__(axes)
        self.x, self.lines = x, dict(lines)
        self._curves = {
            name: axes.plot(x, y, label=name, **look(number))[0]
            for number, (name, y) in enumerate(lines.items())
        }
        plain_log(axes, x=log_x, y=log_y)
        name_points(axes, np.asarray(x))
        if y_limits is not None:
            axes.set_ylim(*y_limits)
        if len(lines) > 1:
            axes.legend(loc=legend)
        style = {"color": COLOURS["second"], "zorder": 5}
        (self._marker,) = axes.plot([], [], "o", markersize=8, **style)
        # beyond the limits: at the edge, an arrow in the direction of the marker, with its height
        self._marked: tuple[np.ndarray, np.ndarray] = (np.array([]), np.array([]))
        style |= {"markersize": 9, "transform": axes.transAxes}
        self._beyond = [axes.plot([], [], arrow, **style)[0] for arrow in "^v<>"]
        self._heights = Words(axes, axes.transAxes)
        for one in (*self._beyond, self._heights):
            one.set_in_layout(False)
        self.artists = [*self._curves.values(), self._marker, *self._beyond, self._heights]
        if whole:
            self.artists.insert(0, changing_numbers(axes))

    def update(
        self,
        marker: tuple[ArrayLike, ArrayLike] | None = None,
        emphasise: str | None = None,
        x: ArrayLike | None = None,
        **lines,
    ) -> None:
        """Update the named curves; place one or several markers; draw the `emphasise`d curve thick, the others faint."""
        if x is not None:
            self.x = x
            for line in self._curves.values():
                line.set_xdata(x)
            edge = self.axes.margins()[0] * (x[-1] - x[0])
            self.axes.set_xlim(x[0] - edge, x[-1] + edge)
        for name, y in lines.items():
            self.lines[name] = y
            self._curves[name].set_ydata(y)
        if emphasise is not None:
            for name, line in self._curves.items():
                mine = name == emphasise
                line.set(linewidth=2.4 if mine else 1, alpha=1 if mine else 0.4)
        self._mark(*map(np.atleast_1d, marker or ([], [])))

    def _mark(self, x: np.ndarray, y: np.ndarray) -> None:
        """Place the markers; pin those beyond the limits to the edge."""
        self._marked = x, y
        (left, right), (bottom, top) = self.axes.get_xlim(), self.axes.get_ylim()
        tests = (y > top, y < bottom, x < left, x > right)
        which = np.select(tests, range(4), default=4)  # for each marker
        at = np.column_stack([np.clip(x, left, right), np.clip(y, bottom, top)])
        self._marker.set_data(*at[which == 4].T)
        shares = (self.axes.transData - self.axes.transAxes).transform(at)
        shares = np.clip(shares, (0.02, 0.03), (0.98, 0.97))
        for number, arrows in enumerate(self._beyond):
            arrows.set_data(*shares[which == number].T)
        named = np.flatnonzero(which < 2)
        below = [(0, -0.07 if which[n] == 0 else 0.07) for n in named]
        self._heights.show(
            [short(y[n]) for n in named],
            shares[named] + np.reshape(below, (-1, 2)),
            colour=COLOURS["second"],
        )

    def data(self) -> dict:
        """The curves, and the marker where there is one."""
        x, y = self._marked
        return self.lines | ({"marker at": x, "height": y} if len(x) else {})

    def hover(self) -> list[dict]:
        """Every curve's value at the x nearest to the pointer."""
        return [self._hover_lines(self.x, self.lines)]
