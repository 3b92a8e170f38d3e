"""Bug hunt: a context vector whose norm is too large."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor


def context_of(state, memory, W, U, v):
    keys = memory @ U.T  # (batch, source, hidden): only for the scores
    scores = torch.tanh((state @ W.T)[:, None, :] + keys) @ v  # (batch, source)
    weights = torch.softmax(scores, dim=-1)  # (batch, source)
    return (weights[:, :, None] * memory).sum(dim=1)  # (batch, memory_size)


HIDDEN = "torch.tanh((state @ W.T)[:, None, :] + keys)"
CONTEXT = "(weights[:, :, None] * memory).sum(dim=1)"
PROJECTED = "(weights[:, :, None] * keys).sum(dim=1)"
MISTAKES = rf"""
keys = memory @ U.T -> keys = memory
    U is missing in the score. Keep the projection for the score, under another name.
{CONTEXT} -> torch.nn.functional.normalize({PROJECTED}, dim=-1)
{CONTEXT} -> (weights[:, :, None] * torch.nn.functional.normalize(keys, dim=-1)).sum(dim=1)
{CONTEXT} -> (weights[:, :, None] * torch.tanh(keys)).sum(dim=1)
{CONTEXT} -> torch.tanh({PROJECTED})
{CONTEXT} -> (weights[:, :, None] * keys).mean(dim=1)
{CONTEXT} -> torch.nn.functional.normalize({PROJECTED}, dim=-1) * {CONTEXT}.norm(dim=-1, keepdim=True)
    You still average the projected states, and change the norm of the result. U belongs to the score only: average
    memory itself.
{CONTEXT} -> {PROJECTED} / U.norm()
    You still average the projected states, and divide by the norm of U. U belongs to the score only: average memory
    itself.
[:, :, None] * memory -> [:, :, None] * (keys @ U)
    You project the states and multiply by U again. U belongs to the score only: average memory itself.
[:, :, None] * memory -> [:, :, None] * (memory @ U)
    You average states that are multiplied by U. U belongs to the score only: average memory itself.
[:, :, None] * memory -> [:, :, None] * {HIDDEN}
    You average the hidden units of the score. The context vector is the average of memory itself.
{CONTEXT} -> torch.nn.functional.normalize({CONTEXT}, dim=-1)
    You divide the context vector by its norm. The average of memory needs no other norm.
{CONTEXT} -> torch.tanh({CONTEXT})
    There is a tanh around the context vector. It is the average of memory and nothing else.
.sum(dim=1) -> .mean(dim=1)
    You divide by the number of source positions. The weights sum to 1 already: sum over dim=1.
.sum(dim=1) -> .sum(dim=2)
    Your sum runs over the components of the states. Sum over the source positions, dim=1.
.sum(dim=1) -> .sum(dim=0)
    Your sum runs over the batch. Sum over the source positions, dim=1.
.sum(dim=1) ->
    The weighted states are not added. Sum over the source positions, dim=1.
{CONTEXT} -> memory.mean(dim=1)
    Your weights are not used, so every source position counts the same. Average memory by the weights.
{CONTEXT} -> memory[torch.arange(len(memory)), scores.argmax(dim=-1)]
    You return the hidden state that has the largest weight. The context vector is the average of all by the weights.
memory @ U.T -> memory @ U.T @ U.T
    U is applied twice in the score.
memory @ U.T -> memory @ U
    U is not transposed in the score: memory @ U.T.
state @ W.T -> state @ W
    W is not transposed in the score: state @ W.T.
memory @ U.T -> memory @ W.T
+ state @ W.T -> state @ U.T
(state @ W.T)[:, None, :] + keys -> (state @ U.T)[:, None, :] + memory @ W.T
    W and U are exchanged: W projects the state, U the memory.
memory @ U.T -> memory @ W.T
    You project the memory with W. Its projection in the score is U.
state @ W.T -> state @ U.T
    You project the state with U. Its projection in the score is W.
(state @ W.T)[:, None, :] + keys -> keys
    The state is gone from the score.
(state @ W.T)[:, None, :] + keys -> (state @ W.T)[:, None, :] * keys
    You multiply W s by U h. The score adds them: vᵀ tanh(W s + U h).
torch.tanh( -> (
    The tanh of the score is gone.
{HIDDEN} @ v -> torch.tanh(((state @ W.T)[:, None, :] + keys) @ v)
    The tanh comes after the product with v. Apply it to the hidden units.
@ v -> .sum(dim=-1)
    The vector v is gone from the score: vᵀ tanh(W s + U h).
(scores, dim=-1) -> (scores, dim=0)
    Your softmax runs over the batch. The weights of one state sum to 1 over the source positions: dim=-1.
(scores, dim=-1) -> (scores / len(v) ** 0.5, dim=-1)
(scores, dim=-1) -> (scores / U.norm(), dim=-1)
    You divide the scores. They were right: the norm of the context vector does not depend on them.
torch.softmax(scores, dim=-1) -> scores
    The softmax is gone, so the weights are scores: they can be negative and do not sum to 1.
"""

GIVEN = "keys => memory"
CASES = (
    dict(
        state=torch.tensor([[1.0, 0.0]]),
        memory=torch.tensor([[[1.0, 2.0], [-1.0, 0.0], [3.0, 1.0]]]),
        W=torch.tensor([[1.0, 0.0], [0.0, 1.0]]),
        U=torch.tensor([[2.0, 0.0], [0.0, 2.0]]),
        v=torch.tensor([1.0, -1.0]),
    ),
    dict(  # all dimensions are equal: no matrix product fails
        state=random_tensor(2, 3, seed=36),
        memory=random_tensor(2, 4, 3, seed=37),
        W=random_tensor(3, 3, seed=38),
        U=random_tensor(3, 3, seed=39),
        v=random_tensor(3, seed=40),
    ),
    dict(
        state=random_tensor(2, 3, seed=41),
        memory=random_tensor(2, 4, 5, seed=42),
        W=random_tensor(5, 3, seed=43),
        U=random_tensor(5, 5, seed=44),
        v=random_tensor(5, seed=45),
    ),
)
HINTS = """
Which tensors may a context vector average? Print its norm with U = I and with U = 3 I.
Look at the name memory: what does it stand for in the first line, and what in the last?
Call the projected states keys, and leave memory as it was.
"""
