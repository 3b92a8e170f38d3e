"""Exercise `projected_scores` of notebook 02."""

import math

import torch

from course_lib.exercises.catalogue._shared import random_tensor, two_mistakes
from course_lib.exercises.catalogue.scoring_functions._shared import QUERY
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.scoring import ScaledDotScore


def projected_scores(query, key, A, B):
    q = query @ A.T  # (query, hidden)
    k = key @ B.T  # (key, hidden)
    return q @ k.T / math.sqrt(A.shape[0])  # the dimension of the projections


def _scores(q, k, root):
    return q @ k.T / math.sqrt(root)


def _changed(q, k, A, B, *, root=None, finish=lambda scores: scores):
    return finish(_scores(q @ A.T, k @ B.T, len(A) if root is None else root(len(A))))


EXERCISE = Exercise(
    name="projected_scores",
    notebook="02_scoring_functions",
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
    mistakes=(
        Mistake(
            "no_scale",
            lambda q, k, A, B: (q @ A.T) @ (k @ B.T).T,
            "The scale is missing. Divide by the square root of the dimension of the projected vectors.",
        ),
        Mistake(
            "scaled_by_query_size",
            lambda q, k, A, B: (q @ A.T) @ (k @ B.T).T / math.sqrt(q.shape[-1]),
            "You scale by the dimension of the query before its projection. The dot product is a sum of as many terms as "
            "the projected vectors have components.",
        ),
        Mistake(
            "scaled_by_key_size",
            lambda q, k, A, B: (q @ A.T) @ (k @ B.T).T / math.sqrt(k.shape[-1]),
            "You scale by the dimension of the key before its projection. The dot product is a sum of as many terms as "
            "the projected vectors have components.",
        ),
        Mistake(
            "by_hidden",
            lambda q, k, A, B: (q @ A.T) @ (k @ B.T).T / A.shape[0],
            "You divide by the dimension itself. Divide by its square root.",
        ),
        Mistake(
            "softmaxed",
            lambda q, k, A, B: torch.softmax(
                (q @ A.T) @ (k @ B.T).T / math.sqrt(A.shape[0]), dim=-1
            ),
            "You applied the softmax already. Return the scores.",
        ),
        Mistake(
            "tanh",
            lambda q, k, A, B: torch.tanh(q @ A.T) @ torch.tanh(k @ B.T).T / math.sqrt(A.shape[0]),
            "There is no tanh in this score. It is linear in the query and in the key.",
        ),
        Mistake(
            "keys_in_rows",
            lambda q, k, A, B: _scores(k @ B.T, q @ A.T, len(A)),
            "Your result is (key, query). Each row belongs to a query: multiply the projected queries by the transposed "
            "projected keys.",
        ),
        Mistake(
            "number_of_keys",
            lambda q, k, A, B: _scores(q @ A.T, k @ B.T, len(k)),
            "You scale by the number of keys. The dot product is a sum of as many terms as the projected vectors have "
            "components.",
        ),
        Mistake(
            "number_of_queries",
            lambda q, k, A, B: _scores(q @ A.T, k @ B.T, len(q) + 0.0) * 1.0,
            "You scale by the number of queries. The dot product is a sum of as many terms as the projected vectors have "
            "components.",
        ),
        Mistake(
            "exchanged",
            lambda q, k, A, B: _scores(q @ B.T, k @ A.T, len(A)),
            "A and B are exchanged: A projects the queries, B the keys.",
        ),
        Mistake(
            "not_transposed",
            lambda q, k, A, B: _scores(q @ A, k @ B, len(A)),
            "You multiply by A and B without transposing them. They are (hidden, size of the input), so use query @ A.T and "
            "key @ B.T. With square matrices there is no error message.",
        ),
        Mistake(
            "A_for_both",
            lambda q, k, A, B: _scores(q @ A.T, k @ A.T, len(A)),
            "You project the keys with A as well. Keys have a projection of their own, B.",
        ),
        Mistake(
            "B_for_both",
            lambda q, k, A, B: _scores(q @ B.T, k @ B.T, len(A)),
            "You project the queries with B as well. Queries have a projection of their own, A.",
        ),
        Mistake(
            "keys_not_projected",
            lambda q, k, A, B: _scores(q @ A.T, k, len(A)),
            "The keys are not projected: B is not used.",
        ),
        Mistake(
            "queries_not_projected",
            lambda q, k, A, B: _scores(q, k @ B.T, len(A)),
            "The queries are not projected: A is not used.",
        ),
        Mistake(
            "not_projected",
            lambda q, k, A, B: _scores(q, k, q.shape[-1]),
            "Neither the queries nor the keys are projected: A and B are not used.",
        ),
        Mistake(
            "multiplied",
            lambda q, k, A, B: _scores(q @ A.T, k @ B.T, 1 / len(A)),
            "You multiply by √d. Divide, so that the variance of the scores does not grow with the dimension.",
        ),
        Mistake(
            "added",
            lambda q, k, A, B: torch.tanh((q @ A.T)[:, None] + (k @ B.T)[None]).sum(dim=-1),
            "This is an additive score. Here the two projections are multiplied: a dot product for each pair.",
        ),
        Mistake(
            "cosine",
            lambda q, k, A, B: torch.cosine_similarity((q @ A.T)[:, None], (k @ B.T)[None], dim=-1),
            "You divide by the norms, so these are cosine similarities. Divide the dot products by √hidden.",
        ),
        *two_mistakes(
            _changed,
            {
                "no_scale": ({"root": lambda d: 1}, "The scale 1/√hidden is missing."),
                "by_hidden": ({"root": lambda d: d**2}, "Divide by √hidden, not by hidden."),
            },
            {
                "softmaxed": (
                    {"finish": lambda a: torch.softmax(a, dim=-1)},
                    "You applied the softmax already; return the scores.",
                ),
                "keys_in_rows": (
                    {"finish": lambda a: a.T},
                    "Your result is (key, query); return (query, key).",
                ),
            },
        ),
    ),
    hints=(
        "query @ A.T is (query, hidden), key @ B.T is (key, hidden). Now they have the same dimension.",
        "A dot product of every pair: q @ k.T. How many terms does each sum have?",
        "Each sum has hidden = A.shape[0] terms. Divide by its square root.",
    ),
)
