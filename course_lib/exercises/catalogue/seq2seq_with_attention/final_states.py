"""Exercise `final_states` of notebook 03."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor, rounded_tensor, two_mistakes
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


def _stepwise(
    x, lengths, W, U, b, *, real=lambda t, lengths: t < lengths, otherwise="old", steps=None
):
    """The loop with a condition; where it is False the state stays, or becomes 0."""
    h = torch.zeros(len(x), len(b), dtype=x.dtype)
    for t in range(x.shape[1]) if steps is None else steps(x.shape[1]):
        new = torch.tanh(x[:, t] @ W.T + h @ U.T + b)
        h = torch.where(real(t, lengths)[:, None], new, h if otherwise == "old" else 0 * h)
    return h


def _changed(x, lengths, W, U, b, *, choose, activation=torch.tanh, bias=1.0):
    return choose(_all_states(x, W, U, bias * b, activation=activation), lengths)


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
        Mistake(
            "zero_at_padding",
            lambda *a: _stepwise(*a, otherwise="zero"),
            "You set the state to 0 at padding, so the state of a shorter sequence is lost. Keep the old state there: "
            "torch.where(real, new, h).",
        ),
        Mistake(
            "stops_early",
            lambda *a: _stepwise(*a, real=lambda t, lengths: t < lengths - 1),
            "Off by one: your state has not read the last real token yet. Step t is real if t < lengths.",
        ),
        Mistake(
            "inverted",
            lambda *a: _stepwise(*a, real=lambda t, lengths: t >= lengths),
            "Your condition is inverted: the state changes at padding and stays the same at real tokens.",
        ),
        Mistake(
            "reversed",
            lambda *a: _stepwise(*a, steps=lambda n: reversed(range(n))),
            "You read the sequences from the end to the beginning. Begin with step 0.",
        ),
        Mistake(
            "no_recurrence",
            lambda x, lengths, W, U, b: _final(x, lengths, W, 0 * U, b),
            "The old state does not reach the new one: h @ U.T is missing, or h is never replaced by the new state.",
        ),
        Mistake(
            "all_states",
            lambda x, lengths, W, U, b: _all_states(x, W, U, b),
            "You return the states of all steps, (batch, length, hidden). Return one per sequence, the one at its last real "
            "token.",
        ),
        Mistake(
            "mean_of_real",
            lambda x, lengths, W, U, b: (
                (
                    _all_states(x, W, U, b)
                    * (torch.arange(x.shape[1]) < lengths[:, None])[:, :, None]
                ).sum(dim=1)
                / lengths[:, None]
            ),
            "You average the states of the real tokens. Return the one after the last real token.",
        ),
        Mistake(
            "sum_of_real",
            lambda x, lengths, W, U, b: (
                _all_states(x, W, U, b) * (torch.arange(x.shape[1]) < lengths[:, None])[:, :, None]
            ).sum(dim=1),
            "You add up the states of the real tokens. Return the one after the last real token.",
        ),
        Mistake(
            "from_the_end",
            lambda x, lengths, W, U, b: _all_states(x, W, U, b)[torch.arange(len(x)), -lengths],
            "A negative index counts from the end, so -lengths is the wrong step. The last real token is at step "
            "lengths - 1.",
        ),
        Mistake(
            "shortest",
            lambda x, lengths, W, U, b: _all_states(x, W, U, b)[:, lengths.min() - 1],
            "You stop after the shortest sequence. Each sequence has its own last token.",
        ),
        Mistake(
            "order_of_the_batch",
            lambda x, lengths, W, U, b: _final(x, lengths, W, U, b)[
                lengths.argsort(descending=True)
            ],
            "The states are right, but in another order of the batch. If you sort the sequences, undo it at the end.",
        ),
        *two_mistakes(
            _changed,
            {
                "last_step": (
                    {"choose": lambda h, n: h[:, -1]},
                    "You return the state after the last step, which may be padding.",
                ),
                "one_later": (
                    {"choose": lambda h, n: h[torch.arange(len(h)), n.clamp(max=h.shape[1] - 1)]},
                    "The last real token is at step lengths - 1.",
                ),
            },
            {
                "no_tanh": ({"activation": lambda h: h}, "The tanh is missing."),
                "no_bias": ({"bias": 0.0}, "The bias b is missing."),
            },
        ),
    ),
    hints=(
        "Keep all states and choose one per sequence, or keep the old state where a sequence has ended.",
        "t < lengths is True for the sequences that have a real token at step t. With all states in one tensor, "
        "states[torch.arange(len(x)), lengths - 1] pairs each sequence with its own last step.",
        "h = torch.where((t < lengths)[:, None], torch.tanh(x[:, t] @ W.T + h @ U.T + b), h).",
    ),
)
