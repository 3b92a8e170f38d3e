"""Named curves over one x axis."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from course_lib.plots.panel import Panel, rounded
from course_lib.plots.style import COLOURS, name_points, plain_log

_STYLES = ("-", "--", "-.", ":")  # never colour alone


class LinesPanel(Panel):
    """Curves that can be updated by name, and a marker.

    Args:
        axes: where to draw.
        x: shared by all curves, shape (points,).
        lines: name → y, shape (points,); the first four differ in colour and in dash.
        x_label, y_label, title: labels.
        log_x, log_y: logarithmic axes.
        y_limits: fixed limits of the y axis; chosen from the data where left out.
        unit: what 1 on the x axis stands for, where that may change; `update` takes another one, and the five
            labels of the axis, the marker and the values under the pointer follow it.
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
        self.artists = [*self._curves.values(), self._marker]
        if unit is not None:
            self._label_in_units()

    def _label_in_units(self) -> None:
        """Give the x axis five labels that `update` can change."""
        at = np.linspace(self.x[0], self.x[-1], 5)
        self.axes.set_xticks(at, [""] * len(at))
        self.axes.xaxis.labelpad = 16
        style = {"ha": "center", "va": "top", "clip_on": False}
        style["transform"] = self.axes.get_xaxis_transform()
        self.static_artists = [self.axes.text(x, -0.03, "", **style) for x in at]

    def static_state(self) -> tuple[str, ...]:
        """The labels of the x axis that can change."""
        return tuple(text.get_text() for text in self.static_artists)

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
            for text in self.static_artists:
                text.set_text(f"{text.get_position()[0] * unit:.0f}")
        for name, y in lines.items():
            self.lines[name] = y
            self._curves[name].set_ydata(y)
        if emphasise is not None:
            for name, line in self._curves.items():
                line.set(
                    linewidth=2.4 if name == emphasise else 1, alpha=1 if name == emphasise else 0.4
                )
        self._marker.set_data(*map(np.atleast_1d, marker) if marker else ([], []))

    def data(self) -> dict:
        """The curves, and the marker where there is one."""
        x, y = self._marker.get_data()
        marker = {"marker at": np.asarray(x) * self._unit, "height": y}
        return self.lines | (marker if len(x) else {})

    def hover(self) -> dict:
        """Every curve's value at the x nearest to the pointer."""
        shown = self._hover_lines(self.x, self.lines, self.axes.get_xlabel())
        if self._unit != 1:
            shown["x"] = rounded(np.asarray(self.x) * self._unit)
            shown["limits"] = [limit * self._unit for limit in shown["limits"]]
        return shown
