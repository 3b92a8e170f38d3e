"""What a notebook calls: `start` in its first cell, then the functions that show and compare."""

import ast
import inspect
import random
import re
import sys
import textwrap
from collections.abc import Mapping, Sequence

import matplotlib
import numpy as np
import torch
from IPython.display import display
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from torch import Tensor

from course_lib import texts
from course_lib.environment import package_problems, python_problems
from course_lib.plots import BarsPanel, LinesPanel, figure
from course_lib.plots.panel import Panel
from course_lib.plots.style import STYLE
from course_lib.widgets.live_figure import LiveFigure
from course_lib.widgets.picture import Picture
from course_lib.widgets.table import MeasuredTable


def start(seed: int = 0, *, threads: int = 1) -> None:
    """Prepare a notebook: check the environment, seed every random generator, set the course's style.

    Args:
        seed: for Python, NumPy and PyTorch alike.
        threads: how many PyTorch computes with. The course's models are so small that one is as quick as
            two, and two are many times slower where anything else runs on the machine.
    """
    torch.set_num_threads(threads)
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.set_printoptions(precision=3, sci_mode=False, linewidth=100)
    np.set_printoptions(precision=3, suppress=True, linewidth=100)
    matplotlib.rcParams.update(STYLE)
    problems = python_problems() + package_problems()
    if problems:
        command = f"{sys.executable} -m pip install -r requirements.txt"
        print(texts.ENVIRONMENT_MISSING.format(problems=" ".join(problems), command=command))
    else:
        print(texts.ENVIRONMENT_READY)


def show(
    figure: Figure,
    panels: Sequence[Panel],
    summary: str,
    *,
    name: str = "figure",
    measured: bool = False,
) -> None:
    """Show a still figure with exact values under the pointer.

    Args:
        figure: as made by `course_lib.plots.figure`.
        panels: what is drawn on it.
        summary: the data drawn, in words and rounded numbers. It is compared when the notebook is
            tested, and read out to those who cannot see the picture.
        name: stem of the names of saved files.
        measured: whether the numbers differ from machine to machine, because they are times or come of
            training. Then only `summary` is compared, so it should say what holds everywhere.
    """
    display(Picture(LiveFigure(figure, panels), summary, name=name, measured=measured))


def show_lines(
    x: ArrayLike,
    lines: Mapping[str, ArrayLike],
    summary: str,
    *,
    marker: tuple[float, float] | None = None,
    measured: bool = False,
    **labels,
) -> None:
    """Show named curves over one x axis.

    Args:
        x: shared by all curves, shape (points,).
        lines: name → y, shape (points,).
        summary: as for `show`.
        marker: a point to mark.
        measured: as for `show`.
        labels: what `LinesPanel` takes: x_label, y_label, title, log_x, log_y, y_limits.
    """
    with matplotlib.rc_context(STYLE):
        drawn, axes = figure(6.4, 3.2)
        panel = LinesPanel(axes, x, lines, **labels)
    panel.update(marker=marker)
    show(drawn, [panel], summary, name="curves", measured=measured)


def show_bars(shares: Mapping[str, float], summary: str, *, measured: bool = False) -> None:
    """Show named numbers between 0 and 1 as bars.

    Args:
        shares: name → number.
        summary, measured: as for `show`.
    """
    with matplotlib.rc_context(STYLE):
        drawn, axes = figure(6.4, 0.5 + 0.32 * len(shares))
        panel = BarsPanel(axes, len(shares), room=0.28)
    panel.update(list(shares), list(shares.values()))
    show(drawn, [panel], summary, name="bars", measured=measured)


def show_table(header: Sequence[str], rows: Sequence[Sequence[object]], summary: str) -> None:
    """Show what was measured here, or written by a model that was trained here, in words and numbers.

    Args:
        header, rows, summary: as for `MeasuredTable`; of these, tests compare the summary.
    """
    display(MeasuredTable(header, rows, summary))


def show_source(thing: object) -> None:
    """Show the verified source of a function or class of `course_lib`, without docstrings and argument checks."""
    source = _without_docstrings(textwrap.dedent(inspect.getsource(thing))).rstrip()
    display({"text/markdown": f"```python\n{source}\n```", "text/plain": source}, raw=True)


def _without_docstrings(source: str) -> str:
    lines = source.splitlines()

    def drop(node: ast.stmt) -> None:
        lines[node.lineno - 1 : node.end_lineno] = [None] * (node.end_lineno - node.lineno + 1)

    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            drop(node.body[0])
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            if getattr(node.value.func, "id", "").lstrip("_").startswith("require_"):
                drop(node)
    return re.sub(r":\n\n+", ":\n", "\n".join(line for line in lines if line is not None))


def agree(what: str, ours: Tensor, theirs: Tensor, *, within: float = 1e-6) -> None:
    """Print whether two tensors agree, and the largest difference if they do not.

    The bound and not the difference is printed where they agree, because the last digits of a
    difference depend on the processor.

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
