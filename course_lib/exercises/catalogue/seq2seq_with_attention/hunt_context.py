"""Bug hunt `hunt_context` of notebook 03."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.exercise import Case, Exercise, Mistake


def context_of(state, memory, W, U, v):
    keys = memory @ U.T  # (batch, source, hidden): only for the scores
    scores = torch.tanh((state @ W.T)[:, None, :] + keys) @ v  # (batch, source)
    weights = torch.softmax(scores, dim=-1)  # (batch, source)
    return (weights[:, :, None] * memory).sum(dim=1)  # (batch, memory_size)


def _context(state, memory, W, U, v, *, values=None, dim=-1):
    scores = torch.tanh((state @ W.T)[:, None, :] + memory @ U.T) @ v
    weights = torch.softmax(scores, dim=dim)
    return (weights[:, :, None] * (memory if values is None else values)).sum(dim=1)


def _given(state, memory, W, U, v):
    memory = memory @ U.T
    scores = torch.tanh((state @ W.T)[:, None, :] + memory) @ v
    weights = torch.softmax(scores, dim=-1)
    return (weights[:, :, None] * memory).sum(dim=1)


EXERCISE = Exercise(
    name="hunt_context",
    notebook="03_seq2seq_with_attention",
    title="Bug hunt: a context vector whose norm is too large",
    reference=_context,
    solution=context_of,
    cases=(
        Case(
            state=torch.tensor([[1.0, 0.0]]),
            memory=torch.tensor([[[1.0, 2.0], [-1.0, 0.0], [3.0, 1.0]]]),
            W=torch.tensor([[1.0, 0.0], [0.0, 1.0]]),
            U=torch.tensor([[2.0, 0.0], [0.0, 2.0]]),
            v=torch.tensor([1.0, -1.0]),
        ),
        Case(
            state=random_tensor(2, 3, seed=41),
            memory=random_tensor(2, 4, 5, seed=42),
            W=random_tensor(5, 3, seed=43),
            U=random_tensor(5, 5, seed=44),
            v=random_tensor(5, seed=45),
        ),
    ),
    mistakes=(
        Mistake(
            "no_projection",
            lambda s, m, W, U, v: _context(s, m, W, torch.eye(len(U), dtype=U.dtype), v),
            "The context vector averages the states now, but U is missing in the score. Keep the projection for the "
            "score, under another name.",
        ),
        Mistake(
            "over_the_batch",
            lambda s, m, W, U, v: _context(s, m, W, U, v, dim=0),
            "The values are right, but your softmax now runs over the batch.",
        ),
    ),
    hints=(
        "Which tensors may a context vector average? Print its norm with U = I and with U = 3 I.",
        "Look at the name memory: what does it stand for in the first line, and what in the last?",
        "Call the projected states keys, and leave memory as it was.",
    ),
    given=_given,
)
