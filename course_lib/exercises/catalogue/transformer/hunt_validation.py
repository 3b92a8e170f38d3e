"""Bug hunt: a validation loss that is too good."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.transformer.attention import scaled_dot_product_attention
from course_lib.transformer.masks import causal_mask


def causal_attention(query, key, value, training):
    new, seen = query.shape[1], key.shape[1]
    scores = query @ key.mT / query.shape[-1] ** 0.5  # (batch, new, seen)
    mask = torch.ones(new, seen, dtype=torch.bool).tril(seen - new)  # in every mode
    scores = scores.masked_fill(~mask, -torch.inf)
    return torch.softmax(scores, dim=-1) @ value


def reference(q, k, v, training):
    return scaled_dot_product_attention(q, k, v, causal_mask(q.shape[1], k.shape[1])).output


MASK = "scores = scores.masked_fill(~mask, -torch.inf)"
ONES = "torch.ones(new, seen, dtype=torch.bool).tril(seen - new)"
RETURN = "return torch.softmax(scores, dim=-1) @ value"
WEIGHTS = "torch.softmax(scores, dim=-1)"
GIVEN = f"{MASK} -> if training: {MASK}"
MISTAKES = f"""
{MASK} -> pass
    Now nothing is masked, not even in training. The mask is needed in both modes.
{MASK} -> if not training: {MASK}
    The condition is inverted: now nothing is masked in training. The mask is needed in both modes.
{MASK} -> if training or new == seen: {MASK}
    In validation the mask is used only if no keys are cached. It is needed with several new tokens on a cache too.
{MASK} -> if training or new < seen: {MASK}
    In validation the mask is used only if keys are cached. It is needed without a cache too.
.tril(seen - new) -> .tril()
    The offset of the mask is missing. With more keys than queries, the queries are the last ones: .tril(seen - new).
.tril(seen - new) -> .tril(seen - new + 1)
    The offset of the mask was right. With yours each query attends to the token after it.
.tril(seen - new) -> .tril(seen - new - 1)
|| ~mask, -torch.inf -> ~mask, -1e9
    The offset of the mask was right. With yours a query does not attend to its own position.
.tril(seen - new) -> .tril(seen - new - 1) | (torch.arange(seen) == 0)
    The offset of the mask was right. With yours a query does not attend to its own position, unless that is the first.
.tril(seen - new) -> .tril(new - seen)
    The offset has the wrong sign, so with cached keys the first queries have no key left and get NaN. It was right:
    .tril(seen - new).
.tril(seen - new) -> .tril(new - seen)
+ ~mask, -torch.inf -> ~mask, -1e9
    The offset has the wrong sign, so with cached keys the first queries have no key left; with -1e9 they attend to
    all keys alike. It was right: .tril(seen - new).
{ONES} -> torch.ones(seen, seen, dtype=torch.bool).tril()
    Your mask is (seen, seen). It needs a row for each query: (new, seen).
{ONES} -> torch.ones(new, new, dtype=torch.bool).tril()
    Your mask is (new, new). It needs a column for each key: (new, seen).
.tril(seen - new) -> .triu(seen - new)
    Your mask is the upper triangle: each query attends to itself and to later keys. The lower one was right.
~mask -> mask
    The mask is inverted: each query attends only to keys after it, and the last one to none, which gives NaN.
~mask, -torch.inf -> mask, -1e9
    The mask is inverted: each query attends only to keys after it, and the last one, which has none, to all alike.
~mask -> ~mask if training else mask
    In validation the mask is inverted: each query attends only to keys after it, and the last one to none, which
    gives NaN. The same mask is needed in both modes.
~mask, -torch.inf -> ~mask, 0.0
    A score of 0 masks nothing: exp(0) is 1. Masked scores must be -inf.
~mask, -torch.inf -> ~mask, -torch.inf if training else 0.0
    In validation you set masked scores to 0, which masks nothing: exp(0) is 1. Masked scores must be -inf.
~mask, -torch.inf -> ~mask, torch.inf
    You set masked scores to +inf, which gives NaN. They must be -inf.
{MASK} -> pass
+ {RETURN} -> return (mask * {WEIGHTS}) @ value
    You mask after the softmax, so the weights of a query no longer sum to 1. Mask the scores.
{MASK} -> if training: {MASK}
+ {RETURN} -> return (mask * {WEIGHTS}) @ value
    In validation you mask after the softmax, so the weights of a query no longer sum to 1. Mask the scores, in both
    modes.
/ query.shape[-1] ** 0.5 ->
    The scale was right, and it is missing now: divide the scores by √d.
/ query.shape[-1] ** 0.5 -> / (query.shape[-1] ** 0.5 if training else 1)
    In validation the scale is missing: divide the scores by √d.
/ query.shape[-1] ** 0.5 -> / query.shape[-1]
    You divide the scores by d. The scale was right: √d.
/ query.shape[-1] ** 0.5 -> * query.shape[-1] ** 0.5
    You multiply the scores by √d. Divide, as before.
query.shape[-1] -> query.shape[1]
query.shape[-1] -> key.shape[1]
    You divide the scores by the root of a number of tokens. The scale was right: √d.
softmax(scores, dim=-1) -> softmax(scores, dim=-2)
    Your softmax runs over the queries. It was right: each query has a distribution over the keys, dim=-1.
softmax(scores, dim=-1) -> softmax(scores, dim=0)
    Your softmax runs over the batch. It was right: each query has a distribution over the keys, dim=-1.
{RETURN} -> return {WEIGHTS}
    You return the weights. The attention returns their averages of the values, as before: weights @ value.
new, seen = -> query = query if training else query[:, -1:]; new, seen =
    In validation you compute the output of the last query only. The validation loss needs all of them, as in
    training.
scores = scores.masked_fill(~mask, -torch.inf) -> scores = scores.masked_fill(~(mask if training else mask.tril(seen - new - 1)), -torch.inf)
    In validation a token does not attend to itself. The mask is the same in every mode.
"""

CASES = (
    dict(
        query=torch.zeros(1, 2, 1),
        key=torch.zeros(1, 2, 1),
        value=torch.tensor([[[2.0], [6.0]]]),
        training=False,
    ),
    dict(  # one new token, which attends to all
        query=random_tensor(2, 1, 3, seed=20),
        key=random_tensor(2, 5, 3, seed=21),
        value=random_tensor(2, 5, 3, seed=22),
        training=False,
    ),
    dict(
        query=random_tensor(2, 4, 3, seed=23),
        key=random_tensor(2, 4, 3, seed=24),
        value=random_tensor(2, 4, 3, seed=25),
        training=True,
    ),
    dict(  # several new tokens on a cache
        query=random_tensor(2, 3, 4, seed=26),
        key=random_tensor(2, 7, 4, seed=27),
        value=random_tensor(2, 7, 4, seed=28),
        training=False,
    ),
)
HINTS = """
Change the last value. Which outputs change, with training=True and with training=False?
A validation loss is computed with several new tokens at once, like a training loss. Which keys may each attend to?
The mask does not depend on the mode: take the two lines out of the if.
"""
