"""Exercises and bug hunts of notebook 01."""

import functools
import math

import torch

from course_lib.data.series import nile_series, wave_series
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.pooling import attention_pooling, leave_one_out_error

_NOTEBOOK = "01_kernel_regression"

_QUERIES = torch.tensor([0.5, 2.0])
_KEYS = torch.tensor([0.0, 1.0, 2.5])
_VALUES = torch.tensor([1.0, 3.0, -2.0])
_WAVE = wave_series(count=20, seed=3)
_NILE = nile_series()
_YEARS = torch.tensor([1870.5, 1898.75, 1925.5, 1960.25])  # never on a key, where |u| has no slope


# --- average_pooling -------------------------------------------------------------------------


def average_pooling(queries, values):
    return values.mean().expand(len(queries))


_AVERAGE = Exercise(
    name="average_pooling",
    notebook=_NOTEBOOK,
    title="Ignore the query, average the values",
    reference=lambda queries, values: values.mean().expand(len(queries)),
    solution=average_pooling,
    cases=(
        Case(queries=_QUERIES, values=_VALUES),
        Case(queries=_WAVE.keys[:7], values=_WAVE.values),
    ),
    mistakes=(
        Mistake(
            "one_number",
            lambda queries, values: values.mean(),
            "You return one number. Each query wants its own output, even if all outputs are equal.",
        ),
        Mistake(
            "averages_queries",
            lambda queries, values: queries.mean().expand(len(queries)),
            "You average the queries. The output is made of values; the queries only say how many outputs to give.",
        ),
        Mistake(
            "divided_by_queries",
            lambda queries, values: (values.sum() / len(queries)).expand(len(queries)),
            "You divide by the number of queries. A mean divides by the number of things that are added: the values.",
        ),
        Mistake(
            "one_per_value",
            lambda queries, values: values.mean().expand(len(values)),
            "You return one output per value. There must be one output per query.",
        ),
    ),
    hints=(
        "The answer is the same number for every query: the mean of the values.",
        "tensor.expand(n) repeats one number n times; torch.ones(n) * number does too.",
    ),
)


# --- gaussian_weights ------------------------------------------------------------------------


def gaussian_weights(queries, keys, bandwidth):
    differences = queries[:, None] - keys[None, :]  # (query, key)
    scores = -((differences / bandwidth) ** 2) / 2  # (query, key)
    return torch.softmax(scores, dim=-1)  # each row sums to 1


def _scaled(queries, keys, bandwidth):
    return (queries[:, None] - keys[None, :]) / bandwidth


def _softmax_of_kernel(queries, keys, bandwidth, *, factor):
    kernel = factor * torch.exp(-(_scaled(queries, keys, bandwidth) ** 2) / 2)
    return torch.softmax(kernel, dim=-1)


_WEIGHT_CASES = (
    Case(queries=_QUERIES, keys=_KEYS, bandwidth=0.7),
    Case(queries=torch.linspace(0, 5, 7), keys=_WAVE.keys, bandwidth=0.4),
    Case(queries=_YEARS, keys=_NILE.keys, bandwidth=5.3),
)

_GAUSSIAN = Exercise(
    name="gaussian_weights",
    notebook=_NOTEBOOK,
    title="Gaussian attention weights with a softmax",
    reference=lambda queries, keys, bandwidth: (
        attention_pooling(queries, keys, keys, bandwidth=bandwidth).weights
    ),
    solution=gaussian_weights,
    cases=_WEIGHT_CASES,
    mistakes=(
        Mistake(
            "over_queries",
            lambda q, k, h: torch.softmax(-(_scaled(q, k, h) ** 2) / 2, dim=0),
            "Your softmax runs over the queries: the columns sum to 1. Each query shares its attention "
            "among the keys, so each row must sum to 1.",
        ),
        Mistake(
            "no_half",
            lambda q, k, h: torch.softmax(-(_scaled(q, k, h) ** 2), dim=-1),
            "The factor 1/2 in the exponent is missing. Your weights are those of a bandwidth √2 times narrower.",
        ),
        Mistake(
            "no_square",
            lambda q, k, h: torch.softmax(-_scaled(q, k, h).abs() / 2, dim=-1),
            "The distance is not squared. exp(-|u|/2) is a Laplace kernel, not a Gaussian.",
        ),
        *(
            Mistake(
                f"softmax_of_the_{name}",
                functools.partial(_softmax_of_kernel, factor=factor),
                "softmax takes exp itself. Give it the scores, not the kernel.",
            )
            for name, factor in (("similarity", 1.0), ("density", (2 * math.pi) ** -0.5))
        ),
        Mistake(
            "laplace",
            lambda q, k, h: torch.softmax(-_scaled(q, k, h).abs(), dim=-1),
            "The distance is not squared and not halved. exp(-|u|) is a Laplace kernel, not a Gaussian.",
        ),
        Mistake(
            "wrong_sign",
            lambda q, k, h: torch.softmax(_scaled(q, k, h) ** 2 / 2, dim=-1),
            "The sign is turned around: your weights are largest for the farthest key.",
        ),
        Mistake(
            "times_bandwidth",
            lambda q, k, h: torch.softmax(-(((q[:, None] - k) * h) ** 2) / 2, dim=-1),
            "You multiply the distance by the bandwidth. Divide: a wide kernel makes distances small.",
        ),
        Mistake(
            "bandwidth_not_squared",
            lambda q, k, h: torch.softmax(-((q[:, None] - k) ** 2) / h / 2, dim=-1),
            "You square the distance before you divide by the bandwidth, so the bandwidth stays unsquared. "
            "The exponent is -(d/h)²/2.",
        ),
        Mistake(
            "not_normalised",
            lambda q, k, h: torch.exp(-(_scaled(q, k, h) ** 2) / 2),
            "These are kernel values, not weights yet. Divide each row by its sum.",
        ),
    ),
    hints=(
        "You need every query against every key: queries[:, None] - keys[None, :] has shape (query, key).",
        "The score of a pair is -(difference / bandwidth)² / 2. What turns a row of scores into weights?",
        "torch.softmax(scores, dim=-1): the last axis is the keys.",
    ),
)


# --- epanechnikov_weights --------------------------------------------------------------------


def epanechnikov_weights(queries, keys, bandwidth):
    u = (queries[:, None] - keys[None, :]) / bandwidth  # (query, key)
    kernel = 0.75 * (1 - u**2).clamp(min=0)  # 0 outside the window
    total = kernel.sum(dim=-1, keepdim=True)  # (query, 1)
    return kernel / torch.where(total == 0, 1, total)  # an empty window gives zeros


def _parabola(queries, keys, bandwidth):
    return 0.75 * (1 - _scaled(queries, keys, bandwidth) ** 2)


def _shares(kernel):
    total = kernel.sum(dim=-1, keepdim=True)
    return kernel / torch.where(total == 0, 1, total)


def _epanechnikov_with_epsilon(queries, keys, bandwidth, *, epsilon):
    kernel = _parabola(queries, keys, bandwidth).clamp(min=0)
    return kernel / (kernel.sum(-1, keepdim=True) + epsilon)


_EPANECHNIKOV = Exercise(
    name="epanechnikov_weights",
    notebook=_NOTEBOOK,
    title="A window that fades out, and a query nobody answers",
    reference=lambda queries, keys, bandwidth: (
        attention_pooling(queries, keys, keys, kernel="epanechnikov", bandwidth=bandwidth).weights
    ),
    solution=epanechnikov_weights,
    cases=(
        Case(queries=torch.tensor([0.5, 9.0]), keys=_KEYS, bandwidth=0.7),
        *_WEIGHT_CASES,
    ),
    mistakes=(
        Mistake(
            "empty_window",
            lambda q, k, h: (
                (kernel := _parabola(q, k, h).clamp(min=0)) / kernel.sum(-1, keepdim=True)
            ),
            "A query with no key in its window gets 0/0. Give it a row of zeros: it attends to nothing.",
        ),
        Mistake(
            "no_clamp",
            lambda q, k, h: _shares(_parabola(q, k, h)),
            "Your kernel goes negative outside the window, and that spoils the sum of the row as well. "
            "It is 0 there: clamp 1 - u² at 0.",
        ),
        Mistake(
            "boxcar",
            lambda q, k, h: _shares((_scaled(q, k, h).abs() <= 1).to(q.dtype)),
            "All keys in your window weigh the same; that is the boxcar. Epanechnikov's weights fall off as 1 - u².",
        ),
        Mistake(
            "absolute",
            lambda q, k, h: _shares((1 - _scaled(q, k, h).abs()).clamp(min=0)),
            "Your kernel falls off as 1 - |u|; that is the triangular kernel. Square u.",
        ),
        Mistake(
            "softmax",
            lambda q, k, h: torch.softmax(_parabola(q, k, h).clamp(min=0), dim=-1),
            "You put the kernel through a softmax. exp(0) is 1, so keys outside the window still count. "
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


# --- leave_one_out ---------------------------------------------------------------------------


def leave_one_out(keys, values, bandwidth):
    others = ~torch.eye(len(keys), dtype=torch.bool)  # True = may attend: all but itself
    predicted = attention_pooling(keys, keys, values, bandwidth=bandwidth, mask=others).output
    return ((values - predicted) ** 2).mean()


def _errors(keys, values, bandwidth, mask=None):
    return values - attention_pooling(keys, keys, values, bandwidth=bandwidth, mask=mask).output


def _weights_zeroed_late(keys, values, bandwidth):
    weights = attention_pooling(keys, keys, values, bandwidth=bandwidth).weights
    return ((values - (weights * (1 - torch.eye(len(keys)))) @ values) ** 2).mean()


_LEAVE_ONE_OUT = Exercise(
    name="leave_one_out",
    notebook=_NOTEBOOK,
    title="The error when a key may not look at itself",
    reference=lambda keys, values, bandwidth: leave_one_out_error(
        keys, values, bandwidth=bandwidth
    ),
    solution=leave_one_out,
    cases=(
        Case(keys=_KEYS, values=_VALUES, bandwidth=0.7),
        Case(keys=torch.tensor([0.0, 0.0, 1.0]), values=_VALUES, bandwidth=0.7),
        Case(keys=_WAVE.keys, values=_WAVE.values, bandwidth=0.3),
    ),
    mistakes=(
        Mistake(
            "sees_itself",
            lambda k, v, h: _errors(k, v, h).square().mean(),
            "Every key may look at itself here, so it finds its own value. Hide the diagonal with a mask. "
            "A score of 0 does not hide it: 0 is the highest score there is.",
        ),
        Mistake(
            "mask_upside_down",
            lambda k, v, h: _errors(k, v, h, torch.eye(len(k), dtype=torch.bool)).square().mean(),
            "Your mask is turned around: each key sees only itself. In this course True means 'may attend'.",
        ),
        Mistake(
            "masks_equal_keys",
            lambda k, v, h: _errors(k, v, h, k[:, None] != k[None, :]).square().mean(),
            "Your mask compares the keys, so it also hides other pairs that have the same key. Leave out one pair, "
            "the one at the same position.",
        ),
        Mistake(
            "masked_too_late",
            _weights_zeroed_late,
            "You set the weight of the key itself to 0 after the weights were normalised, so the rest no longer "
            "sums to 1. Mask first, then normalise; attention_pooling takes a mask.",
        ),
        Mistake(
            "sum",
            lambda k, v, h: _errors(k, v, h, ~torch.eye(len(k), dtype=torch.bool)).square().sum(),
            "You sum the squared errors. Take their mean, or the error grows with the number of keys.",
        ),
        Mistake(
            "root",
            lambda k, v, h: (
                _errors(k, v, h, ~torch.eye(len(k), dtype=torch.bool)).square().mean().sqrt()
            ),
            "You return the root of the mean squared error. The mean itself is asked for.",
        ),
        Mistake(
            "absolute",
            lambda k, v, h: _errors(k, v, h, ~torch.eye(len(k), dtype=torch.bool)).abs().mean(),
            "You average the absolute errors. Square them first.",
        ),
    ),
    hints=(
        "The queries are the keys themselves; the mask decides who may look at whom.",
        "torch.eye(n, dtype=torch.bool) is True on the diagonal. ~ turns a boolean tensor around.",
        "attention_pooling(keys, keys, values, bandwidth=bandwidth, mask=others).output, then the mean squared difference.",
    ),
)


# --- local_linear ----------------------------------------------------------------------------


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


_LOCAL_LINEAR = Exercise(
    name="local_linear",
    notebook=_NOTEBOOK,
    title="A straight line per query, to mend the edges",
    reference=_local_linear_reference,
    solution=local_linear,
    cases=(
        Case(queries=_QUERIES, keys=_KEYS, values=_VALUES, bandwidth=0.7),
        Case(
            queries=torch.linspace(0.2, 5, 7), keys=_WAVE.keys, values=_WAVE.values, bandwidth=0.5
        ),
    ),
    mistakes=(
        Mistake(
            "no_slope",
            lambda q, k, v, h: attention_pooling(q, k, v, bandwidth=h).output,
            "This is Nadaraya-Watson again. Fit a slope as well, and read the line off at the query, where d = 0; "
            "at the mean of d the slope has no effect.",
        ),
        Mistake(
            "unweighted",
            _unweighted_line,
            "Your line ignores the attention weights: it is one straight line for all queries. Weigh every sum.",
        ),
        Mistake(
            "square_of_the_mean",
            _square_of_the_mean,
            "You divide by 0: the mean of d² is not the square of the mean of d.",
        ),
        Mistake(
            "weights_squared",
            _weights_squared,
            "Your weights act twice. If you scale the rows of a least-squares problem, scale by the square roots "
            "of the weights: the squares of the residuals then carry the weights themselves.",
        ),
        Mistake(
            "line_at_zero",
            _line_through_origin,
            "You read the line off at x = 0. Read it off at the query.",
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


# --- bug hunts -------------------------------------------------------------------------------


def smooth(queries, keys, values, bandwidth):
    differences = queries[:, None] - keys[None, :]  # (query, key)
    scores = -((differences / bandwidth) ** 2) / 2  # (query, key)
    weights = torch.softmax(scores, dim=-1)  # (query, key): over the keys
    return weights @ values  # (query,)


def forecast(queries, keys, values, bandwidth):
    differences = queries[:, None] - keys[None, :]  # (query, key)
    scores = -((differences / bandwidth) ** 2) / 2  # (query, key)
    weights = torch.softmax(scores, dim=-1)  # (query, key): subtracts the largest score before exp
    return weights @ values  # (query,)


def _smooth_over_queries(queries, keys, values, bandwidth):
    scores = -(((queries[:, None] - keys[None, :]) / bandwidth) ** 2) / 2
    weights = torch.softmax(scores, dim=0)
    return weights @ values


def _over_queries_then_keys(queries, keys, values, bandwidth):
    weights = torch.softmax(-(_scaled(queries, keys, bandwidth) ** 2) / 2, dim=0)
    return (weights / weights.sum(dim=-1, keepdim=True)) @ values


def _smooth_by_ratio(queries, keys, values, bandwidth):
    kernel = torch.exp(-(((queries[:, None] - keys[None, :]) / bandwidth) ** 2) / 2)
    weights = kernel / kernel.sum(dim=-1, keepdim=True)
    return weights @ values


def _smooth_with_epsilon(queries, keys, values, bandwidth):
    kernel = torch.exp(-(((queries[:, None] - keys[None, :]) / bandwidth) ** 2) / 2)
    weights = kernel / (kernel.sum(dim=-1, keepdim=True) + 1e-9)
    return weights @ values


def _smooth_with_one_maximum(queries, keys, values, bandwidth):
    scores = -(_scaled(queries, keys, bandwidth) ** 2) / 2
    kernel = torch.exp(scores - scores.max())
    return (kernel / kernel.sum(dim=-1, keepdim=True)) @ values


def _smooth_in_double(queries, keys, values, bandwidth):
    return _smooth_by_ratio(queries.double(), keys.double(), values.double(), bandwidth).to(queries)


def _smooth_nan_to_zero(queries, keys, values, bandwidth):
    return _smooth_by_ratio(queries, keys, values, bandwidth).nan_to_num()


def _smooth_nan_to_mean(queries, keys, values, bandwidth):
    output = _smooth_by_ratio(queries, keys, values, bandwidth)
    return torch.where(output.isnan(), values.mean(), output)


def _pooled(queries, keys, values, bandwidth):
    return attention_pooling(queries, keys, values, bandwidth=bandwidth).output


_HUNT_FIT = Exercise(
    name="hunt_fit",
    notebook=_NOTEBOOK,
    title="Bug hunt: a fit that leaves the data",
    reference=_pooled,
    solution=smooth,
    cases=(
        Case(queries=_QUERIES, keys=_KEYS, values=_VALUES, bandwidth=0.7),
        Case(queries=torch.linspace(0, 5, 7), keys=_WAVE.keys, values=_WAVE.values, bandwidth=0.4),
    ),
    mistakes=(
        Mistake(
            "mended_afterwards",
            _over_queries_then_keys,
            "Your rows sum to 1 now, but the first softmax still made the keys compete for queries. "
            "There is one softmax to take, and it runs over the keys from the start.",
        ),
        Mistake(
            "no_half",
            lambda q, k, v, h: torch.softmax(-(_scaled(q, k, h) ** 2), dim=-1) @ v,
            "The axis is right now, but the factor 1/2 in the exponent is gone.",
        ),
        Mistake(
            "both_axes",
            lambda q, k, v, h: (
                torch.softmax(torch.softmax(-(_scaled(q, k, h) ** 2) / 2, dim=0), dim=-1) @ v
            ),
            "Two softmaxes, one after the other, flatten the weights. One is right, over one axis.",
        ),
        Mistake(
            "divided_again",
            lambda q, k, v, h: (
                (w := torch.softmax(-(_scaled(q, k, h) ** 2) / 2, dim=0)) @ v / w.sum()
            ),
            "Dividing the outputs by one number for all queries cannot mend rows that need different numbers.",
        ),
    ),
    hints=(
        "Print weights.sum(dim=-1). A query's weights are shares of one whole.",
        "In a (query, key) tensor, axis 0 is the queries. Along which axis must the weights sum to 1?",
        "dim=-1.",
    ),
    given=_smooth_over_queries,
)

_HUNT_FORECAST = Exercise(
    name="hunt_forecast",
    notebook=_NOTEBOOK,
    title="Bug hunt: a forecast that is not a number",
    reference=_pooled,
    solution=forecast,
    cases=(
        Case(queries=torch.tensor([3.0, 40.0]), keys=_KEYS, values=_VALUES, bandwidth=0.7),
        Case(queries=torch.tensor([40.0, 41.0]), keys=_KEYS, values=_VALUES, bandwidth=0.7),
        Case(
            queries=torch.tensor([1970.0, 1990.0, 2026.0]),
            keys=_NILE.keys,
            values=_NILE.values,
            bandwidth=2.0,
        ),
    ),
    mistakes=(
        Mistake(
            "epsilon",
            _smooth_with_epsilon,
            "No NaN any more, but the far query now answers 0, a flow that nobody ever measured. The kernel values "
            "are still lost before you divide.",
        ),
        Mistake(
            "one_maximum_for_all",
            _smooth_with_one_maximum,
            "You subtract the largest score of all queries. Each row needs its own: max over the keys.",
        ),
        Mistake(
            "float64",
            _smooth_in_double,
            "float64 only moves the limit further out: exp still becomes 0, at a farther query.",
        ),
        Mistake(
            "nan_to_zero",
            _smooth_nan_to_zero,
            "No NaN any more, but the far query now answers 0, a flow that nobody ever measured. The kernel values "
            "were 0 before you divided; keep them from vanishing.",
        ),
        Mistake(
            "nan_to_mean",
            _smooth_nan_to_mean,
            "A far query now answers the plain average. The formula, computed exactly, gives the value of the nearest key.",
        ),
    ),
    hints=(
        "Print kernel.sum(dim=-1) for the far query. How small a number can float32 hold?",
        "The weights do not change if you multiply all kernel values of a row by the same number. Pick one that "
        "makes the largest of them 1.",
        "torch.softmax subtracts the largest score of the row before it takes exp. It does exactly this for you.",
    ),
    given=_smooth_by_ratio,
)

EXERCISES = (
    _HUNT_FIT,
    _HUNT_FORECAST,
    _AVERAGE,
    _GAUSSIAN,
    _EPANECHNIKOV,
    _LEAVE_ONE_OUT,
    _LOCAL_LINEAR,
)
