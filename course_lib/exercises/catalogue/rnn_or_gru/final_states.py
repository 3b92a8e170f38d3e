"""The last hidden states of a padded batch."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor, rounded_tensor


def final_states(x, lengths, W, U, b):
    h, states = torch.zeros(len(x), len(b), dtype=x.dtype), []
    for x_t in x.unbind(dim=1):
        h = torch.tanh(x_t @ W.T + h @ U.T + b)  # (batch, hidden)
        states.append(h)
    states = torch.stack(states, dim=1)  # (batch, length, hidden)
    return states[torch.arange(len(x)), lengths - 1]  # each sequence at its last real token


def reference(x, lengths, W, U, b):
    h = torch.zeros(len(x), len(b), dtype=x.dtype)
    for t in range(x.shape[1]):
        new = torch.tanh(x[:, t] @ W.T + h @ U.T + b)
        h = torch.where((t < lengths)[:, None], new, h)  # padding leaves the state unchanged
    return h


STATE = "torch.tanh(x_t @ W.T + h @ U.T + b)"
LAST = "[torch.arange(len(x)), lengths - 1]"
REAL = "(torch.arange(x.shape[1]) < lengths[:, None])[:, :, None]"
MISTAKES = rf"""
{LAST} -> [:, -1]
    You return the state after the last step, which for shorter sequences has read padding. Return the state at step
    lengths - 1 of each sequence.
{LAST} -> [:, 0]
    You return the state after the first step. Return the state at step lengths - 1 of each sequence.
{LAST} -> [:, lengths - 1]
    states[:, lengths - 1] takes every length for every sequence. Pair the two: states[torch.arange(len(x)), lengths -
    1].
torch.stack(states, dim=1) -> torch.stack(states)
+ {LAST} -> [lengths - 1]
    states[lengths - 1] takes every sequence at every length. Pair the two: states[lengths - 1, torch.arange(len(x))].
torch.stack(states, dim=1) -> torch.stack(states)
    Your states are (length, batch, hidden), and your first index is that of the batch. Stack them along dim=1.
lengths - 1 -> lengths.clamp(max=x.shape[1] - 1)
lengths - 1 -> lengths
    Off by one: the last real token is at step lengths - 1, and yours is one later.
lengths - 1 -> (lengths - 2).clamp(min=0)
lengths - 1 -> lengths - 2
torch.stack(states, dim=1) -> torch.stack([0 * h, *states], dim=1)
    Off by one: your state has not read the last real token yet. That token is at step lengths - 1, since steps are
    counted from 0.
x.unbind(dim=1) -> (x * {REAL}).unbind(dim=1)
+ {LAST} -> [:, -1]
    You set the padding to zero, but the state still changes there: h becomes tanh(U h + b). It must stay as it was.
{LAST} -> .mean(dim=1)
    You average the states of all steps. Return the one after the last real token.
{LAST} -> .amax(dim=1)
    You take the largest value over the steps. Return the state after the last real token.
{LAST} -> .sum(dim=1)
    You add up the states of all steps. Return the one after the last real token.
{LAST} -> .mul({REAL}).sum(dim=1) / lengths[:, None]
    You average the states of the real tokens. Return the one after the last real token.
{LAST} -> .mul({REAL}).sum(dim=1)
    You add up the states of the real tokens. Return the one after the last real token.
{LAST} ->
    You return the states of all steps, (batch, length, hidden). Return one per sequence, the one at its last real
    token.
lengths - 1 -> -lengths
    A negative index counts from the end, so -lengths is the wrong step. The last real token is at step lengths - 1.
{LAST} -> [:, lengths.min() - 1]
    You stop after the shortest sequence. Each sequence has its own last token.
{LAST} -> [:, lengths[0] - 1]
    You take the length of the first sequence for all of them. Each sequence has its own last token.
{LAST} -> {LAST}[lengths.argsort(descending=True)]
    Your states are in another order of the batch. If you sort the sequences, undo it at the end.
{LAST} -> [:, -1] * (lengths == x.shape[1])[:, None]
    You set the state to 0 at padding, so the state of a shorter sequence is lost. Keep the old state there:
    torch.where(real, new, h).
h = torch -> before, h = h, torch
+ states.append(h) -> h = torch.where((len(states) >= lengths)[:, None], h, before)\nstates.append(h)
+ {LAST} -> [:, -1]
    Your condition is inverted: the state changes at padding and stays the same at real tokens.
x.unbind(dim=1) -> x.flip(1).unbind(dim=1)
|| {LAST} -> [:, -1]
x.unbind(dim=1) -> x.flip(1).unbind(dim=1)
+ states.append(h) -> h = h * (len(states) + lengths >= x.shape[1])[:, None]\nstates.append(h)
+ {LAST} -> [:, -1]
    You read the sequences from the end to the beginning. Begin with step 0.
torch.zeros -> torch.ones
    Your first hidden state is 1. It must be 0.
h @ U.T -> 0 * h
    The old state does not reach the new one: h @ U.T is missing, or h is never replaced by the new state.
h @ U.T -> h @ U
    You apply the transpose of U: for rows, U h is h @ U.T.
h @ U.T -> h
    The old state is added without U: the new state is tanh(W x + U h + b).
x_t @ W.T -> x_t @ W
    You apply the transpose of W: for rows, W x is x @ W.T.
x_t @ W.T + ->
    The input does not reach the state: W x is missing.
torch.tanh( -> (
    The tanh is missing.
torch.tanh( -> torch.sigmoid(
torch.tanh( -> torch.relu(
    The nonlinearity of your cell is another one. It is a tanh.
{STATE} -> torch.tanh(x_t @ W.T + h @ U.T) + b
{STATE} -> x_t @ W.T + torch.tanh(h @ U.T + b)
{STATE} -> torch.tanh(x_t @ W.T + b) + h @ U.T
    The tanh covers only a part of the sum: the new state is tanh(W x + U h + b).
b)  # -> 0 * b)  #
    The bias b is missing.
b)  # -> -b)  #
    The sign of the bias is wrong: the new state is tanh(W x + U h + b).
"""

CASES = (
    dict(
        x=torch.tensor([[[1.0], [-1.0], [0.0]], [[2.0], [1.0], [1.0]]]),
        lengths=torch.tensor([2, 3]),
        W=torch.tensor([[1.0], [0.0]]),
        U=torch.tensor([[0.0, 1.0], [1.0, 1.0]]),
        b=torch.tensor([0.0, 1.0]),
    ),
    dict(
        x=random_tensor(3, 5, 4, seed=1),
        lengths=torch.tensor([4, 1, 5]),
        W=rounded_tensor(2, 4, seed=2),
        U=rounded_tensor(2, 2, seed=3),
        b=rounded_tensor(2, seed=4),
    ),
)
HINTS = """
Keep all states and choose one per sequence, or keep the old state where a sequence has ended.
t < lengths is True for the sequences that have a real token at step t. With all states in one tensor,
    states[torch.arange(len(x)), lengths - 1] pairs each sequence with its own last step.
h = torch.where((t < lengths)[:, None], torch.tanh(x[:, t] @ W.T + h @ U.T + b), h).
"""
