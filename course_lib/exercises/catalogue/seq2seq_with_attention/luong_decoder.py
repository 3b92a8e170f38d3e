"""Exercise `luong_decoder` of notebook 03."""

import math

import torch

from course_lib.exercises.catalogue._shared import random_tensor, rounded_tensor
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.masks import masked_softmax, padding_mask


def luong_decoder(inputs, state, memory, mask, A, W, W_c):
    states = []
    for y in inputs.unbind(dim=1):  # (batch, embedding_size)
        state = torch.tanh(torch.cat([state, y], dim=-1) @ A.T)
        states.append(state)
    states = torch.stack(states, dim=1)  # (batch, target, hidden)
    scores = states @ W @ memory.mT  # (batch, target, source): s W h
    contexts = masked_softmax(scores, mask) @ memory  # (batch, target, memory_size)
    return torch.tanh(torch.cat([contexts, states], dim=-1) @ W_c.T)


def _luong(
    inputs,
    state,
    memory,
    mask,
    A,
    W,
    W_c,
    *,
    scale=1.0,
    order="cs",
    activation=torch.tanh,
    values=None,
    query="current",
    carried=True,
):
    first, outputs = state, []
    for y in inputs.unbind(dim=1):
        before = state if carried else first
        state = torch.tanh(torch.cat([before, y], dim=-1) @ A.T)
        asked = before if query == "previous" else state
        scores = (asked @ W)[:, None, :] @ memory.mT * scale
        weights = masked_softmax(scores, mask)
        context = (weights @ (memory if values is None else values))[:, 0]
        parts = [context, state] if order == "cs" else [state, context]
        outputs.append(activation(torch.cat(parts, dim=-1) @ W_c.T))
    return torch.stack(outputs, dim=1)


EXERCISE = Exercise(
    name="luong_decoder",
    notebook="03_seq2seq_with_attention",
    title="Luong's decoder: update the state, then attend with it",
    reference=_luong,
    solution=luong_decoder,
    cases=(
        Case(
            inputs=torch.tensor([[[1.0], [-1.0]]]),
            state=torch.tensor([[1.0, 0.0]]),
            memory=torch.tensor([[[1.0, 2.0], [-1.0, 0.0], [3.0, 1.0]]]),
            mask=torch.tensor([[[True, True, False]]]),
            A=torch.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, -1.0]]),
            W=torch.tensor([[1.0, 2.0], [0.0, -1.0]]),
            W_c=torch.tensor([[1.0, 0.0, 1.0, 0.0], [0.0, -1.0, 0.0, 2.0]]),
        ),
        Case(
            inputs=random_tensor(3, 4, 2, seed=16),
            state=random_tensor(3, 5, seed=20),
            memory=random_tensor(3, 6, 5, seed=21),
            mask=padding_mask(torch.tensor([6, 2, 3])),
            A=rounded_tensor(5, 7, seed=24),
            W=rounded_tensor(5, 5, seed=22),
            W_c=rounded_tensor(8, 10, seed=23),
        ),
    ),
    mistakes=(
        Mistake(
            "scaled",
            lambda *a: _luong(*a, scale=1 / math.sqrt(a[1].shape[-1])),
            "You divide the scores by √d. Luong's general score is not scaled; W is learned and can have any size.",
        ),
        Mistake(
            "no_W",
            lambda w, s, m, k, A, W, C: _luong(w, s, m, k, A, torch.eye(len(W), dtype=W.dtype), C),
            "That is Luong's dot score. The general score has a matrix: sᵀ W h.",
        ),
        Mistake(
            "inverted_mask",
            lambda w, s, m, k, *a: _luong(w, s, m, ~k, *a),
            "Your mask is inverted: the decoder attends to padding only. True means 'may attend'.",
        ),
        Mistake(
            "no_mask",
            lambda w, s, m, k, *a: _luong(w, s, m, None, *a),
            "Your decoder attends to padding as well: the mask is not used.",
        ),
        Mistake(
            "transposed",
            lambda w, s, m, k, A, W, C: _luong(w, s, m, k, A, W.T, C),
            "Your W is transposed. The score is sᵀ W h, so the state is multiplied from the left: states @ W.",
        ),
        Mistake(
            "previous_state",
            lambda *a: _luong(*a, query="previous"),
            "Your query is the previous state. That is Bahdanau's order; Luong's query is the state that has read "
            "the current token.",
        ),
        Mistake(
            "not_carried",
            lambda *a: _luong(*a, carried=False),
            "Each state of yours is computed from the first one. Pass the new state on to the next step.",
        ),
        Mistake(
            "state_first",
            lambda *a: _luong(*a, order="sc"),
            "The order under W_c is [context; state]. You put the state first.",
        ),
        Mistake(
            "no_tanh",
            lambda *a: _luong(*a, activation=lambda x: x),
            "The tanh around W_c [context; state] is missing.",
        ),
        Mistake(
            "projected_values",
            lambda w, s, m, k, A, W, C: _luong(w, s, m, k, A, W, C, values=m @ W.T),
            "Your context vectors average projected states. W belongs to the score; the values are the states of "
            "the memory themselves.",
        ),
    ),
    hints=(
        "First the loop over the inputs, which collects the states: (batch, target, hidden) after stacking.",
        "All scores at once: states @ W @ memory.mT is (batch, target, source), and mask broadcasts over target.",
        "contexts = masked_softmax(scores, mask) @ memory; then torch.cat([contexts, states], dim=-1) @ W_c.T.",
    ),
)
