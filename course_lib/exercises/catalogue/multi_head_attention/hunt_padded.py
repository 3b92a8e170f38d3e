"""Bug hunt: padding in multi-head attention."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.transformer.masks import masked_softmax


def padded_weights(scores, allowed):
    mask = allowed[:, None, None, :]  # (batch, 1, 1, key): the same for all heads and queries
    fully_masked = ~mask.any(dim=-1, keepdim=True)  # (batch, 1, 1, 1): nothing but padding
    scores = scores.masked_fill(~mask, -torch.inf).masked_fill(fully_masked, 0.0)
    return torch.softmax(scores, dim=-1).masked_fill(fully_masked, 0.0)


def reference(scores, allowed):
    return masked_softmax(scores, allowed[:, None, None, :])


MASK = "allowed[:, None, None, :]"
SOFTMAX = "torch.softmax(scores, dim=-1).masked_fill(fully_masked, 0.0)"
MISTAKES = f"""
.masked_fill(fully_masked, 0.0) =>
    A sequence of nothing but padding gives NaN; it must give zeros.
.masked_fill(fully_masked, 0.0) =>
+ -torch.inf -> -1e9
    A sequence of nothing but padding gets uniform weights: -1e9 is not minus infinity, and equal scores have equal
    weights. It must give zeros.
.masked_fill(fully_masked, 0.0) =>
+ -torch.inf -> 0.0
    A score of 0 masks nothing: exp(0) is 1, and padding still gets weight. Masked scores must be -inf.
-torch.inf -> 0.0
    A score of 0 masks nothing: exp(0) is 1, so padding still gets weight where a sequence has a token. Masked scores
    must be -inf.
{MASK} -> allowed[:, None, :, None]
|| .masked_fill(fully_masked, 0.0) => ; .masked_fill(fully_masked, 0.0) => + -torch.inf -> -1e9
    Your padding mask is along the queries: (batch, 1, key, 1). It belongs to the last axis.
{MASK} -> allowed[None, None, :, :]
    The batch lines up with the queries. Broadcasting counts axes from the right: (batch, key) needs two new ones in
    between.
{MASK} -> ~{MASK}
    Your mask is inverted: the queries attend to padding only. True means 'may attend'.
{SOFTMAX} -> torch.softmax(unmasked, dim=-1) * mask
+ scores = scores.masked_fill -> unmasked, scores = scores, scores.masked_fill
    You mask after the softmax, so the weights no longer sum to 1. Mask before it.
{MASK} -> torch.ones_like({MASK})
    The mask is not used: padding gets weight like every other key.
{SOFTMAX} -> torch.softmax(scores, dim=1).masked_fill(fully_masked, 0.0)
|| -torch.inf -> -1e9
{SOFTMAX} -> torch.softmax(scores, dim=1)
+ -torch.inf).masked_fill(fully_masked, 0.0) -> -1e9)
    Your softmax runs over the heads. Each query has a distribution over the keys: dim=-1.
{SOFTMAX} -> torch.softmax(scores, dim=-2).masked_fill(fully_masked, 0.0)
{SOFTMAX} -> torch.softmax(scores, dim=-2).masked_fill(fully_masked, 0.0).nan_to_num()
{SOFTMAX} -> torch.softmax(scores, dim=-2).masked_fill(fully_masked, 0.0)
+ -torch.inf -> -1e9
{SOFTMAX} -> torch.softmax(scores, dim=-2)
+ -torch.inf).masked_fill(fully_masked, 0.0) -> -1e9)
    Your softmax runs over the queries. Each query has a distribution over the keys: dim=-1.
{MASK} -> allowed[:1, None, None, :]
    Every sequence gets the mask of the first one. The batch axis stays: allowed[:, None, None, :].
~mask.any(dim=-1, keepdim=True) -> ~mask
    fully_masked is True wherever a key is padding: those scores become 0, take part in the softmax, and the remaining
    weights no longer sum to 1. A row is fully masked if no key is left: any(dim=-1).
{MASK} -> allowed.repeat(scores.shape[1], 1).view(*scores.shape[:2], 1, -1)
    repeat copies the whole batch in turn, so the heads of one sequence get the masks of several. Each row belongs to
    all heads of its sequence: allowed[:, None, None, :] broadcasts it.
.any( -> .all(
    fully_masked is True for every sequence with padding. A row is fully masked if no key is left: any(dim=-1).
~mask.any( -> mask.any(
    fully_masked is True where a key is left, so those rows become 0. It needs ~.
.any(dim=-1, keepdim=True) -> .any(dim=0, keepdim=True)
    Your fully_masked is not one value for each sequence: any(dim=-1, keepdim=True).
scores.masked_fill(~mask, -torch.inf) -> (scores + ~mask * -torch.inf)
    The weights are NaN, since 0 · (-inf) is NaN. Set the scores to -inf with masked_fill.
"""

GIVEN = "allowed[:, None, None, :] -> allowed.unsqueeze(1)"
CASES = (
    dict(  # as many heads as sequences
        scores=torch.tensor([[[[1.0, 2.0, 0.0]], [[0.0, 1.0, 2.0]]]]).repeat(2, 1, 1, 1),
        allowed=torch.tensor([[True, True, False], [True, False, False]]),
    ),
    dict(  # as many queries as sequences
        scores=random_tensor(2, 3, 2, 4, seed=33),
        allowed=torch.tensor([[True, False, True, True], [True, True, False, False]]),
    ),
    dict(
        scores=random_tensor(3, 2, 4, 5, seed=34),
        allowed=torch.arange(5) < torch.tensor([5, 0, 2])[:, None],
    ),
)
HINTS = """
Use 3 sequences and 2 heads. Which error do you get?
Broadcasting aligns axes from the right: (batch, 1, key) against (batch, heads, query, key). Which axis is the batch
    of the mask aligned with?
Two new axes: allowed[:, None, None, :] is (batch, 1, 1, key).
"""
