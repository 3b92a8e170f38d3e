"""Bug hunt: five bugs in one multi-head attention."""

import math
from dataclasses import replace

import torch

from course_lib.exercises.catalogue._shared import random_tensor, rounded_tensor
from course_lib.exercises.edits import bugs
from course_lib.transformer.attention import scaled_dot_product_attention
from course_lib.transformer.multihead import merge_heads, split_heads


def multi_head(query, key, value, mask, W_q, W_k, W_v, W_o, num_heads):
    batch, query_length, d_model = query.shape
    _, key_length, _ = key.shape  # the batch is the first axis
    d_head = d_model // num_heads

    def attention(query, key, value, mask):
        scores = query @ key.mT / math.sqrt(query.shape[-1])  # (batch, heads, query, key)
        fully_masked = ~mask.any(dim=-1, keepdim=True)  # no key allowed
        scores = scores.masked_fill(~mask, -torch.inf).masked_fill(fully_masked, 0.0)
        return torch.softmax(scores, dim=-1).masked_fill(fully_masked, 0.0) @ value

    q = (query @ W_q.T).view(batch, query_length, num_heads, d_head).transpose(1, 2)
    k = (key @ W_k.T).view(batch, key_length, num_heads, d_head).transpose(1, 2)
    v = (value @ W_v.T).view(batch, key_length, num_heads, d_head).transpose(1, 2)
    heads = attention(q, k, v, mask[:, None])  # the same mask for all heads
    merged = heads.transpose(1, 2).reshape(batch, query_length, d_model)
    return merged @ W_o.T


def reference(query, key, value, mask, W_q, W_k, W_v, W_o, num_heads):
    inputs = (query, W_q), (key, W_k), (value, W_v)
    q, k, v = (split_heads(x @ W.mT, num_heads) for x, W in inputs)
    return merge_heads(scaled_dot_product_attention(q, k, v, mask[:, None]).output) @ W_o.mT


def _matrices(size, seed):
    matrices = (random_tensor(4, size, size, seed=seed) / math.sqrt(size)).round(decimals=1)
    return dict(zip(("W_q", "W_k", "W_v", "W_o"), matrices, strict=True))


KEY_OR_VALUE = "the output does not depend on key, on value, or on both"
BUGS = f"""
_, key_length, _ = key.shape -> key_length, _, _ = key.shape
    there must be as many sequences in the batch as keys, or an error is raised
(key @ W_k.T) -> (query @ W_k.T)
+ (value @ W_v.T) -> (query @ W_v.T)
(key @ W_k.T) -> (query @ W_k.T)
(value @ W_v.T) -> (query @ W_v.T)
(value @ W_v.T) -> (key @ W_v.T)
    {KEY_OR_VALUE}
mask[:, None]) -> mask[:, None] | True)
mask[:, None]) -> ~mask[:, None])
    queries attend to masked keys
.masked_fill(fully_masked, 0.0) =>
|| -torch.inf -> -1e9
    a fully masked query does not get zeros
merged @ W_o.T -> heads @ W_o.T
    the output has four axes with one head, and with more heads an error is raised
"""


def _unused(edits):
    """The symptom of what is left of the second bug: which input the output does not depend on."""
    wrong = {wrong for _, wrong, _ in edits}
    if {"(query @ W_k.T)", "(query @ W_v.T)"} <= wrong:
        return "the output depends neither on key nor on value"
    return f"the output does not depend on {'key' if '(query @ W_k.T)' in wrong else 'value'}"


LEFT = tuple(
    replace(left, message=left.message.replace(KEY_OR_VALUE, _unused(left.edits)))
    for left in bugs(multi_head, BUGS)[1]
    if "| True" not in left.name or (".masked_fill" in left.name and "-1e9" not in left.name)
)
MISTAKES = """
mask[:, None]) -> mask)
|| .reshape(batch, query_length, d_model) -> .flatten(-2)
    Your mask has no axis for the heads, or has it in front, so its batch axis lines up with the heads. mask[:, None]
    is (batch, 1, query, key).
heads.transpose(1, 2).reshape -> heads.reshape
    You merge without transposing back, so a row holds several positions of one head.
softmax(scores, dim=-1) -> softmax(scores, dim=-2)
|| -torch.inf -> -1e9 ; -torch.inf -> -1e9 + .masked_fill(fully_masked, 0.0) =>
    Your softmax runs over the queries: each query has a distribution over the keys, dim=-1.
/ math.sqrt(query.shape[-1]) ->
    The scale is missing now: divide the scores by √d_head.
(key @ W_k.T) -> (value @ W_k.T)
+ (value @ W_v.T) -> (key @ W_v.T)
    Keys and values are exchanged: W_k projects key, W_v projects value.
W_o.T -> W_o
    W_o is used as x @ W_o.T, like the other matrices.
math.sqrt(query.shape[-1]) -> math.sqrt(d_model)
    You scale by √d_model: a score is a sum over the components of one head, √d_head.
(key @ W_k.T) -> (value @ W_k.T)
    The keys are projected from value now: W_k projects key.
.view(batch, query_length, num_heads, d_head).transpose(1, 2) -> .view(batch, num_heads, query_length, d_head)
+ .view(batch, key_length, num_heads, d_head).transpose(1, 2) => .view(batch, num_heads, key_length, d_head)
    You split by a view alone, so a head gets parts of other positions: transpose(1, 2).
.any(dim=-1, keepdim=True) -> .all(dim=-1, keepdim=True)
    Every query with a masked key counts as fully masked: it is one without any key left.
~mask, -torch.inf).masked_fill(fully_masked, 0.0) -> ~mask, 0.0)
    A score of 0 masks nothing: exp(0) is 1. Masked scores must be -inf.
"""

CASES = (
    dict(  # as many sequences as queries and as keys, and one head: nothing raises
        query=torch.tensor([[[3.0], [0.5]], [[2.0], [-1.0]]]),
        key=torch.tensor([[[0.5], [-1.0]], [[-1.0], [3.0]]]),
        value=torch.tensor([[[-1.0], [0.5]], [[3.0], [2.0]]]),
        mask=torch.tensor([[[True, False], [False, False]], [[True, True], [False, True]]]),
        W_q=torch.tensor([[1.0]]),
        W_k=torch.tensor([[2.0]]),
        W_v=torch.tensor([[3.0]]),
        W_o=torch.tensor([[2.0]]),
        num_heads=1,
    ),
    dict(  # more sequences than keys
        query=rounded_tensor(3, 2, 2, seed=25),
        key=rounded_tensor(3, 2, 2, seed=26),
        value=rounded_tensor(3, 2, 2, seed=27),
        mask=torch.ones(3, 2, 2, dtype=torch.bool),
        **_matrices(2, seed=28),
        num_heads=1,
    ),
    dict(
        query=rounded_tensor(5, 3, 8, seed=29),
        key=rounded_tensor(5, 6, 8, seed=30),
        value=rounded_tensor(5, 6, 8, seed=31),
        mask=(torch.arange(6) < torch.tensor([6, 2, 0, 5, 3])[:, None, None]).repeat(1, 3, 1),
        **_matrices(8, seed=32),
        num_heads=2,
    ),
)
HINTS = """
Make all axes differ: 5 sequences, 3 queries, 6 keys, 2 heads. Which line raises an error?
Change key, then value, then mask, and see whether the output changes. Print its shape. Then mask every key for one
    query.
Check each line: which axis of key is its length? What is projected? Which mask is passed on? Where is the result of
    the view used? What is a softmax over nothing but -inf?
"""
