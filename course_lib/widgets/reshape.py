"""The explorer of notebook 05: how splitting and merging heads moves the elements of a tensor."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from course_lib.plots import TilesPanel, figure
from course_lib.transformer.multihead import split_heads
from course_lib.widgets.controls import Numbers
from course_lib.widgets.explorer import View, explorer

_LENGTH, _WIDTH = 3, 8
_HEADS = (2, 4)
_GAP = 0.7  # between blocks, in tiles
_HALF = 9.4  # of the width of the picture, in tiles
_ROWS = max(_LENGTH, *_HEADS)
_NAMES = {"length": "position", "heads": "head", "d_model": "", "d_head": ""}

_FLAT, _TOKENS, _HEADS_FIRST = "length, d_model", "length, heads, d_head", "heads, length, d_head"


class Step(NamedTuple):
    """The code of a step, its effect, and the intended axes of its result."""

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
_NOTHING = Step("transpose left out", lambda x, h: x, _HEADS_FIRST)

#: Variant → its four steps: two before attention, two after it.
VARIANTS: dict[str, tuple[Step, ...]] = {
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


@explorer
def reshape_explorer(
    *, heads: int = 2, variant: str = "split and merge", step: float = 0.0
) -> View:
    """Step through splitting and merging; every element keeps the colour of the head it belongs to.

    The tensor holds three positions with eight components each, numbered 0 to 23. A tensor of three axes is drawn
    as blocks side by side (first axis), with rows (second) and columns (third); their names are the intended ones.

    Args:
        heads: 2 or 4.
        variant: a key of `VARIANTS`: the correct one, or one that lacks a transpose.
        step: initial value of its slider, 0 to 4.
    """
    numbers = torch.arange(_LENGTH * _WIDTH).view(_LENGTH, _WIDTH)
    fig, axes = figure(8.4, 3.0)
    axes.set_title("each element in the colour of its head")
    panel = TilesPanel(axes, numbers.numel(), (-_HALF, _HALF), (-1.5, 4.9))

    def update(heads: int, variant: str, step: float) -> dict[str, str]:
        steps = (Step("x", lambda x, heads: x, _FLAT), *VARIANTS[variant])
        tensors = [numbers]
        for one in steps[1:]:
            tensors.append(one.change(tensors[-1], heads))
        before, after = math.floor(step), math.ceil(step)
        share = step - before
        places = [_positions(tensors[one]) for one in (before, after)]
        owner = (numbers % _WIDTH // (_WIDTH // heads)).flatten()
        now = tensors[after]
        caption = f"{steps[after].code}:  ({steps[after].axes}) = {tuple(now.shape)}"
        names = _names(now, steps[after].axes) if share == 0 else []
        names.append((caption, 0, 4.5, 0.5))
        panel.update((1 - share) * places[0] + share * places[1], owner.tolist(), names)
        split, merged = tensors[2], tensors[4]
        correct = torch.equal(split, split_heads(numbers, heads)), torch.equal(merged, numbers)
        return {
            "variant": variant,
            "step": f"{round(step, 1):g}, {steps[after].code}",
            "shape": f"({steps[after].axes}) = {tuple(now.shape)}",
            "strides": str(now.stride()),
            "head 0 gets": " ".join(map(str, split[0].flatten().tolist())),
            "the split is": "correct" if correct[0] else "wrong",
            "merging gives x again": "yes" if correct[1] else "no",
        }

    controls = {"step": Numbers(0, 4, 0.1), "heads": _HEADS, "variant": list(VARIANTS)}
    return View("Splitting heads", [panel], update, controls, "reshape")


def _blocks(tensor: Tensor) -> tuple[Tensor, float, float, float]:
    """Return a tensor as blocks, and where they stand: the middle of the first tile, and from block to block."""
    blocks = tensor if tensor.dim() == 3 else tensor[None]
    count, rows, columns = blocks.shape
    wide = columns + _GAP
    left = -(count * wide - _GAP) / 2 + 0.5
    return blocks, left, (_ROWS - rows) / 2, wide


def _positions(tensor: Tensor) -> np.ndarray:
    """Return the position of each element: blocks side by side in the middle, with rows and columns."""
    blocks, left, top, wide = _blocks(tensor)
    positions = np.empty((tensor.numel(), 2))
    for block, row, column in np.ndindex(*blocks.shape):
        positions[blocks[block, row, column]] = left + block * wide + column, top + row
    return positions


def _names(tensor: Tensor, axes: str) -> list[tuple[str, float, float, float]]:
    """Name the rows, left of the first block, and the blocks, above them."""
    blocks, left, top, wide = _blocks(tensor)
    *of_blocks, of_rows, _ = (_NAMES[axis] for axis in axes.split(", "))
    names = [(f"{of_rows} {row}", left - 0.8, top + row, 1.0) for row in range(blocks.shape[1])]
    middle = left + (blocks.shape[2] - 1) / 2
    for kind in of_blocks:
        names += [(f"{kind} {n}", middle + n * wide, top - 0.9, 0.5) for n in range(len(blocks))]
    return names
