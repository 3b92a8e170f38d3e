"""Bug hunt: attention with dropout."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.transformer.masks import masked_softmax


def dropped(scores, value, keep, dropout):
    weights = torch.softmax(scores, dim=-1)  # (query, key)
    weights = weights * keep / (1 - dropout)  # the mean stays the same
    return weights @ value  # (query, d_value)


def reference(a, v, keep, p):
    return masked_softmax(a) * keep / (1 - p) @ v


DROP = "weights * keep / (1 - dropout)"
GIVEN = f"""
softmax(scores -> softmax(scores * keep / (1 - dropout)
+ {DROP} -> weights
"""
MISTAKES = rf"""
softmax(scores -> softmax(scores * keep
+ {DROP} -> weights
    The scores are no longer rescaled, but dropout is still applied to scores. A score of 0 has exp(0) = 1, and so a
    weight. Drop weights.
softmax(scores -> softmax(scores * keep
+ {DROP} -> weights / (1 - dropout)
    You rescale weights now, but you still drop scores. A score of 0 has exp(0) = 1, and so a weight.
softmax(scores -> softmax(scores.masked_fill(~keep, -torch.inf)
+ {DROP} -> weights
    The kept weights of a row sum to 1 again: that is a mask, not dropout, and a row that keeps nothing is NaN. Drop
    after the softmax, and divide by 1 - dropout only.
softmax(scores -> softmax(scores.masked_fill(~keep, -torch.inf)
+ {DROP} -> weights / (1 - dropout)
softmax(scores -> softmax(scores.masked_fill(~keep, -torch.inf)
    You set dropped scores to -inf: the softmax then redistributes their weight, and you rescale in addition. Drop
    after the softmax.
softmax(scores -> softmax(scores.masked_fill(~keep, -torch.inf)
+ {DROP} -> weights.nan_to_num() / (1 - dropout)
softmax(scores -> softmax(scores.masked_fill(~keep, -1e9)
+ {DROP} -> weights / (1 - dropout)
softmax(scores -> softmax(scores.masked_fill(~keep, -1e9)
+ {DROP} -> weights
softmax(scores -> softmax((scores / (1 - dropout)).masked_fill(~keep, -torch.inf)
+ {DROP} -> weights.nan_to_num()
softmax(scores -> softmax((scores / (1 - dropout)).masked_fill(~keep, -torch.inf)
+ {DROP} -> weights
softmax(scores -> softmax(scores.masked_fill(~keep, -1e9)
    Setting dropped scores to -inf is a mask: the softmax divides by the sum of the kept ones. Drop after the softmax,
    and divide by 1 - dropout only.
(1 - dropout) -> (weights * keep).sum(dim=-1, keepdim=True).clamp(min=1e-12)
    The kept weights of each row sum to 1: you divide by their sum, or a softmax over the kept scores does. Dropout
    divides by 1 - dropout: a row sums to 1 on average only.
/ (1 - dropout) ->
    You drop weights now. But on average the output is too small: divide the kept weights by 1 - dropout.
/ (1 - dropout) -> * (1 - dropout)
    You multiply by 1 - dropout. Divide, so that the mean stays the same.
(1 - dropout) -> dropout
    You divide by the probability of dropping. Divide by that of keeping, 1 - dropout.
(1 - dropout) -> dropout / (1 - dropout)
    You divide by dropout as well. Divide by 1 - dropout only.
(1 - dropout) -> (1 - dropout) ** 2
    You divide by 1 - dropout twice. Once keeps the mean of the output.
(1 - dropout) -> (1 - dropout) ** 0.5
    You divide by the root of 1 - dropout, which keeps a mean of squares. The mean of the output stays the same if you
    divide by 1 - dropout.
(1 - dropout) -> (1 + dropout)
    You divide by 1 + dropout. The probability of keeping is 1 - dropout.
(1 - dropout) -> keep.float().mean()
(1 - dropout) -> keep.float().mean(dim=-1, keepdim=True)
(1 - dropout) -> keep.float().mean(dim=0)
    You divide by the share of entries that this keep happens to keep. Dropout divides by the probability of keeping,
    1 - dropout.
* keep -> * ~keep
    Your pattern is inverted: True in keep means that the weight is kept.
{DROP} -> torch.where(keep, weights / (1 - dropout), weights)
    You rescale the kept weights, but the dropped ones stay as they were. They must be 0.
{DROP} -> torch.softmax({DROP}, dim=-1)
    You apply a second softmax to the weights that are left, which gives the dropped ones weight again.
{DROP} -> weights
+ @ value -> @ (value * keep[0][:, None] / (1 - dropout))
* keep -> * keep[0]
    All queries lose the same values, because you use one row of keep for all. Each weight is dropped independently.
softmax(scores -> softmax(scores / (1 - dropout)
|| {DROP} -> weights * keep ; {DROP} -> weights
    Your scores are still divided by 1 - dropout, before the softmax. Leave the scores as they are, and divide the
    kept weights.
softmax(scores -> softmax(scores * keep / (1 - dropout)
    You drop weights now, but the scores are still multiplied by keep / (1 - dropout) as well. Remove the first.
softmax(scores -> softmax(scores * keep
    You drop weights now, but dropped scores are still set to 0 as well, which changes the softmax. Leave the scores
    as they are.
{DROP} -> weights
    This is attention without dropout: keep and dropout are not used.
* keep ->
    You divide by 1 - dropout, but drop nothing: keep is not used.
dim=-1 -> dim=0
    Your softmax runs over the queries. The weights of one query sum to 1 over the keys: dim=-1.
torch.softmax(scores, dim=-1) -> scores
    The softmax is gone: these are scores, not weights.
"""

CASES = (
    dict(
        scores=torch.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, -1.0]]),
        value=torch.tensor([[1.0], [2.0], [4.0]]),
        keep=torch.tensor([[False, True, True], [True, True, False]]),
        dropout=0.5,
    ),
    dict(
        scores=random_tensor(4, 5, seed=21),
        value=random_tensor(5, 3, seed=22),
        keep=torch.tensor(
            [
                [True, True, False, True, False],
                [True, True, True, True, True],
                [False, False, False, False, False],
                [False, True, False, True, True],
            ]
        ),
        dropout=0.4,
    ),
)
HINTS = """
Print the weights. Are the dropped ones zero?
A score of 0 is a score like any other: exp(0) is 1. The weight should be 0.
First the softmax, then weights * keep / (1 - dropout), then @ value.
"""
DIFFERENTIABLE = False
