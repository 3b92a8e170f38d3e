"""Exercise `local_linear` of notebook 01."""

import torch

from course_lib.exercises.catalogue._shared import two_mistakes
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


def _moments(queries, keys, values, bandwidth, *, dim=-1):
    """The four averages of each query: of d, y, d y and d²."""
    d = keys[None, :] - queries[:, None]
    weights = torch.softmax(-((d / bandwidth) ** 2) / 2, dim=dim)
    mean_d, mean_dd = (weights * d).sum(-1), (weights * d * d).sum(-1)
    return mean_d, weights @ values, (weights * d) @ values, mean_dd


def _from_moments(height, **settings):
    """The exercise with another formula, of the four averages and the queries."""
    return lambda q, k, v, h: height(*_moments(q, k, v, h, **settings), q)


def _height(d, y, dy, dd, q=None):
    return y - d * (dy - d * y) / (dd - d**2)


def _line(q, k, v, h, *, slope=None, sign=-1.0):
    d, y, dy, dd = _moments(q, k, v, h)
    return y + sign * d * slope(d, y, dy, dd)


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
            "Your weights are proportional to the squares of the Gaussian weights. Either the factor 1/2 in the exponent "
            "is missing, or you multiply the rows of a least-squares problem by the weights: multiply them by the square "
            "roots, because the residuals are squared.",
        ),
        Mistake(
            "line_at_zero",
            _line_through_origin,
            "You evaluate the line at x = 0. Evaluate it at the query.",
        ),
        Mistake(
            "wrong_correction",
            _half_corrected,
            "The correction by the slope has the wrong sign. The output is mean_y minus slope times mean_d, and the slope is "
            "positive where y grows with d.",
        ),
        Mistake(
            "slope_returned",
            _from_moments(lambda d, y, dy, dd, q: (dy - d * y) / (dd - d**2)),
            "You return the slope b. The output is the height of the line at the query, c = mean_y - b · mean_d.",
        ),
        Mistake(
            "variance_not_centred",
            _from_moments(lambda d, y, dy, dd, q: y - d * (dy - d * y) / dd),
            "Your denominator is the mean of d². The variance is the mean of d² minus the square of the mean of d.",
        ),
        Mistake(
            "covariance_not_centred",
            _from_moments(lambda d, y, dy, dd, q: y - d * dy / (dd - d**2)),
            "Your numerator is the mean of d·y. The covariance is the mean of d·y minus the product of the two means.",
        ),
        Mistake(
            "neither_centred",
            _from_moments(lambda d, y, dy, dd, q: y - d * dy / dd),
            "Your slope is the mean of d·y over the mean of d², which is that of a line through y = 0 at the query. "
            "Subtract the product of the means above, and the square of the mean of d below.",
        ),
        Mistake(
            "inverse_slope",
            _from_moments(lambda d, y, dy, dd, q: y - d * (dd - d**2) / (dy - d * y)),
            "Your slope is upside down: divide the covariance by the variance of d.",
        ),
        Mistake(
            "slope_times_query",
            _from_moments(
                lambda d, y, dy, dd, q: _height(d, y, dy, dd) + q * (dy - d * y) / (dd - d**2)
            ),
            "You add slope times x to c. The line is a function of d = x_i - x, which is 0 at the query: the output is c.",
        ),
        Mistake(
            "mean_d_not_weighted",
            lambda q, k, v, h: (
                (plain := (k[None, :] - q[:, None]).mean(dim=-1)),
                (m := _moments(q, k, v, h)),
                m[1] - plain * (m[2] - plain * m[1]) / (m[3] - plain**2),
            )[-1],
            "Your mean of d has no weights. All four averages use the attention weights of the query.",
        ),
        *(
            Mistake(
                f"epsilon_{epsilon:g}",
                _from_moments(
                    lambda d, y, dy, dd, q, epsilon=epsilon: (
                        y - d * (dy - d * y) / (dd - d**2 + epsilon)
                    )
                ),
                "A constant added to the variance makes the slope too small. Divide by the variance itself.",
            )
            for epsilon in (1e-2, 1e-3)
        ),
        Mistake(
            "bandwidth_not_squared",
            lambda q, k, v, h: _height(*_moments(q, k, v, h**0.5)),
            "In your weights the bandwidth is not squared. The score is -(d / bandwidth)² / 2.",
        ),
        Mistake(
            "bandwidth_ignored",
            lambda q, k, v, h: _height(*_moments(q, k, v, 1.0)),
            "The bandwidth is not used. The score is -(d / bandwidth)² / 2.",
        ),
        Mistake(
            "over_queries",
            _from_moments(_height, dim=0),
            "Your softmax runs over the queries. The weights of one query must sum to 1 over the keys: dim=-1.",
        ),
        Mistake(
            "by_standard_deviation",
            _from_moments(lambda d, y, dy, dd, q: y - d * (dy - d * y) / (dd - d**2).sqrt()),
            "You divide the covariance by the standard deviation of d. Divide by the variance: no square root.",
        ),
        *two_mistakes(
            _line,
            {"plus": ({"sign": 1.0}, "The output is mean_y minus slope times mean_d, not plus.")},
            {
                "variance_not_centred": (
                    {"slope": lambda d, y, dy, dd: (dy - d * y) / dd},
                    "The variance is the mean of d² minus the square of the mean of d.",
                ),
                "covariance_not_centred": (
                    {"slope": lambda d, y, dy, dd: dy / (dd - d**2)},
                    "The covariance is the mean of d·y minus the product of the two means.",
                ),
                "neither_centred": (
                    {"slope": lambda d, y, dy, dd: dy / dd},
                    "Covariance and variance lack the products of the means.",
                ),
            },
        ),
    ),
    hints=(
        "You need four weighted averages per query: of d, of y, of d·y and of d². weights @ values is the one of y.",
        "With weights that sum to 1, b is the weighted covariance of d and y over the weighted variance of d.",
        "c = mean_y - b · mean_d, where both means use the attention weights of that query.",
    ),
)
