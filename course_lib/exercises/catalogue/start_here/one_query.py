"""Attention of one query."""

import torch

from course_lib.transformer.attention import scaled_dot_product_attention


def attention(query, keys, values):
    scores = keys @ query  # (n,)
    weights = torch.softmax(scores, dim=0)  # (n,)
    return weights @ values  # (d_v,)


def reference(query, keys, values):
    return scaled_dot_product_attention(query[None], keys, values, scale=1.0).output[0]


SOFTMAX, EXP = "torch.softmax(scores, dim=0)", "torch.exp(scores)"
MISTAKES = rf"""
{SOFTMAX} -> scores
    You use the scores as weights. Apply a softmax first, so that the weights are positive and sum to 1.
{SOFTMAX} -> scores / scores.sum()
    You divide the scores by their sum, so a negative score becomes a negative weight. The softmax takes the
    exponentials first.
{SOFTMAX} -> {EXP}
    Your weights are the exponentials of the scores and do not sum to 1. Divide them by their sum.
{SOFTMAX} -> {EXP} / {EXP}.max()
    You divide the exponentials by their maximum. Divide them by their sum, so that the weights sum to 1.
{SOFTMAX} -> {EXP} / {EXP}.norm()
    You divide the exponentials by their norm. Divide them by their sum, so that the weights sum to 1.
{SOFTMAX} -> torch.eye(len(scores))[scores.argmax()]
    You return the value whose key has the largest score. A softmax gives every key a positive weight.
{SOFTMAX} -> torch.softmax(torch.softmax(scores, dim=0), dim=0)
    You apply the softmax twice, which makes the weights more equal. Once is enough.
{SOFTMAX} -> torch.softmax({EXP}, dim=0)
    You take exponentials twice: softmax already takes those of its argument. Give it the scores.
keys @ query -> keys @ query / len(query) ** 0.5
    You divide the scores by √d. That is scaled dot-product attention, the subject of notebook 2; this exercise asks
    for the dot products themselves.
keys @ query -> keys @ query * len(query) ** 0.5
    You multiply the scores by √d. This exercise asks for the dot products themselves.
keys @ query -> torch.cosine_similarity(keys, query, dim=-1)
    You divide by the norms, so your scores are cosine similarities. The scores here are dot products.
keys @ query -> keys @ query / query.norm()
    Your scores are divided by the norm of the query. The scores here are dot products of the vectors as they are.
keys @ query -> keys @ query / keys.norm(dim=-1)
    Each of your scores is divided by the norm of its key. The scores here are dot products of the vectors as they
    are.
keys @ query -> -((keys - query) ** 2).sum(dim=-1)
keys @ query -> -((keys - query) ** 2).sum(dim=-1) / 2
    Your scores are negative squared distances. That is a Gaussian kernel, the subject of notebook 1; this exercise
    asks for dot products.
keys @ query -> -(keys - query).norm(dim=-1)
    Your scores are negative distances. This exercise asks for dot products.
keys @ query -> keys * query
    Your weights have the shape (n, d), one for each component. A score is one number per key, the sum of the products
    of the components: keys @ query.
keys @ query -> query @ keys
keys @ query -> keys.T @ query
    Your product sums over the keys. The sum must run over the d components: (n, d) @ (d,), keys @ query.
keys @ query -> keys.sum(dim=1)
    The query is not used: your scores are the sums of the keys' components. Take the dot product of each key with the
    query.
@ values -> @ keys
    You average the keys. The keys determine the weights; the output is the weighted sum of the values.
keys @ query -> values @ query
    You compare the query with the values. The scores are dot products of the query with the keys.
weights @ values -> values.mean(dim=0)
    You take the plain mean of the values, whatever the query is. Weight each value by the softmax of the scores.
return weights @ values -> return weights
    You return the weights. The output is the sum of the values, each multiplied by its weight.
return weights @ values -> return weights[None] @ values
    The numbers are right, but the shape is (1, d_v), a matrix of one row. Return a vector of shape (d_v,).
return weights @ values -> return (weights @ values)[:, None]
    The numbers are right, but the shape is (d_v, 1), a matrix of one column. Return a vector of shape (d_v,).
keys @ query -> values @ query
+ @ values -> @ keys
    Keys and values are exchanged. The query is compared with the keys, and the output is the weighted sum of the
    values.
scores = keys -> scores = -keys
    The sign of the scores is reversed: the key with the smallest dot product gets the largest weight.
{SOFTMAX} -> torch.ones_like(scores)
    Every weight is 1, so the output is the plain sum of the values. A softmax over an axis of length 1 gives 1; it
    must run over the keys.
{SOFTMAX} -> torch.log_softmax(scores, dim=0)
    Your weights are logarithms of the softmax. Use softmax itself, so that they are positive and sum to 1.
{SOFTMAX} -> torch.sigmoid(scores)
    A sigmoid treats each score on its own, so the weights do not sum to 1. Use a softmax over the keys.
{SOFTMAX} -> {EXP} / {EXP}.mean()
    Your weights sum to the number of keys. Divide the exponentials by their sum.
{SOFTMAX} -> scores.relu() / scores.relu().sum()
{SOFTMAX} -> scores.abs() / scores.abs().sum()
{SOFTMAX} -> scores**2 / (scores**2).sum()
    You make the scores positive in another way. The softmax takes their exponentials, then divides by the sum of
    these.
{SOFTMAX} -> 2**scores / (2**scores).sum()
    You use powers of 2. The softmax uses powers of e: torch.exp.
weights @ values -> weights @ values / len(values)
    You divide by the number of keys as well. The weights sum to 1 already: add the weighted values instead of
    averaging them.
weights @ values -> weights[:, None] * values
    You multiply each value by its weight, but do not add the products. Sum over the keys, dim=0.
weights @ values -> (weights[:, None] * values).sum(dim=1)
    You sum over the components of each value, dim=1. Sum over the keys, dim=0.
weights @ values -> (weights @ values).sum()
    You sum over both axes, which leaves a single number. Sum over the keys alone, dim=0.
weights @ values -> weights * values
weights @ values -> values * weights
    weights * values multiplies the columns of values by the weights, or raises an error. Each row has one weight: use
    the matrix product weights @ values.
weights @ values -> values @ weights
    The product values @ weights sums over the columns of values. The sum must run over the keys: weights @ values.
return weights @ values -> return scores
    You return the scores. Apply a softmax to them, and return the weighted sum of the values.
keys @ query -> (keys * query).mean(dim=1)
    You average over the components. The dot product is their sum.
{SOFTMAX} -> {EXP} / torch.exp(scores.sum())
    You divide by the exponential of the sum. Divide by the sum of the exponentials.
"""

_KEYS = torch.tensor([[2.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
_VALUES = torch.tensor([[10.0, 0.0], [0.0, 10.0], [5.0, 5.0]])

CASES = (
    dict(query=torch.tensor([1.0, 0.0]), keys=_KEYS, values=_VALUES),
    dict(query=torch.tensor([1.0, 2.0]), keys=_KEYS, values=_VALUES.roll(1, dims=0)),
    dict(
        query=torch.tensor([1.0, -1.0, 0.5]),
        keys=torch.tensor([[1.0, 0, 0], [0, 1, 1], [2, 0, 1], [0, -1, 2]]),
        values=torch.tensor([[1.0, 0.0], [0.0, 2.0], [4.0, 4.0], [-1.0, 3.0]]),
    ),
)
HINTS = """
There are three steps: scores, weights, weighted sum. All three are in the section “Build it”.
The scores of all keys are one matrix product, keys @ query. torch.softmax(scores, dim=0) gives the weights.
return torch.softmax(keys @ query, dim=0) @ values
"""
