"""A batch of regressions."""

import torch

from course_lib.exercises.catalogue._shared import rounded_tensor
from course_lib.topics.pooling import attention_pooling


def batched_regression(queries, keys, values, bandwidth):
    # (batch, query, 1) - (batch, 1, key) -> (batch, query, key)
    differences = queries[:, :, None] - keys[:, None, :]
    scores = -((differences / bandwidth) ** 2) / 2  # (batch, query, key)
    weights = torch.softmax(scores, dim=-1)  # over the keys
    return weights @ values  # (batch, query, key) @ (batch, key, d) -> (batch, query, d)


def reference(queries, keys, values, bandwidth):
    """One entry of the batch at a time."""
    return torch.stack(
        [
            attention_pooling(q, k, v, bandwidth=bandwidth).output
            for q, k, v in zip(queries, keys, values, strict=True)
        ]
    )


DIFFERENCES = "queries[:, :, None] - keys[:, None, :]"
SOFTMAX, EXP = "torch.softmax(scores, dim=-1)", "torch.exp(scores)"
MISTAKES = rf"""
dim=-1 -> dim=-2
    Your softmax runs over the queries. In (batch, query, key) the keys are the last axis.
dim=-1 -> dim=0
    Your softmax runs over the batch, so the entries of the batch influence each other. It must run over the keys.
{SOFTMAX} -> torch.softmax(scores.flatten(1), dim=-1).view_as(scores)
    Your softmax runs over queries and keys together. The weights of each query must sum to 1: dim=-1.
keys[:, None, :] -> keys.flatten()
+ @ values -> @ values.flatten(0, 1)
    Your queries attend to the keys of all batch entries. Keep the batch axis of the keys in the difference: (batch,
    query, 1) - (batch, 1, key).
keys[:, None, :] -> keys[:1, None, :]
+ @ values -> @ values[:1]
    All your queries attend to the keys of the first batch entry. Each entry has its own keys and values.
keys[:, None, :] -> keys[:1, None, :]
    All your queries are compared with the keys of the first batch entry. Each entry has its own keys.
queries[:, :, None] -> queries[:1, :, None]
    Every entry of the batch gets the queries of the first one. Each entry has its own queries.
@ values -> @ values[:1]
    Every entry of the batch averages the values of the first one. Each entry has its own values.
{DIFFERENCES} -> queries[:, None] - keys[None]
    [:, None] inserts an axis after the batch axis, and [None] one before it. You need (batch, query, 1) - (batch, 1,
    key).
{DIFFERENCES} -> queries - keys
    queries - keys subtracts elementwise, or raises an error. Every query meets every key of its entry: (batch, query,
    1) - (batch, 1, key).
keys[:, None, :] -> keys
    Without a new axis the batch axis of keys meets the query axis. Insert one: keys[:, None, :] is (batch, 1, key).
{DIFFERENCES} -> queries[:, None, :] - keys[:, :, None]
    Your weights are (batch, key, query) in the product with the values. They must be (batch, query, key), so that the
    product sums over the keys.
{DIFFERENCES} -> keys[:, :, None] - queries[:, None, :]
+ {SOFTMAX} -> torch.softmax(scores, dim=1).reshape(*queries.shape, -1)
    A reshape does not exchange two axes; it changes which numbers belong together. Use .mT, or build the differences
    as (batch, query, key) from the start.
/ 2 ->
    The factor 1/2 in the exponent is missing.
/ 2 -> / 4
    The factor is 1/4 in your exponent. Square the difference over the bandwidth, then divide by 2: the 2 is not
    squared.
/ 2 -> * 2
    You multiply by 2. The score is -(difference / bandwidth)² / 2.
scores = - -> scores =
    The sign is wrong: the farthest key gets the largest weight.
((differences / bandwidth) ** 2) -> (differences / bandwidth).abs()
((differences / bandwidth) ** 2) / 2 -> (differences / bandwidth).abs()
    Your score is linear in the distance. The Gaussian kernel has the squared distance in its exponent.
** 2 ->
    You do not square the differences, so keys on one side of the query get all the weight.
/ bandwidth ->
    The bandwidth is not used. The score is -(difference / bandwidth)² / 2.
(differences / bandwidth) ** 2 -> differences**2 / bandwidth
    You square the difference before you divide by the bandwidth, so the bandwidth is not squared. The score is
    -(difference / bandwidth)² / 2.
/ bandwidth -> / bandwidth**2
    You divide by the square of the bandwidth and square the ratio again. The score is -(difference / bandwidth)² / 2.
/ bandwidth -> * bandwidth
    You multiply by the bandwidth. Divide: a large bandwidth makes distances small.
weights @ values -> values.mean(1, keepdim=True).expand(-1, queries.shape[1], -1)
    Your output is the mean of the values: the weights do not depend on the query.
{SOFTMAX} -> {EXP} / {EXP}.sum(dim=-1, keepdim=True)
{SOFTMAX} -> {EXP} / ({EXP}.sum(dim=-1, keepdim=True) + 1e-12)
    For a query far from all keys every kernel value underflows to 0, and so does their sum. Use torch.softmax of the
    scores, which subtracts the largest score of each row before exp.
{SOFTMAX} -> {EXP}
    These are kernel values, not weights: the weights of each query must sum to 1. Use a softmax over the keys.
{SOFTMAX} -> torch.softmax({EXP}, dim=-1)
    You apply a softmax to the kernel values. softmax computes exp itself: give it the scores.
{SOFTMAX} -> torch.softmax({SOFTMAX}, dim=-1)
    You apply the softmax twice, which makes the weights more equal. Once is enough.
{SOFTMAX} -> torch.log_softmax(scores, dim=-1)
    Your weights are logarithms of the softmax. Use softmax itself, so that they are positive and sum to 1.
{SOFTMAX} -> scores
    You use the scores as weights. Take a softmax over the keys first.
return weights @ values -> return weights
    You return the weights. The output is weights @ values.
return weights @ values -> return (weights @ values).mT
    The numbers are right, but the axes are (batch, d, query). Return (batch, query, d).
return weights @ values -> return (weights @ values).flatten(0, 1)
    The numbers are right, but the entries of the batch are joined along the query axis. Return (batch, query, d); in
    a loop, torch.stack makes the batch axis.
@ values -> @ values.mT
    You transpose the values. Their key axis must meet that of the weights: (batch, query, key) @ (batch, key, d).
weights @ values -> weights @ values / keys.shape[1]
    You divide by the number of keys as well. The weights of a query sum to 1 already.
weights @ values -> (weights @ values).sum(dim=1)
weights @ values -> (weights @ values).mean(dim=1)
    Your output has no query axis: you reduce over the queries too. Each query has an output of its own.
"""

CASES = (
    dict(
        queries=torch.tensor([[0.0], [1.0]]),
        keys=torch.tensor([[0.0, 1.0, 3.0], [2.0, 0.0, 1.0]]),
        values=torch.tensor([[[1.0], [2.0], [4.0]], [[3.0], [0.0], [5.0]]]),
        bandwidth=1.0,
    ),
    dict(
        queries=rounded_tensor(3, 4, seed=1),
        keys=rounded_tensor(3, 5, seed=2),
        values=rounded_tensor(3, 5, 2, seed=3),
        bandwidth=0.6,
    ),
    dict(  # queries so far away that exp of every score is 0
        queries=rounded_tensor(3, 4, seed=4) + torch.tensor([0.0, 0.0, 0.0, 20.0]),
        keys=rounded_tensor(3, 6, seed=5),
        values=rounded_tensor(3, 6, 2, seed=6),
        bandwidth=0.8,
    ),
)
HINTS = """
Write down the shape of each step: the differences need the shape (batch, query, key).
queries[:, :, None] is (batch, query, 1). Which axis does keys need, and where?
@ multiplies the last two axes and treats those before them as a batch: (batch, query, key) @ (batch, key, d) is
    (batch, query, d).
"""
