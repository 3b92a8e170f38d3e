"""Performer's positive features."""

import math

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.topics.efficient import performer_features


def positive_features(x, omega):
    x = x / x.shape[-1] ** 0.25  # so that q · k is divided by √d
    exponents = x @ omega.mT - x.square().sum(dim=-1, keepdim=True) / 2
    return torch.exp(exponents) / math.sqrt(len(omega))


def reference(x, omega):
    return performer_features(x / x.shape[-1] ** 0.25, omega)


SCALE = "x / x.shape[-1] ** 0.25"
NORM = "x.square().sum(dim=-1, keepdim=True) / 2"
MISTAKES = f"""
- {NORM} ->
    The factor exp(-|x|²/2) is missing. Without it the mean of the products is exp(|q + k|²/2), which is not exp(q ·
    k).
{NORM} -> x.square().sum(dim=-1, keepdim=True)
    You subtract |x|². The mean of exp(ω · x) is exp(|x|²/2): subtract half.
{NORM} -> x.norm(dim=-1, keepdim=True) / 2
    You subtract |x|/2. It is the square: |x|²/2.
- {NORM} -> + {NORM}
    You multiply by exp(+|x|²/2). The exponent is ω · x minus |x|²/2.
x = {SCALE} -> y, x = x, {SCALE}
+ {NORM} -> y.square().sum(dim=-1, keepdim=True) / 2
    The norm is that of the unscaled vector. Divide x by d^(1/4) first, then compute both terms from it.
x = {SCALE} -> x = x
    These features estimate exp(q · k). The scores of attention are divided by √d: divide x by d^(1/4).
** 0.25 -> ** 0.5
    You divide x by √d. Queries and keys both get it, so the scores are divided by d. Each needs d^(1/4).
/ math.sqrt(len(omega)) ->
    The product of two features is a sum over m samples. For a mean, divide each feature vector by √m.
/ math.sqrt(len(omega)) -> / len(omega)
    You divide each feature vector by m, so the product is divided by m². Each needs √m.
x = {SCALE} -> x = x / len(omega) ** 0.25
    You scale by the number of features. The scale of attention is √d: divide x by d^(1/4).
torch.exp(exponents) -> exponents
    These are the exponents. The features are their exponentials, divided by √m.
x = {SCALE} -> x = x / len(x) ** 0.25
    You scale by the number of positions. The scale of attention is √d: divide x by d^(1/4).
x = {SCALE} -> scale, x = x.shape[-1] ** 0.5, x
+ exp(exponents) -> exp(exponents / scale)
x = {SCALE} -> scale, x = x.shape[-1] ** 0.25, x
+ exp(exponents) -> exp(exponents / scale)
    You divide the whole exponent. ω · x is linear in x and |x|² is not: divide x by d^(1/4) first, then compute both
    terms from it.
x = {SCALE} -> y, x = {SCALE}, x
+ x @ omega.mT -> y @ omega.mT
+ {NORM} -> x.square().sum(dim=-1, keepdim=True) / 2 / x.shape[-1]
    Your norm is divided by d. It is that of the scaled vector, whose square is divided by √d.
exp(exponents) -> exp(exponents - exponents.amax(dim=-1, keepdim=True))
    You subtract the largest exponent of each row, which multiplies each feature vector by a factor of its own. That
    cancels for queries when attention divides, but not for keys, and the estimate is biased.
exp(exponents) -> exp(exponents - exponents.amax())
    You subtract the largest exponent. That cancels when attention divides, but here the estimate itself must be
    unbiased.
torch.exp(exponents) / math.sqrt(len(omega)) -> torch.softmax(exponents, dim=-1)
    You normalise the features of each vector to a sum of 1. They are exponentials divided by √m.
{NORM} -> x.square().mean(dim=-1, keepdim=True) / 2
    You subtract half the mean of the squares. The squared norm is their sum.
math.sqrt(len(omega)) -> math.sqrt(omega.shape[-1])
    You divide by √d. The product of two features is a sum over m samples: divide each feature vector by √m.
exp(exponents) / math.sqrt(len(omega)) -> exp(exponents / math.sqrt(len(omega)))
    The √m stands inside your exponential. The mean over the samples divides the exponentials: exp(…) / √m.
omega.mT -> omega
    omega is (m, d), one random vector in each row: the products with x are x @ omega.mT.
"""

CASES = (
    dict(
        x=torch.tensor([[2.0, 0.0, 0.0, 2.0]]),
        omega=torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 1.0]]),
    ),
    dict(x=random_tensor(5, 3, seed=1), omega=random_tensor(7, 3, seed=2)),
    dict(x=random_tensor(4, 9, seed=3), omega=random_tensor(4, 9, seed=4)),
)
HINTS = """
The mean of exp(ω · (q + k)) is exp(|q + k|²/2). Which factors are too many?
Divide x by d^(1/4) first. Then the exponent is x @ omega.mT - |x|²/2, with the norm of the scaled x.
The product of two feature vectors must be a mean over the m samples: divide each vector by √m.
"""
