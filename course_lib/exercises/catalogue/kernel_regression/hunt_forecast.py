"""Bug hunt: the flow in 2026."""

import torch

from course_lib.exercises.catalogue.kernel_regression._shared import (
    KEYS,
    NILE,
    VALUES,
    gaussian_pooling,
)


def forecast(queries, keys, values, bandwidth):
    differences = queries[:, None] - keys[None, :]  # (query, key)
    scores = -((differences / bandwidth) ** 2) / 2  # (query, key)
    weights = torch.softmax(scores, dim=-1)  # (query, key): subtracts the largest score before exp
    return weights @ values  # (query,)


SOFTMAX, EXP = "torch.softmax(scores, dim=-1)", "torch.exp(scores)"
RATIO = f"{EXP} / {EXP}.sum(dim=-1, keepdim=True)"
NORMALISE = r"\nweights = weights / weights.sum(dim=-1, keepdim=True)"
MISTAKES = rf"""
{SOFTMAX} -> {EXP} / ({EXP}.sum(dim=-1, keepdim=True) + 1e-9)
    No NaN any more, but the output of the far query is now 0. The exact formula gives practically the value of the
    nearest key.
    The kernel values still underflow to 0 before you divide.
{SOFTMAX} -> torch.exp(scores - scores.max()){NORMALISE}
    You subtract the largest score of all queries. Each row needs its own: max over the keys.
{SOFTMAX} -> torch.exp(scores.double()){NORMALISE}
+ weights @ -> weights.float() @
    float64 only moves the limit: for a query that is farther away, exp is 0 again.
{SOFTMAX} -> {RATIO}
+ return weights @ values -> return (weights @ values).nan_to_num()
    No NaN any more, but the output of the far query is now 0. The exact formula gives practically the value of the
    nearest key.
    The kernel values underflow to 0 before you divide.
{SOFTMAX} -> {RATIO}
+ weights @ values -> torch.where({EXP}.sum(dim=-1) == 0, values.mean(), weights @ values)
{SOFTMAX} -> {EXP}.clamp(min=1e-9){NORMALISE}
    The output of a far query is now the mean of all values: all its keys get the same weight. The formula, computed
    exactly, gives practically the value of the nearest key. Subtract the largest score of each row before exp.
{SOFTMAX} -> {RATIO}
+ weights @ values -> torch.where({EXP}.sum(dim=-1) == 0, values[-1], weights @ values)
    The output of a far query is now the last value, on whichever side the query lies. The formula, computed exactly,
    gives practically the value of the nearest key. Subtract the largest score of each row before exp.
{SOFTMAX} -> torch.exp(scores - scores.amax(dim=0, keepdim=True)){NORMALISE}
    You subtract the largest score of each key, over the queries. That changes the weights. Subtract the largest score
    of each query, over the keys: dim=-1.
{SOFTMAX} -> torch.exp(scores - scores.mean(dim=-1, keepdim=True)){NORMALISE}
    You subtract the mean score of the row, or its smallest one, so exp of the largest score can overflow. Subtract
    the largest.
{SOFTMAX} -> torch.exp(scores + scores.amax(dim=-1, keepdim=True)){NORMALISE}
    You add the largest score of the row, which is negative, so exp underflows even earlier. Subtract it.
{SOFTMAX} -> torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    You subtract the largest score of each row, but the weights do not sum to 1. Divide each row by its sum.
{SOFTMAX} -> {EXP} - {EXP}.amax(dim=-1, keepdim=True){NORMALISE}
    You subtract the largest kernel value, after exp, which changes the weights. Subtract the largest score, before
    exp.
{SOFTMAX} -> torch.softmax(-scores / scores.amin(dim=-1, keepdim=True), dim=-1)
{SOFTMAX} -> torch.softmax(scores / scores.abs().max(), dim=-1)
    You divide the scores by the largest absolute value among them, which changes the weights. Subtract the largest
    score of the row: the weights stay the same.
dim=-1 -> dim=0
    Your softmax runs over the queries. The weights of one query must sum to 1 over the keys: dim=-1.
{SOFTMAX} -> torch.softmax(scores.flatten(), dim=0).view_as(scores)
    Your softmax runs over queries and keys together, so all weights sum to 1. Those of each query must: dim=-1.
{SOFTMAX} -> torch.softmax({EXP}, dim=-1)
    You apply a softmax to the kernel values. softmax computes exp itself: give it the scores.
{SOFTMAX} -> torch.softmax({SOFTMAX}, dim=-1)
    You apply the softmax twice, which makes the weights more equal. Once is enough.
{SOFTMAX} -> torch.log_softmax(scores, dim=-1)
    Your weights are logarithms of the softmax. Use softmax itself, so that they are positive and sum to 1.
{SOFTMAX} -> {EXP}
    These are kernel values; the weights of a query do not sum to 1. Take a softmax of the scores over the keys.
{SOFTMAX} -> scores
    These are scores, not weights: exp is gone. Take a softmax over the keys.
weights @ values -> values[differences.abs().argmin(dim=-1)]
    Each output is now the value of the nearest key. That is right for a query far away, but near the data the other
    keys have weight too.
weights @ values -> weights @ keys
    You average the keys. The output is the weighted sum of the values.
return weights @ values -> return weights
    You return the weights. The output is weights @ values.
queries[:, None] -> queries.clamp(keys.min(), keys.max())[:, None]
    You move far queries to the nearest end of the data. The query itself must stay: far away, the nearest key gets
    nearly all the weight.
scores = - -> scores =
    The minus sign of the exponent is gone: the farthest key gets the largest weight.
((differences / bandwidth) ** 2) -> (differences / bandwidth).abs()
((differences / bandwidth) ** 2) / 2 -> (differences / bandwidth).abs()
    The square is gone: your score is linear in the distance.
** 2 ->
    The square is gone from the score, so keys on one side of the query get all the weight.
/ bandwidth ->
    The bandwidth is not used. The score is -(difference / bandwidth)² / 2.
(differences / bandwidth) ** 2 -> differences**2 / bandwidth
    You square the difference before you divide by the bandwidth. The score is -(difference / bandwidth)² / 2.
/ bandwidth -> / bandwidth**2
    You divide by the square of the bandwidth and square the ratio again. The score is -(difference / bandwidth)² / 2.
/ bandwidth -> * bandwidth
    You multiply by the bandwidth. Divide: a large bandwidth makes distances small.
/ 2 ->
    The factor 1/2 in the exponent is missing.
/ 2 -> / 4
    The factor is 1/4 in your exponent. Square the difference over the bandwidth, then divide by 2: the 2 is not
    squared.
/ 2 -> * 2
    You multiply by 2. The score is -(difference / bandwidth)² / 2.
"""

GIVEN = f"{SOFTMAX} -> {RATIO}"
reference = gaussian_pooling
CASES = (
    dict(queries=torch.tensor([2.0, 100.0]), keys=KEYS, values=VALUES, bandwidth=1.0),
    dict(queries=torch.tensor([-100.0, 101.0]), keys=KEYS, values=VALUES, bandwidth=1.0),
    dict(
        queries=torch.tensor([1970.0, 1990.0, 2026.0]),
        keys=NILE.keys,
        values=NILE.values,
        bandwidth=2.0,
    ),
)
HINTS = """
Print kernel.sum(dim=-1) for the far query. What is the smallest positive number in float32? (A result below it
    becomes 0: underflow.)
The weights do not change if you multiply all kernel values of a row by the same number. Choose one that makes the
    largest of them 1.
torch.softmax subtracts the largest score of the row before it takes exp. That has the same effect.
"""
