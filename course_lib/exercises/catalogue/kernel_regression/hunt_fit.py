"""Bug hunt `hunt_fit` of notebook 01."""

import torch

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
    ),
    hints=(
        "Print weights.sum(dim=-1). The weights of each query must sum to 1.",
        "In a (query, key) tensor, axis 0 is the queries. Along which axis must the weights sum to 1?",
        "torch.softmax(scores, dim=-1).",
    ),
    given=_smooth_over_queries,
)
