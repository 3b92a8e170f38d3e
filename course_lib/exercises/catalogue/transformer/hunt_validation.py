"""Bug hunt `hunt_validation` of notebook 08."""

import math
from functools import partial

import torch

from course_lib.attention import scaled_dot_product_attention
from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.masks import causal_mask


def causal_attention(query, key, value, training):
    new, seen = query.shape[1], key.shape[1]
    scores = query @ key.mT / math.sqrt(query.shape[-1])  # (batch, new, seen)
    mask = torch.ones(new, seen, dtype=torch.bool).tril(seen - new)  # in every mode
    scores = scores.masked_fill(~mask, -torch.inf)
    return torch.softmax(scores, dim=-1) @ value


def _given(query, key, value, training):
    new, seen = query.shape[1], key.shape[1]
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    if training:
        mask = torch.ones(new, seen, dtype=torch.bool).tril(seen - new)
        scores = scores.masked_fill(~mask, -torch.inf)
    return torch.softmax(scores, dim=-1) @ value


def _attention(
    query,
    key,
    value,
    training,
    *,
    shift=lambda new, seen: seen - new,
    masked=lambda t: True,
    invert=False,
    fill=-torch.inf,
    root=None,
    dim=-1,
    after=False,
):
    new, seen = query.shape[1], key.shape[1]
    mask = torch.ones(new, seen, dtype=torch.bool).tril(shift(new, seen))
    scores = query @ key.mT / math.sqrt(query.shape[-1] if root is None else root)
    if after:
        return (torch.softmax(scores, dim=dim) * mask) @ value
    if masked(training):
        scores = scores.masked_fill(mask if invert else ~mask, fill)
    return torch.softmax(scores, dim=dim) @ value


EXERCISE = Exercise(
    name="hunt_validation",
    notebook="08_transformer",
    title="Bug hunt: a validation loss that is too good",
    reference=lambda q, k, v, training: (
        scaled_dot_product_attention(q, k, v, causal_mask(q.shape[1], k.shape[1])).output
    ),
    solution=causal_attention,
    cases=(
        Case(
            query=torch.zeros(1, 2, 1),
            key=torch.zeros(1, 2, 1),
            value=torch.tensor([[[2.0], [6.0]]]),
            training=False,
        ),
        Case(  # one new token, which attends to all
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
            partial(_attention, masked=lambda training: False),
            "Now nothing is masked, not even in training. The mask is needed in both modes.",
        ),
        Mistake(
            "upside_down",
            partial(_attention, masked=lambda training: not training),
            "The condition is inverted: now nothing is masked in training. The mask is needed in both modes.",
        ),
        Mistake(
            "square",
            partial(_attention, shift=lambda new, seen: 0),
            "Both modes are masked now, but the mask has no offset in validation: with more keys than queries, the queries are "
            "the last ones, .tril(seen - new).",
        ),
        Mistake(
            "one_too_many",
            partial(_attention, shift=lambda new, seen: seen - new + 1),
            "Both modes are masked now, but each query attends to the token after it. The offset was right.",
        ),
        Mistake(
            "one_too_few",
            partial(_attention, shift=lambda new, seen: seen - new - 1),
            "Both modes are masked now, but a query does not attend to its own position. The offset was right.",
        ),
        Mistake(
            "wrong_sign",
            partial(_attention, shift=lambda new, seen: new - seen),
            "Both modes are masked now, but the offset has the wrong sign, so with cached keys the first queries have no key "
            "left and get NaN. The offset was right: .tril(seen - new).",
        ),
        Mistake(
            "inverted",
            partial(_attention, invert=True),
            "Both modes are masked now, but the mask is inverted: each query attends only to keys after it, and the last one "
            "to none, which gives NaN.",
        ),
        Mistake(
            "inverted_in_validation",
            lambda q, k, v, training: _attention(q, k, v, training, invert=not training),
            "In validation the mask is inverted: each query attends only to keys after it, and the last one to none, which "
            "gives NaN. The same mask is needed in both modes.",
        ),
        Mistake(
            "only_without_a_cache",
            lambda q, k, v, training: _attention(
                q, k, v, training, masked=lambda t: t or q.shape[1] == k.shape[1]
            ),
            "In validation the mask is used only if no keys are cached. It is needed with several new tokens on a cache too.",
        ),
        Mistake(
            "no_scale",
            partial(_attention, root=1),
            "Both modes are masked now, but the scale is missing: divide the scores by √d.",
        ),
        Mistake(
            "over_queries",
            partial(_attention, dim=-2),
            "Both modes are masked now, but your softmax runs over the queries: each query has a distribution over the keys, "
            "dim=-1.",
        ),
        Mistake(
            "last_only",
            lambda q, k, v, training: _attention(q if training else q[:, -1:], k, v, training),
            "In validation you compute the output of the last query only. The validation loss needs all of them, as in "
            "training.",
        ),
        Mistake(
            "scores_to_zero",
            partial(_attention, fill=0.0),
            "Both modes get the mask now, but a score of 0 masks nothing: exp(0) is 1. Masked scores must be -inf.",
        ),
        Mistake(
            "no_scale_in_validation",
            lambda q, k, v, training: _attention(q, k, v, training, root=None if training else 1),
            "Both modes are masked now, but in validation the scale is missing: divide the scores by √d.",
        ),
        Mistake(
            "after_the_softmax",
            partial(_attention, after=True),
            "Both modes are masked now, but after the softmax, so the weights of a query no longer sum to 1. Mask the scores.",
        ),
        Mistake(
            "after_the_softmax_in_validation",
            lambda q, k, v, training: _attention(q, k, v, training, after=not training),
            "In validation you mask after the softmax, so the weights of a query no longer sum to 1. Mask the scores, in both "
            "modes.",
        ),
    ),
    hints=(
        "Change the last value. Which outputs change, with training=True and with training=False?",
        "A validation loss is computed with several new tokens at once, like a training loss. Which keys may each "
        "attend to?",
        "The mask does not depend on the mode: take the two lines out of the if.",
    ),
    given=_given,
)
