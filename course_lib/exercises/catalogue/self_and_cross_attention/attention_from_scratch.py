"""Exercise `attention_from_scratch` of notebook 04."""

import math

import torch

from course_lib.attention import scaled_dot_product_attention
from course_lib.exercises.catalogue._shared import random_tensor, rounded_tensor
from course_lib.exercises.edits import mistakes
from course_lib.exercises.exercise import Case, Exercise


def attention_from_scratch(query, key, value, mask):
    scores = query @ key.mT / math.sqrt(query.shape[-1])  # (batch, query, key)
    fully_masked = ~mask.any(dim=-1, keepdim=True)  # (batch, query, 1): may attend to nothing
    scores = scores.masked_fill(~mask, -torch.inf)  # exp(-inf) = 0
    scores = scores.masked_fill(fully_masked, 0.0)  # a row of -inf would give 0/0
    weights = torch.softmax(scores, dim=-1)  # (batch, query, key)
    return weights.masked_fill(fully_masked, 0.0) @ value  # (batch, query, d_value)


SCALE = "/ math.sqrt(query.shape[-1])"
MASK = "scores.masked_fill(~mask, -torch.inf)"
FINITE = "scores.masked_fill(fully_masked, 0.0)"
ZEROS = "weights.masked_fill(fully_masked, 0.0)"
SOFTMAX = "torch.softmax(scores, dim=-1)"
MISTAKES = rf"""
{FINITE} -> scores
+ {ZEROS} -> weights
    A fully masked query gets 0/0 = NaN here. Its output must be all zeros.
{ZEROS} -> weights
    A fully masked query gets equal weights, and so the mean of masked values, because all its scores are equal (-1e9,
    or 0 where you filled the whole row). Set its weights to 0 after the softmax.
-torch.inf -> 0.0
-torch.inf -> 0.0
+ {ZEROS} -> weights
    You set masked scores to 0, or close to it (1e-9). exp(0) is 1, so a masked key still gets weight. Its score must
    be -inf.
-torch.inf -> -1.0
-torch.inf -> -10.0
    Your score for masked keys is not low enough: they still get weight, if only beside large negative scores. It must
    be -inf.
-torch.inf -> torch.inf
    You fill masked scores with +inf, which gives NaN. They must be -inf.
{MASK} -> scores + ~mask * -torch.inf
{MASK} -> scores + ~mask * -torch.inf
+ {FINITE} -> scores
+ {ZEROS} -> weights
    0 · inf is NaN, so the scores of allowed keys become NaN. Use masked_fill or torch.where.
{MASK} -> scores
+ {ZEROS} -> (weights * mask)
    You mask after the softmax, so the weights of a row no longer sum to 1. Mask before the softmax.
{MASK} -> scores
+ {FINITE} -> scores
+ {ZEROS} -> weights
    The mask is an argument, but it is not used.
{MASK} -> scores
    Only fully masked queries get zeros; in the other rows masked keys keep their weight. Set the scores of all masked
    keys to -inf.
fully_masked = ~ -> mask = ~mask\nfully_masked = ~
    Your mask is inverted. In this course True means 'may attend'.
(~mask, -> (mask,
(~mask, -torch.inf -> (mask, -1e9
(~mask, -torch.inf -> (mask, -1e9
+ {FINITE} -> scores
    You fill the scores of the allowed keys. True means 'may attend', and masked_fill fills where its argument is
    True: fill where ~mask is True.
(~mask, -> (mask,
+ {FINITE} -> scores
+ {ZEROS} -> weights
    Your mask is inverted: True means 'may attend'. And a fully masked query must get zeros, not NaN.
(~mask, -torch.inf -> (mask, -1e9
+ {FINITE} -> scores
+ {ZEROS} -> weights
(~mask, -torch.inf -> (mask, 0.0
+ {FINITE} -> scores
+ {ZEROS} -> weights
    Your mask is inverted: True means 'may attend', and masked_fill fills where its argument is True. And a fully
    masked query must get zeros.
(~mask, -torch.inf -> (mask, -1e9
+ {FINITE} -> scores
+ {ZEROS} -> (weights * mask)
    You fill the scores of the allowed keys, and then set the weights of the masked ones to 0. masked_fill fills where
    its argument is True: fill where ~mask is True.
~mask.any -> mask.any
    The rows that you set to zero are those with an allowed key. A query is fully masked if it may attend to nothing:
    ~mask.any(dim=-1, keepdim=True).
mask.any -> mask.all
    Every query with a masked key gets zeros. Only a query that may attend to nothing must: ~mask.any(dim=-1,
    keepdim=True).
any(dim=-1 -> any(dim=-2
any(dim=-1 -> any(dim=-2
+ -torch.inf -> -1e9
any(dim=-1 -> any(dim=-2
+ -torch.inf -> -1e9
+ {FINITE} -> scores
    You look for keys that no query may attend to (dim=-2). A query is fully masked if it may attend to no key:
    dim=-1.
dim=-1, keepdim=True -> dim=-1
    fully_masked has no key axis, so it is aligned with the wrong axes of the scores. Keep the axis: keepdim=True.
scores, dim=-1 -> scores, dim=-2
-torch.inf -> -1e9
+ scores, dim=-1 -> scores, dim=-2
-torch.inf -> -1e9
+ {FINITE} -> scores
+ scores, dim=-1 -> scores, dim=-2
-torch.inf -> -1e9
+ {FINITE} -> scores
+ scores, dim=-1 -> scores, dim=-2
+ {ZEROS} -> weights
{FINITE} -> scores
+ scores, dim=-1 -> scores, dim=-2
+ {ZEROS} -> weights
{MASK} -> scores.masked_fill(~mask, -1e9)
+ {FINITE} -> scores
+ scores, dim=-1 -> scores, dim=-2
+ {ZEROS} -> (weights * mask)
    Your softmax runs over the queries. The weights of one query sum to 1 over the keys: dim=-1.
{SOFTMAX} -> torch.softmax(scores.flatten(1), dim=-1).view_as(scores)
{FINITE} -> scores
+ {SOFTMAX} -> torch.softmax(scores.flatten(1), dim=-1).view_as(scores)
+ {ZEROS} -> weights
    Your softmax runs over queries and keys together. The weights of each query must sum to 1 over the keys: dim=-1.
scores, dim=-1 -> scores, dim=0
-torch.inf -> -1e9
+ scores, dim=-1 -> scores, dim=0
-torch.inf -> -1e9
+ {FINITE} -> scores
+ scores, dim=-1 -> scores, dim=0
-torch.inf -> -1e9
+ {FINITE} -> scores
+ scores, dim=-1 -> scores, dim=0
+ {ZEROS} -> weights
    Your softmax runs over the batch. The weights of one query sum to 1 over the keys: dim=-1.
{SCALE} ->
    The scale is missing: the variance of the scores grows with the dimension d. Divide by √d.
math.sqrt(query.shape[-1]) -> query.shape[-1]
    You divide by d. The variance of the scores is then 1/d instead of 1. Divide by √d.
query.shape[-1] -> value.shape[-1]
    You divide by the root of the dimension of the values. A score is a sum over the components of a query and a key:
    use their dimension.
query.shape[-1] -> key.shape[-2]
    You divide by the root of the number of keys. A score is a sum over the components of one key: use key.shape[-1].
query.shape[-1] -> query.shape[-2]
    You divide by the root of the number of queries. A score is a sum over the components of one query: use
    query.shape[-1].
query.shape[-1] -> len(query)
    You divide by the root of the batch size. A score is a sum over the components of one query: use query.shape[-1].
/ math.sqrt -> * math.sqrt
    You multiply the scores by √d. Divide, so that their variance does not grow with the dimension.
{SCALE} ->
+ @ value -> @ value {SCALE}
    You scale after the softmax: the weights of a row sum to 1/√d. Scale the scores.
scores = query @ -> scores = -query @
    The sign of your scores is wrong: the most similar key gets the smallest weight.
@ value ->
    You return the weights. Return the output: weights @ value.
{SOFTMAX} -> scores.exp() / (scores.exp().sum(dim=-1, keepdim=True) + 1e-9)
{FINITE} -> scores
+ {SOFTMAX} -> scores.exp() / scores.exp().sum(dim=-1, keepdim=True)
+ {ZEROS} -> weights
{MASK} -> scores
+ {SOFTMAX} -> scores.exp() * mask / ((scores.exp() * mask).sum(dim=-1, keepdim=True) + 1e-9)
{MASK} -> scores
+ {FINITE} -> scores
+ {SOFTMAX} -> scores.exp() * mask / (scores.exp() * mask).sum(dim=-1, keepdim=True)
+ {ZEROS} -> weights
    You apply exp to the scores as they are, which overflows or underflows for large scores. torch.softmax subtracts
    the largest score of the row first.
{SOFTMAX} -> torch.sigmoid(scores)
    A sigmoid gives each key a weight on its own. The weights of a query must sum to 1: use a softmax over the keys.
{SOFTMAX} -> scores
{MASK} -> scores * mask
+ {SOFTMAX} -> scores
    You use the scores as weights. Apply a softmax over the allowed keys, so that the weights are positive and sum to
    1.
query @ key.mT -> key @ query.mT
    Your scores are key @ query.mT, (key, query). Each row belongs to a query: query @ key.mT.
@ value -> @ key
    You average the keys. The output is the weighted sum of the values.
query @ key.mT -> query @ value.mT
    You compare the query with the values. The scores are dot products of queries and keys.
query @ key.mT -> query @ value.mT
+ @ value -> @ key
    Keys and values are exchanged. The query is compared with the keys, and the output is the weighted sum of the
    values.
fully_masked = ~ -> mask = mask.mT\nfully_masked = ~
+ 0.0) @ value -> 0.0).mT @ value
    The mask and the weights are transposed. The mask is (query, key), as the scores are.
fully_masked = ~ -> mask = mask.mT\nfully_masked = ~
    Your mask is transposed. It is (batch, query, key), as the scores are.
0.0) @ value -> 0.0).mT @ value
    The weights are transposed. They are (query, key), so the output is weights @ value.
-torch.inf -> 0.0
+ {ZEROS} -> (weights * mask)
    You set masked scores to 0 and their weights to 0 afterwards, so the weights that remain do not sum to 1. Masked
    scores must be -inf before the softmax.
{MASK} -> scores + mask
{MASK} -> scores + mask
+ {FINITE} -> scores
+ {ZEROS} -> weights
    You add the mask to the scores, so an allowed key gets 1 more than a masked one. Masked scores must become -inf.
{MASK} -> scores + mask * -1e9
{MASK} -> scores + mask * -1e9
+ {FINITE} -> scores
+ {ZEROS} -> weights
    You add a large negative number where the mask is True, which are the allowed keys. Add it where the mask is
    False, and give fully masked queries zeros.
"""

_SQUARE = {  # no mistake raises an error
    "query": rounded_tensor(1, 3, 3, seed=21),
    "key": rounded_tensor(1, 3, 3, seed=22),
    "value": rounded_tensor(1, 3, 3, seed=23),
    "mask": torch.tensor([[[True, True, False], [True, True, True], [False, False, True]]]),
}

EXERCISE = Exercise(
    title="Scaled dot-product attention with a mask",
    reference=lambda q, k, v, m: scaled_dot_product_attention(q, k, v, m).output,
    solution=attention_from_scratch,
    cases=(
        Case(
            query=rounded_tensor(1, 2, 2, seed=0),
            key=rounded_tensor(1, 3, 2, seed=1),
            value=torch.tensor([[[1.0], [2.0], [4.0]]]),
            mask=torch.tensor([[[True, True, False], [False, False, False]]]),
        ),
        Case(**_SQUARE),
        Case(**_SQUARE | {"query": 100 * _SQUARE["query"]}),  # exp of these scores overflows
        Case(
            query=random_tensor(2, 3, 4, seed=2),
            key=random_tensor(2, 5, 4, seed=3),
            value=random_tensor(2, 5, 6, seed=4),
            mask=torch.tensor(
                [
                    [[True] * 5, [False] * 5, [True, False, True, False, True]],
                    [[True, True, False, False, False]] * 3,
                ]
            ),
        ),
    ),
    mistakes=mistakes(attention_from_scratch, MISTAKES),
    hints=(
        "Five steps: scores, scale, mask, softmax, weighted sum. Write the shape behind each line.",
        "scores.masked_fill(~mask, -torch.inf) masks. Which rows are now entirely -inf? ~mask.any(dim=-1, keepdim=True).",
        "Set those rows to 0 before the softmax, so that it stays finite, and their weights to 0 after it.",
    ),
)
