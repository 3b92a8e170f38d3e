"""Bug hunt `hunt_start` of notebook 08."""

from functools import partial

import torch

from course_lib.exercises.exercise import Case, Exercise, Mistake


def write_copy(source, next_token):
    written = torch.ones(len(source), 1, dtype=torch.long)  # the start token of training, 1
    for _ in range(source.shape[1]):
        token = next_token(source, written)  # (batch,)
        written = torch.cat([written, token[:, None]], dim=1)
    return written[:, 1:]  # (batch, length), without the start


class _Copier:
    """A model that was trained to copy, on targets that begin with token 1."""

    def __call__(self, source, written):
        done, length = written.shape[1] - 1, source.shape[1]
        start = written[:, 0]
        lost = torch.where(start == 1, 0, start + 2)  # it knows no other start
        place = (done + lost) % length  # (batch,)
        return source.gather(1, place[:, None])[:, 0]

    def __deepcopy__(self, memo):
        return self

    def __repr__(self):
        return "a model trained on targets that begin with 1"


def _given(source, next_token):
    written = torch.zeros(len(source), 1, dtype=torch.long)
    for _ in range(source.shape[1]):
        token = next_token(source, written)
        written = torch.cat([written, token[:, None]], dim=1)
    return written[:, 1:]


def _decode(source, next_token, *, start=None, rounds=0, cut=1, behind=True):
    written = torch.ones_like(source[:, :1]) if start is None else start(source)
    for _ in range(source.shape[1] + rounds):
        token = next_token(source, written)[:, None]
        written = torch.cat([written, token] if behind else [token, written], dim=1)
    return written[:, cut:]


EXERCISE = Exercise(
    name="hunt_start",
    notebook="08_transformer",
    title="Bug hunt: trained from one start token, decoded from another",
    reference=_decode,
    solution=write_copy,
    cases=(
        Case(source=torch.tensor([[6, 3, 7, 4, 8]]), next_token=_Copier()),
        Case(
            source=torch.tensor([[4, 8, 3, 9, 6, 6, 5], [7, 5, 5, 3, 8, 9, 4]]),
            next_token=_Copier(),
        ),
    ),
    mistakes=(
        Mistake(
            "start_kept",
            partial(_decode, cut=0),
            "The start is right now. But it is part of your result: leave it out.",
        ),
        Mistake(
            "first_of_source",
            partial(_decode, start=lambda source: source[:, :1]),
            "You start with the first token of the source. In training every target began with the start token, 1.",
        ),
        Mistake(
            "end_token",
            partial(_decode, start=lambda source: torch.full_like(source[:, :1], 2)),
            "You start with 2, the end token. In training every target began with 1.",
        ),
        Mistake(
            "two_starts",
            partial(_decode, start=lambda source: torch.ones_like(source[:, :2]), cut=2),
            "You start with two tokens. In training every target began with one, so the model believes that it has "
            "copied a token already.",
        ),
        Mistake(
            "one_too_many",
            partial(_decode, rounds=1),
            "The start is right now. But you write one token too many.",
        ),
        Mistake(
            "one_too_few",
            partial(_decode, rounds=-1),
            "The start is right now. But you write one token too few.",
        ),
        Mistake(
            "backwards",
            partial(_decode, behind=False),
            "You put each new token in front of those written before, so the model no longer reads the start first.",
        ),
    ),
    hints=(
        "Which token did every target begin with in training? Which one does this loop begin with?",
        "The start is written in one line only. Tokens are whole numbers.",
        "torch.ones(len(source), 1, dtype=torch.long) begins with token 1.",
    ),
    given=_given,
    differentiable=False,
)
