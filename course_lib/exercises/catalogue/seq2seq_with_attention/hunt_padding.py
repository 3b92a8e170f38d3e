"""Bug hunt: a result that depends on the rest of the batch."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.transformer.masks import masked_softmax, padding_mask


def read_source(state, memory, lengths):
    scores = (state[:, None, :] @ memory.mT)[:, 0]  # (batch, source)
    positions = torch.arange(memory.shape[1])  # (source,)
    scores = scores.masked_fill(positions >= lengths[:, None], -torch.inf)  # after the end
    weights = torch.softmax(scores, dim=-1)
    return (weights[:, :, None] * memory).sum(dim=1)


def reference(state, memory, lengths):
    weights = masked_softmax(state[:, None, :] @ memory.mT, padding_mask(lengths, memory.shape[1]))
    return (weights @ memory)[:, 0]


REAL = "(torch.arange(memory.shape[1]) < lengths[:, None])"
MASKED = ".masked_fill(positions >= lengths[:, None], -torch.inf)"
WEIGHTS = "torch.softmax(scores, dim=-1)"
CONTEXT = "(weights[:, :, None] * memory).sum(dim=1)"
MISTAKES = rf"""
-torch.inf -> 0.0
    A score of 0 does not mask anything: exp(0) is 1, so padding still gets weight. Masked scores must be -inf.
-torch.inf -> -1.0
-torch.inf -> -10.0
    Your masked scores are not low enough: padding still gets weight. Masked scores must be -inf.
-torch.inf -> torch.inf
    You set masked scores to plus infinity, and the softmax of that is NaN. Masked scores must be -inf.
-torch.inf -> 1e9
    Your masked scores are large and positive, so padding gets all of the weight. Masked scores must be -inf.
positions >= lengths[:, None] -> scores == 0
    You look for zeros to find padding. Its hidden states need not be zero; lengths says where padding begins.
{MASKED} ->
+ {WEIGHTS} -> {WEIGHTS} * (positions < lengths[:, None])
    Padding has weight 0 now, but the other weights no longer sum to 1. Mask the scores before the softmax.
scores = (state -> memory = memory * {REAL}[:, :, None]\nscores = (state
+ {MASKED} ->
    Padding has the score 0, and exp(0) is 1, so it takes part of the weight, even if its hidden states or its weights
    are set to 0. Set its scores to -inf.
positions >= lengths -> positions > lengths
    Off by one: the first padding position still gets weight. Padding starts at position `length`.
lengths[:, None] -> lengths[:, None] - 1
lengths[:, None], -torch.inf -> lengths[:, None] - 1, -1e9
lengths[:, None] -> lengths[:, None] - 1
+ {WEIGHTS} -> {WEIGHTS}.nan_to_num()
    Off by one: the last real token is masked too. Padding starts at position `length`.
positions >= lengths -> positions < lengths
positions >= lengths[:, None], -torch.inf -> positions < lengths[:, None], -1e9
positions >= lengths[:, None], -torch.inf -> positions < lengths[:, None], 0.0
positions >= lengths -> positions < lengths
+ {WEIGHTS} -> {WEIGHTS}.nan_to_num()
    Your mask is inverted: the real tokens are masked, and padding gets the weight. masked_fill fills where its
    argument is True, and padding begins at position `length`.
lengths[:, None] -> lengths
    Your lengths are (batch,) and the positions (source,), so each length meets another position. lengths[:, None]
    makes the mask (batch, source).
positions >= lengths[:, None] -> positions[:, None] >= lengths
    Your mask is (source, batch). With lengths[:, None] in place of positions[:, None] it is (batch, source).
lengths[:, None] -> lengths.max()
    You mask the scores, or cut the memory, at the end of the longest sequence of the batch, so the shorter ones still
    attend to padding. Each sequence has its own length.
lengths[:, None] -> lengths[0]
    You mask the scores, or cut the memory, at the length of the first sequence. Each sequence has its own length.
lengths[:, None] -> lengths.min()
    You mask the scores, or cut the memory, at the end of the shortest sequence, so the longer ones lose real tokens.
    Each sequence has its own length.
{MASKED} ->
+ .sum(dim=1) -> .sum(dim=1) / lengths[:, None]
    You divide by the length, but padding still gets weight. Mask its scores before the softmax.
.sum(dim=1) -> .sum(dim=1) / lengths[:, None]
    You divide by the length. The weights sum to 1 already: sum over dim=1.
.sum(dim=1) -> .mean(dim=1)
    You divide by the number of source positions. The weights sum to 1 already: sum over dim=1.
.sum(dim=1) -> .sum(dim=2)
    Your sum runs over the components of the states. Sum over the source positions, dim=1.
.sum(dim=1) ->
    The weighted states are not added. Sum over the source positions, dim=1.
{WEIGHTS} -> torch.softmax(scores, dim=0)
-torch.inf -> -1e9
+ {WEIGHTS} -> torch.softmax(scores, dim=0)
    Your softmax runs over the batch. The weights sum to 1 over the source positions: dim=-1.
@ memory.mT -> @ memory.mT / state.shape[-1] ** 0.5
    You divide the scores by √d. The scores were right: repair the mask only.
{WEIGHTS} -> scores{MASKED.replace("-torch.inf", "0.0")}
{WEIGHTS} -> scores
    The softmax is gone: these are scores, not weights.
{WEIGHTS} -> (positions < lengths[:, None]) / lengths[:, None]
    You average the real hidden states with equal weights. Use the softmax of the scores.
{CONTEXT} -> memory[torch.arange(len(memory)), lengths - 1]
    You return the last real hidden state. The context vector is the weighted average of all real ones.
{CONTEXT} -> memory[torch.arange(len(memory)), scores.argmax(dim=-1)]
    You return the hidden state that has the largest weight. The context vector is the weighted average of all real
    ones.
"""

GIVEN = f"{MASKED} ->"
CASES = (
    dict(
        state=torch.tensor([[1.0, -1.0]]),
        memory=torch.tensor([[[1.0, 0.0], [0.0, 2.0], [3.0, 1.0]]]),
        lengths=torch.tensor([2]),
    ),
    dict(  # padding is zero, as in the notebook
        state=torch.tensor([[1.0, -1.0]]),
        memory=torch.tensor([[[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]]]),
        lengths=torch.tensor([2]),
    ),
    dict(
        state=random_tensor(3, 4, seed=48),
        memory=random_tensor(3, 5, 4, seed=49),
        lengths=torch.tensor([5, 1, 3]),
    ),
    dict(  # every sequence has padding
        state=random_tensor(3, 4, seed=50),
        memory=random_tensor(3, 6, 4, seed=51),
        lengths=torch.tensor([3, 1, 5]),
    ),
)
HINTS = """
Which argument is never used?
torch.arange(memory.shape[1]) >= lengths[:, None] is True at padding, shape (batch, source).
scores.masked_fill(that, -torch.inf), before the softmax.
"""
