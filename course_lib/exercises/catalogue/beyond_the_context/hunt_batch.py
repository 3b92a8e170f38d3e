"""Bug hunt: a batch of prompts."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.transformer.masks import masked_softmax


def batch_weights(scores, tokens, pad):
    real = tokens != pad  # (batch, length)
    causal = torch.ones_like(scores, dtype=torch.bool).tril()
    allowed = causal & real[:, None, :]  # (batch, query, key): no padding among the keys
    weights = scores.masked_fill(~allowed, -torch.inf).softmax(dim=-1)
    return weights.nan_to_num(0.0)  # fully masked rows


def reference(scores, tokens, pad):
    rows = torch.arange(scores.shape[-1])
    return masked_softmax(scores, (rows[:, None] >= rows) & (tokens != pad)[:, None, :])


BUGS = """
real[:, None, :] -> real[:, :, None]
    the mask hides padded queries, but real tokens still attend to padded keys
dim=-1 -> dim=1
    the rows do not sum to 1: the softmax runs over the queries
"""
MASKED = "scores.masked_fill(~allowed, -torch.inf)"
MISTAKES = f"""
real[:, None, :] -> ~real[:, None, :]
    Only the padding can be attended to.
causal & real[:, None, :] -> causal
    Padding is not masked at all: the real tokens attend to it.
{MASKED} -> scores
.tril() ->
+ causal & real[:, None, :] -> causal
    Nothing is masked: every token attends to later tokens and to padding.
.tril() ->
+ real[:, None, :] -> ~real[:, None, :]
    The causal mask was right, and it is gone, and only the padding can be attended to.
dim=-1 -> dim=0
    The rows do not sum to 1: the softmax runs over the texts of the batch.
.tril() ->
    The causal mask was right, and it is gone: a token attends to those after it.
.tril() -> .triu()
    The causal mask was right, and it is inverted: a token attends to those after it, not to those before.
.tril() -> .tril(-1)
    The causal mask was right. Yours hides a token from itself.
.tril() -> .tril(1)
    The causal mask was right. In yours a token attends to the next one as well.
~allowed -> allowed
    masked_fill fills where its argument is True: you hide what a token may attend to.
weights.nan_to_num(0.0) -> weights
    A row that may attend to nothing is NaN: 0 / 0 in the softmax. It must be zeros, so nan_to_num was right.
-torch.inf -> torch.finfo(scores.dtype).min
    A row that may attend to nothing must be all zeros. Yours is uniform, over padding too.
nan_to_num(0.0) -> nan_to_num(1.0)
    A row that may attend to nothing must be all zeros.
causal & real -> causal | real
    A key must be real *and* not later than the query. Yours needs one of the two.
causal & real[:, None, :] -> causal
+ weights.nan_to_num(0.0) -> weights * real[:, None, :]
    The padding is set to zero after the softmax, so the weights of a real token no longer sum to 1. Mask the scores.
{MASKED}.softmax(dim=-1) -> scores.softmax(dim=-1) * allowed
    The masks are applied after the softmax, so the weights of a real token no longer sum to 1. Mask the scores.
.tril() ->
+ weights.nan_to_num(0.0) -> weights.nan_to_num(0.0).tril()
    The causal mask is applied after the softmax, so the weights of a token no longer sum to 1. Mask the scores.
{MASKED} -> (scores * allowed)
    A score of 0 still gets weight, since exp(0) = 1. Masked scores must be -inf.
real[:, None, :] -> (real[:, :, None] == real[:, None, :])
    Padded queries attend to padding. They may attend to nothing, so their rows must be zeros.
"""

CASES = (
    dict(
        scores=torch.tensor([[[1.0, 2, 0], [0, 1, 3], [2, 0, 1]]]),
        tokens=torch.tensor([[0, 5, 6]]),
        pad=0,
    ),
    dict(
        scores=random_tensor(2, 4, 4, seed=1),
        tokens=torch.tensor([[9, 9, 3, 1], [2, 7, 4, 4]]),
        pad=9,
    ),
    dict(
        scores=random_tensor(3, 5, 5, seed=2),
        tokens=torch.tensor([[0, 0, 0, 1, 2], [0, 3, 4, 5, 6], [1, 2, 3, 4, 5]]),
        pad=0,
    ),
)
HINTS = """
Sum each row of the result. What must the sum be for a real token?
Which tokens may not be attended *to*? The last axis of scores is the key.
real[:, None, :] masks keys; the softmax runs over them too, dim=-1.
"""
