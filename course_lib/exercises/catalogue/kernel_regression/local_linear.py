"""Exercise `local_linear` of notebook 01."""

import torch

from course_lib.exercises.catalogue.kernel_regression._shared import KEYS, QUERIES, VALUES, WAVE
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.pooling import attention_pooling


def local_linear(queries, keys, values, bandwidth):
    weights = attention_pooling(queries, keys, values, bandwidth=bandwidth).weights  # (query, key)
    d = keys[None, :] - queries[:, None]  # (query, key): 0 at the query
    mean_d = (weights * d).sum(-1)  # (query,)
    mean_y = weights @ values  # (query,): the Nadaraya-Watson output
    slope = (weights * d * (values - mean_y[:, None])).sum(-1) / (
        weights * (d - mean_d[:, None]) ** 2
    ).sum(-1)
    return mean_y - slope * mean_d  # the line's height where d = 0


def _weighted_line(queries, keys, values, weights):
    """Solve the weighted normal equations of y = a + b d at every query; return a and b."""
    d = keys[None, :] - queries[:, None]
    s0, s1, s2 = weights.sum(-1), (weights * d).sum(-1), (weights * d * d).sum(-1)
    t0, t1 = weights @ values, (weights * d) @ values
    determinant = s0 * s2 - s1 * s1
    return (s2 * t0 - s1 * t1) / determinant, (s0 * t1 - s1 * t0) / determinant


def _local_linear_reference(queries, keys, values, bandwidth):
    dtype = queries.dtype
    queries, keys, values = queries.double(), keys.double(), values.double()
    weights = attention_pooling(queries, keys, values, bandwidth=bandwidth).weights
    return _weighted_line(queries, keys, values, weights)[0].to(dtype)


def _unweighted_line(queries, keys, values, bandwidth):
    return _weighted_line(queries, keys, values, torch.ones(len(queries), len(keys)))[0]


def _line_through_origin(queries, keys, values, bandwidth):
    weights = attention_pooling(queries, keys, values, bandwidth=bandwidth).weights
    intercept, slope = _weighted_line(queries, keys, values, weights)
    return intercept - slope * queries


def _weights_squared(queries, keys, values, bandwidth):
    weights = attention_pooling(queries, keys, values, bandwidth=bandwidth).weights
    return _weighted_line(queries, keys, values, weights**2)[0]


def _square_of_the_mean(queries, keys, values, bandwidth):
    weights = attention_pooling(queries, keys, values, bandwidth=bandwidth).weights
    d = keys[None, :] - queries[:, None]
    mean_d, mean_y = (weights * d).sum(-1), weights @ values
    slope = ((weights * d) @ values - mean_d * mean_y) / (mean_d**2 - mean_d**2)
    return mean_y - slope * mean_d


def _half_corrected(queries, keys, values, bandwidth):
    weights = attention_pooling(queries, keys, values, bandwidth=bandwidth).weights
    slope = _weighted_line(queries, keys, values, weights)[1]
    mean_d = (weights * (keys[None, :] - queries[:, None])).sum(-1)
    return weights @ values + slope * mean_d


EXERCISE = Exercise(
    name="local_linear",
    notebook="01_kernel_regression",
    title="A straight line per query, against bias at the edges",
    reference=_local_linear_reference,
    solution=local_linear,
    cases=(
        Case(queries=QUERIES, keys=KEYS, values=VALUES, bandwidth=1.0),
        Case(queries=torch.linspace(0.2, 5, 7), keys=WAVE.keys, values=WAVE.values, bandwidth=0.5),
    ),
    mistakes=(
        Mistake(
            "no_slope",
            lambda q, k, v, h: attention_pooling(q, k, v, bandwidth=h).output,
            "This is Nadaraya-Watson again. Fit a slope as well, and evaluate the line at the query, where d = 0; "
            "at the mean of d the slope has no effect.",
        ),
        Mistake(
            "unweighted",
            _unweighted_line,
            "Your line ignores the attention weights: it is one straight line for all queries. Use the weights in every sum.",
        ),
        Mistake(
            "square_of_the_mean",
            _square_of_the_mean,
            "You divide by 0: the mean of d² is not the square of the mean of d.",
        ),
        Mistake(
            "weights_squared",
            _weights_squared,
            "Your weights are squared. If you scale the rows of a least-squares problem, scale by the square roots "
            "of the weights: the squares of the residuals then carry the weights themselves.",
        ),
        Mistake(
            "line_at_zero",
            _line_through_origin,
            "You evaluate the line at x = 0. Evaluate it at the query.",
        ),
        Mistake(
            "wrong_correction",
            _half_corrected,
            "The slope is right and its sign at the end is not: the output is mean_y minus slope times mean_d.",
        ),
    ),
    hints=(
        "You need four weighted averages per query: of d, of y, of d·y and of d². weights @ values is the one of y.",
        "With weights that sum to 1, b is the weighted covariance of d and y over the weighted variance of d.",
        "c = mean_y - b · mean_d, where both means use the attention weights of that query.",
    ),
)
