"""The style of every figure in the course."""

import math
from functools import lru_cache

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import XAxis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

#: Blue and orange can be told apart with any colour vision; the rest support them.
COLOURS = {
    "main": "#1f5fa8",
    "second": "#d9650a",
    "third": "#3f8f5f",
    "fourth": "#8a4fa3",
    "truth": "#6b7280",
    "data": "#9aa3b2",
    "ink": "#22262e",
    "faint": "#dfe3ea",
}

STYLE = {
    "figure.facecolor": "white",
    "font.family": ["DejaVu Sans"],  # ships with matplotlib: the same glyphs everywhere
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.labelcolor": COLOURS["ink"],
    "axes.edgecolor": COLOURS["data"],
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.prop_cycle": matplotlib.cycler(
        color=[COLOURS[name] for name in ("main", "second", "third", "truth")]
    ),
    "grid.color": COLOURS["faint"],
    "grid.linewidth": 0.6,
    "text.color": COLOURS["ink"],
    "xtick.color": COLOURS["ink"],
    "ytick.color": COLOURS["ink"],
    "legend.frameon": False,
    "legend.fontsize": 9,
    "image.cmap": "viridis",
    "svg.fonttype": "path",
    "svg.hashsalt": "attention-course",  # equal figures give equal files
}


def families() -> tuple[str, ...]:
    """Return the font families to draw with: that of the course, and behind it, for other scripts, those of `rcParams`."""
    chosen = []
    for name in (*matplotlib.rcParams["font.family"], "sans-serif"):
        chosen += matplotlib.rcParams.get(f"font.{name}", [name])  # "sans-serif" stands for a list
    return _installed(tuple(chosen), len(fontManager.ttflist))


@lru_cache(16)
def _installed(names: tuple[str, ...], _: int) -> tuple[str, ...]:
    """Keep the families for which there is a font with outlines; matplotlib warns of others whenever it draws."""
    found = dict.fromkeys(STYLE["font.family"])
    for name in names:
        try:
            font = get_font(findfont(FontProperties(family=name), fallback_to_default=False))
        except ValueError:
            continue
        if font.scalable:
            found[name] = None
    return tuple(found)


def style() -> dict[str, object]:
    """Return the settings to draw with: `STYLE`, with the user's font families behind that of the course."""
    return STYLE | {"font.family": list(families())}


def look(number: int) -> dict[str, str]:
    """Return colour and dash of a line, of which no two among 16 have the same: never colour alone."""
    colours = ("main", "second", "third", "truth")
    colour = COLOURS[colours[(number + number // 4) % 4]]
    return {"color": colour, "linestyle": ("-", "--", "-.", ":")[number % 4]}


def figure(width: float = 7.2, height: float = 3.2, rows: int = 1, columns: int = 1, **layout):
    """Make a figure in the course's style: `(figure, axes)`, sizes in inches at 100 pixels each.

    `layout` goes to `Figure.subplots` (e.g. `width_ratios`).
    """
    with matplotlib.rc_context(style()):
        made = Figure(figsize=(width, height), dpi=100, layout="constrained")
        FigureCanvasAgg(made)
        return made, made.subplots(rows, columns, **layout)


def figure_of_three(width: float, height: float, **layout) -> tuple[Axes, Axes, Axes]:
    """Make a figure of two Axes above one another and one beside both: `(above, below, beside)`; else as `figure`."""
    _, ((above, beside), (below, unused)) = figure(width, height, 2, 2, **layout)
    unused.remove()
    beside.set_subplotspec(beside.get_gridspec()[:, 1])
    return above, below, beside


def blank(axes: Axes, x_limits: tuple[float, float], y_limits: tuple[float, float]) -> None:
    """Leave only the title and the labels of an Axes: no ticks, no grid, no frame."""
    axes.set(xlim=x_limits, ylim=y_limits, xticks=[], yticks=[])
    axes.grid(False)
    axes.spines[:].set_visible(False)


def root_scale(axes: Axes, top: float = 1.0) -> None:
    """Give an Axes a square-root y axis from 0 to `top`, where 0.01 and 1 can both be seen."""
    axes.set_yscale("function", functions=(lambda y: np.sqrt(np.abs(y)), np.square))
    ticks = [tick for tick in (0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.7, 1) if tick <= top]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_ylim(0, top)


class PlainLogLocator(LogLocator):
    """Ticks at powers of 10; over less than two powers, at 1, 2 and 5 of each, so that there are several."""

    def tick_values(self, vmin, vmax):
        """Return the positions of the ticks."""
        low, high = sorted((vmin, vmax))
        few = low > 0 and high < 100 * low
        self.set_params(subs=(1.0, 2.0, 5.0) if few else (1.0,))
        return super().tick_values(vmin, vmax)


def plain_log(axes: Axes, *, x: bool, y: bool) -> None:
    """Make axes logarithmic, with numbers that can be read: 0.01, 10, 1,000; 10⁻⁴, 2·10⁻⁷ and 10⁷."""
    for which in "x" * x + "y" * y:
        getattr(axes, f"set_{which}scale")("log")
        axis = getattr(axes, f"{which}axis")
        axis.set_major_locator(PlainLogLocator())
        axis.set_major_formatter(_plain)
        axis.set_minor_formatter("")


def whole_ticks(most: int) -> MaxNLocator:
    """Return the places of about `most` ticks, at multiples of 1, 2, 5, 10, 20, …"""
    return MaxNLocator(most, integer=True, steps=(1, 2, 5, 10))


def changing_numbers(axes: Axes) -> XAxis:
    """Return the x axis, an artist to be redrawn because its limits change; its numbers are whole."""
    axes.grid(False, axis="x")
    axes.xaxis.set_major_locator(whole_ticks(8))
    return axes.xaxis


def name_points(axes: Axes, x: np.ndarray, most: int = 8) -> None:
    """Give each of few points on the x axis a tick of its own; leave the ticks as they are for more."""
    if len(x) <= most:
        names = [_plain(point) if point > 0 else f"{point:g}" for point in map(float, x)]
        axes.set_xticks(x, names)
        axes.xaxis.set_minor_locator(NullLocator())


def legend_above(axes: Axes, columns: int | None = None) -> None:
    """Put the legend above an Axes, where it hides nothing, in as many columns as fit a whole picture or as given."""
    _, labels = axes.get_legend_handles_labels()
    columns = columns or (len(labels) if sum(map(len, labels)) + 6 * len(labels) <= 84 else 2)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, borderaxespad=0.2)


def _plain(number: float, _: int = 0) -> str:
    if 0.001 <= number < 1e7:
        return f"{number:,g}" if number < 1e6 else f"{number:,.0f}"
    exponent = math.floor(math.log10(number) + 1e-9)
    factor = f"{number / 10**exponent:g}"
    power = "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return power if factor == "1" else f"{factor}·{power}"
