"""A straight line per query, against bias at the edges."""

import torch

from course_lib.exercises.catalogue.kernel_regression._shared import KEYS, QUERIES, VALUES, WAVE
from course_lib.topics.pooling import attention_pooling


def local_linear(queries, keys, values, bandwidth):
    weights = attention_pooling(queries, keys, values, bandwidth=bandwidth).weights
    d = keys[None, :] - queries[:, None]  # (query, key): 0 at the query
    mean_d = (weights * d).sum(-1)  # (query,)
    mean_y = weights @ values  # (query,): the Nadaraya-Watson output
    covariance = (weights * d) @ values - mean_d * mean_y  # (query,)
    variance = (weights * d**2).sum(-1) - mean_d**2  # (query,)
    slope = covariance / variance
    return mean_y - slope * mean_d  # the line's height where d = 0


def reference(queries, keys, values, bandwidth):
    """Solve the weighted normal equations of y = c + b d in float64 at every query."""
    weights = attention_pooling(
        queries.double(), keys.double(), values.double(), bandwidth=bandwidth
    ).weights
    d = keys.double() - queries.double()[:, None]
    s0, s1, s2 = weights.sum(-1), (weights * d).sum(-1), (weights * d * d).sum(-1)
    t0, t1 = weights @ values.double(), (weights * d) @ values.double()
    return ((s2 * t0 - s1 * t1) / (s0 * s2 - s1 * s1)).to(queries.dtype)


WEIGHTS = "attention_pooling(queries, keys, values, bandwidth=bandwidth).weights"
MISTAKES = rf"""
- slope * mean_d ->
    This is Nadaraya-Watson again. Fit a slope as well, and evaluate the line at the query, where d = 0; at the mean
    of d the slope has no effect.
{WEIGHTS} -> torch.ones(len(queries), len(keys)) / len(keys)
    Your line ignores the attention weights: it is one straight line for all queries. Use the weights in every sum.
(weights * d**2).sum(-1) - -> mean_d**2 -
    You divide by 0: the mean of d² is not the square of the mean of d.
=bandwidth -> =bandwidth / 2**0.5
    Your weights are proportional to the squares of the Gaussian weights. Either the factor 1/2 in the exponent is
    missing, or you multiply the rows of a least-squares problem by the weights: multiply them by the square roots,
    because the residuals are squared.
=bandwidth -> =bandwidth * 2**0.5
    Your weights are proportional to the square roots of the Gaussian weights. The score is -(d / bandwidth)² / 2, and
    the sums use the weights themselves.
- slope * mean_d -> - slope * (mean_d + queries)
    You evaluate the line at x = 0. Evaluate it at the query.
mean_y - slope -> mean_y + slope
    The correction by the slope has the wrong sign. The output is mean_y minus slope times mean_d, and the slope is
    positive where y grows with d.
return mean_y - slope * mean_d -> return slope
    You return the slope b. The output is the height of the line at the query, c = mean_y - b · mean_d.
- slope * mean_d -> - slope
    You subtract the slope itself. The output is c = mean_y - b · mean_d.
- mean_d**2 ->
    Your denominator is the mean of d². The variance is the mean of d² minus the square of the mean of d.
.sum(-1) - mean_d**2 -> .sum(-1) + mean_d**2
    Your denominator adds the square of the mean of d. The variance is the mean of d² minus the square of the mean of
    d.
.sum(-1) - mean_d**2 -> .sum(-1) - mean_d
    Your denominator subtracts the mean of d. The variance is the mean of d² minus the square of the mean of d.
- mean_d * mean_y ->
    Your numerator is the mean of d·y. The covariance is the mean of d·y minus the product of the two means.
- mean_d * mean_y -> + mean_d * mean_y
    Your numerator adds the product of the two means. The covariance is the mean of d·y minus the product of the two
    means.
- mean_d * mean_y -> - mean_y
    Your numerator subtracts the mean of y. The covariance is the mean of d·y minus the product of the two means.
- mean_d * mean_y ->
+ - mean_d**2 ->
    Your slope is the mean of d·y over the mean of d², which is that of a line through y = 0 at the query. Subtract
    the product of the means above, and the square of the mean of d below.
covariance / variance -> variance / covariance
    Your slope is upside down: divide the covariance by the variance of d.
covariance / variance -> covariance
    Your slope is the covariance alone. Divide it by the variance of d.
- slope * mean_d -> - slope * (mean_d - queries)
    You add slope times x to c. The line is a function of d = x_i - x, which is 0 at the query: the output is c.
mean_d = (weights * d).sum(-1) -> mean_d = d.mean(-1)
    Your mean of d has no weights. All four averages use the attention weights of the query.
weights @ values -> values.mean()
    Your mean of y has no weights. All four averages use the attention weights of the query.
(weights * d) @ values -> (d * values).mean(-1)
    Your mean of d·y has no weights. All four averages use the attention weights of the query.
(weights * d**2).sum(-1) -> (d**2).mean(-1)
    Your mean of d² has no weights. All four averages use the attention weights of the query.
(weights * d**2) -> ((weights * d) ** 2)
    Your mean of d² squares the weights as well. Multiply d² by the weights themselves.
.sum(-1) => .mean(-1)
mean_d = (weights * d).sum(-1) -> mean_d = (weights * d).mean(-1)
(weights * d**2).sum(-1) -> (weights * d**2).mean(-1)
    You divide a weighted sum by the number of keys. The weights sum to 1 already: use sum instead of mean.
covariance / variance -> covariance / (variance + 1e-2)
covariance / variance -> covariance / (variance + 1e-3)
    A constant added to the variance makes the slope too small. Divide by the variance itself.
=bandwidth -> =bandwidth**0.5
    In your weights the bandwidth is not squared. The score is -(d / bandwidth)² / 2.
, bandwidth=bandwidth ->
    The bandwidth is not used. The score is -(d / bandwidth)² / 2.
=bandwidth -> =bandwidth**2
    Your weights divide by the square of the bandwidth before they square the ratio. The score is -(d / bandwidth)² /
    2.
=bandwidth -> =1 / bandwidth
    Your weights multiply by the bandwidth. The score is -(d / bandwidth)² / 2.
{WEIGHTS} -> attention_pooling(keys, queries, queries, bandwidth=bandwidth).weights.T
    Your softmax runs over the queries. The weights of one query must sum to 1 over the keys: dim=-1.
covariance / variance -> covariance / variance.sqrt()
    You divide the covariance by the standard deviation of d. Divide by the variance: no square root.
mean_y - slope * mean_d -> mean_y - slope * d.mean(-1)
    You multiply the slope by the plain mean of d. The output is c = mean_y - b · mean_d, with the weighted mean.
attention_pooling(queries, keys, values, bandwidth=bandwidth).weights -> torch.exp(-(((queries[:, None] - keys) / bandwidth) ** 2) / 2)
    Your weights do not sum to 1, and the formulas need weights that do: they are the softmax, not the kernel alone.
"""

CASES = (
    dict(queries=QUERIES, keys=KEYS, values=VALUES, bandwidth=1.0),
    dict(queries=torch.linspace(0.2, 5, 7), keys=WAVE.keys, values=WAVE.values, bandwidth=0.5),
)
HINTS = """
You need four weighted averages per query: of d, of y, of d·y and of d². weights @ values is the one of y.
With weights that sum to 1, b is the weighted covariance of d and y over the weighted variance of d.
c = mean_y - b · mean_d, where both means use the attention weights of that query.
"""
