"""Bug hunt `hunt_peek` of notebook 08."""

import math
from functools import partial

import torch

from course_lib.attention import scaled_dot_product_attention
from course_lib.exercises.catalogue._shared import random_tensor, rounded_tensor
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.masks import causal_mask


def look_back(query, key, value, training):
    new, seen = query.shape[1], key.shape[1]
    scores = query @ key.mT / math.sqrt(query.shape[-1])  # (batch, new, seen)
    mask = torch.ones(new, seen, dtype=torch.bool).tril(seen - new)  # in training and after it
    scores = scores.masked_fill(~mask, -torch.inf)
    return torch.softmax(scores, dim=-1) @ value


def _given(query, key, value, training):
    new, seen = query.shape[1], key.shape[1]
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    if training:
        mask = torch.ones(new, seen, dtype=torch.bool).tril(seen - new)
        scores = scores.masked_fill(~mask, -torch.inf)
    return torch.softmax(scores, dim=-1) @ value


def _look_back(
    query, key, value, training, *, shift=lambda new, seen: seen - new, masked=lambda t: True
):
    new, seen = query.shape[1], key.shape[1]
    mask = torch.ones(new, seen, dtype=torch.bool).tril(shift(new, seen))
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    if masked(training):
        scores = scores.masked_fill(~mask, -torch.inf)
    return torch.softmax(scores, dim=-1) @ value


EXERCISE = Exercise(
    name="hunt_peek",
    notebook="08_transformer",
    title="Bug hunt: it looks ahead as soon as training ends",
    reference=lambda q, k, v, training: (
        scaled_dot_product_attention(q, k, v, causal_mask(q.shape[1], k.shape[1])).output
    ),
    solution=look_back,
    cases=(
        Case(
            query=rounded_tensor(1, 2, 2, seed=17),
            key=rounded_tensor(1, 2, 2, seed=18),
            value=rounded_tensor(1, 2, 2, seed=19),
            training=False,
        ),
        Case(  # one new token, which sees all
            query=random_tensor(2, 1, 3, seed=20),
            key=random_tensor(2, 5, 3, seed=21),
            value=random_tensor(2, 5, 3, seed=22),
            training=False,
        ),
        Case(
            query=random_tensor(2, 4, 3, seed=23),
            key=random_tensor(2, 4, 3, seed=24),
            value=random_tensor(2, 4, 3, seed=25),
            training=True,
        ),
        Case(  # several new tokens on a cache
            query=random_tensor(2, 3, 4, seed=26),
            key=random_tensor(2, 7, 4, seed=27),
            value=random_tensor(2, 7, 4, seed=28),
            training=False,
        ),
    ),
    mistakes=(
        Mistake(
            "never",
            partial(_look_back, masked=lambda training: False),
            "Now nothing is masked, not even in training. The mask is needed always.",
        ),
        Mistake(
            "upside_down",
            partial(_look_back, masked=lambda training: not training),
            "The switch is turned around: now training looks ahead. The mask is needed always.",
        ),
        Mistake(
            "square",
            partial(_look_back, shift=lambda new, seen: 0),
            "It masks always now. But your mask has lost its offset: with more keys than queries, the queries are the "
            "last of them, .tril(seen - new).",
        ),
        Mistake(
            "one_too_many",
            partial(_look_back, shift=lambda new, seen: seen - new + 1),
            "It masks always now. But each query sees the token after its own. The offset was right.",
        ),
        Mistake(
            "one_too_few",
            partial(_look_back, shift=lambda new, seen: seen - new - 1),
            "It masks always now. But a query does not see its own place. The offset was right.",
        ),
    ),
    hints=(
        "Change the last token. Does the output at the first place change? With training=True, and without.",
        "In evaluation a target of several tokens is read at once too, as in a validation loss. What may each see?",
        "The mask does not depend on the mode: take the two lines out of the if.",
    ),
    given=_given,
)
