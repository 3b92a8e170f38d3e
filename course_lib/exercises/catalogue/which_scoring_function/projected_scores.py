"""Exercise `projected_scores` of study 02b."""

import math

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.catalogue.scoring_functions._shared import QUERY
from course_lib.exercises.edits import mistakes
from course_lib.exercises.exercise import Case, Exercise
from course_lib.scoring import ScaledDotScore


def projected_scores(query, key, A, B):
    q = query @ A.T  # (query, hidden)
    k = key @ B.T  # (key, hidden)
    scores = q @ k.T / math.sqrt(A.shape[0])  # the dimension of the projections
    return scores


SCALE = "/ math.sqrt(A.shape[0])"
MISTAKES = f"""
{SCALE} ->
    The scale is missing. Divide by the square root of the dimension of the projected vectors.
A.shape[0] -> query.shape[-1]
    You scale by the dimension of the query before its projection. The dot product is a sum of as many terms as the
    projected vectors have components.
A.shape[0] -> key.shape[-1]
    You scale by the dimension of the key before its projection. The dot product is a sum of as many terms as the
    projected vectors have components.
A.shape[0] -> (query.shape[-1] + key.shape[-1])
    You scale by the dimensions of query and key before their projection. The dot product is a sum of as many terms as
    the projected vectors have components.
{SCALE} -> / A.shape[0]
    Your scores are divided by the dimension itself: either the root is missing, or you divide both the queries and the
    keys by it.
return scores -> return torch.softmax(scores, dim=-1)
return scores -> return torch.softmax(scores, dim=0)
    You applied the softmax already. Return the scores.
return scores -> return scores.exp()
    You applied exp already. Return the scores: the softmax computes exp itself.
query @ A.T -> torch.tanh(query @ A.T)
+ key @ B.T -> torch.tanh(key @ B.T)
query @ A.T -> torch.tanh(query @ A.T)
key @ B.T -> torch.tanh(key @ B.T)
return scores -> return torch.tanh(scores)
    There is no tanh in this score. It is linear in the query and in the key.
return scores -> return scores.T
    Your result is (key, query). Each row belongs to a query: multiply the projected queries by the transposed
    projected keys.
A.shape[0] -> len(key)
    You scale by the number of keys. The dot product is a sum of as many terms as the projected vectors have
    components.
A.shape[0] -> len(query)
    You scale by the number of queries. The dot product is a sum of as many terms as the projected vectors have
    components.
{SCALE} -> / 2
{SCALE} -> / 8
    You divide by a fixed number. The dimension of the projected vectors differs from call to call:
    math.sqrt(A.shape[0]).
query @ A.T -> query @ B.T
+ key @ B.T -> key @ A.T
    A and B are exchanged: A projects the queries, B the keys.
query @ A.T -> query @ A
+ key @ B.T -> key @ B
    You multiply by A and B without transposing them. They are (hidden, size of the input), so use query @ A.T and key
    @ B.T. With square matrices there is no error message.
query @ A.T -> query @ A
    A is not transposed. It is (hidden, query_size), so use query @ A.T. With a square matrix there is no error
    message.
key @ B.T -> key @ B
    B is not transposed. It is (hidden, key_size), so use key @ B.T. With a square matrix there is no error message.
key @ B.T -> key @ A.T
    You project the keys with A as well. Keys have a projection of their own, B.
query @ A.T -> query @ B.T
    You project the queries with B as well. Queries have a projection of their own, A.
key @ B.T -> key
    The keys are not projected: B is not used.
query @ A.T -> query
    The queries are not projected: A is not used.
query @ A.T -> query
+ key @ B.T -> key
+ A.shape[0] -> query.shape[-1]
    Neither the queries nor the keys are projected: A and B are not used.
{SCALE} -> * math.sqrt(A.shape[0])
    You multiply by √d. Divide, so that the variance of the scores does not grow with the dimension.
q @ k.T {SCALE} -> torch.tanh(q[:, None] + k[None]).sum(dim=-1)
q @ k.T {SCALE} -> (q[:, None] + k[None]).sum(dim=-1)
    This is an additive score. Here the two projections are multiplied: a dot product for each pair.
{SCALE} -> / (q.norm(dim=-1, keepdim=True) * k.norm(dim=-1))
    You divide by the norms, so these are cosine similarities. Divide the dot products by √hidden.
"""

EXERCISE = Exercise(
    title="The score of the Transformer: two projections, one dot product",
    reference=lambda q, k, A, B: ScaledDotScore()(q @ A.mT, k @ B.mT),
    solution=projected_scores,
    cases=(
        Case(  # all dimensions are equal: no mistake raises an error
            query=QUERY,
            key=torch.tensor([[1.0, -1.0], [0.0, 1.0]]),
            A=torch.tensor([[1.0, 2.0], [0.0, 1.0]]),
            B=torch.tensor([[1.0, 0.0], [3.0, -1.0]]),
        ),
        Case(
            query=QUERY,
            key=torch.tensor([[1.0, 0.0, 2.0], [0.0, 1.0, -1.0], [2.0, 1.0, 0.0]]),
            A=torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 0.0]]),
            B=torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [0.0, 2.0, 0.0]]),
        ),
        Case(
            query=random_tensor(5, 6, seed=14),
            key=random_tensor(4, 3, seed=15),
            A=random_tensor(2, 6, seed=16),
            B=random_tensor(2, 3, seed=17),
        ),
    ),
    mistakes=mistakes(projected_scores, MISTAKES),
    hints=(
        "query @ A.T is (query, hidden), key @ B.T is (key, hidden). Now they have the same dimension.",
        "A dot product of every pair: q @ k.T. How many terms does each sum have?",
        "Each sum has hidden = A.shape[0] terms. Divide by its square root.",
    ),
)
