"""Bug hunt `hunt_context` of notebook 03."""

import torch
import torch.nn.functional as F

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


def _from_parts(keys=lambda m, U: m @ U.T, nonlinearity=torch.tanh, result=None):
    """The function with other keys, another nonlinearity, or another result of (weights, keys, memory)."""

    def attempt(state, memory, W, U, v):
        projected = keys(memory, U)
        weights = torch.softmax(nonlinearity((state @ W.T)[:, None, :] + projected) @ v, dim=-1)
        if result is None:
            return (weights[:, :, None] * memory).sum(dim=1)
        return result(weights[:, :, None], projected, memory)

    return attempt


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
        Case(  # all dimensions are equal: no matrix product fails
            state=random_tensor(2, 3, seed=36),
            memory=random_tensor(2, 4, 3, seed=37),
            W=random_tensor(3, 3, seed=38),
            U=random_tensor(3, 3, seed=39),
            v=random_tensor(3, seed=40),
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
        *(
            Mistake(
                f"projected_{name}",
                _from_parts(result=result),
                "You still average the projected states, and change their norm afterwards. U belongs to the score only: "
                "average memory itself.",
            )
            for name, result in {
                "and_normalised": lambda w, k, m: F.normalize((w * k).sum(dim=1), dim=-1),
                "states_normalised": lambda w, k, m: (w * F.normalize(k, dim=-1)).sum(dim=1),
                "and_tanh": lambda w, k, m: (w * torch.tanh(k)).sum(dim=1),
                "and_tanh_last": lambda w, k, m: torch.tanh((w * k).sum(dim=1)),
                "and_averaged": lambda w, k, m: (w * k).mean(dim=1),
            }.items()
        ),
        Mistake(
            "projected_back",
            lambda s, m, W, U, v: _context(s, m, W, U, v, values=m @ U.T @ U),
            "You project the states and multiply by U again. U belongs to the score only: average memory itself.",
        ),
        Mistake(
            "projected_by_transpose",
            lambda s, m, W, U, v: _context(s, m, W, U, v, values=m @ U),
            "You average states that are multiplied by U. U belongs to the score only: average memory itself.",
        ),
        Mistake(
            "mean",
            _from_parts(result=lambda w, k, m: (w * m).mean(dim=1)),
            "You average memory itself now, but you also divide by the number of source positions. The weights sum to 1 "
            "already: sum over dim=1.",
        ),
        Mistake(
            "over_the_components",
            _from_parts(result=lambda w, k, m: (w * m).sum(dim=2)),
            "Your sum runs over the components of the states. Sum over the source positions, dim=1.",
        ),
        Mistake(
            "not_summed",
            _from_parts(result=lambda w, k, m: w * m),
            "The weighted states are not added. Sum over the source positions, dim=1.",
        ),
        Mistake(
            "projected_twice",
            _from_parts(keys=lambda m, U: m @ U.T @ U.T),
            "The values are right now, but U is applied twice in the score.",
        ),
        Mistake(
            "U_transposed",
            _from_parts(keys=lambda m, U: m @ U),
            "The values are right now, but U is not transposed in the score: memory @ U.T.",
        ),
        Mistake(
            "W_and_U_exchanged",
            lambda s, m, W, U, v: _context(s, m, U, W, v),
            "The values are right now, but W and U are exchanged: W projects the state, U the memory.",
        ),
        Mistake(
            "W_for_both",
            lambda s, m, W, U, v: _context(s, m, W, W, v),
            "The values are right now, but the memory is projected with W. Its projection is U.",
        ),
        Mistake(
            "no_tanh",
            _from_parts(nonlinearity=lambda x: x),
            "The values are right now, but the tanh of the score is gone.",
        ),
        Mistake(
            "tanh_outside",
            lambda s, m, W, U, v: (
                torch.softmax(torch.tanh(((s @ W.T)[:, None, :] + m @ U.T) @ v), dim=-1)[:, :, None]
                * m
            ).sum(dim=1),
            "The values are right now, but the tanh comes after the product with v. Apply it to the hidden units.",
        ),
        Mistake(
            "projected_and_divided",
            lambda s, m, W, U, v: _context(s, m, W, U, v, values=m @ U.T / U.norm()),
            "You still average the projected states, and divide by the norm of U. U belongs to the score only: average "
            "memory itself.",
        ),
        Mistake(
            "no_softmax",
            lambda s, m, W, U, v: (
                (torch.tanh((s @ W.T)[:, None, :] + m @ U.T) @ v)[:, :, None] * m
            ).sum(dim=1),
            "The softmax is gone, so the weights are scores: they can be negative and do not sum to 1.",
        ),
        Mistake(
            "hidden_units",
            lambda s, m, W, U, v: _context(
                s, m, W, U, v, values=torch.tanh((s @ W.T)[:, None, :] + m @ U.T)
            ),
            "You average the hidden units of the score. The context vector is the average of memory itself.",
        ),
        Mistake(
            "W_transposed",
            lambda s, m, W, U, v: _context(s, m, W.T, U, v),
            "The values are right now, but W is not transposed in the score: state @ W.T.",
        ),
        Mistake(
            "no_state_in_score",
            lambda s, m, W, U, v: _context(0 * s, m, W, U, v),
            "The values are right now, but the state is gone from the score.",
        ),
    ),
    hints=(
        "Which tensors may a context vector average? Print its norm with U = I and with U = 3 I.",
        "Look at the name memory: what does it stand for in the first line, and what in the last?",
        "Call the projected states keys, and leave memory as it was.",
    ),
    given=_given,
)
