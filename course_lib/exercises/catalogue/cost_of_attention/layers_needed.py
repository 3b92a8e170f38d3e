"""Layers from the first input to the last output."""

import math  # noqa: F401 (a mistake uses it)

import torch


def layers_needed(n, kernel_size, dilated):
    reach, dilation, layers = 1, 1, 0  # without a layer, an output depends on one input
    while reach < n:
        reach += (kernel_size - 1) * dilation
        dilation *= kernel_size if dilated else 1
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
(kernel_size - 1) * dilation -> kernel_size * dilation
    A layer adds kernel_size - 1 positions, not kernel_size: the first of its inputs is at the position of the output
    itself.
(kernel_size - 1) * dilation -> (kernel_size - 1) / 2 * dilation
    You count centred convolutions, which reach back half as far. These are causal: each output combines its own
    input and the kernel_size - 1 inputs before it.
kernel_size if dilated else 1 -> 1
(kernel_size - 1) * dilation -> (kernel_size - 1)
    Your count does not depend on dilated. In a dilated convolution, layer l combines inputs that are kernel_size**l
    positions apart.
kernel_size if dilated else 1 -> kernel_size
    Your convolutions are always dilated. Without dilation each layer adds kernel_size - 1 positions.
kernel_size if dilated else 1 -> 1 if dilated else kernel_size
    Your condition is reversed: the dilation grows if dilated is True.
kernel_size if dilated else 1 -> 2 if dilated else 1
    Your dilation doubles from layer to layer. Here it grows by the factor kernel_size.
kernel_size if dilated else 1 -> (dilation + 1) / dilation if dilated else 1
    Your dilation grows by 1 from layer to layer. Here it grows by the factor kernel_size.
kernel_size if dilated else 1 -> kernel_size - 1 if dilated else 1
    Your dilation grows by the factor kernel_size - 1. It is kernel_size, so that no input is skipped and none counted
    twice.
tensor(layers) -> tensor(layers + 1)
    You count one layer too many.
tensor(layers) -> tensor(layers - 1)
    You count one layer too few.
tensor(layers) -> tensor(reach)
    You return the number of inputs that are reached. Return the number of layers.
tensor(layers) -> tensor(math.ceil(math.log(n) / math.log(kernel_size)) if dilated else layers)
tensor(layers) -> tensor(math.ceil(math.log(n, kernel_size)) if dilated else layers)
    The quotient of two logarithms is rounded, and ceil makes a whole layer of it: log(125) / log(5) is a little more
    than 3. Compare powers of kernel_size with n.
tensor(layers) -> tensor(math.floor(math.log(n) / math.log(kernel_size)) if dilated else (n - 1) // (kernel_size - 1))
tensor(layers) -> tensor(layers if dilated else (n - 1) // (kernel_size - 1))
    You round down. A part of a layer is a whole layer: round up.
tensor(layers) -> tensor(layers if dilated else math.ceil(n / kernel_size))
    Without dilation each layer adds kernel_size - 1 positions to the first one: it takes (n - 1) / (kernel_size - 1)
    layers, rounded up.
tensor(layers) -> tensor(layers if dilated else math.ceil(n / (kernel_size - 1)))
    Each layer adds kernel_size - 1 inputs to the one that an output depends on without a layer: n - 1 are to be added.
"""

CASES = (
    dict(n=1, kernel_size=3, dilated=False),
    dict(n=4, kernel_size=3, dilated=False),
    dict(n=9, kernel_size=3, dilated=False),
    dict(n=9, kernel_size=3, dilated=True),
    dict(n=10, kernel_size=3, dilated=True),
    dict(n=11, kernel_size=5, dilated=False),
    dict(n=125, kernel_size=5, dilated=True),
    dict(n=3000, kernel_size=3, dilated=True),
)
HINTS = """
How many inputs does the last output depend on after one layer, and after two? Draw kernel size 3.
Layer l, counted from 0, adds kernel_size - 1 positions, each as far from the next as its dilation.
Start with a reach of 1 and add (kernel_size - 1) * dilation per layer, until it is n. The dilation stays 1, or is
    multiplied by kernel_size.
"""
DIFFERENTIABLE = False
