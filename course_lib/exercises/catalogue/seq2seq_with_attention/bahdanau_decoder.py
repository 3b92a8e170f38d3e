"""Exercise `bahdanau_decoder` of notebook 03."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor, rounded_tensor
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.masks import masked_softmax, padding_mask


def bahdanau_decoder(inputs, state, memory, mask, W, U, v, A):
    keys, states = memory @ U.T, []  # (batch, source, score)
    for y in inputs.unbind(dim=1):  # (batch, embedding_size)
        scores = torch.tanh((state @ W.T)[:, None, :] + keys) @ v  # (batch, source)
        weights = masked_softmax(scores, mask[:, 0])
        context = (weights[:, :, None] * memory).sum(dim=1)  # (batch, memory_size)
        state = torch.tanh(torch.cat([state, y, context], dim=-1) @ A.T)
        states.append(state)
    return torch.stack(states, dim=1)  # (batch, target, hidden)


def _bahdanau(
    inputs,
    state,
    memory,
    mask,
    W,
    U,
    v,
    A,
    *,
    query="previous",
    values=None,
    order="syc",
    activation=torch.tanh,
    score=torch.tanh,
    carried=True,
):
    first, states = state, []
    values = memory if values is None else values
    for y in inputs.unbind(dim=1):
        asked = first if query == "first" else state
        if query == "current":
            none = torch.zeros_like(memory[:, 0])
            asked = torch.tanh(torch.cat([state, y, none], dim=-1) @ A.T)
        scores = score((asked @ W.T)[:, None, :] + memory @ U.T) @ v
        weights = masked_softmax(scores[:, None], mask)  # (batch, 1, source)
        parts = {"s": state, "y": y, "c": (weights @ values)[:, 0]}
        new = activation(torch.cat([parts[part] for part in order], dim=-1) @ A.T)
        states.append(new)
        state = new if carried else first
    return torch.stack(states, dim=1)


EXERCISE = Exercise(
    name="bahdanau_decoder",
    notebook="03_seq2seq_with_attention",
    title="Bahdanau's decoder: attend with the previous state, then update it",
    reference=_bahdanau,
    solution=bahdanau_decoder,
    cases=(
        Case(
            inputs=torch.tensor([[[1.0], [-1.0]]]),
            state=torch.tensor([[1.0, 0.0]]),
            memory=torch.tensor([[[1.0, 2.0], [-1.0, 0.0], [3.0, 1.0]]]),
            mask=torch.tensor([[[True, True, False]]]),
            W=torch.tensor([[1.0, 0.0], [1.0, -1.0]]),
            U=torch.tensor([[1.0, 1.0], [0.0, 2.0]]),
            v=torch.tensor([2.0, -1.0]),
            A=torch.tensor([[1.0, 0.0, 1.0, 0.0, -1.0], [0.0, 1.0, -1.0, 1.0, 0.0]]),
        ),
        Case(
            inputs=random_tensor(3, 4, 2, seed=31),
            state=random_tensor(3, 4, seed=30),
            memory=random_tensor(3, 6, 5, seed=32),
            mask=padding_mask(torch.tensor([6, 2, 4])),
            W=rounded_tensor(5, 4, seed=33),
            U=rounded_tensor(5, 5, seed=34),
            v=rounded_tensor(5, seed=35),
            A=rounded_tensor(4, 11, seed=36),
        ),
    ),
    mistakes=(
        Mistake(
            "projected_values",
            lambda w, s, m, k, W, U, v, A: _bahdanau(w, s, m, k, W, U, v, A, values=m @ U.T),
            "Your context vector averages the projected states U h. U belongs to the score; the values are the "
            "states h themselves.",
        ),
        Mistake(
            "no_mask",
            lambda w, s, m, k, *a: _bahdanau(w, s, m, None, *a),
            "Your decoder attends to padding as well: the mask is not used.",
        ),
        Mistake(
            "current_state",
            lambda *a: _bahdanau(*a, query="current"),
            "Your query is a state that has already read the current token. That is Luong's order; Bahdanau's query is the "
            "previous state.",
        ),
        Mistake(
            "first_query",
            lambda *a: _bahdanau(*a, query="first"),
            "The query of every step is the first hidden state in your code, so all steps have the same weights. "
            "Use the state of the step before.",
        ),
        Mistake(
            "not_carried",
            lambda *a: _bahdanau(*a, carried=False),
            "Each step of yours starts from the first hidden state. Pass the new state on to the next step.",
        ),
        Mistake(
            "inverted_mask",
            lambda w, s, m, k, *a: _bahdanau(w, s, m, ~k, *a),
            "Your mask is inverted: the decoder attends to padding only. True means 'may attend'.",
        ),
        Mistake(
            "no_outer_tanh",
            lambda *a: _bahdanau(*a, activation=lambda x: x),
            "The tanh around A [state; input; context] is missing.",
        ),
        Mistake(
            "input_first",
            lambda *a: _bahdanau(*a, order="ysc"),
            "The order is state, input, context. You put the input first.",
        ),
        Mistake(
            "no_context",
            lambda w, s, m, k, *a: _bahdanau(w, s, m, k, *a, values=torch.zeros_like(m)),
            "The context vector does not reach the new state.",
        ),
        Mistake(
            "no_tanh_in_score",
            lambda *a: _bahdanau(*a, score=lambda x: x),
            "There is no tanh in your score. The softmax then cancels the state, and every step has the same "
            "weights.",
        ),
    ),
    hints=(
        "Loop over inputs.unbind(dim=1). In each step: scores, weights, context vector, new state.",
        "The score is vᵀ tanh(W s + U h_j): (state @ W.T)[:, None, :] + memory @ U.T is (batch, source, score).",
        "mask is (batch, 1, source); scores are (batch, source) or (batch, 1, source). They must fit each other.",
        "state = torch.tanh(torch.cat([state, y, context], dim=-1) @ A.T); stack the states along dim=1.",
    ),
)
