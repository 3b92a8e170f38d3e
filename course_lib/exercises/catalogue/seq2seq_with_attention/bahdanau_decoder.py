"""Bahdanau's decoder: attend with the previous state, then update it."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor, rounded_tensor
from course_lib.transformer.masks import masked_softmax, padding_mask


def bahdanau_decoder(inputs, state, memory, mask, W, U, v, A):
    keys, states = memory @ U.T, []  # (batch, source, score)
    for y in inputs.unbind(dim=1):  # (batch, embedding_size)
        scores = torch.tanh((state @ W.T)[:, None, :] + keys) @ v  # (batch, source)
        weights = masked_softmax(scores, mask)
        context = (weights[:, :, None] * memory).sum(dim=1)  # (batch, memory_size)
        state = torch.tanh(torch.cat([state, y, context], dim=-1) @ A.T)
        states.append(state)
    return torch.stack(states, dim=1)  # (batch, target, hidden)


SCORES = "torch.tanh((state @ W.T)[:, None, :] + keys) @ v"
WEIGHTS = "masked_softmax(scores, mask)"
CONTEXT = "(weights[:, :, None] * memory).sum(dim=1)"
STATE = "torch.tanh(torch.cat([state, y, context], dim=-1) @ A.T)"
MISTAKES = rf"""
[:, :, None] * memory -> [:, :, None] * keys
    Your context vector averages the projected states U h. U belongs to the score; the values are the states h
    themselves.
{WEIGHTS} -> torch.softmax(scores, dim=-1)
    Your decoder attends to padding as well: the mask is not used.
(scores, mask) -> (scores, mask[0])
    You use one mask for the whole batch. Each sequence has its own padding: mask is (batch, source).
(scores, mask) -> (scores, mask, dim=0)
    Your softmax runs over the batch. The weights of one sequence sum to 1 over the source: dim=-1.
{WEIGHTS} -> torch.softmax(scores, dim=-1) * mask
    You set masked weights to 0 after the softmax, so the others no longer sum to 1. Mask the scores instead.
{WEIGHTS} -> torch.softmax(scores * mask, dim=-1)
    You set masked scores to 0. exp(0) is 1, so padding still gets weight. Masked scores must be -inf.
{WEIGHTS} -> scores * mask
{WEIGHTS} -> scores
    You use the scores as weights. Apply a masked softmax first.
{WEIGHTS} -> torch.sigmoid(scores) * mask
    Your weights are sigmoids of the scores and do not sum to 1. Apply a masked softmax.
(scores, mask) -> (scores / scores.shape[-1] ** 0.5, mask)
(scores, mask) -> (scores / len(v) ** 0.5, mask)
(scores, mask) -> (scores / state.shape[-1] ** 0.5, mask)
    You divide the scores by a root. The additive score has no scale.
(scores, mask) -> (scores, ~mask)
    Your mask is inverted: the decoder attends to padding only. True means 'may attend'.
{WEIGHTS} -> torch.softmax(scores.masked_fill(mask, -torch.inf), dim=-1)
{WEIGHTS} -> torch.softmax(scores.masked_fill(mask, -1e9), dim=-1)
    Your mask is inverted: the decoder attends to padding only. True means 'may attend', and masked_fill fills where
    its argument is True.
scores = -> before = torch.tanh(torch.cat([state, y, 0 * memory[:, 0]], dim=-1) @ A.T)\nscores =
+ state @ W.T -> before @ W.T
    Your query is a state that has already read the current token. That is Luong's order; Bahdanau's query is the
    previous state.
keys, states = -> first = state\nkeys, states =
+ state @ W.T -> first @ W.T
    The query of every step is the first hidden state in your code, so all steps have the same weights. Use the state
    of the step before.
keys, states = -> first = state\nkeys, states =
+ scores = -> state = first\nscores =
    Each step starts from the first hidden state. Pass the new state on to the next step.
keys, states = -> state = 0 * state\nkeys, states =
    You begin with a hidden state of zeros. The first hidden state is the argument state.
(state @ W.T)[:, None, :] + keys -> keys
    The state is not in your score, so all steps have the same weights. The score is vᵀ tanh(W s + U h).
(state @ W.T)[:, None, :] + keys -> (state @ W.T)[:, None, :] * keys
    You multiply W s by U h. The additive score adds them: vᵀ tanh(W s + U h).
(state @ W.T)[:, None, :] + keys -> (state @ W.T)[:, None, :] - keys
    You subtract U h. The score is vᵀ tanh(W s + U h).
= torch.tanh((state -> = ((state
    There is no tanh in your score. The softmax then cancels the state, and every step has the same weights.
{SCORES} -> torch.tanh(((state @ W.T)[:, None, :] + keys) @ v)
    In your score the tanh comes after the product with v. The score is vᵀ tanh(W s + U h).
= torch.tanh((state -> = torch.relu((state
= torch.tanh((state -> = torch.sigmoid((state
    The nonlinearity of your score is another one. The score is vᵀ tanh(W s + U h).
@ v -> .sum(dim=-1)
    The vector v is missing in your score: vᵀ tanh(W s + U h).
state @ W.T -> state @ W
    W is not transposed: W s for a batch of rows is state @ W.T. With a square matrix there is no error message.
memory @ U.T -> memory @ U
    U is not transposed: U h for a batch of rows is memory @ U.T. With a square matrix there is no error message.
state @ W.T -> state @ U.T
+ memory @ U.T -> memory @ W.T
(state @ W.T)[:, None, :] + keys -> (state @ U.T)[:, None, :] + memory @ W.T
    W and U are exchanged: W projects the state, U the memory.
state @ W.T -> state @ U.T
    You project the state with U. W projects the state, U the memory.
memory @ U.T -> memory @ W.T
    You project the memory with W. W projects the state, U the memory.
{CONTEXT} -> memory[:, -1]
{CONTEXT} -> memory[:, 0]
{CONTEXT} -> memory.mean(dim=1)
{CONTEXT} -> (mask[:, None] * memory.mT).sum(dim=-1) / mask.sum(dim=-1, keepdim=True)
    Your context vector does not depend on the state. It is the average of the memory by the attention weights of the
    previous state.
{CONTEXT} -> memory[torch.arange(len(memory)), weights.argmax(dim=-1)]
    Your context vector is the hidden state that has the largest weight. It is the average of all by the weights.
{CONTEXT} -> (weights[:, :, None] * memory).mean(dim=1)
    You divide the context vector by the number of source positions. The weights sum to 1 already: sum over dim=1.
[state, y, context] -> [state, y, 0 * context]
    The context vector does not reach the new state.
[state, y, context] -> [0 * state, y, context]
    The old state does not reach the new one. The new state is tanh(A [state; input; context]).
[state, y, context] -> [state, 0 * y, context]
    The input does not reach the new state. The new state is tanh(A [state; input; context]).
[state, y, context] -> [y, state, context]
    The order is state, input, context. You put the input first.
[state, y, context] -> [state, context, y]
[state, y, context] -> [context, state, y]
[state, y, context] -> [context, y, state]
[state, y, context] -> [y, context, state]
    Your concatenation has another order. The columns of A belong to [state; input; context].
keys, states = -> late = 0 * memory[:, 0]\nkeys, states =
+ {STATE} -> torch.tanh(torch.cat([state, y, late], dim=-1) @ A.T)
+ states.append(state) -> states.append(state)\nscores = {SCORES}\nweights = {WEIGHTS}\nlate = {CONTEXT}
    Your context vector comes one step late: each state reads the context of the step before. Compute the context from
    the old state first, then the new state.
torch.tanh(torch.cat -> (torch.cat
    The tanh around A [state; input; context] is missing.
torch.tanh(torch.cat -> torch.relu(torch.cat
torch.tanh(torch.cat -> torch.sigmoid(torch.cat
    The nonlinearity around A [state; input; context] is another one. It is a tanh.
{STATE} -> state + {STATE}
    You add the old state to the new one. The new state is tanh(A [state; input; context]).
in inputs.unbind(dim=1) -> in [0 * inputs[:, 0], *inputs.unbind(dim=1)[:-1]]
    Your inputs are one step late. They are shifted already: step i reads inputs[:, i].
in inputs.unbind(dim=1) -> in [inputs[:, 0]] * inputs.shape[1]
    Each step reads the first input. Step i reads inputs[:, i].
in inputs.unbind(dim=1) -> in inputs.flip(1).unbind(dim=1)
    You read the inputs from the end to the beginning. Step i reads inputs[:, i].
(states, dim=1) -> (states)
    The axes of your result are (target, batch, hidden). Stack the states along dim=1.
states.append(state) ->
+ scores = -> states.append(state)\nscores =
    Your result begins with the first hidden state and lacks the last one. Append the state after it was updated.
[]  # (batch, source, score) -> [state]  # (batch, source, score)
    Your result begins with the first hidden state. Return one state per input token.
torch.stack(states, dim=1) -> state
torch.stack(states, dim=1) -> state[:, None]
    You return the last state only. Collect the states of all steps and stack them along dim=1.
states.append(state) -> states.append(context)
    These are the context vectors. Return the states.
states.append(state) -> states.append(weights)
    These are the attention weights. Return the states.
"""

CASES = (
    dict(
        inputs=torch.tensor([[[1.0], [-1.0]]]),
        state=torch.tensor([[1.0, 0.0]]),
        memory=torch.tensor([[[1.0, 2.0], [-1.0, 0.0], [3.0, 1.0]]]),
        mask=torch.tensor([[True, True, False]]),
        W=torch.tensor([[1.0, 0.0], [1.0, -1.0]]),
        U=torch.tensor([[1.0, 1.0], [0.0, 2.0]]),
        v=torch.tensor([2.0, -1.0]),
        A=torch.tensor([[1.0, 0.0, 1.0, 0.0, -1.0], [0.0, 1.0, -1.0, 1.0, 0.0]]),
    ),
    dict(
        inputs=random_tensor(3, 4, 2, seed=31),
        state=random_tensor(3, 4, seed=30),
        memory=random_tensor(3, 6, 5, seed=32),
        mask=padding_mask(torch.tensor([6, 2, 4]))[:, 0],
        W=rounded_tensor(5, 4, seed=33),
        U=rounded_tensor(5, 5, seed=34),
        v=rounded_tensor(5, seed=35),
        A=rounded_tensor(4, 11, seed=36),
    ),
)
HINTS = """
Loop over inputs.unbind(dim=1). In each step: scores, weights, context vector, new state.
The score is vᵀ tanh(W s + U h_j): (state @ W.T)[:, None, :] + memory @ U.T is (batch, source, score).
state = torch.tanh(torch.cat([state, y, context], dim=-1) @ A.T); stack the states along dim=1.
"""
