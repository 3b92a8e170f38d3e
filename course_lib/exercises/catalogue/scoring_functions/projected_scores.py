"""The score of the Transformer: two projections, one dot product."""

import math

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.catalogue.scoring_functions._shared import QUERY
from course_lib.transformer.scoring import ScaledDotScore


def projected_scores(query, key, W_q, W_k):
    q = query @ W_q.T  # (query, d_k)
    k = key @ W_k.T  # (key, d_k)
    scores = q @ k.T / math.sqrt(W_q.shape[0])  # (query, key)
    return scores


def reference(q, k, W_q, W_k):
    return ScaledDotScore()(q @ W_q.mT, k @ W_k.mT)


SCALE = "/ math.sqrt(W_q.shape[0])"
MISTAKES = f"""
{SCALE} ->
    The scale is missing. Divide by the square root of the dimension of the projected vectors.
W_q.shape[0] -> query.shape[-1]
    You scale by the dimension of the query before its projection. The dot product is a sum of as many terms as the
    projected vectors have components.
W_q.shape[0] -> key.shape[-1]
    You scale by the dimension of the key before its projection. The dot product is a sum of as many terms as the
    projected vectors have components.
W_q.shape[0] -> (query.shape[-1] + key.shape[-1])
    You scale by the dimensions of query and key before their projection. The dot product is a sum of as many terms as
    the projected vectors have components.
{SCALE} -> / W_q.shape[0]
    Your scores are divided by the dimension itself: either the root is missing, or you divide both the queries and the
    keys by it.
return scores -> return torch.softmax(scores, dim=-1)
return scores -> return torch.softmax(scores, dim=0)
    You applied the softmax already. Return the scores.
return scores -> return scores.exp()
    You applied exp already. Return the scores: the softmax computes exp itself.
query @ W_q.T -> torch.tanh(query @ W_q.T)
+ key @ W_k.T -> torch.tanh(key @ W_k.T)
query @ W_q.T -> torch.tanh(query @ W_q.T)
key @ W_k.T -> torch.tanh(key @ W_k.T)
return scores -> return torch.tanh(scores)
    There is no tanh in this score. It is linear in the query and in the key.
return scores -> return scores.T
    Your result is (key, query). Each row belongs to a query: multiply the projected queries by the transposed
    projected keys.
W_q.shape[0] -> len(key)
    You scale by the number of keys. The dot product is a sum of as many terms as the projected vectors have
    components.
W_q.shape[0] -> len(query)
    You scale by the number of queries. The dot product is a sum of as many terms as the projected vectors have
    components.
{SCALE} -> / 2
{SCALE} -> / 8
    You divide by a fixed number. The dimension of the projected vectors differs from call to call:
    math.sqrt(W_q.shape[0]).
query @ W_q.T -> query @ W_k.T
+ key @ W_k.T -> key @ W_q.T
    W_q and W_k are exchanged: W_q projects the queries, W_k the keys.
query @ W_q.T -> query @ W_q
+ key @ W_k.T -> key @ W_k
    You multiply by W_q and W_k without transposing them. They are (d_k, size of the input), so use query @ W_q.T and
    key @ W_k.T. With square matrices there is no error message.
query @ W_q.T -> query @ W_q
    W_q is not transposed. It is (d_k, query_size), so use query @ W_q.T. With a square matrix there is no error
    message.
key @ W_k.T -> key @ W_k
    W_k is not transposed. It is (d_k, key_size), so use key @ W_k.T. With a square matrix there is no error message.
key @ W_k.T -> key @ W_q.T
    You project the keys with W_q as well. Keys have a projection of their own, W_k.
query @ W_q.T -> query @ W_k.T
    You project the queries with W_k as well. Queries have a projection of their own, W_q.
key @ W_k.T -> key
    The keys are not projected: W_k is not used.
query @ W_q.T -> query
    The queries are not projected: W_q is not used.
query @ W_q.T -> query
+ key @ W_k.T -> key
+ W_q.shape[0] -> query.shape[-1]
    Neither the queries nor the keys are projected: W_q and W_k are not used.
{SCALE} -> * math.sqrt(W_q.shape[0])
    You multiply by √d. Divide, so that the variance of the scores does not grow with the dimension.
q @ k.T {SCALE} -> torch.tanh(q[:, None] + k[None]).sum(dim=-1)
q @ k.T {SCALE} -> (q[:, None] + k[None]).sum(dim=-1)
    This is an additive score. Here the two projections are multiplied: a dot product for each pair.
{SCALE} -> / (q.norm(dim=-1, keepdim=True) * k.norm(dim=-1))
    You divide by the norms, so these are cosine similarities. Divide the dot products by √d_k.
"""

CASES = (
    dict(  # all dimensions are equal: no mistake raises an error
        query=QUERY,
        key=torch.tensor([[1.0, -1.0], [0.0, 1.0]]),
        W_q=torch.tensor([[1.0, 2.0], [0.0, 1.0]]),
        W_k=torch.tensor([[1.0, 0.0], [3.0, -1.0]]),
    ),
    dict(
        query=QUERY,
        key=torch.tensor([[1.0, 0.0, 2.0], [0.0, 1.0, -1.0], [2.0, 1.0, 0.0]]),
        W_q=torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 0.0]]),
        W_k=torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [0.0, 2.0, 0.0]]),
    ),
    dict(
        query=random_tensor(5, 6, seed=14),
        key=random_tensor(4, 3, seed=15),
        W_q=random_tensor(2, 6, seed=16),
        W_k=random_tensor(2, 3, seed=17),
    ),
)
HINTS = """
query @ W_q.T is (query, d_k), key @ W_k.T is (key, d_k). Now they have the same dimension.
A dot product of every pair: q @ k.T. How many terms does each sum have?
Each sum has d_k = W_q.shape[0] terms. Divide by its square root.
"""
