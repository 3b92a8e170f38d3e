"""Functions that notebooks call: `start` in the first cell, then functions that show and compare."""

import ast
import inspect
import linecache
import random
import re
import sys
import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
import torch
from IPython.display import display
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from torch import Tensor

from course_lib import messages
from course_lib.lab import cell_errors
from course_lib.lab.environment import package_problems, prepare_colab, python_problems
from course_lib.plots import bar_plot, drawn_panels, figure, line_plot
from course_lib.plots.style import style, whole_ticks
from course_lib.widgets.live_figure import LiveFigure
from course_lib.widgets.picture import Picture
from course_lib.widgets.table import Table, curve_table, number_text


def start(seed: int = 0, *, threads: int = 1) -> None:
    """Prepare a notebook: check the environment, seed every random generator, set the course's style, explain errors.

    Args:
        seed: for Python, NumPy and PyTorch alike.
        threads: number of threads of PyTorch. The course's models are so small that one thread is as fast as
            two, and two are many times slower if anything else runs on the machine.
    """
    prepare_colab()
    cell_errors.explain()
    torch.set_num_threads(threads)
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.set_printoptions(precision=3, sci_mode=False, linewidth=100)
    np.set_printoptions(precision=3, suppress=True, linewidth=100)
    matplotlib.rcParams.update(style())
    problems = python_problems() + package_problems()
    if problems:
        command = f"{sys.executable} -m pip install -r requirements.txt"
        print(messages.ENVIRONMENT_MISSING.format(problems=" ".join(problems), command=command))
    else:
        print(messages.ENVIRONMENT_READY)


def show(figure: Figure, summary: str, *, name: str = "figure", approximate: bool = False) -> None:
    """Show a figure that seaborn or matplotlib drew, with exact values under the pointer.

    Tests of the notebook compare what was drawn: the numbers are read from the lines, points, bars and maps
    on the figure.

    Args:
        figure: as made by `course_lib.plots.figure` or by seaborn.
        summary: what it shows, in words and rounded numbers. It is the text alternative of the picture.
        name: stem of the names of saved files.
        approximate: whether the numbers differ from machine to machine, because they are times or the result
            of training. Then tests compare only `summary`, which should hold on every machine.
    """
    if "matplotlib.pyplot" in sys.modules:  # it would show its own figures once more
        sys.modules["matplotlib.pyplot"].close(figure)
    for axes in figure.axes:
        if axes.collections:  # seaborn turns the names of a heat map's rows, even single digits
            axes.tick_params(axis="y", labelrotation=0)
    live = LiveFigure(figure, drawn_panels(figure))
    if _shares_an_axis(figure):  # the numbers stand beside the first panel only
        live.cuts = []
    display(Picture(live, summary, name=name, approximate=approximate))


def _shares_an_axis(figure: Figure) -> bool:
    """Whether panels side by side share their y axis and only the first has its numbers."""
    return any(
        axes.get_shared_y_axes().joined(axes, other)
        and axes.get_position().x0 != other.get_position().x0
        for axes in figure.axes
        for other in figure.axes
    )


def show_lines(
    x: ArrayLike,
    lines: Mapping[str, ArrayLike],
    summary: str,
    *,
    approximate: bool = False,
    table_at: Sequence[float] | None = None,
    **labels,
) -> None:
    """Show named curves over one x axis, drawn with `seaborn.lineplot`, and a table of a few of their points.

    Args:
        x: shared by all curves, shape (points,).
        lines: name → y, shape (points,) or (runs, points).
        summary: as for `show`.
        approximate: as for `show`; in the table, the means over the runs, the numbers follow "≈".
        table_at: the values of x that the table shows; five evenly chosen points where left out.
        labels: what `line_plot` takes: x_label, y_label, log_x, log_y, y_limits.
    """
    with matplotlib.rc_context(style()):
        drawn, axes = figure(6.4, 3.2)
        line_plot(axes, x, lines, **labels)
    show(drawn, summary, name="curves", approximate=approximate)
    means = {name: np.atleast_2d(y).mean(axis=0) for name, y in lines.items()}
    names = {name: labels.get(name, "") for name in ("x_label", "y_label")}
    display(curve_table(x, means, at=table_at, approximate=approximate, **names))


def show_bars(
    values: Mapping[str, ArrayLike], summary: str, *, x_label: str = "", approximate: bool = False
) -> None:
    """Show named numbers as bars, drawn with `seaborn.barplot`, and in a table.

    Args:
        values: name → a number, or one per run.
        summary, approximate: as for `show`.
        x_label: label.
    """
    with matplotlib.rc_context(style()):
        drawn, axes = figure(6.4, 0.7 + 0.36 * len(values))
        bar_plot(axes, values, x_label=x_label)
    show(drawn, summary, name="bars", approximate=approximate)
    rows = [(name, float(np.mean(value))) for name, value in values.items()]
    display(
        Table(("bar", "value"), rows, "Values of the bars", approximate=approximate, folded=True)
    )


def show_maps(
    maps: Mapping[str, ArrayLike],
    summary: str,
    *,
    x_label: str = "key",
    y_label: str = "query",
    limits: tuple[float, float] | None = None,
    colours: str = "viridis",
    name: str = "maps",
    approximate: bool = False,
) -> None:
    """Show named matrices as coloured maps, side by side.

    Args:
        maps: title → values, shape (rows, columns); NaN stays white.
        summary, name, approximate: as for `show`.
        x_label, y_label: of every map.
        limits: the values of the first and the last colour, the same for all maps; from each map's own values, with a
            colour bar of its own, where left out.
        colours: name of a colour map of matplotlib.
    """
    low, high = limits or (None, None)
    with matplotlib.rc_context(style()):
        drawn, panels = figure(10.4, 3.4 - 0.2 * max(0, len(maps) - 3), columns=len(maps))
        for axes, (title, values) in zip(np.atleast_1d(panels), maps.items(), strict=True):
            image = axes.imshow(np.asarray(values), vmin=low, vmax=high, cmap=colours)
            axes.set(title=title, xlabel=x_label, ylabel=y_label)
            axes.grid(False)
            if limits is None:
                drawn.colorbar(image, ax=axes, ticks=whole_ticks(5))
        if limits is not None:
            drawn.colorbar(image, ax=panels, pad=0.01)
    show(drawn, summary, name=name, approximate=approximate)


def show_table(
    header: Sequence[str],
    rows: Sequence[Sequence[object]],
    summary: str,
    *,
    approximate: bool = True,
    generated: Collection[str] = (),
) -> None:
    """Show measurements, or texts generated by a model trained in the notebook, as a table.

    Args:
        header, rows, summary, approximate, generated: as for `Table`.
    """
    display(Table(header, rows, summary, approximate=approximate, generated=generated))


def report(
    what: str,
    value: float | Tensor,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
) -> None:
    """Print what was measured, and whether it keeps a threshold.

    The value follows "≈": when a notebook is tested, its digits are not compared; the words, the thresholds and
    the verdicts are. `report("exact match on held-out dates", 0.997, at_least=0.98)` prints
    "exact match on held-out dates ≈ 0.997 (at least 0.98: yes)".

    Args:
        what: what was measured, with its unit.
        value: of which three significant digits are printed.
        at_least, at_most: thresholds that hold on every machine; a time has none.
    """
    value = value.item() if isinstance(value, Tensor) else value
    verdicts = [
        f"{words} {bound:,g}: {'yes' if kept else 'no'}"
        for words, bound, kept in (
            ("at least", at_least, at_least is not None and value >= at_least),
            ("at most", at_most, at_most is not None and value <= at_most),
        )
        if bound is not None
    ]
    print(f"{what} ≈ {number_text(value)}" + (f" ({'; '.join(verdicts)})" if verdicts else ""))


def show_source(thing: object) -> None:
    """Show the verified source of a function or class of `course_lib`, without docstrings."""
    source = _without_docstrings(textwrap.dedent(inspect.getsource(thing))).rstrip()
    display({"text/markdown": f"```python\n{source}\n```", "text/plain": source}, raw=True)


def _without_docstrings(source: str) -> str:
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            first, last = node.body[0].lineno - 1, node.body[0].end_lineno
            lines[first:last] = [None] * (last - first)
    return re.sub(r":\n\n+", ":\n", "\n".join(line for line in lines if line is not None))


def run_changed(function: Callable, old: str, new: str) -> dict[str, Any]:
    """Run the cell (or file) that defines a function again with one expression replaced; return its names.

    What stands under `if __name__ == "__main__":` is not run, and the function itself stays as it is.

    Args:
        function: whose cell is run, as it was when it was run last.
        old, new: the expression, replaced wherever it stands; two empty strings change nothing.

    Raises:
        ValueError: if `old` is not in the cell.
    """
    source = "".join(linecache.getlines(function.__code__.co_filename))
    if old not in source:
        raise ValueError(f"{old!r} is not in the cell that defines {function.__name__}")
    names: dict[str, Any] = {"__name__": "changed"}
    exec(compile(source.replace(old, new), "<changed>", "exec"), names)
    return names


def agree(what: str, ours: Tensor, theirs: Tensor, *, within: float = 1e-6) -> None:
    """Print whether two tensors agree, and the largest difference if they do not.

    If they agree, the bound is printed instead of the difference, whose digits depend on the processor.

    Args:
        what: which two things are compared.
        ours, theirs: tensors of one shape.
        within: the largest absolute difference allowed.

    Raises:
        ValueError: if the shapes differ.
    """
    if ours.shape != theirs.shape:
        raise ValueError(f"ours has shape {tuple(ours.shape)} but theirs has {tuple(theirs.shape)}")
    largest = (ours - theirs).abs().max().item()
    if largest <= within:
        print(f"{what}: agree, largest difference below {within:.0e}")
    else:
        print(f"{what}: DIFFER by up to {largest:.3g}")
