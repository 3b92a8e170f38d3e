"""The rank of a token by depth."""

import itertools

import torch
import torch.nn.functional as F

from course_lib.exercises.catalogue._shared import random_tensor


def lens_rank(stream, gain, E, token):
    root = (stream.square().mean(dim=-1, keepdim=True) + 1e-5).sqrt()  # (depth, 1)
    logits = (stream / root * gain) @ E.T  # (depth, vocabulary)
    return (logits > logits[:, token, None]).sum(dim=-1)  # (depth,)


def reference(stream, gain, E, token):
    """The place in the sorted logits before which all are larger, in float64."""
    logits = F.rms_norm(stream.double(), gain.shape, gain.double(), eps=1e-5) @ E.double().T
    return torch.searchsorted((-logits).sort(dim=-1).values, -logits[:, token, None])[:, 0]


def _case(depth, d, vocabulary, token, seed):
    # A row of E adds or subtracts two components, times a power of two, so a logit has the same digits however it is computed:
    # in `logits > normal @ E[token]` the token does not count itself.
    pairs = [
        one + sign * other
        for one, other in itertools.combinations(torch.eye(d), 2)
        for sign in (-1, 1)
    ]
    rows = torch.stack([sign * pair for pair in pairs for sign in (-1, 1)])
    generator = torch.Generator().manual_seed(seed + 2)
    order = torch.randperm(len(rows), generator=generator)
    sizes = 2.0 ** torch.randint(-1, 2, (vocabulary,), generator=generator)
    return dict(
        stream=2 * random_tensor(depth, d, seed=seed) + 1,
        gain=2 * random_tensor(d, seed=seed + 1).abs() + 0.1,
        E=rows[order[:vocabulary]] * sizes[:, None],
        token=token,
    )


RANK = "(logits > logits[:, token, None]).sum(dim=-1)"
MISTAKES = rf"""
{RANK} -> {RANK} + 1
    You count from 1. How many tokens have a larger logit? 0 where the token is the prediction.
logits > logits -> logits >= logits
    You count the token itself, and those with an equal logit. Only strictly larger logits count: > instead of >=.
{RANK} -> (logits >= logits[:, token, None]).sum(dim=-1) - 1
    You count the other tokens with an equal logit. Only strictly larger logits count.
{RANK} -> logits.argsort(dim=-1, descending=True).argsort(dim=-1)[:, token]
{RANK} -> len(E) - 1 - logits.argsort(dim=-1).argsort(dim=-1)[:, token]
    You take the place of the token in a sorted list. Tokens with an equal logit may stand before it there, and they
    do not count: count the strictly larger logits.
logits > logits -> logits < logits
    You count the tokens with a smaller logit. Count those with a larger one.
logits > logits -> logits <= logits
    You count the tokens whose logit is not larger. Count those with a larger one.
logits > logits[:, token, None] -> logits > 0
    You count the positive logits. Compare with the logit of `token` at the same depth.
logits[:, token, None] -> logits[-1, token]
    You compare every depth with the token's logit at the last one. Each row has its own: logits[:, token, None].
logits[:, token, None] -> logits[0, token]
    You compare every depth with the token's logit at the first one. Each row has its own: logits[:, token, None].
logits[:, token, None] -> logits[:, token]
    The logits of the token are (depth,), all logits (depth, vocabulary). Write logits[:, token, None], so that they
    broadcast along the vocabulary.
logits[:, token, None] -> logits[token]
    The first axis of the logits is the depth, so logits[token] is a depth. The token is a column: logits[:, token,
    None].
logits[:, token, None] -> logits.mean(dim=-1, keepdim=True)
    You compare with the mean logit. Compare with the logit of `token` at the same depth.
* gain ->
    The scale of the RMSNorm, `gain`, is missing, or is one number for all components. Each component is multiplied by
    its own: that changes the direction of the stream, and so the ranks.
* gain -> * (1 + gain)
    You multiply by 1 + gain, as Gemma's RMSNorm does. Here it is `gain` itself.
* gain -> * gain**2
    You multiply by `gain` twice.
* gain -> / gain
    You divide by `gain`. RMSNorm multiplies by it.
* gain -> + gain
    You add `gain`. RMSNorm multiplies by it.
root = -> stream = stream - stream.mean(dim=-1, keepdim=True)\nroot =
    You subtract the mean, as LayerNorm does. RMSNorm only divides by the root mean square.
mean(dim=-1, keepdim=True) -> mean(dim=0, keepdim=True)
    You take the mean square over the depths. Each vector is normalised by itself, over its components: dim=-1.
@ E.T -> @ (E / E.norm(dim=-1, keepdim=True)).T
    You normalise the rows of E. A logit is the dot product with the row as it is.
@ E.T -> @ E.T; logits = logits.abs()
    You compare absolute values. A very negative logit is a small one.
@ E.T -> @ E.T; logits = logits[-1:].expand(len(stream), -1)
    Every depth has the rank of the last one. Read each row of `stream`.
@ E.T -> @ E.T; logits = logits[:1].expand(len(stream), -1)
    Every depth has the rank of the first one. Read each row of `stream`.
{RANK} -> logits.argmax(dim=-1)
    These are the most probable tokens. Return the rank of the given `token`.
{RANK} -> logits.argsort(dim=-1, descending=True)[:, token]
    argsort gives the token at each rank, not the rank of each token. Count the larger logits instead.
{RANK} -> logits.argsort(dim=-1)[:, token]
    argsort gives the token at each rank, from the smallest logit on. Count the larger logits instead.
{RANK} -> logits.argsort(dim=-1).argsort(dim=-1)[:, token]
    You count from the smallest logit on. How many tokens have a larger one?
{RANK} -> (logits.argmax(dim=-1) != token).long()
    You say whether the token is the prediction. How many tokens have a larger logit?
.sum(dim=-1) -> .sum()
    This is the sum over all depths. Return one number for each.
.sum(dim=-1) -> .sum(dim=0)
    You count the depths for each token. Count the tokens at each depth: dim=-1.
.sum(dim=-1) -> .float().mean(dim=-1)
    This is the share of the vocabulary. Return the number of tokens.
.sum(dim=-1) -> .any(dim=-1)
    You say whether any token has a larger logit. How many have one?
.sum(dim=-1) ->
    These are the comparisons, one for each token. Count them: .sum(dim=-1).
{RANK} -> logits[:, token]
    These are the logits of the token. Count how many tokens have a larger one.
{RANK} -> logits.softmax(dim=-1)[:, token]
    These are the probabilities of the token. Count how many tokens have a larger one.
{RANK} -> logits.amax(dim=-1) - logits[:, token]
    This is how far the token's logit is below the largest. Count how many tokens have a larger one.
root = (stream.square() -> stream = stream.cumsum(dim=0); root = (stream.square()
    You add up the streams of all depths. Each row is the whole residual stream already, a sum of all that was written
    before.
"""

CASES = (
    dict(
        stream=torch.tensor([[3.0, 1.0], [1.0, 2.0]]),
        gain=torch.tensor([1.0, 2.0]),
        E=torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]),
        token=0,
    ),
    dict(  # three other tokens have the logit of the token
        stream=torch.tensor([[3.0, 1.0], [1.0, 2.0]]),
        gain=torch.tensor([1.0, 2.0]),
        E=torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [2.0, 0.0], [1.0, 0.0], [1.0, 0.0]]),
        token=2,
    ),
    _case(3, 4, 12, token=2, seed=1),
    _case(6, 5, 40, token=7, seed=5),
    _case(9, 8, 100, token=31, seed=11),
)
HINTS = """
Three steps: normalise each row of `stream`, multiply by E, compare with the logit of the token. A number by which all
    logits of a row are divided changes no comparison.
RMSNorm divides by the square root of the mean of the squares plus eps, then multiplies by `gain`.
(logits > logits[:, token, None]).sum(dim=-1).
"""
DIFFERENTIABLE = False
