"""Cross-attention between two sequences."""

import math

import torch

from course_lib.exercises.catalogue._shared import random_tensor, rounded_tensor
from course_lib.transformer.attention import scaled_dot_product_attention


def cross_attention(x, memory, W_q, W_k, W_v):
    q = x @ W_q.T  # (batch, query, d_head)
    k = memory @ W_k.T  # (batch, key, d_head)
    v = memory @ W_v.T  # (batch, key, d_head)
    scores = q @ k.mT / math.sqrt(q.shape[-1])  # (batch, query, key)
    return torch.softmax(scores, dim=-1) @ v  # (batch, query, d_head)


def reference(x, m, W_q, W_k, W_v):
    return scaled_dot_product_attention(x @ W_q.mT, m @ W_k.mT, m @ W_v.mT).output


SCALE = "/ math.sqrt(q.shape[-1])"
MISTAKES = rf"""
= memory => = x
    Keys and values come from x, so memory makes no difference: that is self-attention. Project them from memory.
k = memory -> k = x
    Your keys come from x. Keys and values belong together: both are projections of memory.
v = memory -> v = x
    Your values come from x. Keys and values belong together: both are projections of memory.
q = x -> q = memory
    Your queries come from memory, so x makes no difference: that is self-attention of memory. Project the queries
    from x.
q = x -> q = memory
+ = memory => = x
    Here memory attends to x. Exchange the two: queries from x, keys and values from memory.
.T =>
W_q.T -> W_q
W_k.T -> W_k
W_v.T -> W_v
    You multiply by W without transposing it. nn.Linear stores W as (d_head, d_in), so use x @ W.T. With a square W
    there is no error message.
{SCALE} ->
    The scale is missing. Divide the scores by √d_head.
math.sqrt(q.shape[-1]) -> math.sqrt(x.shape[-1])
    You scale by the dimension of x before the projection. The dot product is a sum of d_head terms, one per component
    of the projected vectors.
math.sqrt(q.shape[-1]) -> math.sqrt(memory.shape[-1])
    You scale by the dimension of memory before the projection. The dot product is a sum of d_head terms, one per
    component of the projected vectors.
math.sqrt(q.shape[-1]) -> math.sqrt(k.shape[1])
    You scale by the number of keys. The dot product is a sum of d_head terms, one per component of the projected
    vectors.
math.sqrt(q.shape[-1]) -> math.sqrt(q.shape[1])
    You scale by the number of queries. The dot product is a sum of d_head terms, one per component of the projected
    vectors.
math.sqrt(q.shape[-1]) -> math.sqrt(len(q))
    You scale by the batch size. The dot product is a sum of d_head terms, one per component of the projected vectors.
math.sqrt(q.shape[-1]) -> q.shape[-1]
    You divide by d_head. Divide by √d_head.
/ math.sqrt -> * math.sqrt
    You multiply by √d_head. Divide, so that the variance of the scores does not grow with the dimension.
{SCALE} ->
+ @ v -> @ v {SCALE}
    You scale after the softmax: the weights of a row sum to 1/√d_head. Scale the scores.
scores = q -> scores = -q
    The sign of your scores is wrong: the most similar key gets the smallest weight.
dim=-1 -> dim=-2
    Your softmax runs over the queries. The weights of one query sum to 1 over the keys: dim=-1.
dim=-1 -> dim=0
    Your softmax runs over the batch. The weights of one query sum to 1 over the keys: dim=-1.
= memory => = x
+ {SCALE} ->
= memory => = x
+ math.sqrt(q.shape[-1]) -> q.shape[-1]
    There are two mistakes. Keys and values come from memory, not from x. And the scores must be divided by √d_head.
= memory => = x
+ dim=-1 -> dim=-2
    There are two mistakes. Keys and values come from memory, not from x. And your softmax runs over the queries; it
    must run over the keys: dim=-1.
q = x -> q = memory
+ = memory => = x
+ {SCALE} ->
q = x -> q = memory
+ = memory => = x
+ math.sqrt(q.shape[-1]) -> q.shape[-1]
    There are two mistakes. Queries come from x, keys and values from memory. And the scores must be divided by
    √d_head.
q = x -> q = memory
+ = memory => = x
+ dim=-1 -> dim=-2
    There are two mistakes. Queries come from x, keys and values from memory. And your softmax runs over the queries;
    it must run over the keys: dim=-1.
q @ k.mT -> k @ q.mT
    Your scores are k @ q.mT, (key, query). Each row belongs to a query: q @ k.mT.
memory @ W_v.T -> memory
    You average memory itself. The values are its projection by W_v.
x @ W_q.T -> x
    The queries are not projected: W_q is not used.
memory @ W_k.T -> memory
    The keys are not projected: W_k is not used.
x @ W_q.T -> x
+ memory @ W_k.T -> memory
+ memory @ W_v.T -> memory
    Nothing is projected: W_q, W_k and W_v are not used.
W_k.T -> W_v.T
+ W_v.T -> W_k.T
    W_k and W_v are exchanged: W_k projects the keys, which are compared with the queries, W_v the values, which are
    averaged.
W_q.T -> W_k.T
+ W_k.T -> W_q.T
    W_q and W_k are exchanged: W_q projects the queries, from x, and W_k the keys, from memory.
W_q.T -> W_v.T
+ W_v.T -> W_q.T
    W_q and W_v are exchanged: W_q projects the queries, from x, and W_v the values, from memory.
W_v.T -> W_k.T
    You average the keys: W_v is not used. The values are memory @ W_v.T.
W_k.T -> W_v.T
    You compare the queries with the values: W_k is not used. The keys are memory @ W_k.T.
W_k.T -> W_q.T
    You project the keys with W_q. They have a matrix of their own: memory @ W_k.T.
W_q.T -> W_k.T
    You project the queries with W_k. They have a matrix of their own: x @ W_q.T.
W_v.T -> W_q.T
    You project the values with W_q. They have a matrix of their own: memory @ W_v.T.
W_q.T -> W_v.T
    You project the queries with W_v. They have a matrix of their own: x @ W_q.T.
W_k.T -> W_q.T
+ W_v.T -> W_q.T
    You use W_q for all three projections. Keys and values have their own, W_k and W_v.
q = x @ W_q -> q = memory @ W_k
+ k = memory @ W_k -> k = x @ W_q
+ v = memory -> v = x
q = x @ W_q -> q = memory @ W_v
+ k = memory -> k = x
+ v = memory @ W_v -> v = x @ W_q
    Here memory attends to x, and the matrices are in another order. Queries are x @ W_q.T; keys and values are memory
    @ W_k.T and memory @ W_v.T.
torch.softmax(scores, dim=-1) -> scores
    You use the scores as weights. Apply a softmax over the keys first.
torch.softmax(scores, dim=-1) -> torch.sigmoid(scores)
    A sigmoid gives each key a weight on its own. The weights of a query must sum to 1: use a softmax over the keys.
@ v -> @ v + q
    You add the projected queries to the output. There is no residual connection in this exercise.
@ v -> @ v + x
    You add x to the output. There is no residual connection in this exercise.
@ v ->
    You return the weights. Return the output: weights @ v.
softmax(scores -> softmax(scores.masked_fill(~torch.ones_like(scores, dtype=torch.bool).tril(), -torch.inf)
    Your mask is causal. In cross-attention every query may attend to all of memory.
k = memory -> memory = torch.cat([x, memory], dim=1)\nk = memory
memory @ W_k.T -> torch.cat([x @ W_k.T, memory @ W_k.T], dim=1)
+ memory @ W_v.T -> torch.cat([x @ W_v.T, memory @ W_v.T], dim=1)
    Your queries attend to x and memory together. In cross-attention, keys and values come from memory alone.
q @ k.mT {SCALE} -> q / q.norm(dim=-1, keepdim=True) @ (k / k.norm(dim=-1, keepdim=True)).mT
    You divide by the norms, so your scores are cosine similarities. Divide the dot products by √d_head.
"""

CASES = (
    dict(
        x=rounded_tensor(1, 2, 2, seed=6),
        memory=rounded_tensor(1, 3, 2, seed=7),
        W_q=rounded_tensor(2, 2, seed=8),
        W_k=rounded_tensor(2, 2, seed=9),
        W_v=rounded_tensor(2, 2, seed=10),
    ),
    dict(  # all dimensions are equal
        x=rounded_tensor(1, 3, 3, seed=31),
        memory=rounded_tensor(1, 3, 3, seed=32),
        W_q=rounded_tensor(3, 3, seed=33),
        W_k=rounded_tensor(3, 3, seed=34),
        W_v=rounded_tensor(3, 3, seed=35),
    ),
    dict(  # as many queries as keys, and one dimension: no mistake raises an error
        x=random_tensor(2, 3, 4, seed=11),
        memory=random_tensor(2, 3, 4, seed=12),
        W_q=random_tensor(5, 4, seed=13),
        W_k=random_tensor(5, 4, seed=14),
        W_v=random_tensor(5, 4, seed=15),
    ),
    dict(
        x=random_tensor(2, 4, 3, seed=16),
        memory=random_tensor(2, 6, 5, seed=17),
        W_q=random_tensor(7, 3, seed=18),
        W_k=random_tensor(7, 5, seed=19),
        W_v=random_tensor(7, 5, seed=20),
    ),
)
HINTS = """
Which sequence attends? Project the queries from it. Which is attended to? Project keys and values from it.
W is (d_head, d_in), as nn.Linear stores it: x @ W.T is (batch, length, d_head).
q from x, k and v from memory, then softmax(q @ k.mT / math.sqrt(d_head)) @ v.
"""
