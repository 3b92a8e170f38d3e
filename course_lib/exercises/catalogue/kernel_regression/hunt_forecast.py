"""Bug hunt `hunt_forecast` of notebook 01."""

import torch

from course_lib.exercises.catalogue.kernel_regression._shared import (
    KEYS,
    NILE,
    VALUES,
    gaussian_pooling,
    scaled_differences,
)
from course_lib.exercises.exercise import Case, Exercise, Mistake


def forecast(queries, keys, values, bandwidth):
    differences = queries[:, None] - keys[None, :]  # (query, key)
    scores = -((differences / bandwidth) ** 2) / 2  # (query, key)
    weights = torch.softmax(scores, dim=-1)  # (query, key): subtracts the largest score before exp
    return weights @ values  # (query,)


def _smooth_by_ratio(queries, keys, values, bandwidth):
    kernel = torch.exp(-(((queries[:, None] - keys[None, :]) / bandwidth) ** 2) / 2)
    weights = kernel / kernel.sum(dim=-1, keepdim=True)
    return weights @ values


def _smooth_with_epsilon(queries, keys, values, bandwidth):
    kernel = torch.exp(-(((queries[:, None] - keys[None, :]) / bandwidth) ** 2) / 2)
    weights = kernel / (kernel.sum(dim=-1, keepdim=True) + 1e-9)
    return weights @ values


def _smooth_with_one_maximum(queries, keys, values, bandwidth):
    scores = -(scaled_differences(queries, keys, bandwidth) ** 2) / 2
    kernel = torch.exp(scores - scores.max())
    return (kernel / kernel.sum(dim=-1, keepdim=True)) @ values


def _smooth_in_double(queries, keys, values, bandwidth):
    return _smooth_by_ratio(queries.double(), keys.double(), values.double(), bandwidth).to(queries)


def _smooth_nan_to_zero(queries, keys, values, bandwidth):
    return _smooth_by_ratio(queries, keys, values, bandwidth).nan_to_num()


def _smooth_nan_to_mean(queries, keys, values, bandwidth):
    output = _smooth_by_ratio(queries, keys, values, bandwidth)
    return torch.where(output.isnan(), values.mean(), output)


def _smooth_with_column_maximum(queries, keys, values, bandwidth):
    scores = -(scaled_differences(queries, keys, bandwidth) ** 2) / 2
    kernel = torch.exp(scores - scores.amax(dim=0, keepdim=True))
    return (kernel / kernel.sum(dim=-1, keepdim=True)) @ values


def _from_scores(scores, dim=-1):
    """The function with a softmax, of other scores."""
    return lambda q, k, v, h: torch.softmax(scores(q[:, None] - k, h), dim=dim) @ v


EXERCISE = Exercise(
    name="hunt_forecast",
    notebook="01_kernel_regression",
    title="Bug hunt: the flow in 2026",
    reference=gaussian_pooling,
    solution=forecast,
    cases=(
        Case(queries=torch.tensor([2.0, 100.0]), keys=KEYS, values=VALUES, bandwidth=1.0),
        Case(queries=torch.tensor([100.0, 101.0]), keys=KEYS, values=VALUES, bandwidth=1.0),
        Case(
            queries=torch.tensor([1970.0, 1990.0, 2026.0]),
            keys=NILE.keys,
            values=NILE.values,
            bandwidth=2.0,
        ),
    ),
    mistakes=(
        Mistake(
            "epsilon",
            _smooth_with_epsilon,
            "No NaN any more, but the output of the far query is now 0. The exact formula gives the value of the nearest "
            "key. The kernel values still underflow to 0 before you divide.",
        ),
        Mistake(
            "one_maximum_for_all",
            _smooth_with_one_maximum,
            "You subtract the largest score of all queries. Each row needs its own: max over the keys.",
        ),
        Mistake(
            "float64",
            _smooth_in_double,
            "float64 only moves the limit: for a query that is farther away, exp is 0 again.",
        ),
        Mistake(
            "nan_to_zero",
            _smooth_nan_to_zero,
            "No NaN any more, but the output of the far query is now 0. The exact formula gives the value of the nearest "
            "key. The kernel values underflow to 0 before you divide.",
        ),
        Mistake(
            "nan_to_mean",
            _smooth_nan_to_mean,
            "The output of a far query is now the mean of all values: all its keys get the same weight. The formula, computed "
            "exactly, gives the value of the nearest key. Subtract the largest score of each row before exp.",
        ),
        Mistake(
            "column_maximum",
            _smooth_with_column_maximum,
            "You subtract the largest score of each key, over the queries. That changes the weights. Subtract the largest "
            "score of each query, over the keys: dim=-1.",
        ),
        Mistake(
            "over_queries",
            _from_scores(lambda d, h: -((d / h) ** 2) / 2, dim=0),
            "Your softmax runs over the queries. The weights of one query must sum to 1 over the keys: dim=-1.",
        ),
        Mistake(
            "nearest_key",
            lambda q, k, v, h: v[(q[:, None] - k).abs().argmin(dim=-1)],
            "Each output is now the value of the nearest key. That is right for a query far away, but near the data the "
            "other keys have weight too.",
        ),
        Mistake(
            "no_half",
            _from_scores(lambda d, h: -((d / h) ** 2)),
            "The factor 1/2 in the exponent is missing.",
        ),
        Mistake(
            "wrong_sign",
            _from_scores(lambda d, h: ((d / h) ** 2) / 2),
            "The minus sign of the exponent is gone: the farthest key gets the largest weight.",
        ),
        Mistake(
            "softmax_of_the_kernel",
            _from_scores(lambda d, h: torch.exp(-((d / h) ** 2) / 2)),
            "You apply a softmax to the kernel values. softmax computes exp itself: give it the scores.",
        ),
        Mistake(
            "absolute",
            _from_scores(lambda d, h: -(d / h).abs() / 2),
            "The square is gone: your score is linear in the distance.",
        ),
        Mistake(
            "queries_clamped",
            lambda q, k, v, h: _smooth_by_ratio(q.clamp(k.min(), k.max()), k, v, h),
            "You move far queries to the nearest end of the data. The query itself must stay: far away, the nearest key gets "
            "nearly all the weight.",
        ),
        Mistake(
            "scores_rescaled",
            _from_scores(lambda d, h: -(s := (d / h) ** 2 / 2) / s.amax(dim=-1, keepdim=True)),
            "You divide the scores by the largest of them, which changes the weights. Subtract the largest score of the row: "
            "the weights stay the same.",
        ),
        Mistake(
            "mean_subtracted",
            lambda q, k, v, h: (
                s := -(scaled_differences(q, k, h) ** 2) / 2,
                e := torch.exp(s - s.mean(dim=-1, keepdim=True)),
                e / e.sum(dim=-1, keepdim=True) @ v,
            )[-1],
            "You subtract the mean score of the row, so the largest one can still overflow in exp. Subtract the largest.",
        ),
        Mistake(
            "no_softmax",
            lambda q, k, v, h: -(scaled_differences(q, k, h) ** 2) / 2 @ v,
            "These are scores, not weights: exp is gone. Take a softmax over the keys.",
        ),
        Mistake(
            "bandwidth_ignored",
            _from_scores(lambda d, h: -(d**2) / 2),
            "The bandwidth is not used. The score is -(difference / bandwidth)² / 2.",
        ),
        Mistake(
            "bandwidth_not_squared",
            _from_scores(lambda d, h: -(d**2) / h / 2),
            "You square the difference before you divide by the bandwidth. The score is -(difference / bandwidth)² / 2.",
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
        Mistake(
            "not_squared",
            _from_scores(lambda d, h: -(d / h) / 2),
            "The square is gone from the score, so keys on one side of the query get all the weight.",
        ),
    ),
    hints=(
        "Print kernel.sum(dim=-1) for the far query. What is the smallest positive number in "
        "float32? (A result below it becomes 0: underflow.)",
        "The weights do not change if you multiply all kernel values of a row by the same number. Choose one that "
        "makes the largest of them 1.",
        "torch.softmax subtracts the largest score of the row before it takes exp. That has the same effect.",
    ),
    given=_smooth_by_ratio,
)
