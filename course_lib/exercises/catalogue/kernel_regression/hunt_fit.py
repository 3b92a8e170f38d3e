"""Bug hunt `hunt_fit` of notebook 01."""

import torch

from course_lib.exercises.catalogue._shared import two_mistakes
from course_lib.exercises.catalogue.kernel_regression._shared import (
    KEYS,
    QUERIES,
    VALUES,
    WAVE,
    gaussian_pooling,
    scaled_differences,
)
from course_lib.exercises.exercise import Case, Exercise, Mistake


def smooth(queries, keys, values, bandwidth):
    differences = queries[:, None] - keys[None, :]  # (query, key)
    scores = -((differences / bandwidth) ** 2) / 2  # (query, key)
    weights = torch.softmax(scores, dim=-1)  # (query, key): over the keys
    return weights @ values  # (query,)


def _smooth_over_queries(queries, keys, values, bandwidth):
    scores = -(((queries[:, None] - keys[None, :]) / bandwidth) ** 2) / 2
    weights = torch.softmax(scores, dim=0)
    return weights @ values


def _over_queries_then_keys(queries, keys, values, bandwidth):
    weights = torch.softmax(-(scaled_differences(queries, keys, bandwidth) ** 2) / 2, dim=0)
    return (weights / weights.sum(dim=-1, keepdim=True)) @ values


def _from_scores(scores):
    """The function with other scores, of the differences and the bandwidth."""
    return lambda q, k, v, h: torch.softmax(scores(q[:, None] - k, h), dim=-1) @ v


def _smooth(q, k, v, h, *, half=0.5, power=1.0, dim=-1):
    return torch.softmax(-half * ((q[:, None] - k) / h**power) ** 2, dim=dim) @ v


EXERCISE = Exercise(
    name="hunt_fit",
    notebook="01_kernel_regression",
    title="Bug hunt: a fit that misses the data",
    reference=gaussian_pooling,
    solution=smooth,
    cases=(
        Case(queries=QUERIES, keys=KEYS, values=VALUES, bandwidth=1.0),
        Case(queries=torch.linspace(0, 5, 7), keys=WAVE.keys, values=WAVE.values, bandwidth=0.4),
    ),
    mistakes=(
        Mistake(
            "normalised_afterwards",
            _over_queries_then_keys,
            "Each row sums to 1 now, but the softmax over axis 0 divided every column by its own sum first, so the "
            "weights within a row are still in the wrong proportion. Use one softmax, over the keys.",
        ),
        Mistake(
            "no_half",
            lambda q, k, v, h: torch.softmax(-(scaled_differences(q, k, h) ** 2), dim=-1) @ v,
            "The axis is right now, but the factor 1/2 in the exponent is missing.",
        ),
        Mistake(
            "both_axes",
            lambda q, k, v, h: (
                torch.softmax(torch.softmax(-(scaled_differences(q, k, h) ** 2) / 2, dim=0), dim=-1)
                @ v
            ),
            "Two softmaxes in a row make the weights too uniform. Use one, over one axis.",
        ),
        Mistake(
            "divided_again",
            lambda q, k, v, h: (
                (w := torch.softmax(-(scaled_differences(q, k, h) ** 2) / 2, dim=0)) @ v / w.sum()
            ),
            "You divide all outputs by one number, but each row of weights has its own sum.",
        ),
        Mistake(
            "wrong_sign",
            _from_scores(lambda d, h: (d / h) ** 2 / 2),
            "The minus sign of the exponent is gone: the farthest key gets the largest weight.",
        ),
        *(
            Mistake(
                f"absolute_{name}",
                _from_scores(scores),
                "Your score is linear in the distance. The Gaussian kernel has the squared distance in its exponent.",
            )
            for name, scores in {
                "halved": lambda d, h: -(d / h).abs() / 2,
                "whole": lambda d, h: -(d / h).abs(),
            }.items()
        ),
        Mistake(
            "not_squared",
            _from_scores(lambda d, h: -(d / h) / 2),
            "The square is gone from the score, so keys on one side of the query get all the weight.",
        ),
        Mistake(
            "bandwidth_not_squared",
            _from_scores(lambda d, h: -(d**2) / h / 2),
            "You square the difference before you divide by the bandwidth. The score is -(difference / bandwidth)² / 2.",
        ),
        Mistake(
            "bandwidth_ignored",
            _from_scores(lambda d, h: -(d**2) / 2),
            "The bandwidth is not used. The score is -(difference / bandwidth)² / 2.",
        ),
        Mistake(
            "over_all",
            lambda q, k, v, h: (
                torch.softmax(-(scaled_differences(q, k, h) ** 2).flatten() / 2, dim=0).view(
                    len(q), len(k)
                )
                @ v
            ),
            "Your softmax runs over queries and keys together, so all weights sum to 1. Those of each query must: "
            "dim=-1.",
        ),
        Mistake(
            "not_normalised",
            lambda q, k, v, h: torch.exp(-(scaled_differences(q, k, h) ** 2) / 2) @ v,
            "These are kernel values; the weights of a query do not sum to 1. Divide each row by its sum, or use softmax "
            "over the keys.",
        ),
        Mistake(
            "weights_for_keys",
            lambda q, k, v, h: torch.softmax(-(scaled_differences(q, k, h) ** 2) / 2, dim=-1) @ k,
            "You average the keys. The output is the weighted sum of the values.",
        ),
        Mistake(
            "half_squared",
            _from_scores(lambda d, h: -((d / h) ** 2) / 4),
            "The factor is 1/4 in your exponent. Square the difference over the bandwidth, then divide by 2: the 2 is not "
            "squared.",
        ),
        *two_mistakes(
            _smooth,
            {
                "softmax_over_queries": ({"dim": 0}, "Your softmax still runs over the queries."),
            },
            {
                "no_half": ({"half": 1.0}, "The factor 1/2 in the exponent is missing."),
                "positive": ({"half": -0.5}, "The minus sign of the exponent is missing."),
                "bandwidth_not_squared": (
                    {"power": 0.5},
                    "You square the difference before you divide by the bandwidth.",
                ),
                "bandwidth_ignored": ({"power": 0.0}, "The bandwidth is not used."),
            },
        ),
        Mistake(
            "no_softmax",
            lambda q, k, v, h: -(scaled_differences(q, k, h) ** 2) / 2 @ v,
            "The softmax is gone: these are scores, not weights. Take a softmax over the keys.",
        ),
        Mistake(
            "times_bandwidth",
            _from_scores(lambda d, h: -((d * h) ** 2) / 2),
            "You multiply by the bandwidth. Divide: a large bandwidth makes distances small.",
        ),
        Mistake(
            "times_two",
            _from_scores(lambda d, h: -((d / h) ** 2) * 2),
            "You multiply by 2. The score is -(difference / bandwidth)² / 2.",
        ),
    ),
    hints=(
        "Print weights.sum(dim=-1). The weights of each query must sum to 1.",
        "In a (query, key) tensor, axis 0 is the queries. Along which axis must the weights sum to 1?",
        "torch.softmax(scores, dim=-1).",
    ),
    given=_smooth_over_queries,
)
