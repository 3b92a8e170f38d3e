"""Exercise `additive_scores` of notebook 02."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.exercise import Case, Exercise, Mistake


def additive_scores(query, projected_keys, W, v):
    projected_query = query @ W.T  # (batch, hidden)
    hidden = torch.tanh(projected_query[:, None, :] + projected_keys)  # (batch, key, hidden)
    return hidden @ v  # (batch, key)


def _sum(q, k, W):
    return (q @ W.T)[:, None, :] + k


EXERCISE = Exercise(
    name="additive_scores",
    notebook="02_scoring_functions",
    title="One step of a decoder: additive scores with keys that are projected already",
    reference=lambda q, k, W, v: torch.einsum("bkh,h->bk", torch.tanh(_sum(q, k, W)), v),
    solution=additive_scores,
    cases=(
        Case(  # as many keys as sequences: a wrong axis for the query raises no error
            query=torch.tensor([[1.0, 0.0], [0.0, 2.0]]),
            projected_keys=torch.tensor([[[1.0, 0.0], [0.0, -1.0]], [[2.0, 1.0], [0.0, 1.0]]]),
            W=torch.tensor([[1.0, 0.0], [1.0, -1.0]]),
            v=torch.tensor([2.0, -1.0]),
        ),
        Case(
            query=random_tensor(3, 4, seed=5),
            projected_keys=random_tensor(3, 3, 5, seed=6),
            W=random_tensor(5, 4, seed=7),
            v=random_tensor(5, seed=9),
        ),
    ),
    mistakes=(
        Mistake(
            "no_tanh",
            lambda q, k, W, v: _sum(q, k, W) @ v,
            "The tanh is missing. Without it, the score is a term of the query plus a term of the key, and query and "
            "key do not interact.",
        ),
        Mistake(
            "tanh_of_parts",
            lambda q, k, W, v: (torch.tanh(q @ W.T)[:, None, :] + torch.tanh(k)) @ v,
            "You apply tanh to each projection and then add. Add first: inside one tanh, query and key interact.",
        ),
        Mistake(
            "tanh_outside",
            lambda q, k, W, v: torch.tanh(_sum(q, k, W) @ v),
            "The tanh comes last here. Apply it to the hidden units, before the product with v.",
        ),
        Mistake(
            "product",
            lambda q, k, W, v: torch.tanh((q @ W.T)[:, None, :] * k) @ v,
            "You multiply the two projections. This score adds them, hence its name.",
        ),
        Mistake(
            "sigmoid",
            lambda q, k, W, v: torch.sigmoid(_sum(q, k, W)) @ v,
            "This is a sigmoid. The score of Bahdanau et al. has a tanh.",
        ),
        Mistake(
            "relu",
            lambda q, k, W, v: torch.relu(_sum(q, k, W)) @ v,
            "This is a ReLU. The score of Bahdanau et al. has a tanh.",
        ),
        Mistake(
            "no_v",
            lambda q, k, W, v: torch.tanh(_sum(q, k, W)).sum(-1),
            "You sum over the hidden units without weighting them by v: … @ v.",
        ),
        Mistake(
            "wrong_axis",
            lambda q, k, W, v: torch.tanh((q @ W.T)[None, :, :] + k) @ v,
            "Your query axis lines up with the keys, not with the batch: add the new axis in the middle, [:, None, :].",
        ),
        Mistake(
            "softmaxed",
            lambda q, k, W, v: torch.softmax(torch.tanh(_sum(q, k, W)) @ v, dim=-1),
            "You applied the softmax already. Return the scores.",
        ),
    ),
    hints=(
        "Project the query: query @ W.T is (batch, hidden). The keys are (batch, key, hidden).",
        "Which axis is missing in the projected query? Indexing with None adds one.",
        "torch.tanh(… + projected_keys) @ v turns the hidden units into one score.",
    ),
)
