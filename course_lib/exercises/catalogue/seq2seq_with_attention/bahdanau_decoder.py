"""Exercise `bahdanau_decoder` of notebook 03."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor, rounded_tensor, two_mistakes
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


def _fixed_context(context):
    """A decoder whose context vector is a function of the memory and the mask, not of the state."""

    def attempt(inputs, state, memory, mask, W, U, v, A):
        states = []
        for y in inputs.unbind(dim=1):
            state = torch.tanh(torch.cat([state, y, context(memory, mask)], dim=-1) @ A.T)
            states.append(state)
        return torch.stack(states, dim=1)

    return attempt


def _from_weights(weigh, *, lagged=False):
    """A decoder whose weights, (batch, 1, source), are a function of the scores and the mask."""

    def attempt(inputs, state, memory, mask, W, U, v, A):
        def read(state):
            scores = torch.tanh((state @ W.T)[:, None, :] + memory @ U.T) @ v
            return (weigh(scores[:, None], mask) @ memory)[:, 0]

        states, context = [], torch.zeros_like(memory[:, 0])
        for y in inputs.unbind(dim=1):
            context = context if lagged else read(state)
            state = torch.tanh(torch.cat([state, y, context], dim=-1) @ A.T)
            states.append(state)
            if lagged:
                context = read(state)
        return torch.stack(states, dim=1)

    return attempt


def _mask_over_batch(inputs, state, memory, mask, W, U, v, A):
    states = []
    for y in inputs.unbind(dim=1):
        scores = torch.tanh((state @ W.T)[:, None, :] + memory @ U.T) @ v  # (batch, source)
        weights = torch.softmax(scores.masked_fill(~mask, -1e9), dim=-1)  # (batch, batch, source)
        context = (weights @ memory)[:, 0]
        state = torch.tanh(torch.cat([state, y, context], dim=-1) @ A.T)
        states.append(state)
    return torch.stack(states, dim=1)


def _shifted(x):
    return torch.cat([torch.zeros_like(x[:, :1]), x[:, :-1]], dim=1)


def _read(state, memory, mask, W, U, v):
    scores = torch.tanh((state @ W.T)[:, None, :] + memory @ U.T) @ v
    return (masked_softmax(scores[:, None], mask) @ memory)[:, 0]


def _changed(w, s, m, k, *matrices, padding=False, **settings):
    return _bahdanau(w, s, m, None if padding else k, *matrices, **settings)


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
        *(
            Mistake(
                f"order_{order}",
                lambda *a, order=order: _bahdanau(*a, order=order),
                "Your concatenation has another order. The columns of A belong to [state; input; context].",
            )
            for order in ("scy", "csy", "cys", "ycs")
        ),
        Mistake(
            "lagged_context",
            _from_weights(masked_softmax, lagged=True),
            "Your context vector comes one step late: each state reads the context of the step before. Compute the context "
            "from the old state first, then the new state.",
        ),
        Mistake(
            "steps_first",
            lambda *a: _bahdanau(*a).transpose(0, 1),
            "The states are right, but the axes are (target, batch, hidden). Stack them along dim=1.",
        ),
        Mistake(
            "first_state_included",
            lambda *a: torch.cat([a[1][:, None], _bahdanau(*a)[:, :-1]], dim=1),
            "Your result begins with the first hidden state and lacks the last one. Append the state after it was updated.",
        ),
        Mistake(
            "one_state_more",
            lambda *a: torch.cat([a[1][:, None], _bahdanau(*a)], dim=1),
            "Your result begins with the first hidden state. Return one state per input token.",
        ),
        Mistake(
            "last_state",
            lambda *a: _bahdanau(*a)[:, -1],
            "You return the last state only. Collect the states of all steps and stack them along dim=1.",
        ),
        *(
            Mistake(
                f"context_{name}",
                _fixed_context(context),
                "Your context vector does not depend on the state. It is the average of the memory by the attention "
                "weights of the previous state.",
            )
            for name, context in {
                "last": lambda memory, mask: memory[:, -1],
                "first": lambda memory, mask: memory[:, 0],
                "mean": lambda memory, mask: memory.mean(dim=1),
                "mean_of_real": lambda memory, mask: (mask * memory.mT).sum(-1) / mask.sum(-1),
            }.items()
        ),
        Mistake(
            "mask_over_batch",
            _mask_over_batch,
            "Your scores are (batch, source) and the mask is (batch, 1, source), so they broadcast to (batch, batch, "
            "source). Use mask[:, 0], or give the scores a target axis.",
        ),
        Mistake(
            "after_the_softmax",
            _from_weights(lambda scores, mask: torch.softmax(scores, dim=-1) * mask),
            "You set masked weights to 0 after the softmax, so the others no longer sum to 1. Mask the scores instead.",
        ),
        Mistake(
            "scores_to_zero",
            _from_weights(lambda scores, mask: torch.softmax(scores * mask, dim=-1)),
            "You set masked scores to 0. exp(0) is 1, so padding still gets weight. Masked scores must be -inf.",
        ),
        Mistake(
            "no_softmax",
            _from_weights(lambda scores, mask: scores * mask),
            "You use the scores as weights. Apply a masked softmax first.",
        ),
        Mistake(
            "scaled",
            _from_weights(
                lambda scores, mask: masked_softmax(scores / scores.shape[-1] ** 0.5, mask)
            ),
            "You divide the scores by a root. The additive score has no scale.",
        ),
        Mistake(
            "scaled_by_score_size",
            lambda w, s, m, k, W, U, v, A: _bahdanau(w, s, m, k, W, U, v / len(v) ** 0.5, A),
            "You divide the scores by a root. The additive score has no scale.",
        ),
        Mistake(
            "inverted_mask_nan",
            _from_weights(
                lambda scores, mask: torch.softmax(scores.masked_fill(mask, -torch.inf), -1)
            ),
            "Your mask is inverted: the decoder attends to padding only. True means 'may attend', and masked_fill fills "
            "where its argument is True.",
        ),
        Mistake(
            "inverted_mask_uniform",
            _from_weights(lambda scores, mask: torch.softmax(scores.masked_fill(mask, -1e9), -1)),
            "Your mask is inverted: the decoder attends to padding only. True means 'may attend', and masked_fill fills "
            "where its argument is True.",
        ),
        Mistake(
            "inputs_shifted",
            lambda w, *a: _bahdanau(_shifted(w), *a),
            "Your inputs are one step late. They are shifted already: step i reads inputs[:, i].",
        ),
        Mistake(
            "first_input",
            lambda w, *a: _bahdanau(w[:, :1].expand_as(w), *a),
            "Every step of yours reads the first input. Step i reads inputs[:, i].",
        ),
        Mistake(
            "W_and_U_exchanged",
            lambda w, s, m, k, W, U, v, A: _bahdanau(w, s, m, k, U, W, v, A),
            "W and U are exchanged: W projects the state, U the memory.",
        ),
        Mistake(
            "contexts_returned",
            lambda w, s, m, k, W, U, v, A: torch.stack(
                [
                    _read(before, m, k, W, U, v)
                    for before in torch.cat(
                        [s[:, None], _bahdanau(w, s, m, k, W, U, v, A)[:, :-1]], dim=1
                    ).unbind(dim=1)
                ],
                dim=1,
            ),
            "These are the context vectors. Return the states.",
        ),
        *two_mistakes(
            _changed,
            {"padding": ({"padding": True}, "The mask is not used.")},
            {
                "not_carried": (
                    {"carried": False},
                    "The new state is not passed on to the next step.",
                )
            },
            {
                "no_outer_tanh": (
                    {"activation": lambda x: x},
                    "The tanh around A [state; input; context] is missing.",
                )
            },
            {
                "input_first": (
                    {"order": "ysc"},
                    "The columns of A belong to [state; input; context].",
                ),
                "context_first": (
                    {"order": "csy"},
                    "The columns of A belong to [state; input; context].",
                ),
                "context_second": (
                    {"order": "scy"},
                    "The columns of A belong to [state; input; context].",
                ),
            },
        ),
        Mistake(
            "U_transposed",
            lambda w, s, m, k, W, U, v, A: _bahdanau(w, s, m, k, W, U.T, v, A),
            "U is not transposed: U h for a batch of rows is memory @ U.T. With a square matrix there is no error message.",
        ),
        Mistake(
            "W_transposed",
            lambda w, s, m, k, W, U, v, A: _bahdanau(w, s, m, k, W.T, U, v, A),
            "W is not transposed: W s for a batch of rows is state @ W.T. With a square matrix there is no error message.",
        ),
        Mistake(
            "no_state_in_score",
            lambda w, s, m, k, W, U, v, A: _bahdanau(w, s, m, k, 0 * W, U, v, A),
            "The state is not in your score, so all steps have the same weights. The score is vᵀ tanh(W s + U h).",
        ),
    ),
    hints=(
        "Loop over inputs.unbind(dim=1). In each step: scores, weights, context vector, new state.",
        "The score is vᵀ tanh(W s + U h_j): (state @ W.T)[:, None, :] + memory @ U.T is (batch, source, score).",
        "mask is (batch, 1, source); scores are (batch, source) or (batch, 1, source). They must fit each other.",
        "state = torch.tanh(torch.cat([state, y, context], dim=-1) @ A.T); stack the states along dim=1.",
    ),
)
