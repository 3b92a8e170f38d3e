"""The look of every figure in the course."""

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

#: Blue and orange are told apart by every reader; the rest support them.
COLOURS = {
    "main": "#1f5fa8",
    "second": "#d9650a",
    "third": "#3f8f5f",
    "truth": "#6b7280",
    "data": "#9aa3b2",
    "ink": "#22262e",
    "faint": "#dfe3ea",
}

STYLE = {
    "figure.facecolor": "white",
    "font.family": "DejaVu Sans",  # ships with matplotlib: the same letters everywhere
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
    "svg.hashsalt": "attention-course",  # the same picture gives the same file
}


def figure(width: float = 7.2, height: float = 3.2, rows: int = 1, columns: int = 1, **layout):
    """Make a figure in the course's style: `(figure, axes)`, sizes in inches at 100 pixels each.

    `layout` goes to `Figure.subplots` (e.g. `width_ratios`).
    """
    with matplotlib.rc_context(STYLE):
        made = Figure(figsize=(width, height), dpi=100, layout="constrained")
        FigureCanvasAgg(made)
        return made, made.subplots(rows, columns, **layout)


def root_scale(axes: Axes, top: float = 1.0) -> None:
    """Give an Axes a square-root y axis from 0 to `top`, where 0.01 and 1 can both be seen."""
    axes.set_yscale("function", functions=(lambda y: np.sqrt(np.abs(y)), np.square))
    ticks = [tick for tick in (0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.7, 1) if tick <= top]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_ylim(0, top)
