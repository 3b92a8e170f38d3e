"""Bug hunt: a layer normalisation."""

import torch
import torch.nn.functional as F

from course_lib.exercises.catalogue._shared import random_tensor


def layer_norm(x, weight, bias, eps=1e-5):
    mean = x.mean(dim=-1, keepdim=True)
    variance = x.var(dim=-1, keepdim=True, correction=0)  # 1: divided by d
    spread = torch.sqrt(variance + eps)  # 2: eps inside the root
    return weight * ((x - mean) / spread) + bias  # 3: the bias comes last


def reference(x, weight, bias):
    return F.layer_norm(x, x.shape[-1:], weight, bias)


FORMULA = "weight * ((x - mean) / spread) + bias"
BIAS = f"{FORMULA} -> weight * ((x - mean) / spread + bias)"
DIVISOR = ", correction=0) -> )"
EPS = "torch.sqrt(variance + eps) -> (torch.sqrt(variance) + eps)"
BUGS = f"""
{BIAS}
    the weight multiplies the bias too
{DIVISOR}
    the variance of the output is below 1, most of all for small d
{EPS}
    a vector of nearly equal components is scaled up too much
"""

ROOT = "torch.sqrt(variance + eps) -> torch.sqrt(torch.sqrt(variance) + eps)"
TWO_ROOTS = (
    "You take the root of the standard deviation, which is a root already. eps belongs to the "
    "variance, and the root is taken of their sum."
)
MISTAKES = rf"""
variance + eps -> variance
    Your eps has no effect any more: add it to the variance, or a vector of equal components is divided by 0.
torch.sqrt(variance + eps) -> (torch.sqrt(variance) + eps**0.5)
    You take the roots of variance and eps one by one. The root is that of their sum: sqrt(variance + eps).
torch.sqrt(variance + eps) -> (torch.sqrt(variance + eps) + eps)
    You add eps twice, inside the root and outside. It belongs inside only.
eps=1e-5 -> eps=1e-6
eps=1e-5 -> eps=1e-8
    Your eps is smaller than 1e-5, which was right.
torch.sqrt(variance + eps) -> (variance + eps)
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
{FORMULA} -> (x - mean) / spread / weight + bias
    You divide by the weight. It multiplies.
{FORMULA} -> weight * (x - mean) / spread - bias
    You subtract the bias. It is added.
{FORMULA} -> weight + (x - mean) / spread + bias
    You add the weight. It multiplies; the bias is added.
"""

CASES = (
    dict(
        x=torch.tensor([[1.0, 2.0, 6.0], [0.003, -0.001, 0.004]]),
        weight=torch.tensor([2.0, 1.0, 3.0]),
        bias=torch.tensor([1.0, 0.0, -1.0]),
    ),
    dict(
        x=random_tensor(2, 3, 4, seed=70) + 2,
        weight=random_tensor(4, seed=75) + 2,
        bias=random_tensor(4, seed=76),
    ),
    dict(
        x=random_tensor(3, 2, 7, seed=71) / 200,
        weight=random_tensor(7, seed=77) + 2,
        bias=random_tensor(7, seed=78),
    ),
)
HINTS = """
With weight 1 and bias 0, which mean and which variance should the output have?
What does x.std divide by? In which order do weight and bias act? And what is the output for torch.tensor([0.003,
    -0.001, 0.004])?
Multiply by the weight, then add the bias; x.var(dim=-1, keepdim=True, correction=0); torch.sqrt(variance + eps).
"""
