"""Exercise `final_states` of notebook 03."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor, rounded_tensor
from course_lib.exercises.exercise import Case, Exercise, Mistake


def final_states(x, lengths, W, U, b):
    h = torch.zeros(len(x), len(b), dtype=x.dtype)  # (batch, hidden)
    for t in range(x.shape[1]):
        new = torch.tanh(x[:, t] @ W.T + h @ U.T + b)
        real = (t < lengths)[:, None]  # (batch, 1)
        h = torch.where(real, new, h)  # padding leaves the state unchanged
    return h


def _all_states(x, W, U, b, *, activation=torch.tanh):
    h, states = torch.zeros(len(x), len(b), dtype=x.dtype), []
    for x_t in x.unbind(dim=1):
        h = activation(x_t @ W.T + h @ U.T + b)
        states.append(h)
    return torch.stack(states, dim=1)  # (batch, length, hidden)


def _final(x, lengths, W, U, b, *, shift=0, **settings):
    states = _all_states(x, W, U, b, **settings)
    steps = (lengths - 1 + shift).clamp(0, x.shape[1] - 1)
    return states[torch.arange(len(x)), steps]


EXERCISE = Exercise(
    name="final_states",
    notebook="03_seq2seq_with_attention",
    title="The last hidden states of a padded batch",
    reference=_final,
    solution=final_states,
    cases=(
        Case(
            x=torch.tensor([[[1.0], [-1.0], [0.0]], [[2.0], [1.0], [1.0]]]),
            lengths=torch.tensor([2, 3]),
            W=torch.tensor([[1.0], [0.0]]),
            U=torch.tensor([[0.0, 1.0], [1.0, 1.0]]),
            b=torch.tensor([0.0, 1.0]),
        ),
        Case(
            x=random_tensor(3, 5, 4, seed=1),
            lengths=torch.tensor([4, 1, 5]),
            W=rounded_tensor(2, 4, seed=2),
            U=rounded_tensor(2, 2, seed=3),
            b=rounded_tensor(2, seed=4),
        ),
    ),
    mistakes=(
        Mistake(
            "last_step",
            lambda x, lengths, W, U, b: _all_states(x, W, U, b)[:, -1],
            "You return the state after the last step, which for shorter sequences has read padding. Return the "
            "state at step lengths - 1 of each sequence.",
        ),
        Mistake(
            "every_length",
            lambda x, lengths, W, U, b: _all_states(x, W, U, b)[:, lengths - 1],
            "states[:, lengths - 1] takes every length for every sequence. Pair the two: "
            "states[torch.arange(len(x)), lengths - 1].",
        ),
        Mistake(
            "one_too_late",
            lambda *a: _final(*a, shift=1),
            "Off by one: the last real token is at step lengths - 1, and yours is one later.",
        ),
        Mistake(
            "one_too_early",
            lambda *a: _final(*a, shift=-1),
            "Off by one: your state has not read the last real token yet.",
        ),
        Mistake(
            "padding_as_zeros",
            lambda x, lengths, W, U, b: _all_states(
                x * (torch.arange(x.shape[1]) < lengths[:, None])[:, :, None], W, U, b
            )[:, -1],
            "You set the padding to zero, but the state still changes there: h becomes tanh(U h + b). It must stay "
            "as it was.",
        ),
        Mistake(
            "mean",
            lambda x, lengths, W, U, b: _all_states(x, W, U, b).mean(dim=1),
            "You average the states of all steps. Return the one after the last real token.",
        ),
        Mistake(
            "U_transposed",
            lambda x, lengths, W, U, b: _final(x, lengths, W, U.T, b),
            "U is transposed: U h for a batch of rows is h @ U.T.",
        ),
        Mistake(
            "no_tanh",
            lambda *a: _final(*a, activation=lambda h: h),
            "The tanh is missing.",
        ),
        Mistake(
            "no_bias",
            lambda x, lengths, W, U, b: _final(x, lengths, W, U, 0 * b),
            "The bias b is missing.",
        ),
    ),
    hints=(
        "Keep all states and choose one per sequence, or keep the old state where a sequence has ended.",
        "t < lengths is True for the sequences that have a real token at step t. With all states in one tensor, "
        "states[torch.arange(len(x)), lengths - 1] pairs each sequence with its own last step.",
        "h = torch.where((t < lengths)[:, None], torch.tanh(x[:, t] @ W.T + h @ U.T + b), h).",
    ),
)
