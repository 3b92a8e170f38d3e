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


def _decoded(state, E, U, V, bos, eos, max_length, *, step):
    """The loop with another step: (token, state, E, U, V) gives (logits, new state)."""
    token, tokens = bos, []
    for _ in range(max_length):
        logits, state = step(token, state, E, U, V)
        token = int(logits.argmax())
        tokens.append(token)
        if token == eos:
            break
    return torch.tensor(tokens)


def _with_step(step):
    return lambda *a: _decoded(*a, step=step)


def _logits_of_the_old_state(token, state, E, U, V):
    return V @ state, torch.tanh(E[token] + U @ state)


def _with_new_state(new):
    """A decoder whose state is another function of (token, state, E, U)."""

    def step(token, state, E, U, V):
        state = new(token, state, E, U)
        return V @ state, state

    return _with_step(step)


def _padded(state, E, U, V, bos, eos, max_length, *, value):
    tokens = _greedy(state, E, U, V, bos, eos, max_length).tolist()
    return torch.tensor(tokens + [value] * (max_length - len(tokens)))


def _one_after_eos(tokens, eos):
    ends = (tokens == eos).nonzero()[:, 0].tolist()
    return tokens[: ends[0] + 2] if ends else tokens


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
        Mistake(
            "one_too_few",
            lambda state, E, U, V, bos, eos, n: _greedy(state, E, U, V, bos, eos, n - 1),
            "You generate at most max_length - 1 tokens. bos does not count: up to max_length tokens are generated.",
        ),
        Mistake(
            "old_logits",
            _with_step(_logits_of_the_old_state),
            "Your logits come from the state before it has read the token. Compute the new state first, then V @ state.",
        ),
        Mistake(
            "no_tanh",
            _with_new_state(lambda token, state, E, U: E[token] + U @ state),
            "The tanh is missing: the new state is tanh(E[token] + U @ state).",
        ),
        Mistake(
            "tanh_of_part",
            _with_new_state(lambda token, state, E, U: E[token] + torch.tanh(U @ state)),
            "The tanh covers only one of the two terms: the new state is tanh(E[token] + U @ state).",
        ),
        Mistake(
            "E_for_V",
            _with_step(lambda token, s, E, U, V: (E @ (new := torch.tanh(E[token] + U @ s)), new)),
            "Your logits use E. The output matrix is V: logits = V @ state.",
        ),
        Mistake(
            "V_for_E",
            _with_step(lambda token, s, E, U, V: (V @ (new := torch.tanh(V[token] + U @ s)), new)),
            "You embed the token with V. The embeddings are the rows of E.",
        ),
        Mistake(
            "no_embedding",
            _with_new_state(lambda token, state, E, U: torch.tanh(U @ state)),
            "The generated token never reaches the state: E[token] is missing.",
        ),
        Mistake(
            "no_U",
            _with_new_state(lambda token, state, E, U: torch.tanh(E[token] + state)),
            "The old state is added without U: the new state is tanh(E[token] + U @ state).",
        ),
        Mistake(
            "no_state",
            _with_new_state(lambda token, state, E, U: torch.tanh(E[token])),
            "The old state does not reach the new one: U @ state is missing.",
        ),
        Mistake(
            "last_token",
            lambda *a: _greedy(*a)[-1:],
            "You return the last token only. Collect all generated tokens in a list.",
        ),
        *(
            Mistake(
                f"padded_with_{name}",
                lambda *a, value=value: _padded(*a, value=a[5] if value is None else value),
                "Your result always has max_length tokens, filled up after eos. Return the generated tokens only.",
            )
            for name, value in {"eos": None, "zeros": 0}.items()
        ),
        Mistake(
            "floats",
            lambda *a: _greedy(*a).float(),
            "Tokens are integers, and your tensor holds floating-point numbers. torch.tensor(tokens) of Python integers is "
            "an integer tensor.",
        ),
        Mistake(
            "column",
            lambda *a: _greedy(*a)[:, None],
            "The tokens are right, but the shape is (generated, 1). Return a tensor of shape (generated,).",
        ),
        Mistake(
            "row",
            lambda *a: _greedy(*a)[None],
            "The tokens are right, but the shape is (1, generated). Return a tensor of shape (generated,).",
        ),
        Mistake(
            "bos_counts",
            lambda state, E, U, V, bos, eos, n: torch.tensor(
                [bos, *_greedy(state, E, U, V, bos, eos, n - 1).tolist()]
            ),
            "Your result begins with bos, which is an input and was not generated. And it counts towards max_length.",
        ),
        Mistake(
            "bos_without_eos",
            lambda state, E, U, V, bos, eos, n: torch.tensor(
                [bos, *(t for t in _greedy(state, E, U, V, bos, eos, n).tolist() if t != eos)]
            ),
            "Your result begins with bos, which was not generated, and lacks eos where it was.",
        ),
        Mistake(
            "argmax_of_state",
            lambda *a: _decoded(
                *a, step=lambda t, s, E, U, V: ((new := torch.tanh(E[t] + U @ s)), new)
            ),
            "You take the argmax of the state. The next token has the largest logit: V @ state.",
        ),
        Mistake(
            "one_step_after_eos",
            lambda state, E, U, V, bos, eos, n: _one_after_eos(
                _greedy(state, E, U, V, bos, eos, n, stops=False), eos
            ),
            "You generate one token more after eos. Test for eos after the token was chosen, before the next step.",
        ),
        Mistake(
            "inputs_collected",
            lambda state, E, U, V, bos, eos, n: torch.tensor(
                [bos, *(_greedy(state, E, U, V, bos, eos, n).tolist())]
            )[:-1],
            "You collect the tokens that are read, bos included, and lack the last one that was generated. Append each token "
            "after its argmax.",
        ),
    ),
    hints=(
        "Three variables change in each step: the token that is read, the hidden state, and the list of tokens.",
        "state = torch.tanh(E[token] + U @ state), then token = (V @ state).argmax().item().",
        "while len(tokens) < max_length and token != eos: …; return torch.tensor(tokens).",
    ),
    differentiable=False,
)
