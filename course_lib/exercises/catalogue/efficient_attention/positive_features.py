"""Exercise `positive_features` of notebook 10."""

import math
from functools import partial

import torch

from course_lib.efficient import performer_features
from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.exercise import Case, Exercise, Mistake


def positive_features(x, omega):
    x = x / x.shape[-1] ** 0.25  # so that q · k is divided by √d
    exponents = x @ omega.mT - x.square().sum(dim=-1, keepdim=True) / 2
    return torch.exp(exponents) / math.sqrt(len(omega))


def _features(
    x,
    omega,
    *,
    scale=lambda x: x / x.shape[-1] ** 0.25,
    norm=lambda x: x.square().sum(dim=-1, keepdim=True) / 2,
    count=math.sqrt,
):
    scaled = scale(x)
    return torch.exp(scaled @ omega.mT - norm(scaled)) / count(len(omega))


def _unscaled_norm(x, omega):
    exponents = x / x.shape[-1] ** 0.25 @ omega.mT - x.square().sum(dim=-1, keepdim=True) / 2
    return torch.exp(exponents) / math.sqrt(len(omega))


EXERCISE = Exercise(
    name="positive_features",
    notebook="10_efficient_attention",
    title="Performer's positive features",
    reference=lambda x, omega: performer_features(x / x.shape[-1] ** 0.25, omega),
    solution=positive_features,
    cases=(
        Case(
            x=torch.tensor([[2.0, 0.0, 0.0, 2.0]]),
            omega=torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 1.0]]),
        ),
        Case(x=random_tensor(5, 3, seed=1), omega=random_tensor(7, 3, seed=2)),
        Case(x=random_tensor(4, 9, seed=3), omega=random_tensor(4, 9, seed=4)),
    ),
    mistakes=(
        Mistake(
            "no_norm",
            partial(_features, norm=lambda x: 0.0),
            "The factor exp(-|x|²/2) is missing. Without it the mean of the products is exp(|q + k|²/2), which is not "
            "exp(q · k).",
        ),
        Mistake(
            "whole_norm",
            partial(_features, norm=lambda x: x.square().sum(dim=-1, keepdim=True)),
            "You subtract |x|². The mean of exp(ω · x) is exp(|x|²/2): subtract half.",
        ),
        Mistake(
            "norm_not_squared",
            partial(_features, norm=lambda x: x.norm(dim=-1, keepdim=True) / 2),
            "You subtract |x|/2. It is the square: |x|²/2.",
        ),
        Mistake(
            "norm_added",
            partial(_features, norm=lambda x: -x.square().sum(dim=-1, keepdim=True) / 2),
            "You multiply by exp(+|x|²/2). The exponent is ω · x minus |x|²/2.",
        ),
        Mistake(
            "norm_before_the_scale",
            _unscaled_norm,
            "The norm is that of the unscaled vector. Divide x by d^(1/4) first, then compute both terms from it.",
        ),
        Mistake(
            "no_scale",
            partial(_features, scale=lambda x: x),
            "These features estimate exp(q · k). The scores of attention are divided by √d: divide x by d^(1/4).",
        ),
        Mistake(
            "whole_scale",
            partial(_features, scale=lambda x: x / x.shape[-1] ** 0.5),
            "You divide x by √d. Queries and keys both get it, so the scores are divided by d. Each needs d^(1/4).",
        ),
        Mistake(
            "no_count",
            partial(_features, count=lambda m: 1),
            "The product of two features is a sum over m samples. For a mean, divide each feature vector by √m.",
        ),
        Mistake(
            "whole_count",
            partial(_features, count=lambda m: m),
            "You divide each feature vector by m, so the product is divided by m². Each needs √m.",
        ),
        Mistake(
            "scaled_by_the_features",
            lambda x, omega: _features(x, omega, scale=lambda x: x / len(omega) ** 0.25),
            "You scale by the number of features. The scale of attention is √d: divide x by d^(1/4).",
        ),
        Mistake(
            "no_exponential",
            lambda x, omega: (
                (
                    x / x.shape[-1] ** 0.25 @ omega.mT
                    - (x / x.shape[-1] ** 0.25).square().sum(dim=-1, keepdim=True) / 2
                )
                / math.sqrt(len(omega))
            ),
            "These are the exponents. The features are their exponentials, divided by √m.",
        ),
    ),
    hints=(
        "The mean of exp(ω · (q + k)) is exp(|q + k|²/2). Which factors are too many?",
        "Divide x by d^(1/4) first. Then the exponent is x @ omega.mT - |x|²/2, with the norm of the scaled x.",
        "The product of two feature vectors must be a mean over the m samples: divide each vector by √m.",
    ),
)
