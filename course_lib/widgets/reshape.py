"""The explorer of notebook 05: where each number goes when heads are split and merged."""

import math
from collections.abc import Callable
from typing import NamedTuple

import ipywidgets
import matplotlib
import numpy as np
import torch
from torch import Tensor

from course_lib.inputs import require_one_of
from course_lib.multihead import split_heads
from course_lib.plots import NumbersPanel, figure
from course_lib.plots.style import STYLE
from course_lib.widgets.explorer import Explorer
from course_lib.widgets.live_figure import LiveFigure

_LENGTH, _WIDTH = 3, 8
_HEADS = (2, 4)
_GAP = 0.7  # between blocks, in tiles

_FLAT, _TOKENS, _HEADS_FIRST = "length, d_model", "length, heads, d_head", "heads, length, d_head"


class Step(NamedTuple):
    """What is written, what it does, and what its axes are meant to be."""

    code: str
    change: Callable[[Tensor, int], Tensor]
    axes: str


_SPLIT = (
    Step("x.unflatten(-1, (heads, d_head))", lambda x, h: x.unflatten(-1, (h, -1)), _TOKENS),
    Step(".transpose(0, 1)", lambda x, h: x.transpose(0, 1), _HEADS_FIRST),
)
_MERGE = (
    Step(".transpose(0, 1)", lambda x, h: x.transpose(0, 1), _TOKENS),
    Step(".flatten(-2)", lambda x, h: x.flatten(-2), _FLAT),
)
_NOTHING = Step("no step here", lambda x, h: x, _HEADS_FIRST)

#: Way → its four steps: two before attention, two behind it.
WAYS: dict[str, tuple[Step, ...]] = {
    "split and merge": (*_SPLIT, *_MERGE),
    "split without transpose": (
        Step("x.view(heads, length, d_head)", lambda x, h: x.view(h, _LENGTH, -1), _HEADS_FIRST),
        _NOTHING,
        *_MERGE,
    ),
    "merge without transpose": (
        *_SPLIT,
        _NOTHING,
        Step(".reshape(length, d_model)", lambda x, h: x.reshape(_LENGTH, _WIDTH), _FLAT),
    ),
}


def reshape_explorer(
    *, heads: int = 2, way: str = "split and merge", step: float = 0.0
) -> Explorer:
    """Move the slider from step to step; every number keeps the colour of the head it belongs to.

    Three tokens of eight numbers, 0 to 23. A tensor of three axes is drawn as blocks side by side (first axis),
    with rows (second) and columns (third).

    Args:
        heads: 2 or 4.
        way: a key of `WAYS`: right, or wrong in one of two ways that are in circulation.
        step: where its slider starts, 0 to 4.

    Raises:
        ValueError: for what the explorer does not have.
    """
    require_one_of(WAYS, way=way)
    if heads not in _HEADS:
        raise ValueError(f"heads={heads} must be one of {', '.join(map(str, _HEADS))}")
    if not 0 <= step <= 4:
        raise ValueError(f"step={step} must be from 0 to 4")
    numbers = torch.arange(_LENGTH * _WIDTH).view(_LENGTH, _WIDTH)
    with matplotlib.rc_context(STYLE):
        drawn, axes = figure(8.4, 3.0)
        panel = NumbersPanel(
            axes, numbers.numel(), width=14.5, height=5, title="where each number stands"
        )
        live = LiveFigure(drawn, [panel])

    def update(heads: int, way: str, step: float) -> dict[str, str]:
        steps = (Step("x", lambda x, heads: x, _FLAT), *WAYS[way])
        tensors = [numbers]
        for one in steps[1:]:
            tensors.append(one.change(tensors[-1], heads))
        before, after = math.floor(step), math.ceil(step)
        share = step - before
        places = (1 - share) * _places(tensors[before]) + share * _places(tensors[after])
        owner = (numbers % _WIDTH // (_WIDTH // heads)).flatten()
        now = tensors[after]
        caption = f"{steps[after].code}:  ({steps[after].axes}) = {tuple(now.shape)}"
        panel.update(places, owner.tolist(), caption)
        split, merged = tensors[2], tensors[4]
        right = torch.equal(split, split_heads(numbers, heads)), torch.equal(merged, numbers)
        return {
            "way": way,
            "step": f"{step:.1f}, {steps[after].code}",
            "shape": f"({steps[after].axes}) = {tuple(now.shape)}",
            "strides": str(now.stride()),
            "head 0 gets": " ".join(map(str, split[0].flatten().tolist())),
            "the split is": "right" if right[0] else "wrong",
            "the way back gives x": "yes" if right[1] else "no",
        }

    controls = {
        "step": ipywidgets.FloatSlider(step, min=0, max=4, step=0.1, description="step"),
        "heads": ipywidgets.Dropdown(value=heads, options=_HEADS, description="heads"),
        "way": ipywidgets.Dropdown(value=way, options=list(WAYS), description="way"),
    }
    return Explorer("Splitting heads", controls, live, update, name="reshape")


def _places(tensor: Tensor) -> np.ndarray:
    """Where each number stands: blocks side by side, rows and columns inside them."""
    blocks = tensor if tensor.dim() == 3 else tensor[None]
    places = np.empty((tensor.numel(), 2))
    wide = blocks.shape[-1] + _GAP
    for block, row, column in np.ndindex(*blocks.shape):
        places[blocks[block, row, column]] = block * wide + column, row
    return places
