"""Bug hunt `hunt_padding` of notebook 03."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.masks import masked_softmax, padding_mask


def read_source(state, memory, lengths):
    scores = (state[:, None, :] @ memory.mT)[:, 0]  # (batch, source)
    positions = torch.arange(memory.shape[1])  # (source,)
    scores = scores.masked_fill(positions >= lengths[:, None], -torch.inf)  # after the end
    weights = torch.softmax(scores, dim=-1)
    return (weights[:, :, None] * memory).sum(dim=1)


def _dot_attention(state, memory, mask=None):
    weights = masked_softmax(state[:, None, :] @ memory.mT, mask)
    return (weights @ memory)[:, 0]


def _scores_times_mask(state, memory, lengths):
    scores = (state[:, None, :] @ memory.mT)[:, 0]
    scores = scores * (torch.arange(memory.shape[1]) < lengths[:, None])
    return (torch.softmax(scores, dim=-1)[:, :, None] * memory).sum(dim=1)


def _given(state, memory, lengths):
    scores = (state[:, None, :] @ memory.mT)[:, 0]
    weights = torch.softmax(scores, dim=-1)
    return (weights[:, :, None] * memory).sum(dim=1)


def _masked_after_softmax(state, memory, lengths):
    weights = torch.softmax((state[:, None, :] @ memory.mT)[:, 0], dim=-1)
    weights = weights * (torch.arange(memory.shape[1]) < lengths[:, None])
    return (weights[:, :, None] * memory).sum(dim=1)


EXERCISE = Exercise(
    name="hunt_padding",
    notebook="03_seq2seq_with_attention",
    title="Bug hunt: a result that depends on the rest of the batch",
    reference=lambda state, memory, lengths: _dot_attention(
        state, memory, padding_mask(lengths, memory.shape[1])
    ),
    solution=read_source,
    cases=(
        Case(
            state=torch.tensor([[1.0, -1.0]]),
            memory=torch.tensor([[[1.0, 0.0], [0.0, 2.0], [3.0, 1.0]]]),
            lengths=torch.tensor([2]),
        ),
        Case(
            state=random_tensor(3, 4, seed=48),
            memory=random_tensor(3, 5, 4, seed=49),
            lengths=torch.tensor([5, 1, 3]),
        ),
    ),
    mistakes=(
        Mistake(
            "scores_to_zero",
            _scores_times_mask,
            "A score of 0 does not mask anything: exp(0) is 1, so padding still gets weight. Masked scores must be -inf.",
        ),
        Mistake(
            "after_the_softmax",
            _masked_after_softmax,
            "Padding has weight 0 now, but the other weights no longer sum to 1. Mask the scores before the softmax.",
        ),
        Mistake(
            "one_too_many",
            lambda s, m, n: _dot_attention(
                s, m, padding_mask((n + 1).clamp(max=m.shape[1]), m.shape[1])
            ),
            "Off by one: the first padding position still gets weight. Padding starts at position `length`.",
        ),
        Mistake(
            "one_too_few",
            lambda s, m, n: _dot_attention(s, m, padding_mask(n - 1, m.shape[1])),
            "Off by one: the last real token is masked too.",
        ),
    ),
    hints=(
        "Which argument is never used?",
        "torch.arange(memory.shape[1]) >= lengths[:, None] is True at padding, shape (batch, source).",
        "scores.masked_fill(that, -torch.inf), before the softmax.",
    ),
    given=_given,
)
