"""Greedy autoregressive decoding."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor


def greedy_decode(state, E, U, V, bos, eos, max_length):
    token, tokens = bos, []
    while len(tokens) < max_length and token != eos:
        state = torch.tanh(E[token] + U @ state)  # (hidden,)
        token = (V @ state).argmax().item()  # the input of the next step
        tokens.append(token)
    return torch.tensor(tokens)


# Any two of the mistakes together must end as well: in each of them `tokens` grows in every step.
MISTAKES = r"""
E[token] -> E[bos]
    Each step reads bos. It must read the token that the step before generated.
token, tokens = bos -> token, tokens = 0
    Your first input is the token 0. It is bos.
and token != eos ->
    Your loop does not stop at eos. Stop once it was generated.
token != eos -> eos not in tokens[:-1]
    You generate one token more after eos. Test for eos after the token was chosen, before the next step.
len(tokens) < max_length -> len(tokens) < 50
    Your loop ends only after eos. Stop after max_length tokens too: a model may never generate eos.
< max_length -> <= max_length
    You generate up to max_length + 1 tokens.
< max_length -> < max_length - 1
    You generate at most max_length - 1 tokens. bos does not count: up to max_length tokens are generated.
token != eos -> token == eos
    Your result is empty. Append each generated token, and go on until eos was generated or there are max_length
    tokens.
torch.tensor(tokens) -> torch.tensor([token for token in tokens if token != eos])
    The end token is missing in your result. Return it where it was generated.
torch.tensor(tokens) -> torch.tensor(tokens[:-1])
    Your result lacks the last token that was generated, whether it is eos or not.
torch.tensor(tokens) -> torch.tensor([bos, *tokens])
    Your result begins with bos, which is an input and was not generated.
bos, [] -> bos, [bos]
    Your result begins with bos, which is an input and was not generated. And it counts towards max_length.
torch.tensor(tokens) -> torch.tensor([bos, *(token for token in tokens if token != eos)])
    Your result begins with bos, which was not generated, and lacks eos where it was.
state = torch.tanh -> tokens.append(token)\nstate = torch.tanh
+ tokens.append(token) ->
    You collect the tokens that are read, bos included, and lack the last one that was generated. Append each token
    after its argmax.
state = torch.tanh -> new = torch.tanh
+ V @ state -> V @ new
    Each step starts from the first hidden state. Pass the new state on to the next step.
token, tokens = -> state = 0 * state\ntoken, tokens =
    You begin with a hidden state of zeros. The first hidden state is the argument state.
argmax -> argmin
    You choose the smallest logit. The most probable token has the largest.
.argmax().item() -> .topk(2).indices[1].item()
    You choose the second largest logit. The most probable token has the largest.
.argmax() -> .max()
    You index with a number that is no integer. max() is the largest logit itself; its position is the token:
    argmax().
U @ state -> U.T @ state
    You apply the transpose of U: the new state is tanh(E[token] + U @ state).
state = torch.tanh -> old, state = state, torch.tanh
+ V @ state -> V @ old
    Your logits come from the state before it has read the token. Compute the new state first, then V @ state.
torch.tanh( -> (
    The tanh is missing: the new state is tanh(E[token] + U @ state).
torch.tanh( -> torch.sigmoid(
torch.tanh( -> torch.relu(
    The nonlinearity of your cell is another one: the new state is tanh(E[token] + U @ state).
torch.tanh(E[token] + U @ state) -> E[token] + torch.tanh(U @ state)
torch.tanh(E[token] + U @ state) -> torch.tanh(E[token]) + U @ state
    The tanh covers only one of the two terms: the new state is tanh(E[token] + U @ state).
V @ state -> E @ state
    Your logits use E. The output matrix is V: logits = V @ state.
V @ state -> state
    You take the argmax of the state. The next token has the largest logit: V @ state.
E[token] -> V[token]
    You embed the token with V. The embeddings are the rows of E.
E[token] -> E[:, token]
    You take a column of E. The embedding of a token is a row: E[token].
E[token] + ->
    The generated token never reaches the state: E[token] is missing.
E[token] + U @ state -> E[token] - U @ state
    Your sign is wrong: the new state is tanh(E[token] + U @ state).
E[token] + U @ state -> E[token] * (U @ state)
    You multiply the two terms. Add them: the new state is tanh(E[token] + U @ state).
U @ state -> state
    The old state is added without U: the new state is tanh(E[token] + U @ state).
E[token] + U @ state -> U @ (E[token] + state)
E[token] + U @ state -> U @ E[token] + state
    Your U multiplies the embedding. It belongs to the old state: the new state is tanh(E[token] + U @ state).
E[token] + U @ state -> E[token]
    The old state does not reach the new one: U @ state is missing.
torch.tensor(tokens) -> torch.tensor(tokens[-1:])
torch.tensor(tokens) -> torch.tensor(token)
    You return the last token only. Collect all generated tokens in a list.
torch.tensor(tokens) -> torch.tensor(tokens + [eos] * (max_length - len(tokens)))
torch.tensor(tokens) -> torch.tensor(tokens + [0] * (max_length - len(tokens)))
    Your result always has max_length tokens, filled up after eos. Return the generated tokens only.
torch.tensor(tokens) -> torch.tensor(tokens)[:, None]
    Your result has the shape (generated, 1). Return a tensor of shape (generated,).
torch.tensor(tokens) -> torch.tensor(tokens)[None]
    Your result has the shape (1, generated). Return a tensor of shape (generated,).
"""

# Counts up 3, 4, 5, and ends with 2: E and V nearly transpose each other.
_STEPS = torch.zeros(6, 6)
for _token, _following in ((1, 3), (3, 4), (4, 5), (5, 2), (2, 2)):
    _STEPS[_token, _following] = 2.0

CASES = (
    dict(
        state=torch.zeros(6),
        E=_STEPS,
        U=torch.zeros(6, 6),
        V=torch.eye(6),
        bos=1,
        eos=2,
        max_length=6,
    ),
    dict(
        state=torch.zeros(6),
        E=_STEPS,
        U=torch.zeros(6, 6),
        V=torch.eye(6),
        bos=1,
        eos=2,
        max_length=3,
    ),
    dict(
        state=random_tensor(8, seed=5),
        E=random_tensor(7, 8, seed=6),
        U=random_tensor(8, 8, seed=7),
        V=random_tensor(7, 8, seed=8),
        bos=1,
        eos=2,
        max_length=9,
    ),
    dict(  # eos would be token 6: a loop that ignores max_length ends all the same
        state=random_tensor(8, seed=273),
        E=random_tensor(9, 8, seed=274),
        U=random_tensor(8, 8, seed=275),
        V=random_tensor(9, 8, seed=276),
        bos=1,
        eos=2,
        max_length=4,
    ),
)
HINTS = """
Three variables change in each step: the token that is read, the hidden state, and the list of tokens.
state = torch.tanh(E[token] + U @ state), then token = (V @ state).argmax().item().
while len(tokens) < max_length and token != eos: …; return torch.tensor(tokens).
"""
DIFFERENTIABLE = False
