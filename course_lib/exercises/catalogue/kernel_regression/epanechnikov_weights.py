"""Exercise `epanechnikov_weights` of notebook 01."""

import functools

import torch

from course_lib.exercises.catalogue.kernel_regression._shared import (
    KEYS,
    WEIGHT_CASES,
    scaled_differences,
)
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.pooling import attention_pooling


def epanechnikov_weights(queries, keys, bandwidth):
    u = (queries[:, None] - keys[None, :]) / bandwidth  # (query, key)
    kernel = 0.75 * (1 - u**2).clamp(min=0)  # 0 outside the window
    total = kernel.sum(dim=-1, keepdim=True)  # (query, 1)
    return kernel / torch.where(total == 0, 1, total)  # an empty window gives zeros


def _parabola(queries, keys, bandwidth):
    return 0.75 * (1 - scaled_differences(queries, keys, bandwidth) ** 2)


def _normalised(kernel):
    total = kernel.sum(dim=-1, keepdim=True)
    return kernel / torch.where(total == 0, 1, total)


def _epanechnikov_with_epsilon(queries, keys, bandwidth, *, epsilon):
    kernel = _parabola(queries, keys, bandwidth).clamp(min=0)
    return kernel / (kernel.sum(-1, keepdim=True) + epsilon)


EXERCISE = Exercise(
    name="epanechnikov_weights",
    notebook="01_kernel_regression",
    title="Epanechnikov weights, and an empty window",
    reference=lambda queries, keys, bandwidth: (
        attention_pooling(queries, keys, keys, kernel="epanechnikov", bandwidth=bandwidth).weights
    ),
    solution=epanechnikov_weights,
    cases=(
        Case(queries=torch.tensor([1.0, 9.0]), keys=KEYS, bandwidth=2.0),
        *WEIGHT_CASES,
    ),
    mistakes=(
        Mistake(
            "empty_window",
            lambda q, k, h: (
                (kernel := _parabola(q, k, h).clamp(min=0)) / kernel.sum(-1, keepdim=True)
            ),
            "A query with no key in its window gets 0/0. Its row must be all zeros, like that of a fully masked row.",
        ),
        Mistake(
            "no_clamp",
            lambda q, k, h: _normalised(_parabola(q, k, h)),
            "Your kernel goes negative outside the window, which also makes the sum of the row wrong. "
            "It is 0 there: clamp 1 - u² at 0.",
        ),
        Mistake(
            "boxcar",
            lambda q, k, h: _normalised((scaled_differences(q, k, h).abs() <= 1).to(q.dtype)),
            "All keys in your window have equal weights; that is the boxcar kernel. Epanechnikov's kernel falls as 1 - u².",
        ),
        Mistake(
            "absolute",
            lambda q, k, h: _normalised((1 - scaled_differences(q, k, h).abs()).clamp(min=0)),
            "Your kernel falls as 1 - |u|; that is the triangular kernel. Square u.",
        ),
        Mistake(
            "softmax",
            lambda q, k, h: torch.softmax(_parabola(q, k, h).clamp(min=0), dim=-1),
            "You apply a softmax to the kernel values. exp(0) is 1, so keys outside the window still get weight. "
            "Divide by the sum instead.",
        ),
        *(
            Mistake(
                f"epsilon_{epsilon:g}",
                functools.partial(_epanechnikov_with_epsilon, epsilon=epsilon),
                "A constant added to every denominator makes all rows sum to less than 1. "
                "Change only the rows whose sum is 0.",
            )
            for epsilon in (1e-2, 1e-3)
        ),
    ),
    hints=(
        "u = (query - key) / bandwidth. The kernel is 3/4 · (1 - u²) where |u| ≤ 1 and 0 elsewhere: clamp does both.",
        "Divide each row by its sum. What is the sum of a row whose window holds no key?",
        "torch.where(total == 0, 1, total) is a denominator that is never 0.",
    ),
)
