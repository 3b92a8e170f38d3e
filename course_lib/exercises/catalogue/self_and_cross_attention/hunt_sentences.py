"""Bug hunt `hunt_sentences` of notebook 04."""

import math

import torch

from course_lib.attention import scaled_dot_product_attention
from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.edits import edited, mistakes
from course_lib.exercises.exercise import Case, Exercise
from course_lib.masks import padding_mask


def attend(query, key, value, key_padding_mask):
    scores = query @ key.mT / math.sqrt(key.shape[-1])  # (batch, query, key)
    mask = ~key_padding_mask[:, None, :]  # (batch, 1, key), True = may attend
    fully_masked = ~mask.any(dim=-1, keepdim=True)  # (batch, 1, 1): nothing but padding
    scores = scores.masked_fill(~mask, -torch.inf)
    scores = scores.masked_fill(fully_masked, 0.0)
    weights = torch.softmax(scores, dim=-1)  # (batch, query, key)
    return weights.masked_fill(fully_masked, 0.0) @ value


SCALE = "/ math.sqrt(key.shape[-1])"
MASK = "scores.masked_fill(~mask, -torch.inf)"
FINITE = "scores.masked_fill(fully_masked, 0.0)"
ZEROS = "weights.masked_fill(fully_masked, 0.0)"
LOWEST = "torch.finfo(scores.dtype).min"
MISTAKES = rf"""
~key_padding -> key_padding
+ (~mask, -> (mask,
    `fully_masked` is True for sentences without padding. Invert the mask once, in the line that makes it.
(~mask, -> (mask,
(~mask, -torch.inf -> (mask, {LOWEST}
(~mask, -torch.inf -> (mask, {LOWEST}
+ {FINITE} -> scores
(~mask, -torch.inf -> (mask, {LOWEST}
+ {FINITE} -> scores
+ {ZEROS} -> (weights * mask)
    masked_fill fills where its argument is True, and you fill the scores of the real keys. Fill where ~mask is True.
~mask.any -> mask.any
    `fully_masked` is True for sentences with a real token. It must be True only where no key is allowed:
    ~mask.any(dim=-1, keepdim=True).
mask.any -> mask.all
    `fully_masked` is True for every sentence with some padding. It must be True only where no key is allowed:
    ~mask.any(dim=-1, keepdim=True).
{FINITE} -> scores
+ {ZEROS} -> weights
    A sentence of nothing but padding gives NaN; it must give zeros.
-torch.inf -> -1e9
+ {FINITE} -> scores
+ {ZEROS} -> weights
    -1e9 is not minus infinity: a sentence of nothing but padding gets the mean of its padding. And in float16, whose
    largest number is 65504, it raises an error.
{ZEROS} -> weights
    A sentence of nothing but padding gets the mean of its padding, because all its scores are equal (a very low
    number, or 0 where you filled the whole row). It must give zeros: set its weights to 0 after the softmax.
-torch.inf -> -1e9
    float16 has no -1e9, its largest number is 65504, so masked_fill raises an error there. Use -torch.inf, or
    torch.finfo(scores.dtype).min.
-torch.inf -> 0.0
+ {ZEROS} -> weights
-torch.inf -> 0.0
    A score of 0 masks nothing: exp(0) is 1, and padding still gets weight. Masked scores must be -inf.
-torch.inf -> torch.inf
    You fill masked scores with +inf, which gives NaN. They must be -inf.
-torch.inf -> 0.0
+ {ZEROS} -> (weights * mask)
any(dim=-1 -> any(dim=-2
    Masked scores are 0 here and their weights are set to 0 afterwards, so the weights that remain do not sum to 1.
    Masked scores must be -inf before the softmax.
{MASK} -> scores
+ {ZEROS} -> (weights * mask)
    Padding contributes nothing now, but the remaining weights no longer sum to 1. Mask before the softmax.
{MASK} -> scores
+ {ZEROS} -> (weights * mask / ((weights * mask).sum(dim=-1, keepdim=True) + 1e-3))
    You add a constant to the denominator, so the weights of a row sum to less than 1. Mask before the softmax.
{MASK} -> scores
+ {FINITE} -> scores
+ {ZEROS} -> weights
    Padding gets weight like any token: key_padding_mask is not used.
{MASK} -> scores
    Only a sentence of nothing but padding gives zeros; elsewhere padding gets weight like any token. Set the scores
    of all padding to -inf.
[:, None, :] -> [:, :, None]
[:, None, :] -> [:, :, None]
+ {FINITE} -> scores
+ {ZEROS} -> weights
[:, None, :] -> [:, :, None]
+ -torch.inf -> {LOWEST}
+ {FINITE} -> scores
+ {ZEROS} -> weights
    You mask queries instead of keys. key_padding_mask is (batch, key): insert the query axis in the middle,
    key_padding_mask[:, None, :].
[:, None, :] -> [None, :, :]
[:, None, :] ->
[:, None, :] -> [None, :, :]
+ {FINITE} -> scores
+ {ZEROS} -> weights
[:, None, :] -> [None, :, :]
+ -torch.inf -> {LOWEST}
+ {FINITE} -> scores
+ {ZEROS} -> weights
    key_padding_mask is (batch, key), and you align its batch axis with the queries. Insert the query axis in the
    middle, key_padding_mask[:, None, :].
scores, dim=-1 -> scores, dim=-2
scores, dim=-1 -> scores, dim=-2
+ -torch.inf -> {LOWEST}
scores, dim=-1 -> scores, dim=-2
+ -torch.inf -> {LOWEST}
+ {FINITE} -> scores
scores, dim=-1 -> scores, dim=-2
+ -torch.inf -> {LOWEST}
+ {FINITE} -> scores
+ {ZEROS} -> weights
scores, dim=-1 -> scores, dim=-2
+ -torch.inf -> {LOWEST}
+ {FINITE} -> scores
+ {ZEROS} -> (weights * mask)
scores, dim=-1 -> scores, dim=-2
+ {FINITE} -> scores
+ {ZEROS} -> weights.nan_to_num()
    Your softmax runs over the queries. The weights of one query sum to 1 over the keys: dim=-1.
{SCALE} ->
    The scale 1/√d is gone.
math.sqrt(key.shape[-1]) -> key.shape[-1]
    You divide by d. Divide by √d.
~key_padding -> key_padding
+ {FINITE} -> scores
+ {ZEROS} -> weights
    The mask is still inverted: only padding gets weight. And a sentence without padding gives NaN now.
~key_padding -> key_padding
+ {ZEROS} -> weights
    The mask is still inverted: only padding gets weight.
~key_padding -> key_padding
+ {SCALE} ->
    The mask is still inverted: only padding gets weight. And the scale 1/√d is gone.
~key_padding -> key_padding
+ scores, dim=-1 -> scores, dim=-2
    The mask is still inverted: only padding gets weight. And your softmax runs over the queries.
~key_padding -> key_padding
+ [:, None, :] -> [:, :, None]
    The mask is still inverted. And you mask queries instead of keys: the query axis was in the right place.
"""

EXERCISE = Exercise(
    title="Bug hunt: sentences with padding",
    reference=lambda q, k, v, p: scaled_dot_product_attention(q, k, v, ~p[:, None, :]).output,
    solution=attend,
    cases=(
        Case(  # as many queries as sequences
            query=torch.tensor([[[1.0, 0.0], [0.0, 2.0]], [[1.0, 1.0], [2.0, 0.0]]]),
            key=torch.tensor(
                [[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [[2.0, 0.0], [0.0, 1.0], [1.0, 0.0]]]
            ),
            value=torch.tensor([[[1.0], [2.0], [4.0]], [[3.0], [5.0], [9.0]]]),
            key_padding_mask=torch.tensor([[False, False, True], [True, True, True]]),
        ),
        Case(  # as many queries as keys, and no padding in one sequence
            query=random_tensor(2, 3, 4, seed=25),
            key=random_tensor(2, 3, 4, seed=26),
            value=random_tensor(2, 3, 5, seed=27),
            key_padding_mask=torch.tensor([[False, True, True], [False, False, False]]),
        ),
        Case(  # here -1e9 does not exist
            query=random_tensor(3, 2, 4, seed=28).half(),
            key=random_tensor(3, 5, 4, seed=29).half(),
            value=random_tensor(3, 5, 6, seed=30).half(),
            key_padding_mask=~padding_mask(torch.tensor([5, 0, 2]))[:, 0],
        ),
    ),
    mistakes=mistakes(attend, MISTAKES),
    hints=(
        "Change the value of a key that is padding. Does the output change? And the value of one that is not?",
        "What does True mean in key_padding_mask, and what does the comment beside the mask say?",
        "In this course True means 'may attend': mask = ~key_padding_mask[:, None, :].",
    ),
    given=edited(attend, (("~key_padding", "key_padding", False),)),
)
