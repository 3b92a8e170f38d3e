"""Attention over padded sequences, from scores to output."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.transformer.attention import attend
from course_lib.transformer.masks import padding_mask


def masked_attention(scores, lengths, value):
    positions = torch.arange(scores.shape[-1])  # (key,)
    mask = positions < lengths[:, None, None]  # (batch, 1, key)
    scores = scores.masked_fill(~mask, -torch.inf)
    empty = (lengths == 0)[:, None, None]  # (batch, 1, 1)
    scores = scores.masked_fill(empty, 0.0)  # a row of -inf would give 0/0
    weights = torch.softmax(scores, dim=-1).masked_fill(empty, 0.0)  # (batch, query, key)
    return weights @ value  # (batch, query, value_size)


def reference(scores, lengths, value):
    return attend(scores, value, padding_mask(lengths, scores.shape[-1])).output


# Other ways to write the mask and what becomes of rows without a key: all right where the mask is.
FROM_MASK = "(lengths == 0)[:, None, None] -> ~mask.any(dim=-1, keepdim=True)"
FROM_BOTH = f"{FROM_MASK} | (lengths == 0)[:, None, None]"
MINUS_1E9 = "-torch.inf -> -1e9"
NO_MASK = "scores.masked_fill(~mask, -torch.inf) -> scores"
TIMES_MASK = "weights @ value -> (weights * mask) @ value"
NOT_EMPTIED = ".masked_fill(empty, 0.0) =>"  # a row without a key becomes NaN, or uniform with -1e9
SOFTMAX = "torch.softmax(scores, dim=-1)"

MISTAKES = rf"""
-torch.inf -> 0.0
|| {NOT_EMPTIED}
    You set masked scores to 0. exp(0) is 1, so a masked key still gets weight. Its score must be -inf.
-torch.inf -> -100.0
|| {NOT_EMPTIED} ; {TIMES_MASK} + {NOT_EMPTIED}
    Your masked scores are -100, and a real score may be lower: here -140. Masked scores must be -inf, and the weights
    of a sequence of length 0 must be 0.
-torch.inf -> torch.inf
|| {NOT_EMPTIED}
    You fill masked scores with +inf. They must be -inf, so that exp of them is 0.
{NO_MASK}
+ {TIMES_MASK}
    You mask after the softmax, so padding still takes part in it and the weights that remain no longer sum to 1. Mask
    the scores instead.
{NOT_EMPTIED}
    A fully masked row gives NaN: its softmax is 0/0. The weights of a sequence of length 0 must all be 0.
{MINUS_1E9}
+ {NOT_EMPTIED}
    A fully masked row gets equal weights, because all its scores are equal (-1e9, or 0 where you filled the whole
    row). The weights of a sequence of length 0 must all be 0: set them to 0 after the softmax.
{SOFTMAX} -> (scores.exp() / scores.exp().sum(dim=-1, keepdim=True).clamp(min=1e-12))
{SOFTMAX} -> (scores.exp() / scores.exp().sum(dim=-1, keepdim=True))
    You apply exp to the scores as they are. It is 0 for -140 and infinite for 120. torch.softmax subtracts the
    largest score of the row first.
{NO_MASK}
+ weights @ value -> (weights * mask / (weights * mask).sum(dim=-1, keepdim=True).clamp(min=1e-12)) @ value
{NO_MASK}
+ weights @ value -> (weights * mask / (weights * mask).sum(dim=-1, keepdim=True)) @ value
    You mask after the softmax and normalise again. If a masked score is much larger than the others, all remaining
    weights are 0 after rounding. Mask the scores instead.
positions < lengths -> positions >= lengths
|| {FROM_MASK} ; {FROM_BOTH} ; {MINUS_1E9}
    Your mask is inverted: the padding gets the weights. masked_fill fills where its argument is True.
positions < lengths -> positions >= lengths
+ {MINUS_1E9}
+ {NOT_EMPTIED}
positions < lengths -> positions >= lengths
+ {NOT_EMPTIED}
    Your mask is inverted: the padding gets the weights. masked_fill fills where its argument is True. And a sequence
    of length 0 needs weights of 0.
(~mask, -torch.inf) -> (mask, -1e9)
+ {TIMES_MASK}
    You fill the real keys, and then set the weights of the padding to 0, so nothing is left. masked_fill fills where
    its argument is True: ~mask.
positions < lengths -> positions > lengths
|| {MINUS_1E9} ; {NOT_EMPTIED} ; {MINUS_1E9} + {NOT_EMPTIED}
    Your mask is inverted, and off by one: the padding after its first key gets the weights. Key j is allowed if j <
    length.
positions < lengths -> positions <= lengths
|| {FROM_MASK}
    Off by one: each shorter sequence attends to one key of its padding. Positions begin at 0, so key j is allowed if
    j < length.
positions < lengths[:, None, None] -> positions < lengths[:, None, None] - 1
|| {FROM_MASK} ; {MINUS_1E9}
    Off by one: the last real key of each sequence is masked. Key j is allowed if j < length.
positions < lengths[:, None, None] -> positions < lengths[:, None, None] - 1
+ {NOT_EMPTIED}
positions < lengths[:, None, None] -> positions < lengths[:, None, None] - 1
+ {MINUS_1E9}
+ {NOT_EMPTIED}
    Off by one: the last real key of each sequence is masked. Key j is allowed if j < length. And a sequence of length
    0 needs weights of 0.
positions < lengths[:, None, None] -> positions < lengths.max()
    All sequences get the mask of the longest one. Each sequence has its own length: lengths[:, None, None].
positions < lengths[:, None, None] -> positions < lengths.max()
+ {NOT_EMPTIED}
    All sequences get the mask of the longest one. Each sequence has its own length: lengths[:, None, None]. And a
    sequence of length 0 needs weights of 0.
torch.arange(scores.shape[-1]) -> torch.arange(scores.shape[-2])[:, None]
|| {FROM_MASK} ; {NOT_EMPTIED} ; {MINUS_1E9} ; {MINUS_1E9} + {NOT_EMPTIED}
    Your mask is over the queries. The lengths are those of the keys: the mask is (batch, 1, key).
torch.arange(scores.shape[-1]) -> torch.arange(scores.shape[-2])
    Your positions are those of the queries. The mask needs one entry per key: torch.arange(scores.shape[-1]).
< lengths[:, None, None] -> < lengths[:, None]
|| {FROM_MASK} ; {NOT_EMPTIED} ; {MINUS_1E9} ; {MINUS_1E9} + {NOT_EMPTIED}
    Your mask is (batch, key). Against (batch, query, key) its first axis lines up with the queries. Add an axis:
    lengths[:, None, None].
torch.arange(scores.shape[-1]) -> torch.arange(int(lengths.max()))
|| {NOT_EMPTIED} ; {MINUS_1E9} + {NOT_EMPTIED}
    Your mask ends at lengths.max(). The scores may have more keys than that: make the positions with
    torch.arange(scores.shape[-1]).
positions < lengths[:, None, None] -> positions < lengths[:, None, None].clamp(min=1)
+ {NOT_EMPTIED}
    A sequence of length 0 gets the value of its first key, because its length is taken as 1. Its weights must all be
    0.
dim=-1 -> dim=-2
{SOFTMAX} -> torch.softmax(scores, dim=-2).nan_to_num(0.0)
    Your softmax is over the queries. The weights of one query sum to 1 over the keys: dim=-1.
dim=-1 -> dim=-2
+ {NOT_EMPTIED}
dim=-1 -> dim=-2
+ {MINUS_1E9}
|| {NOT_EMPTIED}
    Your softmax is over the queries. The weights of one query sum to 1 over the keys: dim=-1. And the weights of
    masked keys must be 0.
dim=-1 -> dim=0
|| {MINUS_1E9} ; {MINUS_1E9} + {NOT_EMPTIED}
    Your softmax is over the batch. The weights of one query sum to 1 over the keys: dim=-1.
{NO_MASK}
|| {NOT_EMPTIED}
    The lengths are not used as a mask, so padding gets weight. Mask the keys at positions >= length.
softmax(scores, -> softmax(scores / 2**0.5,
softmax(scores, -> softmax(scores / value.shape[-1] ** 0.5,
softmax(scores, -> softmax(scores / scores.shape[-1] ** 0.5,
    You divide the scores by a root. They are given; only mask, softmax and weighted sum are left.
{SOFTMAX} -> (scores.exp() / (scores.exp().sum(dim=-1, keepdim=True) + 1e-3))
    You add a constant to the denominator, so the weights of a row sum to less than 1. And exp of the scores as they
    are is 0 for -140 and infinite for 120: torch.softmax subtracts the largest score of the row first.
{SOFTMAX} -> (scores.exp() / scores.exp().sum(dim=-1, keepdim=True))
+ {NOT_EMPTIED}
    You apply exp to the scores as they are. It is 0 for -140 and infinite for 120. torch.softmax subtracts the
    largest score of the row first. And a sequence of length 0 gives 0/0 here.
weights @ value -> weights
    These are the weights. Return the output: weights @ value.
weights @ value -> (weights @ value).sum(dim=1)
weights @ value -> (weights @ value).mean(dim=1)
    You combine the outputs of the queries. Return one output per query, (batch, query, value_size).
scores.masked_fill(~mask, -torch.inf) -> scores + mask * -1e9
    You add a large negative number where the mask is True, which are the real keys. Add it where the mask is False.
scores.masked_fill(~mask, -torch.inf) -> scores + mask * -1e9
+ {NOT_EMPTIED}
    You add a large negative number where the mask is True, which are the real keys. Add it where the mask is False.
    And a sequence of length 0 needs weights of 0.
scores.masked_fill(~mask, -torch.inf) -> scores + mask
|| {NOT_EMPTIED}
    You add the mask to the scores, so a real key gets 1 more than padding. Masked scores must become -inf.
scores.masked_fill(~mask, -torch.inf) -> scores * mask
+ {SOFTMAX} -> scores
    You use the scores as weights. Take a softmax over the real keys first.
{NO_MASK}
+ weights @ value -> (weights * mask) @ value / lengths[:, None, None].clamp(min=1)
    You divide by the length of the sequence. The weights of a row must sum to 1: mask the scores before the softmax,
    which normalises.
weights @ value -> weights @ value / lengths[:, None, None].clamp(min=1)
    You divide by the length of the sequence. The weights of a row sum to 1 already.
"""

_SCORES = torch.tensor([[[1.0, 2.0, 3.0], [0.0, 1.0, -1.0]]])  # (1, 2, 3)
_VALUE = torch.tensor([[[1.0, 0.0], [0.0, 2.0], [3.0, 3.0]]])  # (1, 3, 2)

CASES = (
    dict(scores=_SCORES, lengths=torch.tensor([2]), value=_VALUE),
    dict(
        scores=torch.cat([_SCORES, _SCORES]),
        lengths=torch.tensor([3, 0]),
        value=torch.cat([_VALUE, 2 * _VALUE]),
    ),
    dict(  # exp of these is 0, or too large
        scores=torch.tensor(
            [[[-140.0, -141.0, 0.0], [120.0, 121.0, 0.0], [-140.0, -141.0, -140.0]]]
        ).repeat(2, 1, 1),
        lengths=torch.tensor([2, 3]),
        value=torch.cat([_VALUE, 2 * _VALUE]),
    ),
    dict(
        scores=random_tensor(3, 2, 4, seed=10),
        lengths=torch.tensor([3, 1, 4]),
        value=random_tensor(3, 4, 5, seed=11),
    ),
)
HINTS = """
torch.arange(scores.shape[-1]) < lengths[:, None, None] is the mask, (batch, 1, key).
scores.masked_fill(~mask, -torch.inf) is right for every sequence with at least one key.
A sequence of length 0 needs finite scores before the softmax, and weights of 0 after it.
"""
