"""Bug hunt: weights of a cross-attention."""

import math

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.transformer.masks import masked_softmax


def cross_weights(x, memory, W_q, W_k, real):
    q = x @ W_q.T  # (batch, target, d_head): queries from the decoder
    k = memory @ W_k.T  # (batch, source, d_head): keys from memory
    scores = q @ k.mT / math.sqrt(q.shape[-1])  # (batch, target, source)
    scores = scores.masked_fill(~real[:, None, :], -torch.inf)
    return torch.softmax(scores, dim=-1)


def reference(x, memory, W_q, W_k, real):
    return masked_softmax(
        (x @ W_q.mT) @ (memory @ W_k.mT).mT / math.sqrt(len(W_q)), real[:, None, :]
    )


GIVEN = "x @ W_q -> memory @ W_q\n+ memory @ W_k -> x @ W_k"
MASKED = "scores.masked_fill(~real[:, None, :], -torch.inf)"
WEIGHTS = "torch.softmax(scores, dim=-1)"
MISTAKES = f"""
{GIVEN}
+ {MASKED} -> scores
    You removed the mask, and the error with it, but the queries still come from memory. They come from x.
{GIVEN}
+ ~real[:, None, :], -torch.inf -> ~real[:, :, None], -torch.inf
{GIVEN}
+ ~real[:, None, :], -torch.inf -> ~real[:, :, None], -1e9
    Your mask fits now, (batch, source, 1), but it masks queries, and these still come from memory. The queries come
    from x.
{GIVEN}
+ {MASKED} -> scores
+ {WEIGHTS} -> {WEIGHTS}.mT
{GIVEN}
+ {MASKED} -> scores
+ {WEIGHTS} -> {WEIGHTS}.mT * real[:, None, :]
    You transpose the weights at the end. Their shape is right now, but each column sums to 1, not each row, because
    the queries still come from memory.
{GIVEN}
+ {WEIGHTS} -> {WEIGHTS}.mT
    You transpose the weights at the end. That changes their shape and not the roles: the queries still come from
    memory, and the mask lies along the target.
{GIVEN}
+ softmax(scores, dim=-1) -> softmax(scores, dim=-2)
    You changed the axis of the softmax. It was right; but the queries still come from memory. They come from x.
x @ W_q -> x @ W_k
+ memory @ W_k -> memory @ W_q
    Memory is multiplied by W_q and x by W_k. W_q makes queries: x @ W_q.T.
x @ W_q -> memory @ W_k
+ memory @ W_k -> x @ W_q
    You exchanged the matrices. The inputs are exchanged: queries come from x, keys from memory.
x @ W_q -> memory @ W_q
    Keys and queries both come from memory now: this is self-attention over the source.
memory @ W_k -> x @ W_k
    Queries and keys both come from x now: this is self-attention over the target.
memory @ W_k -> memory @ W_q
    The keys are projected with W_q too. W_k makes keys: memory @ W_k.T.
x @ W_q -> x @ W_k
    The queries are projected with W_k too. W_q makes queries: x @ W_q.T.
W_q.T -> W_q
    W_q is not transposed any more. That was right: x @ W_q.T.
W_k.T -> W_k
    W_k is not transposed any more. That was right: memory @ W_k.T.
{WEIGHTS} -> {WEIGHTS}.mT
    You transpose the weights at the end. With queries from x they are (batch, target, source) already.
{WEIGHTS} -> scores
    You return the scores. The weights are their softmax over the keys.
softmax(scores, dim=-1) -> softmax(scores, dim=-2)
    Your softmax runs over the queries. It was right: each row must sum to 1, dim=-1.
softmax(scores, dim=-1) -> softmax(scores, dim=0)
    Your softmax runs over the batch. It was right: each row must sum to 1, dim=-1.
{MASKED} -> scores
    The mask was right, and it is gone: padding gets weight.
{MASKED} -> scores
+ {WEIGHTS} -> {WEIGHTS} * real[:, None, :]
    You mask after the softmax, so the rows no longer sum to 1. Mask the scores, as before.
{WEIGHTS} -> {WEIGHTS} * real[:, :, None]
    You set rows to 0 at the end. real belongs to the source, and the rows belong to the target.
~real -> real
~real[:, None, :], -torch.inf -> real[:, None, :], -1e9
    The mask is inverted: real is True where there is no padding.
real[:, None, :] -> real[:, :, None]
~real[:, None, :], -torch.inf -> ~real[:, :, None], -1e9
    Your mask lies along the queries: (batch, source, 1). Padding is among the keys: real[:, None, :].
real[:, None, :] -> real
    real is (batch, source), so its first axis meets the target. Give it an axis of queries, as before: real[:, None,
    :].
-torch.inf -> 0.0
    A score of 0 masks nothing: exp(0) is 1. Masked scores must be -inf.
/ math.sqrt(q.shape[-1]) ->
    The scale was right, and it is missing now: divide the scores by √d_head.
/ math.sqrt(q.shape[-1]) -> / q.shape[-1]
    You divide the scores by d_head. The scale was right: √d_head.
/ math.sqrt(q.shape[-1]) -> * math.sqrt(q.shape[-1])
    You multiply the scores by √d_head. Divide, as before.
q.shape[-1] -> q.shape[1]
q.shape[-1] -> k.shape[1]
    You scale by the number of tokens. A score is a sum over the components of q: √q.shape[-1], as before.
q.shape[-1] -> x.shape[-1]
    You scale by the dimension of x. A score is a sum over the components of q: √q.shape[-1], as before.
"""

CASES = (
    dict(  # as many tokens in the target as in the source: no error is raised
        x=torch.tensor([[[1.0, 0.0], [0.0, 1.0]]]),
        memory=torch.tensor([[[0.0, 0.0], [2.0, 0.0]]]),
        W_q=torch.eye(2),
        W_k=torch.eye(2),
        real=torch.tensor([[True, True]]),
    ),
    dict(
        x=random_tensor(2, 3, 3, seed=37),
        memory=random_tensor(2, 3, 3, seed=38),
        W_q=random_tensor(4, 3, seed=39),
        W_k=random_tensor(4, 3, seed=40),
        real=torch.tensor([[True, True, True], [True, False, False]]),
    ),
    dict(
        x=random_tensor(2, 3, 4, seed=41),
        memory=random_tensor(2, 5, 4, seed=42),
        W_q=random_tensor(6, 4, seed=43),
        W_k=random_tensor(6, 4, seed=44),
        real=torch.tensor([[True] * 4 + [False], [True, True, False, False, False]]),
    ),
)
HINTS = """
Give the target 3 tokens and the source 5. Which line raises an error, and with which shapes?
Each row of the weights belongs to one target position. What does row 0 depend on?
q = x @ W_q.T and k = memory @ W_k.T: then the weights are (batch, target, source).
"""
