"""Exercise `layer_norm` of notebook 07."""

import torch
from torch.func import functional_call

from course_lib.blocks import LayerNorm
from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.edits import mistakes
from course_lib.exercises.exercise import Case, Exercise


def layer_norm(x, weight, bias, eps):
    mean = x.mean(dim=-1, keepdim=True)  # (…, 1): of each vector
    variance = ((x - mean) ** 2).mean(dim=-1, keepdim=True)  # divided by d, not d - 1
    normal = (x - mean) / torch.sqrt(variance + eps)
    return normal * weight + bias


VARIANCE = "((x - mean) ** 2).mean(dim=-1, keepdim=True)"
NORMAL = "(x - mean) / torch.sqrt(variance + eps)"
MISTAKES = rf"""
torch.sqrt(variance + eps) -> (torch.sqrt(variance) + eps)
    Your eps is outside the root. Add it to the variance: sqrt(variance + eps). The difference shows where the
    components of a vector are nearly equal.
torch.sqrt(variance + eps) -> (torch.sqrt(variance) + eps**0.5)
    You take the roots of variance and eps one by one. The root is that of their sum: sqrt(variance + eps).
{VARIANCE} -> x.var(dim=-1, keepdim=True)
    Your variance is divided by d - 1, as .var() and .std() do unless told otherwise. LayerNorm divides by d:
    correction=0.
{VARIANCE} -> x.var(dim=-1, keepdim=True)
+ torch.sqrt(variance + eps) -> (torch.sqrt(variance) + eps)
    You divide by .std() + eps. Two things differ: LayerNorm divides the sum of squares by d, not by d - 1, and its
    eps is inside the root.
torch.sqrt(variance + eps) -> torch.sqrt(torch.sqrt(variance) + eps)
{VARIANCE} -> x.std(dim=-1, keepdim=True)
    You take the root of the standard deviation, which is a root already. eps is added to the variance: sqrt(variance
    + eps).
variance + eps -> variance
    You never use eps. A vector of equal components is divided by 0.
torch.sqrt(variance + eps) -> (variance + eps)
    You divide by the variance. Divide by its root.
{NORMAL} -> (x - mean) * torch.sqrt(variance + eps)
    You multiply by the standard deviation. Divide by it.
variance + eps -> variance - eps
    You subtract eps. It is added to the variance, so that the root is never that of 0.
{VARIANCE} -> (x**2).mean(dim=-1, keepdim=True)
+ normal = (x - mean) -> normal = x
    Your mean is never subtracted, which makes this RMSNorm. LayerNorm divides x - mean.
normal = (x - mean) -> normal = x
    Your variance is right, but the mean stays in x: divide x - mean.
{VARIANCE} -> (x**2).mean(dim=-1, keepdim=True)
    You subtract the mean from x, but not inside the variance. The variance is the mean of (x - mean)².
normal = (x - mean) -> normal = x - mean
    Only the mean is divided by the standard deviation, since / comes before -. Write (x - mean) in brackets.
dim=-1 => dim=-2
    Your mean and variance are computed over the tokens of a sentence. Each vector is normalised separately: dim=-1.
dim=-1 => dim=0
    Your mean and variance are computed over the batch, so a sentence depends on the others. Each vector is normalised
    separately: dim=-1.
dim=-1 => dim=(0, 1)
    Your mean and variance are computed over batch and tokens, for each component: that is BatchNorm. Each vector is
    normalised separately: dim=-1.
dim=-1 => dim=(-2, -1)
    Your mean and variance are those of a whole sentence. Each vector is normalised separately: dim=-1.
dim=-1 => dim=(0, 1, 2)
    You compute one mean and one variance of the whole tensor. Each vector has its own: dim=-1, keepdim=True.
normal * weight + bias -> normal + weight + bias
    You add the weight. It multiplies; the bias is added.
normal * weight + bias -> normal * weight * bias
    You multiply by the bias. It is added, after the weight has multiplied.
normal * weight + bias -> normal * bias + weight
    Weight and bias are exchanged: the weight multiplies, the bias is added.
normal * weight + bias -> (normal + bias) * weight
    You add the bias first, so the weight multiplies it too. Multiply by the weight, then add the bias.
weight + bias -> weight
    The bias is never used.
* weight ->
    The weight is never used.
* weight -> * (1 + weight)
    You multiply by 1 + weight, as Gemma's RMSNorm does. Here it is the weight itself.
normal * weight + bias -> normal
    Weight and bias are never used. Multiply by the weight, then add the bias.
variance + eps -> variance + 1e-5
    Your eps is always 1e-5. It is an argument.
variance + eps -> variance + eps**2
    You add the square of eps to the variance. Add eps itself: sqrt(variance + eps).
** 2).mean -> ** 2).sum
    You divide by the root of the sum of squares, so each vector gets the norm 1. The variance is their mean: divided
    by d.
{NORMAL} -> x - mean
    You subtract the mean, but do not divide by the standard deviation: sqrt(variance + eps).
{NORMAL} -> (x - mean) / ((x - mean).abs().mean(dim=-1, keepdim=True) + eps)
    You divide by the mean of the absolute deviations. Divide by the root of the mean of their squares.
{NORMAL} -> x / torch.sqrt(variance + eps) - mean
    You subtract the mean after the division. Subtract it first: (x - mean) / sqrt(variance + eps).
weight + bias -> weight - bias
    You subtract the bias. It is added.
"""


EXERCISE = Exercise(
    title="Layer normalisation by hand",
    reference=lambda x, weight, bias, eps: functional_call(
        LayerNorm(len(weight), eps), {"weight": weight, "bias": bias}, (x,)
    ),
    solution=layer_norm,
    cases=(
        Case(  # the second row is so small that eps counts
            x=torch.tensor([[[1.0, 2.0, 6.0], [0.003, -0.001, 0.004]]]),
            weight=torch.tensor([2.0, 1.0, -1.0]),
            bias=torch.tensor([3.0, 0.0, 1.0]),
            eps=1e-5,
        ),
        Case(
            x=random_tensor(2, 4, 5, seed=0) + 1,
            weight=random_tensor(5, seed=1),
            bias=random_tensor(5, seed=2),
            eps=1e-3,
        ),
        Case(  # and a vector of equal components
            x=torch.cat([random_tensor(3, 2, 7, seed=3), torch.full((3, 1, 7), 2.0)], dim=1),
            weight=random_tensor(7, seed=4),
            bias=random_tensor(7, seed=5),
            eps=1e-5,
        ),
    ),
    mistakes=mistakes(layer_norm, MISTAKES),
    hints=(
        "Four steps: the mean of each vector, its variance, normalise, then weight and bias. Which axis is a vector?",
        "mean = x.mean(dim=-1, keepdim=True). The variance is the mean of (x - mean) ** 2 along the same axis.",
        "(x - mean) / torch.sqrt(variance + eps) * weight + bias.",
    ),
)
