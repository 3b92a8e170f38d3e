"""Bug hunt `hunt_norm_layer` of notebook 07."""

import torch
from torch import nn

from course_lib.blocks import LayerNorm
from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.edits import bugs, mistakes
from course_lib.exercises.exercise import Case, Exercise


def normed(x):
    class NormLayer(nn.Module):
        def __init__(self, d_model, eps=1e-5):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(d_model))
            self.bias = nn.Parameter(torch.zeros(d_model))
            self.eps = eps

        def forward(self, x):
            mean = x.mean(dim=-1, keepdim=True)
            variance = x.var(dim=-1, keepdim=True, correction=0)  # 1: divided by d
            spread = torch.sqrt(variance + self.eps)  # 2: eps inside the root
            return self.weight * ((x - mean) / spread) + self.bias  # 3: the bias comes last

    new, changed = NormLayer(x.shape[-1]), NormLayer(x.shape[-1])
    with torch.no_grad():
        for parameter in changed.parameters():
            parameter += 1
    return torch.stack([new(x), changed(x)])


def _reference(x):
    new, changed = LayerNorm(x.shape[-1]), LayerNorm(x.shape[-1])
    with torch.no_grad():
        changed.weight += 1
        changed.bias += 1
    return torch.stack([new(x), changed(x)])


FORMULA = "self.weight * ((x - mean) / spread) + self.bias"
BIAS = f"{FORMULA} -> self.weight * ((x - mean) / spread + self.bias)"
DIVISOR = ", correction=0) -> )"
EPS = "torch.sqrt(variance + self.eps) -> (torch.sqrt(variance) + self.eps)"
GIVEN, LEFT, GIVEN_MESSAGE = bugs(
    normed,
    f"""
{BIAS}
    with a trained weight and bias it is wrong: the weight multiplies the bias too
{DIVISOR}
    the variance of the output is below 1, most of all for small d
{EPS}
    a vector of nearly equal components is scaled up too much
""",
)

ROOT = "torch.sqrt(variance + self.eps) -> torch.sqrt(torch.sqrt(variance) + self.eps)"
TWO_ROOTS = (
    "You take the root of the standard deviation, which is a root already. eps belongs to the "
    "variance, and the root is taken of their sum."
)
MISTAKES = rf"""
variance + self.eps -> variance
    Your eps has no effect any more: add it to the variance, or a vector of equal components is divided by 0.
torch.sqrt(variance + self.eps) -> (torch.sqrt(variance) + self.eps**0.5)
    You take the roots of variance and eps one by one. The root is that of their sum: sqrt(variance + eps).
torch.sqrt(variance + self.eps) -> (torch.sqrt(variance + self.eps) + self.eps)
    You add eps twice, inside the root and outside. It belongs inside only.
eps=1e-5 -> eps=1e-6
eps=1e-5 -> eps=1e-8
    Your eps is smaller than 1e-5, which was right.
torch.sqrt(variance + self.eps) -> (variance + self.eps)
    You divide by the variance. Divide by its root: sqrt(variance + eps).
{ROOT}
    {TWO_ROOTS}
{ROOT}
+ {BIAS}
    {TWO_ROOTS} Still wrong as well: the weight multiplies the bias too.
{ROOT}
+ {DIVISOR}
    {TWO_ROOTS} Still wrong as well: it divides by d - 1, as .std() does unless told otherwise.
{ROOT}
+ {BIAS}
+ {DIVISOR}
    {TWO_ROOTS} Still wrong as well: the weight multiplies the bias too; it divides by d - 1, as .std() does unless told
    otherwise.
torch.zeros(d_model) -> torch.ones(d_model)
    Your bias starts at one, so the output of a new layer has mean 1. It was right: the bias starts at zero.
torch.ones(d_model) -> torch.zeros(d_model)
    Your weight starts at zero, so a new layer returns zeros only. The weight starts at one.
torch.ones(d_model) -> torch.zeros(d_model)
+ torch.zeros(d_model) -> torch.ones(d_model)
    Your weight starts at zero and your bias at one, so a new layer returns ones only. It is the other way round.
x.var(dim=-1, keepdim=True, correction=0) -> (x**2).mean(dim=-1, keepdim=True)
+ ((x - mean) / spread) -> (x / spread)
    You no longer subtract the mean. That line was correct.
((x - mean) / spread) -> (x / spread)
    Your variance is right, but the mean stays in x: divide x - mean, as the code did.
x.var(dim=-1, keepdim=True, correction=0) -> (x**2).mean(dim=-1, keepdim=True)
    You do not subtract the mean inside the variance. The variance is the mean of (x - mean)².
dim=-1 => dim=0
    Your mean and variance are computed over the first axis. The axis was right: each vector is normalised separately,
    dim=-1.
dim=-1 => dim=-2
    Your mean and variance are computed over the last axis but one. The axis was right: each vector is normalised
    separately, dim=-1.
dim=-1 => dim=tuple(range(x.dim()))
    You compute one mean and one variance of the whole tensor. The axis was right: each vector has its own, dim=-1.
nn.Parameter(torch.ones(d_model)) -> torch.ones(d_model)
+ nn.Parameter(torch.zeros(d_model)) -> torch.zeros(d_model)
    Training changes neither weight nor bias: they are not nn.Parameters, the result does
    not depend on them, or there are none.
nn.Parameter(torch.ones(d_model)) -> torch.ones(d_model)
    Training does not change the weight: it is not an nn.Parameter, the result does not depend on it, or there is none.
nn.Parameter(torch.zeros(d_model)) -> torch.zeros(d_model)
    Training does not change the bias: it is not an nn.Parameter, the result does not depend on it, or there is none.
{FORMULA} -> (x - mean) / spread / self.weight + self.bias
    With a trained weight your layer is wrong: you divide by the weight. It multiplies.
{FORMULA} -> self.weight * (x - mean) / spread - self.bias
    With a trained bias your layer is wrong: you subtract the bias. It is added.
{FORMULA} -> self.weight + (x - mean) / spread + self.bias
    You add the weight. It multiplies; the bias is added.
"""


EXERCISE = Exercise(
    title="Bug hunt: a layer normalisation",
    reference=_reference,
    solution=normed,
    cases=(
        Case(x=torch.tensor([[1.0, 2.0, 6.0], [0.003, -0.001, 0.004]])),
        Case(x=random_tensor(2, 3, 4, seed=70) + 2),
        Case(x=random_tensor(3, 2, 7, seed=71) / 200),
    ),
    mistakes=(*LEFT, *mistakes(normed, MISTAKES)),
    hints=(
        "Make a new layer and apply it to a vector. Which mean and which variance should the output have?",
        "What does x.std divide by? In which order do weight and bias act? And what is the output for torch.tensor([0.003, -0.001, 0.004])?",
        "Multiply by the weight, then add the bias; x.var(dim=-1, keepdim=True, correction=0); torch.sqrt(variance + self.eps).",
    ),
    given=GIVEN,
    given_message=GIVEN_MESSAGE,
)
