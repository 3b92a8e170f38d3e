"""A decode step of grouped-query attention."""

import math

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.transformer.attention import scaled_dot_product_attention
from course_lib.transformer.multihead import merge_heads, split_heads


def decode_step(x, key, value, W_q, W_k, W_v, W_o):
    batch, kv_heads, _, d_head = key.shape
    num_heads = len(W_q) // d_head
    q = (x @ W_q.T).view(batch, num_heads, 1, d_head)
    k = torch.cat([key, (x @ W_k.T).view(batch, kv_heads, 1, d_head)], dim=2)
    v = torch.cat([value, (x @ W_v.T).view(batch, kv_heads, 1, d_head)], dim=2)
    group = num_heads // kv_heads  # query heads that share a KV head
    k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
    weights = torch.softmax(q @ k.mT / math.sqrt(d_head), dim=-1)
    return (weights @ v).view(batch, 1, -1) @ W_o.T  # (batch, 1, d_model)


def _append(cached, new):
    return torch.cat([cached, new], dim=-2)


def reference(x, key, value, W_q, W_k, W_v, W_o):
    kv_heads, d_head = key.shape[1], key.shape[-1]
    k = _append(key, split_heads(x @ W_k.mT, kv_heads))
    v = _append(value, split_heads(x @ W_v.mT, kv_heads))
    q = split_heads(x @ W_q.mT, len(W_q) // d_head)
    output = scaled_dot_product_attention(q, k, v, need_weights=False, enable_gqa=True).output
    return merge_heads(output) @ W_o.mT


def _case(batch, num_heads, kv_heads, past, d_head, seed):
    d_model, d_kv = num_heads * d_head, kv_heads * d_head

    def matrix(rows, columns, number):
        return random_tensor(rows, columns, seed=seed + number) / math.sqrt(columns)

    return dict(
        x=random_tensor(batch, 1, d_model, seed=seed),
        key=random_tensor(batch, kv_heads, past, d_head, seed=seed + 1),
        value=random_tensor(batch, kv_heads, past, d_head, seed=seed + 2),
        W_q=matrix(d_model, d_model, 3),
        W_k=matrix(d_kv, d_model, 4),
        W_v=matrix(d_kv, d_model, 5),
        W_o=matrix(d_model, d_model, 6),
    )


K, V = "k.repeat_interleave(group, dim=1)", "v.repeat_interleave(group, dim=1)"
SCORES = "q @ k.mT / math.sqrt(d_head)"
MISTAKES = f"""
[key, (x @ W_k.T).view(batch, kv_heads, 1, d_head)] -> [key]
+ [value, (x @ W_v.T).view(batch, kv_heads, 1, d_head)] -> [value]
    The new token does not attend to itself: append its own key and value to the cache first.
[key, -> [
+ [value, -> [
    The cache is not used: the new token attends to itself only.
{K} -> k.repeat(1, group, 1, 1)
+ {V} -> v.repeat(1, group, 1, 1)
    repeat assigns the KV heads 0 1 0 1. Consecutive query heads share one here, 0 0 1 1: repeat_interleave.
{K} -> k.repeat(1, group, 1, 1)
    Your keys are repeated 0 1 0 1 and your values 0 0 1 1, so the weights of one head average the values of another.
    Both need repeat_interleave.
{V} -> v.repeat(1, group, 1, 1)
    Your values are repeated 0 1 0 1 and your keys 0 0 1 1, so the weights of one head average the values of another.
    Both need repeat_interleave.
/ math.sqrt(d_head) ->
    The scale is missing. Divide the scores by √d_head.
math.sqrt(d_head) -> math.sqrt(x.shape[-1])
    You scale by √d_model. A score is a sum over the components of one head: √d_head.
dim=-1) -> dim=1)
    Your softmax runs over the heads. Each head has its own distribution over the keys: dim=-1.
@ W_o.T ->
    W_o is missing. Without it the heads are concatenated and not mixed.
W_o.T -> W_o
    W_o is (out, in) like the others: … @ W_o.T. No error is raised, since it is square.
{SCORES} -> ({SCORES}).masked_fill(torch.arange(k.shape[2]) > 0, -torch.inf)
    The new token attends to the oldest token only, as under a causal mask for position 0 (is_causal=True). It is the
    last position: it may attend to everything.
[key, (x @ W_k.T) -> [value, (x @ W_v.T)
+ [value, (x @ W_v.T) -> [key, (x @ W_k.T)
    Keys and values are exchanged: compare the query with the keys, and average the values.
[key, -> [value,
+ [value, -> [key,
    The cached keys and values are exchanged: the new key belongs behind key, the new value behind value.
(x @ W_k.T) -> (x @ W_v.T)
+ (x @ W_v.T) -> (x @ W_k.T)
    The new key and value are exchanged: W_k gives the key, W_v the value.
W_q.T -> W_q
    W_q is (out, in) like the others: x @ W_q.T. No error is raised, since it is square.
dim=-1) -> dim=-2)
    Your softmax runs over the queries. There is one, so every weight is 1. dim=-1 runs over the keys.
[key, -> [key[:, :, :-1],
+ [value, -> [value[:, :, :-1],
    The new token overwrites the last one in the cache. Append it: the cache grows by one.
[key, -> [key[:, :, 1:],
+ [value, -> [value[:, :, 1:],
    The oldest token gets no weight. The new token attends to everything in the cache, which grows by one.
math.sqrt(d_head) -> d_head
    You divide the scores by d_head. Divide by its square root.
(x @ W_v.T) -> (x @ W_k.T)
    The new token's value is projected with W_k. W_k gives its key, W_v its value.
(x @ W_k.T) -> (x @ W_v.T)
    The new token's key is projected with W_v. W_k gives its key, W_v its value.
[key, (x @ W_k.T).view(batch, kv_heads, 1, d_head)] -> [(x @ W_k.T).view(batch, kv_heads, 1, d_head), key]
    The new key stands before the cached ones and the new value behind them, so every weight belongs to another
    token's value. Append both at the end.
[value, (x @ W_v.T).view(batch, kv_heads, 1, d_head)] -> [(x @ W_v.T).view(batch, kv_heads, 1, d_head), value]
    The new value stands before the cached ones and the new key behind them, so every weight belongs to another
    token's value. Append both at the end.
{K} -> k[:, :1]
+ {V} -> v[:, :1]
    All query heads use KV head 0. Consecutive query heads share one: 0 0 1 1.
.view(batch, num_heads, 1, d_head) -> .view(batch, d_head, num_heads, 1).permute(0, 2, 3, 1)
    Your query heads get every num_heads-th component. Each head has d_head consecutive ones: view(batch, num_heads,
    1, d_head).
{K}, {V} -> k, v
    The KV heads are not repeated: each of them serves `group` query heads, so the axes do not match where kv_heads >
    1.
(weights @ v).view -> (weights @ v).transpose(1, 3).reshape
    You merge component by component, so the heads alternate in the concatenation. Keep the d_head components of a
    head together.
torch.softmax({SCORES}, dim=-1) -> {SCORES}
    The softmax is missing: the scores are not weights yet.
math.sqrt(d_head) -> math.sqrt(k.shape[2])
    You scale by the root of the number of keys. A score is a sum over d_head components: √d_head.
math.sqrt(d_head) -> math.sqrt(num_heads)
    You scale by the root of the number of heads. A score is a sum over the components of one head: √d_head.
"""

CASES = (
    dict(  # two query heads, one KV head
        x=torch.tensor([[[1.0, 2.0]]]),
        key=torch.tensor([[[[1.0], [-1.0]]]]),
        value=torch.tensor([[[[3.0], [5.0]]]]),
        W_q=torch.tensor([[1.0, 0.0], [0.0, 1.0]]),
        W_k=torch.tensor([[2.0, -1.0]]),
        W_v=torch.tensor([[1.0, 3.0]]),
        W_o=torch.tensor([[1.0, 1.0], [0.0, 2.0]]),
    ),
    _case(3, 6, 3, 7, 2, seed=60),
    _case(2, 4, 2, 3, 5, seed=50),
)
HINTS = """
Which of the four projections must be computed for the new token, and which results are cached already?
d_head is the last axis of the cache, and the number of query heads is W_q.shape[0] // d_head. Append the new key and
    value along the axis of the positions.
Repeat the keys and values with repeat_interleave(group, dim=1), or view the queries as (batch, kv_heads, group,
    d_head). No mask is needed.
"""
