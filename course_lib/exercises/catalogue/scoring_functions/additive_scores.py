"""Exercise `additive_scores` of notebook 02."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor, two_mistakes
from course_lib.exercises.exercise import Case, Exercise, Mistake


def additive_scores(query, projected_keys, W, v):
    projected_query = query @ W.T  # (batch, hidden)
    hidden = torch.tanh(projected_query[:, None, :] + projected_keys)  # (batch, key, hidden)
    return hidden @ v  # (batch, key)


def _sum(q, k, W):
    return (q @ W.T)[:, None, :] + k


def _changed(q, k, W, v, *, activation=torch.tanh, finish=lambda scores: scores):
    return finish(activation(_sum(q, k, W)) @ v)


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
        Mistake(
            "first_query",
            lambda q, k, W, v: torch.tanh((q @ W.T)[0] + k) @ v,
            "Every sequence gets the query of the first one. Each sequence of the batch has its own: [:, None, :].",
        ),
        Mistake(
            "scaled",
            lambda q, k, W, v: torch.tanh(_sum(q, k, W)) @ v / len(v) ** 0.5,
            "You divide by a root. The additive score has no scale: its tanh bounds each term.",
        ),
        Mistake(
            "mean",
            lambda q, k, W, v: (torch.tanh(_sum(q, k, W)) * v).mean(dim=-1),
            "You average over the hidden units. The score is their sum, weighted by v: … @ v.",
        ),
        Mistake(
            "dot_product",
            lambda q, k, W, v: ((q @ W.T)[:, None, :] * k).sum(dim=-1),
            "This is a dot product of the two projections. The additive score is v · tanh(W q + U k).",
        ),
        Mistake(
            "column",
            lambda q, k, W, v: (torch.tanh(_sum(q, k, W)) @ v)[..., None],
            "The numbers are right, but the shape is (batch, key, 1). Multiply by v, not by v[:, None], or squeeze the last "
            "axis.",
        ),
        Mistake(
            "W_transposed",
            lambda q, k, W, v: torch.tanh((q @ W)[:, None, :] + k) @ v,
            "W is (hidden, query_size), so the projection of a batch of rows is query @ W.T. With a square W there is no "
            "error message.",
        ),
        Mistake(
            "difference",
            lambda q, k, W, v: torch.tanh((q @ W.T)[:, None, :] - k) @ v,
            "You subtract the projected key. The additive score adds the two projections inside the tanh.",
        ),
        *(
            Mistake(
                name,
                lambda q, k, W, v, hidden=hidden: hidden((q @ W.T)[:, None, :], k) @ v,
                "There is a tanh too many or on the wrong term. Add the two projections as they are, and apply one tanh to "
                "the sum.",
            )
            for name, hidden in {
                "tanh_of_query": lambda q, k: torch.tanh(q) + k,
                "tanh_of_keys": lambda q, k: q + torch.tanh(k),
                "tanh_twice": lambda q, k: torch.tanh(torch.tanh(q) + torch.tanh(k)),
                "tanh_of_query_and_sum": lambda q, k: torch.tanh(torch.tanh(q) + k),
            }.items()
        ),
        Mistake(
            "hidden_units",
            lambda q, k, W, v: torch.tanh(_sum(q, k, W)),
            "These are the hidden units, (batch, key, hidden). Their product with v gives one score per key.",
        ),
        Mistake(
            "v_not_summed",
            lambda q, k, W, v: torch.tanh(_sum(q, k, W)) * v,
            "You multiply by v, but do not add the hidden units. Sum over them: … @ v.",
        ),
        Mistake(
            "mean_query",
            lambda q, k, W, v: torch.tanh((q @ W.T).mean(dim=0) + k) @ v,
            "Every sequence gets the mean of the queries. Each sequence of the batch has its own: [:, None, :].",
        ),
        Mistake(
            "v_inside",
            lambda q, k, W, v: torch.tanh(_sum(q, k, W) * v).sum(dim=-1),
            "You multiply by v inside the tanh. Apply the tanh to the hidden units first, then multiply by v.",
        ),
        *two_mistakes(
            _changed,
            {
                "no_tanh": ({"activation": lambda x: x}, "The tanh is missing."),
                "relu": (
                    {"activation": torch.relu},
                    "The activation function is a ReLU; it must be a tanh.",
                ),
                "sigmoid": (
                    {"activation": torch.sigmoid},
                    "The activation function is a sigmoid; it must be a tanh.",
                ),
            },
            {
                "softmaxed": (
                    {"finish": lambda a: torch.softmax(a, dim=-1)},
                    "You applied the softmax already; return the scores.",
                ),
                "scaled": ({"finish": lambda a: a / 2**0.5}, "There is no scale in this score."),
            },
        ),
        Mistake(
            "no_query",
            lambda q, k, W, v: torch.tanh(k) @ v,
            "The query is not used, so the scores depend on the keys alone. Add its projection inside the tanh.",
        ),
    ),
    hints=(
        "Project the query: query @ W.T is (batch, hidden). The keys are (batch, key, hidden).",
        "Which axis is missing in the projected query? Indexing with None adds one.",
        "torch.tanh(… + projected_keys) @ v turns the hidden units into one score.",
    ),
)
