"""Bug hunt `hunt_alike` of notebook 02."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.catalogue.scoring_functions._shared import KEY, QUERY, sum_of_projections
from course_lib.exercises.exercise import Case, Exercise, Mistake


def align(query, key, W, U, v):
    together = (query @ W.T)[:, None, :] + (key @ U.T)[None, :, :]  # (query, key, hidden)
    scores = torch.tanh(together) @ v  # (query, key)
    return torch.softmax(scores, dim=-1)  # (query, key)


def _given(query, key, W, U, v):
    hidden = torch.tanh(query @ W.T)[:, None, :] + torch.tanh(key @ U.T)[None, :, :]
    scores = hidden @ v
    return torch.softmax(scores, dim=-1)


def _from_hidden(hidden, dim=-1):
    """The function with other hidden units, of the two projections, and a softmax over `dim`."""
    return lambda q, k, W, U, v: torch.softmax(
        hidden((q @ W.T)[:, None, :], (k @ U.T)[None, :, :]) @ v, dim=dim
    )


EXERCISE = Exercise(
    name="hunt_alike",
    notebook="02_scoring_functions",
    title="Bug hunt: three queries, one row of weights",
    reference=align,
    solution=align,
    cases=(
        Case(
            query=QUERY,
            key=KEY,
            W=torch.tensor([[1.0, 0.0], [1.0, -1.0], [0.0, 1.0]]),
            U=torch.tensor([[0.0, 1.0], [1.0, 0.0], [-1.0, 0.0]]),
            v=torch.tensor([2.0, -1.0, 1.0]),
        ),
        Case(
            query=random_tensor(4, 3, seed=5),
            key=random_tensor(6, 5, seed=6),
            W=random_tensor(7, 3, seed=7),
            U=random_tensor(7, 5, seed=8),
            v=random_tensor(7, seed=9),
        ),
    ),
    mistakes=(
        Mistake(
            "tanh_outside",
            lambda q, k, W, U, v: torch.softmax(
                torch.tanh(sum_of_projections(q, k, W, U) @ v), dim=-1
            ),
            "A tanh of the finished score makes the rows differ, but every score is now between -1 and 1. Apply it to "
            "the hidden units, before the product with v.",
        ),
        Mistake(
            "no_tanh",
            lambda q, k, W, U, v: torch.softmax(sum_of_projections(q, k, W, U) @ v, dim=-1),
            "Without a tanh of the sum, the score is still a term of the query plus a term of the key. Keep one tanh, and "
            "find what it has to be applied to.",
        ),
        Mistake(
            "product",
            lambda q, k, W, U, v: torch.softmax(
                torch.tanh((q @ W.T)[:, None, :] * (k @ U.T)[None, :, :]) @ v, dim=-1
            ),
            "You multiply the two projections. The rows differ now, but this score adds them, hence its name.",
        ),
        Mistake(
            "no_softmax",
            lambda q, k, W, U, v: torch.tanh(sum_of_projections(q, k, W, U)) @ v,
            "The scores are right now, but the softmax is gone. Return the weights.",
        ),
        Mistake(
            "sigmoid",
            lambda q, k, W, U, v: torch.softmax(
                torch.sigmoid(sum_of_projections(q, k, W, U)) @ v, dim=-1
            ),
            "With any nonlinearity query and key interact, so a sigmoid works too. Bahdanau et al. use a tanh.",
        ),
        Mistake(
            "relu",
            lambda q, k, W, U, v: torch.softmax(
                torch.relu(sum_of_projections(q, k, W, U)) @ v, dim=-1
            ),
            "With any nonlinearity query and key interact, so a ReLU works too. Bahdanau et al. use a tanh.",
        ),
        Mistake(
            "over_queries",
            lambda q, k, W, U, v: torch.softmax(
                (torch.tanh(q @ W.T)[:, None, :] + torch.tanh(k @ U.T)[None, :, :]) @ v, dim=0
            ),
            "The axis was right. With a softmax over the queries, the weights of one query no longer sum to 1. And "
            "the rows are still alike before it.",
        ),
        Mistake(
            "product_of_tanhs",
            _from_hidden(lambda q, k: torch.tanh(q) * torch.tanh(k)),
            "You multiply the two projections. The rows differ now, but this score adds them, hence its name.",
        ),
        Mistake(
            "right_but_over_queries",
            _from_hidden(lambda q, k: torch.tanh(q + k), dim=0),
            "The scores are right now, but your softmax runs over the queries. The weights of one query sum to 1 over the "
            "keys: dim=-1.",
        ),
        Mistake(
            "difference",
            _from_hidden(lambda q, k: torch.tanh(q - k)),
            "You subtract the projected key. The additive score adds the two projections inside the tanh.",
        ),
        *(
            Mistake(
                name,
                _from_hidden(hidden),
                "There is a tanh too many: you apply it to a projection and to the sum. Add the two projections as they "
                "are, and apply one tanh to the sum.",
            )
            for name, hidden in {
                "tanh_twice": lambda q, k: torch.tanh(torch.tanh(q) + torch.tanh(k)),
                "tanh_of_query_and_sum": lambda q, k: torch.tanh(torch.tanh(q) + k),
                "tanh_of_key_and_sum": lambda q, k: torch.tanh(q + torch.tanh(k)),
            }.items()
        ),
        Mistake(
            "scaled",
            _from_hidden(lambda q, k: torch.tanh(q + k) / q.shape[-1] ** 0.5),
            "The tanh is right now, but you divide the scores by a root. The additive score has no scale: its tanh bounds "
            "each term.",
        ),
        Mistake(
            "over_batch_of_all",
            lambda q, k, W, U, v: torch.softmax(
                (torch.tanh(sum_of_projections(q, k, W, U)) @ v).flatten(), dim=0
            ).view(len(q), len(k)),
            "Your softmax runs over queries and keys together. The weights of one query sum to 1 over the keys: dim=-1.",
        ),
        Mistake(
            "no_v",
            lambda q, k, W, U, v: torch.softmax(
                torch.tanh(sum_of_projections(q, k, W, U)).sum(dim=-1), dim=-1
            ),
            "v is not used: the score is the sum of the hidden units, weighted by v: … @ v.",
        ),
        Mistake(
            "sigmoid_for_softmax",
            lambda q, k, W, U, v: torch.sigmoid(torch.tanh(sum_of_projections(q, k, W, U)) @ v),
            "The scores are right now, but a sigmoid of each does not sum to 1 over the keys. Use a softmax.",
        ),
        Mistake(
            "tanh_outside_no_softmax",
            lambda q, k, W, U, v: torch.tanh(sum_of_projections(q, k, W, U) @ v),
            "The tanh comes after the product with v: apply it to the hidden units. And the softmax is gone.",
        ),
    ),
    hints=(
        "Write the score of this code as a sum: v·tanh(W q) + v·tanh(U k). Which of the two terms changes along a row?",
        "Adding one number to a whole row of scores does not change its softmax. So the term of the query cancels.",
        "Compare the code with the formula of the additive score. What is the tanh applied to?",
    ),
    given=_given,
)
