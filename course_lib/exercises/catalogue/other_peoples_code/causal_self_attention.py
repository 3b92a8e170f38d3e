"""Causal multi-head self-attention with packed weights."""

import math

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.transformer.attention import scaled_dot_product_attention
from course_lib.transformer.masks import causal_mask
from course_lib.transformer.multihead import merge_heads, split_heads


def causal_self_attention(x, W, W_o, num_heads):
    batch, length, d_model = x.shape
    d_head = d_model // num_heads
    q, k, v = (
        part.view(batch, length, num_heads, d_head).transpose(1, 2)
        for part in (x @ W.T).chunk(3, dim=-1)
    )  # (batch, heads, length, d_head) each
    scores = q @ k.mT / math.sqrt(d_head)  # (batch, heads, query, key)
    allowed = torch.ones(length, length, dtype=torch.bool).tril()
    weights = torch.softmax(scores.masked_fill(~allowed, -torch.inf), dim=-1)
    heads = weights @ v  # (batch, heads, query, d_head)
    return heads.transpose(1, 2).reshape(batch, length, d_model) @ W_o.T


def reference(x, W, W_o, num_heads):
    q, k, v = (split_heads(x @ part.mT, num_heads) for part in W.chunk(3))
    return (
        merge_heads(scaled_dot_product_attention(q, k, v, causal_mask(x.shape[1])).output) @ W_o.mT
    )


SPLIT = "part.view(batch, length, num_heads, d_head).transpose(1, 2)"
PARTS = "(x @ W.T).chunk(3, dim=-1)"
SOFTMAX = "torch.softmax(scores.masked_fill(~allowed, -torch.inf), dim=-1)"
MISTAKES = f"""
scores.masked_fill(~allowed, -torch.inf) -> scores
    The causal mask is missing: each position attends to later ones.
.tril() -> .triu()
    Your mask is the upper triangle: each position attends to itself and to the future.
.tril() -> .tril(-1)
+ {SOFTMAX} -> {SOFTMAX}.nan_to_num()
.tril() -> .tril(-1)
+ -torch.inf -> -1e9
    Your mask excludes the diagonal: a position attends to itself too.
q, k, v = -> k, q, v =
    Queries and keys are exchanged: the blocks of W are queries, keys, values.
q, k, v = -> q, v, k =
    Keys and values are exchanged: the blocks of W are queries, keys, values.
{SPLIT} -> part.transpose(1, 2)
+ {PARTS} -> (x @ W.T).view(batch, length, num_heads, 3, d_head).unbind(dim=3)
    You read W as q, k and v of head 0, then of head 1. It holds the queries of all heads first, then all keys, then
    all values.
math.sqrt(d_head) -> math.sqrt(d_model)
    You scale by √d_model. A score is a sum over the components of one head: √d_head.
math.sqrt(d_head) -> d_head
    You divide by d_head. Divide by its square root.
/ math.sqrt(d_head) ->
    The scale is missing. Divide the scores by √d_head.
@ W_o.T ->
    W_o is missing. Without it the heads are concatenated and not mixed.
W_o.T -> W_o
    W_o is (out, in), as nn.Linear stores it: … @ W_o.T. No error is raised, since it is square.
{SPLIT} -> part.reshape(batch, num_heads, length, d_head)
    You split by a view alone: the shape is right, but a head gets parts of other positions. Cut the last axis in two,
    then transpose(1, 2).
heads.transpose(1, 2).reshape -> heads.reshape
    You merge without transposing back: the shape is right, but a row holds several positions of one head.
{SPLIT} -> part.reshape(batch, num_heads, length, d_head)
+ heads.transpose(1, 2).reshape -> heads.reshape
    You split and merge by views alone. The round trip returns x, but in between each head attends among parts of
    other positions. Transpose after the cut, and back before the merge.
{SPLIT} -> part.view(batch, length, d_head, num_heads).permute(0, 3, 1, 2)
    Your heads get every num_heads-th component. Each head gets d_head consecutive ones: view(…, num_heads, d_head).
d_head = d_model // num_heads -> num_heads, d_head = 1, d_model
    num_heads makes no difference: this is one head of dimension d_model.
~allowed -> allowed
    The mask is inverted: you mask the lower triangle, so each position attends only to later ones, and the last one
    has no key left and gets NaN. Mask what is above the diagonal.
{SOFTMAX} -> torch.softmax(scores.masked_fill(allowed, -torch.inf), dim=-1).nan_to_num()
    The mask is inverted: you mask the lower triangle, so each position attends only to later ones. Mask what is above
    the diagonal.
~allowed, -torch.inf -> allowed, -1e9
    The mask is inverted: you fill the scores of the lower triangle. Fill those above the diagonal.
.tril() -> .tril(-1)
    Your mask excludes the diagonal, so the first position has no key left and gets NaN. A position attends to itself
    too.
.tril() -> .tril(1)
    Off by one: each position attends to the one after it.
-torch.inf), dim=-1) -> -torch.inf), dim=-2)
    Your softmax runs over the queries. Each query has a distribution over the keys: dim=-1.
{SOFTMAX} -> torch.softmax(scores, dim=-1) * allowed
    You mask after the softmax, so the weights of a row no longer sum to 1. Set the scores to -inf before it.
-torch.inf) -> 0.0)
    A score of 0 masks nothing: exp(0) is 1. Masked scores must be -inf.
q, k, v = -> v, k, q =
    Queries and values are exchanged: the blocks of W are queries, keys, values.
math.sqrt(d_head) -> math.sqrt(num_heads)
    You scale by the root of the number of heads. A score is a sum over the components of one head: √d_head.
q, k, v = -> k, v, q =
q, k, v = -> v, q, k =
    Queries, keys and values are in another order: the blocks of W are queries, keys, values.
scores.masked_fill(~allowed, -torch.inf) -> scores + ~allowed * -torch.inf
    Everything is NaN. 0 · (-inf) is NaN, and so is a softmax over a row that is masked completely. Set the scores
    above the diagonal to -inf with masked_fill.
{PARTS} -> ((x @ W.T)[..., i::3] for i in range(3))
    You take every third row of W for the queries. The queries are the first d_model rows.
x @ W.T -> x @ W
    W is (3 · d_model, d_model), (out, in) as nn.Linear stores it: x @ W.T.
heads.transpose(1, 2).reshape -> heads.permute(0, 2, 3, 1).reshape
    You merge component by component, so the heads alternate in the concatenation. Keep the d_head components of a
    head together.
heads.transpose(1, 2).reshape -> heads.flip(1).transpose(1, 2).reshape
    You concatenate the heads from the last to the first. Head 0 comes first.
math.sqrt(d_head) -> math.sqrt(length)
    You scale by the root of the length. A score is a sum over the components of one head: √d_head.
{SOFTMAX} -> scores.masked_fill(~allowed, 0.0)
    The softmax is missing: the scores are not weights yet.
length, length, dtype=torch.bool).tril() -> length, length, dtype=torch.bool).tril().flip(1)
    Your triangle is mirrored. Row i of a causal mask allows the keys 0, …, i.
weights @ v -> weights.mT @ v
    Your weights are transposed before they average the values. Row i of the weights belongs to query i.
-torch.inf), dim=-1) -> -torch.inf), dim=1)
    Your softmax runs over the heads. Each query has a distribution over the keys: dim=-1.
(x @ W.T).chunk(3, dim=-1) -> (x @ w for w in W.chunk(3))
    You multiply by the blocks of W as they are. W is used as x @ W.T, as nn.Linear does: x @ w.T for each block.
"""

CASES = (
    dict(
        x=torch.tensor([[[1.0, 0.0, 2.0, 1.0], [0.0, 1.0, 1.0, -1.0], [2.0, 1.0, 0.0, 1.0]]]),
        W=torch.tensor([[(3 * i + 5 * j + i * j) % 5 - 2.0 for j in range(4)] for i in range(12)]),
        W_o=torch.tensor(
            [
                [1.0, 0.0, 1.0, 0.0],
                [0.0, 1.0, 0.0, -1.0],
                [2.0, 0.0, 1.0, 1.0],
                [0.0, 1.0, 1.0, 0.0],
            ]
        ),
        num_heads=2,
    ),
    dict(
        x=random_tensor(2, 5, 12, seed=17),
        W=random_tensor(36, 12, seed=18) / math.sqrt(12),
        W_o=random_tensor(12, 12, seed=19) / math.sqrt(12),
        num_heads=3,
    ),
)
HINTS = """
You have all the parts: project, split, attend, merge, project. Write the shape behind each line.
q, k, v = (x @ W.T).chunk(3, dim=-1), then split each into heads.
Divide the scores by √d_head, set those above the diagonal to -inf, softmax over the keys, @ v, then transpose(1, 2),
    reshape, @ W_o.T.
"""
