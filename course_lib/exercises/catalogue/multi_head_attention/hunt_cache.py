"""Bug hunt `hunt_cache` of notebook 05."""

import math

import torch

from course_lib.attention import scaled_dot_product_attention
from course_lib.exercises.catalogue._shared import (
    attention_scores,
    random_tensor,
    softmax_where_allowed,
)
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.masks import causal_mask


def newest(query, key, value):
    new, total = query.shape[-2], key.shape[-2]
    scores = query @ key.mT / math.sqrt(query.shape[-1])  # (batch, heads, new, total)
    mask = torch.ones(new, total, dtype=torch.bool).tril(total - new)  # the queries are the last
    scores = scores.masked_fill(~mask, -torch.inf)
    return torch.softmax(scores, dim=-1) @ value  # (batch, heads, new, d)


def _given(query, key, value):
    new, total = query.shape[-2], key.shape[-2]
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    mask = torch.ones(new, total, dtype=torch.bool).tril()
    scores = scores.masked_fill(~mask, -torch.inf)
    return torch.softmax(scores, dim=-1) @ value


def _attend_with(query, key, value, mask, *, fill=-torch.inf, root=None, dim=-1):
    """Attend under the mask that `mask(new, total)` makes."""
    mask = mask(query.shape[-2], key.shape[-2])
    scores = attention_scores(query, key, root)
    return softmax_where_allowed(scores, mask, fill=fill, dim=dim) @ value


def _all_allowed(new, total):
    return torch.ones(new, total, dtype=torch.bool)


def _new_only(new, total):
    kept = total - new
    return _all_allowed(new, total).tril(kept) & (torch.arange(total) >= kept)


def _new_last(new, total):
    return _all_allowed(new, total).tril(total - new)


EXERCISE = Exercise(
    name="hunt_cache",
    notebook="05_multi_head_attention",
    title="Bug hunt: decoding with a cache",
    reference=lambda q, k, v: (
        scaled_dot_product_attention(q, k, v, causal_mask(q.shape[-2], k.shape[-2])).output
    ),
    solution=newest,
    cases=(
        Case(
            query=torch.tensor([[[[1.0], [2.0]]]]),
            key=torch.tensor([[[[1.0], [0.0], [2.0], [-1.0], [1.0]]]]),
            value=torch.tensor([[[[1.0], [2.0], [4.0], [8.0], [16.0]]]]),
        ),
        Case(
            query=random_tensor(2, 3, 1, 4, seed=38),
            key=random_tensor(2, 3, 5, 4, seed=39),
            value=random_tensor(2, 3, 5, 4, seed=40),
        ),
        Case(  # an empty cache
            query=random_tensor(2, 4, 3, 5, seed=41),
            key=random_tensor(2, 4, 3, 5, seed=42),
            value=random_tensor(2, 4, 3, 5, seed=43),
        ),
        Case(
            query=random_tensor(2, 3, 4, 5, seed=44),
            key=random_tensor(2, 3, 7, 5, seed=45),
            value=random_tensor(2, 3, 7, 5, seed=46),
        ),
    ),
    mistakes=(
        Mistake(
            "one_too_few",
            lambda *a: _attend_with(
                *a, lambda new, total: _all_allowed(new, total).tril(total - new - 1)
            ),
            "Off by one: a query does not attend to its own position, and without cached keys the first one is fully "
            "masked. The offset is total - new.",
        ),
        Mistake(
            "one_too_many",
            lambda *a: _attend_with(
                *a, lambda new, total: _all_allowed(new, total).tril(total - new + 1)
            ),
            "Off by one: each query attends to the token after its own. The offset is total - new.",
        ),
        Mistake(
            "always_one",
            lambda *a: _attend_with(*a, lambda new, total: _all_allowed(new, total).tril(1)),
            "A constant offset of 1 is wrong in general. It depends on how many keys were cached: total - new.",
        ),
        Mistake(
            "by_new",
            lambda *a: _attend_with(*a, lambda new, total: _all_allowed(new, total).tril(new)),
            "Your offset is the number of new tokens. It must be the number of cached ones: total - new.",
        ),
        Mistake(
            "no_mask",
            lambda *a: _attend_with(*a, _all_allowed),
            "Nothing is masked: with several new tokens, none may attend to those after it. Keep the mask, and shift it "
            "by the number of cached keys.",
        ),
        Mistake(
            "wrong_sign",
            lambda *a: _attend_with(
                *a, lambda new, total: _all_allowed(new, total).tril(new - total)
            ),
            "Your offset has the wrong sign: the queries come after the cached keys, not before them.",
        ),
        Mistake(
            "square",
            lambda *a: _attend_with(*a, lambda new, total: _all_allowed(new, new).tril()),
            "Your mask is (new, new). There are more keys than new tokens: it must be (new, total).",
        ),
        Mistake(
            "new_only",
            lambda *a: _attend_with(*a, _new_only),
            "Your new tokens attend only to each other: the cached keys are masked.",
        ),
        Mistake(
            "upper",
            lambda *a: _attend_with(
                *a, lambda new, total: _all_allowed(new, total).triu(total - new)
            ),
            "Your mask is the upper triangle: the queries attend to themselves and to the future.",
        ),
        Mistake(
            "one_too_few_without_nan",
            lambda *a: _attend_with(
                *a, lambda new, total: _all_allowed(new, total).tril(total - new - 1), fill=None
            ),
            "Off by one: a query does not attend to its own position. The offset is total - new.",
        ),
        Mistake(
            "no_scale",
            lambda *a: _attend_with(*a, _new_last, root=1),
            "The mask is right now, but the scale is missing: divide the scores by √d.",
        ),
        Mistake(
            "over_queries",
            lambda *a: _attend_with(*a, _new_last, dim=-2),
            "The mask is right now, but your softmax runs over the queries: each query has a distribution over the keys, "
            "dim=-1.",
        ),
        Mistake(
            "inverted",
            lambda *a: _attend_with(*a, lambda new, total: ~_new_last(new, total)),
            "The mask is inverted: the queries attend only to keys that come after them, and the last one to none.",
        ),
        Mistake(
            "inverted_without_nan",
            lambda *a: _attend_with(*a, lambda new, total: ~_new_last(new, total), fill=None),
            "The mask is inverted: the queries attend only to keys that come after them, and the last one to none.",
        ),
        Mistake(
            "no_mask_with_a_cache",
            lambda *a: _attend_with(
                *a,
                lambda new, total: _new_last(new, total) | (new < total),
            ),
            "As soon as keys are cached, nothing is masked. That is right for one new token; of several, none may attend to those "
            "after it. Keep the mask, and shift it by the number of cached keys.",
        ),
        Mistake(
            "no_mask_for_one",
            lambda *a: _attend_with(
                *a, lambda new, total: _all_allowed(new, total).tril() | (new == 1)
            ),
            "Right for one new token. With several and a cache, your mask still has no offset: it must be shifted by the number of "
            "cached keys.",
        ),
    ),
    hints=(
        "With 7 keys and 2 queries, which positions do the queries have? Print the mask.",
        "The last query may attend to every key, so its row must be all True, however many keys were cached.",
        ".tril(diagonal=total - new) shifts the triangle to the positions of the queries.",
    ),
    given=_given,
)
