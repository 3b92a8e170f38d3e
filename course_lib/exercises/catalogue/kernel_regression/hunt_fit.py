"""Bug hunt: a fit that misses the data."""

import torch

from course_lib.exercises.catalogue.kernel_regression._shared import (
    KEYS,
    QUERIES,
    VALUES,
    WAVE,
    gaussian_pooling,
)


def smooth(queries, keys, values, bandwidth):
    differences = queries[:, None] - keys[None, :]  # (query, key)
    scores = -((differences / bandwidth) ** 2) / 2  # (query, key)
    weights = torch.softmax(scores, dim=-1)  # (query, key): over the keys
    return weights @ values  # (query,)


SOFTMAX, EXP = "torch.softmax(scores, dim=-1)", "torch.exp(scores)"
MISTAKES = rf"""
dim=-1) -> dim=0)\nweights = weights / weights.sum(dim=-1, keepdim=True)
    Each row sums to 1 now, but the softmax over axis 0 divided every column by its own sum first, so the weights
    within a row are still in the wrong proportion. Use one softmax, over the keys.
/ 2 ->
    The factor 1/2 in the exponent is missing.
{SOFTMAX} -> torch.softmax(torch.softmax(scores, dim=0), dim=-1)
{SOFTMAX} -> torch.softmax(torch.softmax(scores, dim=-1), dim=0)
{SOFTMAX} -> torch.softmax(torch.softmax(scores, dim=-1), dim=-1)
{SOFTMAX} -> torch.softmax(torch.softmax(scores, dim=0), dim=0)
    Two softmaxes in a row make the weights too uniform. Use one, over one axis.
dim=-1) -> dim=0)
+ weights @ values -> weights @ values / weights.sum()
    You divide all outputs by one number, but each row of weights has its own sum.
scores = - -> scores =
    The minus sign of the exponent is gone: the farthest key gets the largest weight.
((differences / bandwidth) ** 2) -> (differences / bandwidth).abs()
((differences / bandwidth) ** 2) / 2 -> (differences / bandwidth).abs()
    Your score is linear in the distance. The Gaussian kernel has the squared distance in its exponent.
** 2 ->
    The square is gone from the score, so keys on one side of the query get all the weight.
(differences / bandwidth) ** 2 -> differences**2 / bandwidth
    You square the difference before you divide by the bandwidth. The score is -(difference / bandwidth)² / 2.
/ bandwidth ->
    The bandwidth is not used. The score is -(difference / bandwidth)² / 2.
/ bandwidth -> / bandwidth**2
    You divide by the square of the bandwidth and square the ratio again. The score is -(difference / bandwidth)² / 2.
/ bandwidth -> * bandwidth
    You multiply by the bandwidth. Divide: a large bandwidth makes distances small.
{SOFTMAX} -> torch.softmax(scores.flatten(), dim=0).view_as(scores)
    Your softmax runs over queries and keys together, so all weights sum to 1. Those of each query must: dim=-1.
{SOFTMAX} -> {EXP}
    These are kernel values; the weights of a query do not sum to 1. Divide each row by its sum, or use softmax over
    the keys.
{SOFTMAX} -> {EXP} / {EXP}.amax(dim=-1, keepdim=True)
    You divide each row by its maximum. The weights of a query sum to 1 only if you divide by the sum of the row.
{SOFTMAX} -> {EXP} / len(keys)
    You divide the kernel values by the number of keys. The weights of a query sum to 1 only if you divide by the sum
    of the row.
{SOFTMAX} -> torch.softmax({EXP}, dim=-1)
    You apply a softmax to the kernel values. softmax computes exp itself: give it the scores.
{SOFTMAX} -> torch.log_softmax(scores, dim=-1)
    Your weights are logarithms of the softmax. Use softmax itself, so that they are positive and sum to 1.
{SOFTMAX} -> scores
    The softmax is gone: these are scores, not weights. Take a softmax over the keys.
weights @ values -> weights @ keys
    You average the keys. The output is the weighted sum of the values.
weights @ values -> values[differences.abs().argmin(dim=-1)]
    Each output is the value of the nearest key. The other keys have weight too.
weights @ values -> weights @ values / len(keys)
    You divide by the number of keys as well. The weights of a query sum to 1 already.
weights @ values -> weights.T @ values
    Your weights are (key, query) in the product with the values. They must be (query, key), so that the product sums
    over the keys.
return weights @ values -> return weights
    You return the weights. The output is weights @ values.
/ 2 -> / 4
    The factor is 1/4 in your exponent. Square the difference over the bandwidth, then divide by 2: the 2 is not
    squared.
/ 2 -> * 2
    You multiply by 2. The score is -(difference / bandwidth)² / 2.
dim=-1 -> dim=0
+ / 2 ->
    Your softmax still runs over the queries, and the factor 1/2 in the exponent is missing.
dim=-1 -> dim=0
+ scores = - -> scores =
    Your softmax still runs over the queries, and the minus sign of the exponent is gone.
dim=-1 -> dim=0
+ (differences / bandwidth) ** 2 -> differences**2 / bandwidth
    Your softmax still runs over the queries, and you square the difference before you divide by the bandwidth.
dim=-1 -> dim=0
+ / bandwidth ->
    Your softmax still runs over the queries, and the bandwidth is not used.
dim=-1 -> dim=0
+ ** 2 ->
    Your softmax still runs over the queries, and the square is gone from the score.
dim=-1 -> dim=0
+ @ values -> @ keys
    Your softmax still runs over the queries, and you average the keys instead of the values.
"""

GIVEN = "dim=-1 -> dim=0"
reference = gaussian_pooling
CASES = (
    dict(queries=QUERIES, keys=KEYS, values=VALUES, bandwidth=1.0),
    dict(queries=torch.linspace(0, 5, 7), keys=WAVE.keys, values=WAVE.values, bandwidth=0.4),
)
HINTS = """
Print weights.sum(dim=-1). The weights of each query must sum to 1.
In a (query, key) tensor, axis 0 is the queries. Along which axis must the weights sum to 1?
torch.softmax(scores, dim=-1).
"""
