"""Luong's decoder: update the state, then attend with it."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor, rounded_tensor
from course_lib.transformer.masks import masked_softmax, padding_mask


def luong_decoder(inputs, state, memory, mask, A, W, W_c):
    states = []
    for y in inputs.unbind(dim=1):  # (batch, embedding_size)
        state = torch.tanh(torch.cat([state, y], dim=-1) @ A.T)
        states.append(state)
    states = torch.stack(states, dim=1)  # (batch, target, hidden)
    scores = states @ W @ memory.mT  # (batch, target, source): s W h
    contexts = masked_softmax(scores, mask[:, None]) @ memory  # (batch, target, memory_size)
    return torch.tanh(torch.cat([contexts, states], dim=-1) @ W_c.T)


WEIGHTS = "masked_softmax(scores, mask[:, None])"
READ = "(masked_softmax((state @ W)[:, None, :] @ memory.mT, mask[:, None]) @ memory)[:, 0]"
OUTPUT = "torch.tanh(torch.cat([contexts, states], dim=-1) @ W_c.T)"
MISTAKES = rf"""
(scores, mask[:, None]) -> (scores / scores.shape[-1] ** 0.5, mask[:, None])
(scores, mask[:, None]) -> (scores / memory.shape[-1] ** 0.5, mask[:, None])
    You divide the scores by a root. Luong's general score is not scaled; W is learned and can have any size.
states @ W @ memory.mT -> states @ memory.mT
    That is Luong's dot score. The general score has a matrix: sᵀ W h.
states @ W @ memory.mT -> states @ W.T @ memory.mT
    Your W is transposed. The score is sᵀ W h, so the state is multiplied from the left: states @ W.
states @ W @ memory.mT -> torch.tanh(states @ W @ memory.mT)
states @ W @ memory.mT -> torch.tanh(states @ W) @ memory.mT
    There is a tanh in your score. Luong's general score is sᵀ W h, without a nonlinearity.
(scores, mask[:, None]) -> (-scores, mask[:, None])
    Your sign is wrong: the smallest scores get the largest weights.
{WEIGHTS} -> torch.softmax(scores, dim=-1)
    Your decoder attends to padding as well: the mask is not used.
(scores, mask[:, None]) -> (scores, mask[0])
    You use one mask for the whole batch. Each sequence has its own padding: mask is (batch, source).
(scores, mask[:, None]) -> (scores, mask)
    Your mask is (batch, source), which does not fit scores of shape (batch, target, source). Give it a target axis:
    mask[:, None].
(scores, mask[:, None]) -> (scores, ~mask[:, None])
    Your mask is inverted: the decoder attends to padding only. True means 'may attend'.
{WEIGHTS} -> torch.softmax(scores.masked_fill(mask[:, None], -torch.inf), dim=-1)
{WEIGHTS} -> torch.softmax(scores.masked_fill(mask[:, None], -1e9), dim=-1)
    Your mask is inverted: the decoder attends to padding only. True means 'may attend', and masked_fill fills where
    its argument is True.
{WEIGHTS} -> torch.softmax(scores, dim=-1) * mask[:, None]
    You set masked weights to 0 after the softmax, so the others no longer sum to 1. Mask the scores instead.
{WEIGHTS} -> torch.softmax(scores * mask[:, None], dim=-1)
    You set masked scores to 0. exp(0) is 1, so padding still gets weight. Masked scores must be -inf.
{WEIGHTS} -> scores * mask[:, None]
{WEIGHTS} -> scores
    You use the scores as weights. Apply a masked softmax first.
{WEIGHTS} -> torch.sigmoid(scores) * mask[:, None]
    Your weights are sigmoids of the scores and do not sum to 1. Apply a masked softmax.
{WEIGHTS} -> torch.softmax(scores.masked_fill(~mask[:, None], -1e9), dim=1) * mask[:, None]
{WEIGHTS} -> torch.softmax(scores.masked_fill(~mask[:, None], -1e9), dim=1)
{WEIGHTS} -> torch.softmax(scores.masked_fill(~mask[:, None], -torch.inf), dim=1)
    Your softmax runs over the target positions. The weights of one target position sum to 1 over the source: dim=-1.
(scores, mask[:, None]) -> (scores, mask[:, None], dim=0)
    Your softmax runs over the batch. The weights of one target position sum to 1 over the source: dim=-1.
(scores, mask[:, None]) -> (0 * scores, mask[:, None])
    Your weights are equal for all source positions. They are the masked softmax of the scores sᵀ W h.
{WEIGHTS} @ memory -> {WEIGHTS} @ (memory @ W.T)
    Your context vectors average projected states. W belongs to the score; the values are the states of the memory
    themselves.
{WEIGHTS} @ memory -> memory[torch.arange(len(memory))[:, None], {WEIGHTS}.argmax(dim=-1)]
    Your context vectors are the hidden states that have the largest weight. They are the averages of all by the
    weights.
states = [] -> states, first = [], state
+ states @ W -> torch.cat([first[:, None], states[:, :-1]], dim=1) @ W
    Your query is the previous state. That is Bahdanau's order; Luong's query is the state that has read the current
    token.
states = [] -> states, first = [], state
+ states @ W -> first[:, None].expand_as(states) @ W
    The query of every step is the first hidden state in your code, so all steps have the same weights. Use the state
    that has read the current token.
states @ W -> states[:, -1:].expand_as(states) @ W
    The query of every step is the last state in your code, so all steps have the same weights. Use the state of the
    step itself.
for y in -> first = state\nfor y in
+ [state, y] -> [first, y]
    Each state is computed from the first one. Pass the new state on to the next step.
states = [] -> states, state = [], 0 * state
    You begin with a hidden state of zeros. The first hidden state is the argument state.
[state, y] -> [y, state]
    The order under A is [state; input]. You put the input first.
[state, y] -> [0 * state, y]
    The old state does not reach the new one: the state is tanh(A [state; input]).
[state, y] -> [state, 0 * y]
    The input does not reach the state: the state is tanh(A [state; input]).
= torch.tanh( -> = (
    The tanh of the cell is missing: the state is tanh(A [state; input]).
= torch.tanh( -> = torch.relu(
= torch.tanh( -> = torch.sigmoid(
    The nonlinearity of the cell is another one: the state is tanh(A [state; input]).
in inputs.unbind(dim=1) -> in [0 * inputs[:, 0], *inputs.unbind(dim=1)[:-1]]
    Your inputs are one step late. They are shifted already: step i reads inputs[:, i].
in inputs.unbind(dim=1) -> in [inputs[:, 0]] * inputs.shape[1]
    Each step reads the first input. Step i reads inputs[:, i].
in inputs.unbind(dim=1) -> in inputs.flip(1).unbind(dim=1)
    You read the inputs from the end to the beginning. Step i reads inputs[:, i].
states.append(state) -> state = torch.tanh(torch.cat([{READ}, state], dim=-1) @ W_c.T)\nstates.append(state)
+ return {OUTPUT} -> return states
    You pass the attentional hidden state on as the state of the next step. The state of the cell is passed on; the
    attentional state is an output.
states.append(state) ->
+ state = torch.tanh( -> states.append(state)\nstate = torch.tanh(
    Your states are one step late: they begin with the first hidden state and lack the last one. Append the state
    after it was updated.
[contexts, states] -> [states, contexts]
    The order under W_c is [context; state]. You put the state first.
[contexts, states] -> [0 * contexts, states]
    The context vector does not reach the attentional hidden state.
[contexts, states] -> [contexts, 0 * states]
    The state does not reach the attentional hidden state, tanh(W_c [context; state]).
return torch.tanh( -> return (
    The tanh around W_c [context; state] is missing.
return torch.tanh( -> return torch.relu(
return torch.tanh( -> return torch.sigmoid(
    The nonlinearity around W_c [context; state] is another one. Luong's is a tanh.
{OUTPUT} -> states
    These are the states. Return the attentional hidden states, tanh(W_c [context; state]).
{OUTPUT} -> contexts
    These are the context vectors. Return the attentional hidden states, tanh(W_c [context; state]).
{OUTPUT} -> torch.cat([contexts, states], dim=-1)
    You return [context; state]. Multiply it by W_c and apply a tanh.
{OUTPUT} -> {OUTPUT}[:, -1]
    You return the last step only. Return all steps, (batch, target, rows of W_c).
{OUTPUT} -> {OUTPUT}.transpose(0, 1)
    The axes of your result are (target, batch, …). Stack the steps along dim=1.
torch.stack(states, dim=1) -> torch.stack(states)
    You stack the states along a new first axis: (target, batch, hidden). The batch comes first: dim=1.
"""

CASES = (
    dict(
        inputs=torch.tensor([[[1.0], [-1.0]]]),
        state=torch.tensor([[1.0, 0.0]]),
        memory=torch.tensor([[[1.0, 2.0], [-1.0, 0.0], [3.0, 1.0]]]),
        mask=torch.tensor([[True, True, False]]),
        A=torch.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, -1.0]]),
        W=torch.tensor([[1.0, 2.0], [0.0, -1.0]]),
        W_c=torch.tensor([[1.0, 0.0, 1.0, 0.0], [0.0, -1.0, 0.0, 2.0]]),
    ),
    dict(
        inputs=random_tensor(3, 4, 2, seed=16),
        state=random_tensor(3, 5, seed=20),
        memory=random_tensor(3, 6, 5, seed=21),
        mask=padding_mask(torch.tensor([6, 2, 3]))[:, 0],
        A=rounded_tensor(5, 7, seed=24),
        W=rounded_tensor(5, 5, seed=22),
        W_c=rounded_tensor(8, 10, seed=23),
    ),
)
HINTS = """
First the loop over the inputs, which collects the states: (batch, target, hidden) after stacking.
All scores at once: states @ W @ memory.mT is (batch, target, source). mask[:, None] fits it.
contexts = weights @ memory; then torch.tanh(torch.cat([contexts, states], dim=-1) @ W_c.T).
"""
