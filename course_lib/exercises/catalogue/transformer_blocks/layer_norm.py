"""Exercise `layer_norm` of notebook 07."""

from functools import partial

import torch
from torch.func import functional_call

from course_lib.blocks import LayerNorm
from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.catalogue.transformer_blocks._shared import standardise
from course_lib.exercises.exercise import Case, Exercise, Mistake


def layer_norm(x, weight, bias, eps):
    mean = x.mean(dim=-1, keepdim=True)  # (…, 1): of each vector
    variance = ((x - mean) ** 2).mean(dim=-1, keepdim=True)  # divided by d, not d - 1
    normal = (x - mean) / torch.sqrt(variance + eps)
    return normal * weight + bias


def _layer_norm(x, weight, bias, eps, **wrong):
    return standardise(x, eps, **wrong) * weight + bias


EXERCISE = Exercise(
    name="layer_norm",
    notebook="07_transformer_blocks",
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
    mistakes=(
        Mistake(
            "eps_outside",
            partial(_layer_norm, eps_at="outside"),
            "Your eps is outside the root. Add it to the variance: sqrt(variance + eps). The difference shows where the "
            "components of a vector are nearly equal.",
        ),
        Mistake(
            "unbiased",
            partial(_layer_norm, ddof=1),
            "Your variance is divided by d - 1, as .var() and .std() do unless told otherwise. LayerNorm divides "
            "by d: correction=0.",
        ),
        Mistake(
            "unbiased_and_eps_outside",
            partial(_layer_norm, ddof=1, eps_at="outside"),
            "You divide by .std() + eps. Two things differ: LayerNorm divides the sum of squares by d, not by d - 1, "
            "and its eps is inside the root.",
        ),
        Mistake(
            "no_eps",
            partial(_layer_norm, eps_at="nowhere"),
            "You never use eps. A vector of equal components is divided by 0.",
        ),
        Mistake(
            "not_rooted",
            partial(_layer_norm, rooted=False),
            "You divide by the variance. Divide by its root.",
        ),
        Mistake(
            "root_mean_square",
            partial(_layer_norm, centred=""),
            "Your mean is never subtracted. What you have is RMSNorm.",
        ),
        Mistake(
            "mean_left_in_x",
            partial(_layer_norm, centred="v"),
            "Your variance is right, but the mean stays in x: divide x - mean.",
        ),
        Mistake(
            "mean_left_in_variance",
            partial(_layer_norm, centred="x"),
            "You subtract the mean from x, but not inside the variance: that is the mean of (x - mean)².",
        ),
        Mistake(
            "over_tokens",
            partial(_layer_norm, dim=-2),
            "Your mean and variance are computed over the tokens of a sentence. Each vector is normalised separately: "
            "dim=-1.",
        ),
        Mistake(
            "over_batch",
            partial(_layer_norm, dim=0),
            "Your mean and variance are computed over the batch, so a sentence depends on the others. Each vector is "
            "normalised separately: dim=-1.",
        ),
        Mistake(
            "batch_norm",
            partial(_layer_norm, dim=(0, 1)),
            "Your mean and variance are computed over batch and tokens, for each component: that is BatchNorm. Each "
            "vector is normalised separately: dim=-1.",
        ),
        Mistake(
            "whole_sentence",
            partial(_layer_norm, dim=(-2, -1)),
            "Your mean and variance are those of a whole sentence. Each vector is normalised separately: dim=-1.",
        ),
        Mistake(
            "everything",
            partial(_layer_norm, dim=(0, 1, 2)),
            "You compute one mean and one variance of the whole tensor. Each vector has its own: dim=-1, keepdim=True.",
        ),
        Mistake(
            "weight_added",
            lambda x, w, b, eps: standardise(x, eps) + w + b,
            "You add the weight. It multiplies; the bias is added.",
        ),
        Mistake(
            "bias_multiplied",
            lambda x, w, b, eps: standardise(x, eps) * w * b,
            "You multiply by the bias. It is added, after the weight has multiplied.",
        ),
        Mistake(
            "exchanged",
            lambda x, w, b, eps: standardise(x, eps) * b + w,
            "Weight and bias are exchanged: the weight multiplies, the bias is added.",
        ),
        Mistake(
            "bias_first",
            lambda x, w, b, eps: (standardise(x, eps) + b) * w,
            "You add the bias first, so the weight multiplies it too. Multiply by the weight, then add the bias.",
        ),
        Mistake(
            "no_bias",
            lambda x, w, b, eps: standardise(x, eps) * w,
            "The bias is never used.",
        ),
        Mistake(
            "no_weight",
            lambda x, w, b, eps: standardise(x, eps) + b,
            "The weight is never used.",
        ),
        Mistake(
            "neither",
            lambda x, w, b, eps: standardise(x, eps),
            "The normalisation is correct. Multiply by the weight and add the bias.",
        ),
        Mistake(
            "eps_fixed",
            lambda x, w, b, eps: _layer_norm(x, w, b, 1e-5),
            "Your eps is always 1e-5. It is an argument.",
        ),
        Mistake(
            "eps_squared",
            lambda x, w, b, eps: _layer_norm(x, w, b, eps**2),
            "You add the square of eps to the variance. Add eps itself: sqrt(variance + eps).",
        ),
        Mistake(
            "sum_of_squares",
            lambda x, w, b, eps: _layer_norm(x, w, b, eps, ddof=x.shape[-1] - 1),
            "You divide by the root of the sum of squares, so each vector gets the norm 1. The variance is their mean: "
            "divided by d.",
        ),
        Mistake(
            "mean_alone",
            lambda x, w, b, eps: (x - x.mean(-1, keepdim=True)) * w + b,
            "You subtract the mean, but do not divide by the standard deviation: sqrt(variance + eps).",
        ),
        Mistake(
            "mean_of_absolute_values",
            lambda x, w, b, eps: (
                (c := x - x.mean(-1, keepdim=True)) / (c.abs().mean(-1, keepdim=True) + eps) * w + b
            ),
            "You divide by the mean of the absolute deviations. Divide by the root of the mean of their squares.",
        ),
        Mistake(
            "bias_subtracted",
            lambda x, w, b, eps: standardise(x, eps) * w - b,
            "You subtract the bias. It is added.",
        ),
    ),
    hints=(
        "Four steps: the mean of each vector, its variance, normalise, then weight and bias. Which axis is a vector?",
        "mean = x.mean(dim=-1, keepdim=True). The variance is the mean of (x - mean) ** 2 along the same axis.",
        "(x - mean) / torch.sqrt(variance + eps) * weight + bias.",
    ),
)
