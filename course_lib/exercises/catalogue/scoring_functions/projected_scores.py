"""Exercise `projected_scores` of notebook 02."""

import math

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.catalogue.scoring_functions._shared import QUERY
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.scoring import ScaledDotScore


def projected_scores(query, key, A, B):
    q = query @ A.T  # (query, hidden)
    k = key @ B.T  # (key, hidden)
    return q @ k.T / math.sqrt(A.shape[0])  # the dimension of the projections


EXERCISE = Exercise(
    name="projected_scores",
    notebook="02_scoring_functions",
    title="The score of the Transformer: two projections, one dot product",
    reference=lambda q, k, A, B: ScaledDotScore()(q @ A.mT, k @ B.mT),
    solution=projected_scores,
    cases=(
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
    ),
    hints=(
        "query @ A.T is (query, hidden), key @ B.T is (key, hidden). Now they have the same dimension.",
        "A dot product of every pair: q @ k.T. How many terms does each sum have?",
        "Each sum has hidden = A.shape[0] terms. Divide by its square root.",
    ),
)
