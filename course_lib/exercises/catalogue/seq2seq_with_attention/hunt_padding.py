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


def _masked(state, memory, real, *, fill=-torch.inf, dim=-1):
    scores = (state[:, None, :] @ memory.mT)[:, 0].masked_fill(~real, fill)
    return (torch.softmax(scores, dim=dim)[:, :, None] * memory).sum(dim=1)


def _real(memory, lengths):
    return torch.arange(memory.shape[1]) < lengths[:, None]  # (batch, source)


_INVERTED = (
    "Your mask is inverted: the real tokens are masked, and padding gets the weight. masked_fill fills where its argument is "
    "True, and padding begins at position `length`."
)


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
        Case(  # padding is zero, as in the notebook
            state=torch.tensor([[1.0, -1.0]]),
            memory=torch.tensor([[[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]]]),
            lengths=torch.tensor([2]),
        ),
        Case(
            state=random_tensor(3, 4, seed=48),
            memory=random_tensor(3, 5, 4, seed=49),
            lengths=torch.tensor([5, 1, 3]),
        ),
        Case(  # every sequence has padding
            state=random_tensor(3, 4, seed=50),
            memory=random_tensor(3, 6, 4, seed=51),
            lengths=torch.tensor([3, 1, 5]),
        ),
    ),
    mistakes=(
        Mistake(
            "scores_to_zero",
            _scores_times_mask,
            "A score of 0 does not mask anything: exp(0) is 1, so padding still gets weight. Masked scores must be -inf.",
        ),
        Mistake(
            "zeros_masked",
            lambda s, m, n: _masked(s, m, (s[:, None, :] @ m.mT)[:, 0] != 0),
            "You look for zeros to find padding. Its hidden states need not be zero; lengths says where padding begins.",
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
        Mistake(
            "memory_zeroed",
            lambda s, m, n: _given(s, m * _real(m, n)[:, :, None], n),
            "Padding has the score 0, and exp(0) is 1, so it takes part of the weight, even if its hidden states or its weights "
            "are set to 0. Set its scores to -inf.",
        ),
        *(
            Mistake(
                f"inverted_{name}",
                lambda s, m, n, fill=fill: _masked(s, m, ~_real(m, n), fill=fill),
                _INVERTED,
            )
            for name, fill in {"nan": -torch.inf, "uniform": -1e9, "zero": 0.0}.items()
        ),
        Mistake(
            "inverted",
            lambda s, m, n: _dot_attention(s, m, ~_real(m, n)[:, None]),
            _INVERTED,
        ),
        *(
            Mistake(
                f"one_too_few_{name}",
                lambda s, m, n, fill=fill: _masked(s, m, _real(m, n - 1), fill=fill),
                "Off by one: the last real token is masked too. Padding starts at position `length`.",
            )
            for name, fill in {"nan": -torch.inf, "uniform": -1e9}.items()
        ),
        Mistake(
            "cut_at_longest",
            lambda s, m, n: _given(s, m[:, : n.max()], n),
            "You cut the memory at the longest sequence of the batch, so the shorter ones still attend to padding. Each "
            "sequence has its own length: mask.",
        ),
        Mistake(
            "cut_at_first",
            lambda s, m, n: _given(s, m[:, : n[0]], n),
            "You cut the memory at the length of the first sequence. Each sequence has its own length: mask.",
        ),
        Mistake(
            "cut_at_shortest",
            lambda s, m, n: _given(s, m[:, : n.min()], n),
            "You cut the memory at the shortest sequence, so the longer ones lose real tokens. Each sequence has its own "
            "length: mask.",
        ),
        Mistake(
            "divided_by_length",
            lambda s, m, n: _given(s, m, n) / n[:, None],
            "You divide by the length, but padding still gets weight. Mask its scores before the softmax.",
        ),
        Mistake(
            "over_the_batch",
            lambda s, m, n: _masked(s, m, _real(m, n), fill=-1e9, dim=0),
            "The mask is right now, but your softmax runs over the batch. The weights sum to 1 over the source positions: "
            "dim=-1.",
        ),
        Mistake(
            "scaled",
            lambda s, m, n: _masked(s / s.shape[-1] ** 0.5, m, _real(m, n)),
            "The mask is right now, but you also divide the scores by √d. The scores were right.",
        ),
        Mistake(
            "last_real",
            lambda s, m, n: m[torch.arange(len(m)), n - 1],
            "You return the last real hidden state. The context vector is the weighted average of all real ones.",
        ),
        Mistake(
            "mean_of_real",
            lambda s, m, n: (m * _real(m, n)[:, :, None]).sum(dim=1) / n[:, None],
            "You average the real hidden states with equal weights. Use the softmax of the scores.",
        ),
        Mistake(
            "no_softmax",
            lambda s, m, n: (((s[:, None, :] @ m.mT)[:, 0] * _real(m, n))[:, :, None] * m).sum(
                dim=1
            ),
            "Padding is masked now, but the softmax is gone: these are scores, not weights.",
        ),
    ),
    hints=(
        "Which argument is never used?",
        "torch.arange(memory.shape[1]) >= lengths[:, None] is True at padding, shape (batch, source).",
        "scores.masked_fill(that, -torch.inf), before the softmax.",
    ),
    given=_given,
)
