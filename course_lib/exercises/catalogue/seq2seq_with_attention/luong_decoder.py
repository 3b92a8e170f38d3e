"""Exercise `luong_decoder` of notebook 03."""

import math

import torch

from course_lib.exercises.catalogue._shared import random_tensor, rounded_tensor, two_mistakes
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


def _in_two_parts(states=None, weigh=masked_softmax, combine=None):
    """The decoder with another cell, other weights of (scores, mask), or another result of (contexts, states, W_c)."""

    def attempt(inputs, state, memory, mask, A, W, W_c):
        all_states = (states or _states)(inputs, state, A)
        contexts = weigh(all_states @ W @ memory.mT, mask) @ memory
        if combine is not None:
            return combine(contexts, all_states, W_c)
        return torch.tanh(torch.cat([contexts, all_states], dim=-1) @ W_c.T)

    return attempt


def _states(inputs, state, A, *, order="sy", activation=torch.tanh):
    states = []
    for y in inputs.unbind(dim=1):
        parts = [state, y] if order == "sy" else [y, state]
        state = activation(torch.cat(parts, dim=-1) @ A.T)
        states.append(state)
    return torch.stack(states, dim=1)


def _fed_back(inputs, state, memory, mask, A, W, W_c):
    """Raises unless W_c has as many rows as the state has components."""
    outputs = []
    for y in inputs.unbind(dim=1):
        state = torch.tanh(torch.cat([state, y], dim=-1) @ A.T)
        context = (masked_softmax((state @ W)[:, None, :] @ memory.mT, mask) @ memory)[:, 0]
        state = torch.tanh(torch.cat([context, state], dim=-1) @ W_c.T)
        outputs.append(state)
    return torch.stack(outputs, dim=1)


def _changed(w, s, m, k, *matrices, padding=False, **settings):
    return _luong(w, s, m, None if padding else k, *matrices, **settings)


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
        Mistake(
            "input_before_state",
            _in_two_parts(lambda *a: _states(*a, order="ys")),
            "The order under A is [state; input]. You put the input first.",
        ),
        Mistake(
            "states_returned",
            _in_two_parts(combine=lambda c, s, W_c: s),
            "These are the states. Return the attentional hidden states, tanh(W_c [context; state]).",
        ),
        Mistake(
            "contexts_returned",
            _in_two_parts(combine=lambda c, s, W_c: c),
            "These are the context vectors. Return the attentional hidden states, tanh(W_c [context; state]).",
        ),
        Mistake(
            "concatenation_returned",
            _in_two_parts(combine=lambda c, s, W_c: torch.cat([c, s], dim=-1)),
            "You return [context; state]. Multiply it by W_c and apply a tanh.",
        ),
        Mistake(
            "last_step",
            lambda *a: _luong(*a)[:, -1],
            "You return the last step only. Return all steps, (batch, target, rows of W_c).",
        ),
        Mistake(
            "steps_first",
            lambda *a: _luong(*a).transpose(0, 1),
            "The numbers are right, but the axes are (target, batch, …). Stack the steps along dim=1.",
        ),
        Mistake(
            "fed_back",
            _fed_back,
            "You pass the attentional hidden state on as the state of the next step. The state of the cell is passed on; the "
            "attentional state is an output.",
        ),
        *(
            Mistake(
                f"over_targets_{name}",
                _in_two_parts(weigh=weigh),
                "Your softmax runs over the target positions. The weights of one target position sum to 1 over the source: "
                "dim=-1.",
            )
            for name, weigh in {
                "masked": lambda a, m: torch.softmax(a.masked_fill(~m, -1e9), dim=1) * m,
                "uniform": lambda a, m: torch.softmax(a.masked_fill(~m, -1e9), dim=1),
                "nan": lambda a, m: torch.softmax(a.masked_fill(~m, -torch.inf), dim=1),
            }.items()
        ),
        Mistake(
            "cell_without_tanh",
            _in_two_parts(lambda *a: _states(*a, activation=lambda x: x)),
            "The tanh of the cell is missing: the state is tanh(A [state; input]).",
        ),
        Mistake(
            "after_the_softmax",
            _in_two_parts(weigh=lambda a, m: torch.softmax(a, dim=-1) * m),
            "You set masked weights to 0 after the softmax, so the others no longer sum to 1. Mask the scores instead.",
        ),
        Mistake(
            "scores_to_zero",
            _in_two_parts(weigh=lambda a, m: torch.softmax(a * m, dim=-1)),
            "You set masked scores to 0. exp(0) is 1, so padding still gets weight. Masked scores must be -inf.",
        ),
        Mistake(
            "no_softmax",
            _in_two_parts(weigh=lambda a, m: a * m),
            "You use the scores as weights. Apply a masked softmax first.",
        ),
        Mistake(
            "tanh_in_score",
            _in_two_parts(weigh=lambda a, m: masked_softmax(torch.tanh(a), m)),
            "There is a tanh in your score. Luong's general score is sᵀ W h, without a nonlinearity.",
        ),
        *(
            Mistake(
                f"inverted_mask_{name}",
                _in_two_parts(
                    weigh=lambda a, m, fill=fill: torch.softmax(a.masked_fill(m, fill), dim=-1)
                ),
                "Your mask is inverted: the decoder attends to padding only. True means 'may attend', and masked_fill fills "
                "where its argument is True.",
            )
            for name, fill in {"nan": -torch.inf, "uniform": -1e9}.items()
        ),
        Mistake(
            "no_context",
            _in_two_parts(combine=lambda c, s, W_c: torch.tanh(torch.cat([0 * c, s], -1) @ W_c.T)),
            "The context vector does not reach the attentional hidden state.",
        ),
        Mistake(
            "memory_mean",
            _in_two_parts(weigh=lambda a, m: (m / m.sum(-1, keepdim=True)).expand_as(a)),
            "Your weights are equal for all source positions. They are the masked softmax of the scores sᵀ W h.",
        ),
        *(
            Mistake(
                f"activation_{name}",
                lambda *a, activation=activation: _luong(*a, activation=activation),
                "The nonlinearity around W_c [context; state] is another one. Luong's is a tanh.",
            )
            for name, activation in {"relu": torch.relu, "sigmoid": torch.sigmoid}.items()
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
                    "The tanh around W_c [context; state] is missing.",
                )
            },
            {"state_first": ({"order": "sc"}, "The order under W_c is [context; state].")},
            {
                "previous_state": (
                    {"query": "previous"},
                    "The query is the state that has read the current token, not the one before.",
                )
            },
        ),
    ),
    hints=(
        "First the loop over the inputs, which collects the states: (batch, target, hidden) after stacking.",
        "All scores at once: states @ W @ memory.mT is (batch, target, source), and mask broadcasts over target.",
        "contexts = masked_softmax(scores, mask) @ memory; then torch.cat([contexts, states], dim=-1) @ W_c.T.",
    ),
)
