"""Exercise `epanechnikov_weights` of notebook 01."""

import functools

import torch

from course_lib.exercises.catalogue._shared import two_mistakes
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


_OTHER_KERNELS = {
    "boxcar": (
        lambda u: (u.abs() <= 1).to(u.dtype),
        "All keys in your window have equal weights; that is the boxcar kernel. Epanechnikov's kernel falls as 1 - u².",
    ),
    "triangular": (
        lambda u: (1 - u.abs()).clamp(min=0),
        "Your kernel falls as 1 - |u|; that is the triangular kernel. Square u.",
    ),
    "biweight": (
        lambda u: (1 - u**2).clamp(min=0) ** 2,
        "You square 1 - u²; that is the biweight kernel. Epanechnikov's kernel is 1 - u² itself.",
    ),
    "gaussian": (
        lambda u: torch.exp(-(u**2) / 2),
        "This is the Gaussian kernel. Epanechnikov's kernel is 3/4 · (1 - u²) where |u| ≤ 1 and 0 elsewhere.",
    ),
    "one_sided": (
        lambda u: torch.where(u <= 1, 1 - u**2, 0.0),
        "Your window has no lower end: u is negative where the key is larger than the query. Compare |u| with 1.",
    ),
    "half_window": (
        lambda u: 1 - u.clamp(0, 1) ** 2,
        "Keys on one side of the query all have kernel 1, because u is negative there. Clamp 1 - u² at 0, not u.",
    ),
    "other_side": (
        lambda u: torch.where(u >= -1, 1 - u**2, 0.0),
        "Your window has no upper end. Compare |u| with 1.",
    ),
}


def _weights(q, k, h, *, power=1.0, dim=-1, safe=True):
    kernel = _parabola(q, k, h**power).clamp(min=0)
    total = kernel.sum(dim=dim, keepdim=True)
    return kernel / (torch.where(total == 0, 1, total) if safe else total)


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
        *(
            Mistake(
                name,
                lambda q, k, h, f=f: _normalised(f(scaled_differences(q, k, h))),
                message,
            )
            for name, (f, message) in _OTHER_KERNELS.items()
        ),
        *(
            Mistake(
                f"{name}_and_empty_window",
                lambda q, k, h, f=f: (
                    (w := f(scaled_differences(q, k, h))) / w.sum(-1, keepdim=True)
                ),
                f"{message} And a query with no key in its window gets 0/0; its row must be all zeros.",
            )
            for name, (f, message) in _OTHER_KERNELS.items()
            if name in ("boxcar", "triangular", "biweight")
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
        Mistake(
            "no_clamp_and_not_normalised",
            _parabola,
            "Your kernel goes negative outside the window; clamp 1 - u² at 0. Then divide each row by its sum.",
        ),
        Mistake(
            "not_normalised",
            lambda q, k, h: _parabola(q, k, h).clamp(min=0),
            "These are kernel values, not weights yet. Divide each row by its sum, except where the sum is 0.",
        ),
        Mistake(
            "not_normalised_without_factor",
            lambda q, k, h: _parabola(q, k, h).clamp(min=0) / 0.75,
            "These are kernel values, not weights yet. Divide each row by its sum, except where the sum is 0.",
        ),
        Mistake(
            "over_queries",
            lambda q, k, h: _normalised(_parabola(q, k, h).clamp(min=0).T).T,
            "You divide each column by its sum. The weights of one query must sum to 1, so divide each row by its sum.",
        ),
        Mistake(
            "bandwidth_ignored",
            lambda q, k, h: _normalised(_parabola(q, k, 1.0).clamp(min=0)),
            "The bandwidth is not used: u is the difference divided by the bandwidth.",
        ),
        Mistake(
            "bandwidth_not_squared",
            lambda q, k, h: _normalised(_parabola(q, k, h**0.5).clamp(min=0)),
            "You square the difference before you divide by the bandwidth, so the bandwidth is not squared. Divide first: "
            "u = difference / bandwidth.",
        ),
        Mistake(
            "times_bandwidth",
            lambda q, k, h: _normalised(_parabola(q, k, 1 / h).clamp(min=0)),
            "You multiply the difference by the bandwidth. Divide: a large bandwidth makes a wide window.",
        ),
        Mistake(
            "by_count",
            lambda q, k, h: (
                (w := _parabola(q, k, h).clamp(min=0)) / (w > 0).sum(-1, keepdim=True).clamp(min=1)
            ),
            "You divide by the number of keys in the window. The weights of a query sum to 1 only if you divide by the sum "
            "of its kernel values.",
        ),
        Mistake(
            "uniform_if_empty",
            lambda q, k, h: torch.where(
                (w := _parabola(q, k, h).clamp(min=0)).sum(-1, keepdim=True) == 0,
                1 / len(k),
                _normalised(w),
            ),
            "A query with no key in its window gets equal weights for all keys here. Its row must be all zeros, like that "
            "of a fully masked row.",
        ),
        Mistake(
            "by_maximum",
            lambda q, k, h: (
                (w := _parabola(q, k, h).clamp(min=0))
                / torch.where((top := w.amax(-1, keepdim=True)) == 0, 1, top)
            ),
            "You divide each row by its maximum. The weights of a query sum to 1 only if you divide by the sum of its kernel "
            "values.",
        ),
        *two_mistakes(
            _weights,
            {
                "bandwidth_ignored": ({"power": 0.0}, "The bandwidth is not used."),
                "bandwidth_not_squared": (
                    {"power": 0.5},
                    "You square the difference before you divide by the bandwidth.",
                ),
                "times_bandwidth": ({"power": -1.0}, "You multiply by the bandwidth. Divide."),
            },
            {
                "columns": (
                    {"dim": 0},
                    "You divide each column by its sum. Divide each row by its sum.",
                )
            },
            {
                "nan": (
                    {"safe": False},
                    "A query with no key in its window gets 0/0; its row must be all zeros.",
                )
            },
        ),
    ),
    hints=(
        "u = (query - key) / bandwidth. The kernel is 3/4 · (1 - u²) where |u| ≤ 1 and 0 elsewhere: clamp does both.",
        "Divide each row by its sum. What is the sum of a row whose window holds no key?",
        "torch.where(total == 0, 1, total) is a denominator that is never 0.",
    ),
)
