"""A run without a scale that repeats a run with one."""

import torch


def without_scale(scale, lr, optimizer):
    power = 1 if optimizer == "adam" else 2
    run = torch.tensor([scale**power * lr, scale])  # (2,): learning rate, factor of the initial W
    return run


MISTAKES = """
1 if optimizer == "adam" else 2 -> 1
    Right for Adam. With SGD the gradient of W contains the scale as well, so a step of M = s W contains it twice.
1 if optimizer == "adam" else 2 -> 2
    Right for SGD. Adam divides the gradient by its size, so the scale enters a step of M = s W only once.
1 if optimizer == "adam" else 2 -> 2 if optimizer == "adam" else 1
    Adam and SGD are exchanged: Adam divides the gradient by its size, SGD does not.
1 if optimizer == "adam" else 2 -> 0.5 if optimizer == "adam" else 1
    Your powers of the scale are half as large as they should be. With Adam a step of W is about lr, so a step of
    M = s W is about s lr.
1 if optimizer == "adam" else 2 -> 0
    The learning rate has to change too: a step of W changes M = s W by s times as much.
scale**power * lr -> lr / scale**power
    You divide by the scale. A step of W changes M = s W by s times as much: multiply.
, scale] -> , 1.0]
    The initial matrix has to change too: M = s W begins at s times the initial W.
, scale] -> , 1 / scale]
    You divide the initial matrix by the scale. M = s W begins at s times the initial W.
, scale] -> , scale**power]
    The initial matrix is M = s W with any optimizer: its factor is the scale itself.
, scale] -> , scale**0.5]
    You take the root of the scale. M = s W begins at s times the initial W.
[scale**power * lr, scale] -> [scale, scale**power * lr]
    The order is exchanged: return the learning rate first, then the factor of the initial matrix.
1 if optimizer == "adam" else 2 -> 1 if optimizer == "adam" else 0
    With gradient descent you leave the learning rate as it is. The gradient grows with the matrix that is not scaled, so
    the learning rate must be smaller.
"""

CASES = (
    dict(scale=0.5, lr=0.1, optimizer="adam"),
    dict(scale=0.25, lr=0.2, optimizer="sgd"),
    dict(scale=0.125, lr=0.008, optimizer="adam"),
)
HINTS = """
Call M = s W. The two layers compute the same scores. Where does M start, and by how much does one step move it?
A step of W moves M by s times as much. How large is a step of W: with Adam, about lr; with SGD, lr times the gradient
    of W.
The gradient of W is s times the gradient of M. Adam divides this s out again, SGD does not.
"""
DIFFERENTIABLE = False
