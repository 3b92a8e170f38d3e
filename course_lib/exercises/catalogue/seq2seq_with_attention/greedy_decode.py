"""Exercise `greedy_decode` of notebook 03."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.exercise import Case, Exercise, Mistake


def greedy_decode(state, E, U, V, bos, eos, max_length):
    token, tokens = bos, []
    while len(tokens) < max_length and token != eos:
        state = torch.tanh(E[token] + U @ state)  # (hidden,)
        token = (V @ state).argmax().item()  # the input of the next step
        tokens.append(token)
    return torch.tensor(tokens)


def _greedy(
    state,
    E,
    U,
    V,
    bos,
    eos,
    max_length,
    *,
    read=lambda token, first: token,
    keep_state=True,
    choose=torch.argmax,
    stops=True,
):
    token, tokens, start = bos, [], state
    for _ in range(max_length):
        state = torch.tanh(E[read(token, bos)] + U @ (state if keep_state else start))
        token = int(choose(V @ state))
        tokens.append(token)
        if stops and token == eos:
            break
    return torch.tensor(tokens)


def _frozen(state, E, U, V, bos, eos, max_length):
    """Decode with a state that is never updated."""
    return _greedy(state, E, U, V, bos, eos, max_length, keep_state=False)


# Counts up 3, 4, 5, and ends with 2: E and V nearly transpose each other.
_STEPS = torch.zeros(6, 6)
for _token, _following in ((1, 3), (3, 4), (4, 5), (5, 2), (2, 2)):
    _STEPS[_token, _following] = 2.0

EXERCISE = Exercise(
    name="greedy_decode",
    notebook="03_seq2seq_with_attention",
    title="Greedy autoregressive decoding",
    reference=_greedy,
    solution=greedy_decode,
    cases=(
        Case(
            state=torch.zeros(6),
            E=_STEPS,
            U=torch.zeros(6, 6),
            V=torch.eye(6),
            bos=1,
            eos=2,
            max_length=6,
        ),
        Case(
            state=torch.zeros(6),
            E=_STEPS,
            U=torch.zeros(6, 6),
            V=torch.eye(6),
            bos=1,
            eos=2,
            max_length=3,
        ),
        Case(
            state=random_tensor(8, seed=5),
            E=random_tensor(7, 8, seed=6),
            U=random_tensor(8, 8, seed=7),
            V=random_tensor(7, 8, seed=8),
            bos=1,
            eos=2,
            max_length=9,
        ),
        Case(
            state=random_tensor(8, seed=9),
            E=random_tensor(9, 8, seed=10),
            U=random_tensor(8, 8, seed=11),
            V=random_tensor(9, 8, seed=12),
            bos=1,
            eos=2,
            max_length=4,
        ),
    ),
    mistakes=(
        Mistake(
            "reads_bos",
            lambda *a: _greedy(*a, read=lambda token, bos: bos),
            "Every step of yours reads bos. Each step must read the token that the step before generated.",
        ),
        Mistake(
            "never_stops",
            lambda *a: _greedy(*a, stops=False),
            "You go on after eos. Stop once it was generated.",
        ),
        Mistake(
            "ignores_max_length",
            lambda state, E, U, V, bos, eos, n: _greedy(state, E, U, V, bos, eos, 50),
            "Your loop ends only after eos. Stop after max_length tokens too: a model may never generate eos.",
        ),
        Mistake(
            "without_eos",
            lambda state, E, U, V, bos, eos, n: torch.tensor(
                [t for t in _greedy(state, E, U, V, bos, eos, n).tolist() if t != eos]
            ),
            "The end token is missing in your result. Return it where it was generated.",
        ),
        Mistake(
            "with_bos",
            lambda state, E, U, V, bos, eos, n: torch.tensor(
                [bos, *_greedy(state, E, U, V, bos, eos, n).tolist()]
            ),
            "Your result begins with bos, which is an input and was not generated.",
        ),
        Mistake(
            "old_state",
            _frozen,
            "Each step of yours starts from the first hidden state. Pass the new state on to the next step.",
        ),
        Mistake(
            "least_probable",
            lambda *a: _greedy(*a, choose=torch.argmin),
            "You choose the smallest logit. The most probable token has the largest.",
        ),
        Mistake(
            "U_transposed",
            lambda state, E, U, V, *a: _greedy(state, E, U.T, V, *a),
            "U is transposed: the new state is tanh(E[token] + U @ state).",
        ),
        Mistake(
            "one_too_many",
            lambda state, E, U, V, bos, eos, n: _greedy(state, E, U, V, bos, eos, n + 1),
            "You generate up to max_length + 1 tokens.",
        ),
    ),
    hints=(
        "Three variables change in each step: the token that is read, the hidden state, and the list of tokens.",
        "state = torch.tanh(E[token] + U @ state), then token = (V @ state).argmax().item().",
        "while len(tokens) < max_length and token != eos: …; return torch.tensor(tokens).",
    ),
    differentiable=False,
)
