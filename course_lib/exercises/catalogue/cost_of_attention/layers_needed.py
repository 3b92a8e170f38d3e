"""Exercise `layers_needed` of study 04a."""

import math  # noqa: F401 (a mistake uses it)

import torch

from course_lib.exercises.edits import mistakes
from course_lib.exercises.exercise import Case, Exercise


def layers_needed(n, width, dilated):
    reach, dilation, layers = 1, 1, 0  # without a layer, an output depends on one input
    while reach < n:
        reach += (width - 1) * dilation
        dilation *= width if dilated else 1
        layers += 1
    return torch.tensor(layers)


MISTAKES = """
reach, dilation, layers = 1, -> reach, dilation, layers = 0,
reach < n -> reach <= n
    You ask for a reach of n + 1, or count it from 0. Without any layer an output depends on the input at its own
    position, a reach of 1; the last output depends on the first of n inputs as soon as the reach is n.
reach < n -> reach < n - 1
    You stop one input too early: the last output depends on the first of n inputs if it reaches n positions, its own
    included.
(width - 1) * dilation -> width * dilation
    A layer adds width - 1 positions, not width: the first of its inputs is at the position of the output itself.
(width - 1) * dilation -> (width - 1) / 2 * dilation
    You count centred convolutions, which reach back half as far. These are causal: each output combines its own
    input and the width - 1 inputs before it.
width if dilated else 1 -> 1
(width - 1) * dilation -> (width - 1)
    Your count does not depend on dilated. In a dilated convolution, layer l combines inputs that are width**l
    positions apart.
width if dilated else 1 -> width
    Your convolutions are always dilated. Without dilation each layer adds width - 1 positions.
width if dilated else 1 -> 1 if dilated else width
    Your condition is reversed: the dilation grows if dilated is True.
width if dilated else 1 -> 2 if dilated else 1
    Your dilation doubles from layer to layer. Here it grows by the factor width.
width if dilated else 1 -> (dilation + 1) / dilation if dilated else 1
    Your dilation grows by 1 from layer to layer. Here it grows by the factor width.
width if dilated else 1 -> width - 1 if dilated else 1
    Your dilation grows by the factor width - 1. It is width, so that no input is skipped and none counted twice.
tensor(layers) -> tensor(layers + 1)
    You count one layer too many.
tensor(layers) -> tensor(layers - 1)
    You count one layer too few.
tensor(layers) -> tensor(reach)
    You return the number of inputs that are reached. Return the number of layers.
tensor(layers) -> tensor(math.ceil(math.log(n) / math.log(width)) if dilated else layers)
tensor(layers) -> tensor(math.ceil(math.log(n, width)) if dilated else layers)
    The quotient of two logarithms is rounded, and ceil makes a whole layer of it: log(125) / log(5) is a little more
    than 3. Compare powers of width with n.
tensor(layers) -> tensor(math.floor(math.log(n) / math.log(width)) if dilated else (n - 1) // (width - 1))
tensor(layers) -> tensor(layers if dilated else (n - 1) // (width - 1))
    You round down. A part of a layer is a whole layer: round up.
tensor(layers) -> tensor(layers if dilated else math.ceil(n / width))
    Without dilation each layer adds width - 1 positions to the first one: it takes (n - 1) / (width - 1) layers,
    rounded up.
"""

EXERCISE = Exercise(
    title="Layers from the first input to the last output",
    solution=layers_needed,
    cases=(
        Case(n=1, width=3, dilated=False),
        Case(n=4, width=3, dilated=False),
        Case(n=9, width=3, dilated=False),
        Case(n=9, width=3, dilated=True),
        Case(n=10, width=3, dilated=True),
        Case(n=11, width=5, dilated=False),
        Case(n=125, width=5, dilated=True),
        Case(n=3000, width=3, dilated=True),
    ),
    mistakes=mistakes(layers_needed, MISTAKES),
    hints=(
        "How many inputs does the last output depend on after one layer, and after two? Draw width 3.",
        "Layer l, counted from 0, adds width - 1 positions, each as far from the next as its dilation.",
        "Start with a reach of 1 and add (width - 1) * dilation per layer, until it is n. The dilation stays 1, or is "
        "multiplied by width.",
    ),
    differentiable=False,
)
