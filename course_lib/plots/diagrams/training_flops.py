"""Why a weight costs six floating-point operations per token in training."""

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from course_lib.plots.diagrams.page import Page
from course_lib.plots.diagrams.words import WORDS
from course_lib.plots.style import STYLE

TOKENS, INPUTS, OUTPUTS = 6, 3, 5  # as drawn
VALUE, GRADIENT = 0.3, 0.8


@matplotlib.rc_context(STYLE)
def training_flops_diagram() -> Figure:
    """The three matrix products of a linear layer in one training step.

    Forward pass: the inputs X, (tokens, in), times the weights W, (in, out), give the outputs Y, (tokens, out).
    Backward pass: the gradient dY times Wᵀ gives dX, the gradient of the inputs, and Xᵀ times dY gives dW, the
    gradient of the weights. Each of the 3 products has 2 · tokens · in · out FLOPs: 6 per weight and token.
    """
    page = Page(9, 2.5)
    for x in (3.0, 6.0):
        page.rule((x, 0.2), (x, 2.3), "faint", 1)
    forms = {
        "X": (TOKENS, INPUTS, "main", VALUE),
        "W": (INPUTS, OUTPUTS, "second", VALUE),
        "Y": (TOKENS, OUTPUTS, "third", VALUE),
        "dY": (TOKENS, OUTPUTS, "third", GRADIENT),
        "Wᵀ": (OUTPUTS, INPUTS, "second", VALUE),
        "dX": (TOKENS, INPUTS, "main", GRADIENT),
        "Xᵀ": (INPUTS, TOKENS, "main", VALUE),
        "dW": (INPUTS, OUTPUTS, "second", GRADIENT),
    }
    products = (("X", "W", "Y"), ("dY", "Wᵀ", "dX"), ("Xᵀ", "dY", "dW"))
    for left, names, title in zip((0, 3, 6), products, WORDS["training products"], strict=True):
        page.words(left + 1.5, 0.27, *title)
        boxes = []
        for name, x in zip(names, (0.5, 1.5, 2.5), strict=True):
            rows, columns, colour, dark = forms[name]
            cells = np.full((rows, columns), dark)
            boxes.append(page.matrix(left + x, 1.3, cells, [colour], cell=0.12))
            page.words(left + x, 1.95, name)
        for first, second, sign in zip(boxes, boxes[1:], "@=", strict=False):
            page.code((first.right[0] + second.left[0]) / 2 - 0.04, 1.3, sign)
        page.note(left + 1.5, 2.25, WORDS["flops of a product"])
    return page.figure
