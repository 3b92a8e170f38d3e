"""Exercise `decode_step` of notebook 05."""

import math

import torch

from course_lib.attention import scaled_dot_product_attention
from course_lib.exercises.catalogue._shared import attention_scores, random_tensor
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.multihead import merge_heads, split_heads


def decode_step(x, key, value, W_q, W_k, W_v, W_o):
    batch, kv_heads, past, d_head = key.shape
    q = (x @ W_q.T).view(batch, kv_heads, -1, d_head)  # the heads of a group are rows
    k = (x @ W_k.T).view(batch, kv_heads, 1, d_head)
    v = (x @ W_v.T).view(batch, kv_heads, 1, d_head)
    k, v = torch.cat([key, k], dim=2), torch.cat([value, v], dim=2)
    weights = torch.softmax(q @ k.mT / math.sqrt(d_head), dim=-1)
    return (weights @ v).view(batch, 1, -1) @ W_o.T  # (batch, 1, d_model)


def _repeat_each(shared, group):
    return shared.repeat_interleave(group, dim=1)


def _repeat_all(shared, group):
    return shared.repeat(1, group, 1, 1)


def _append(cached, new):
    return torch.cat([cached, new], dim=-2)


def _cached_only(cached, new):
    return cached


def _new_only(cached, new):
    return new


def _decode(
    x, key, value, W_q, W_k, W_v, W_o,
    *, keys=_repeat_each, values=_repeat_each, append=_append, root=None, dim=-1,
):  # fmt: skip
    d_head, kv_heads = key.shape[-1], key.shape[1]
    num_heads = len(W_q) // d_head
    q = split_heads(x @ W_q.mT, num_heads)
    k = append(key, split_heads(x @ W_k.mT, kv_heads))
    v = append(value, split_heads(x @ W_v.mT, kv_heads))
    group = num_heads // kv_heads
    scores = attention_scores(q, keys(k, group), root)
    return merge_heads(torch.softmax(scores, dim=dim) @ values(v, group)) @ W_o.mT


def _reference(x, key, value, W_q, W_k, W_v, W_o):
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

    return Case(
        x=random_tensor(batch, 1, d_model, seed=seed),
        key=random_tensor(batch, kv_heads, past, d_head, seed=seed + 1),
        value=random_tensor(batch, kv_heads, past, d_head, seed=seed + 2),
        W_q=matrix(d_model, d_model, 3),
        W_k=matrix(d_kv, d_model, 4),
        W_v=matrix(d_kv, d_model, 5),
        W_o=matrix(d_model, d_model, 6),
    )


EXERCISE = Exercise(
    name="decode_step",
    notebook="05_multi_head_attention",
    title="A decode step of grouped-query attention",
    reference=_reference,
    solution=decode_step,
    cases=(
        Case(  # two query heads, one KV head
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
    ),
    mistakes=(
        Mistake(
            "new_token_not_cached",
            lambda *a: _decode(*a, append=_cached_only),
            "The new token does not attend to itself: append its own key and value to the cache first.",
        ),
        Mistake(
            "cache_unused",
            lambda *a: _decode(*a, append=_new_only),
            "The cache is not used: the new token attends to itself only.",
        ),
        Mistake(
            "alternating",
            lambda *a: _decode(*a, keys=_repeat_all, values=_repeat_all),
            "repeat assigns the KV heads 0 1 0 1. Consecutive query heads share one here, 0 0 1 1: "
            "repeat_interleave.",
        ),
        Mistake(
            "alternating_keys",
            lambda *a: _decode(*a, keys=_repeat_all),
            "Your keys are repeated 0 1 0 1 and your values 0 0 1 1, so the weights of one head average the values of "
            "another. Both need repeat_interleave.",
        ),
        Mistake(
            "alternating_values",
            lambda *a: _decode(*a, values=_repeat_all),
            "Your values are repeated 0 1 0 1 and your keys 0 0 1 1, so the weights of one head average the values of "
            "another. Both need repeat_interleave.",
        ),
        Mistake(
            "no_scale",
            lambda *a: _decode(*a, root=1),
            "The scale is missing. Divide the scores by √d_head.",
        ),
        Mistake(
            "by_d_model",
            lambda *a: _decode(*a, root=a[0].shape[-1]),
            "You scale by √d_model. A score is a sum over the components of one head: √d_head.",
        ),
        Mistake(
            "over_heads",
            lambda *a: _decode(*a, dim=1),
            "Your softmax runs over the heads. Each head has its own distribution over the keys: dim=-1.",
        ),
        Mistake(
            "no_output_projection",
            lambda *a: _decode(*a[:-1], torch.eye(len(a[-1]), dtype=a[-1].dtype)),
            "W_o is missing. Without it the heads are concatenated and not mixed.",
        ),
        Mistake(
            "W_o_not_transposed",
            lambda *a: _decode(*a[:-1], a[-1].mT),
            "Correct up to the last step: W_o is (out, in) like the others, so … @ W_o.T.",
        ),
        Mistake(
            "causal_mask_of_one_row",
            lambda x, key, value, *W: _decode(
                x, key[:, :, :1], value[:, :, :1], *W, append=_cached_only
            ),
            "The new token attends to the oldest token only, as under a causal mask for position 0. It is the last "
            "position: it may attend to everything.",
        ),
        Mistake(
            "keys_and_values_exchanged",
            lambda x, key, value, W_q, W_k, W_v, W_o: _decode(x, value, key, W_q, W_v, W_k, W_o),
            "Keys and values are exchanged: compare the query with the keys, and average the values.",
        ),
        Mistake(
            "cache_exchanged",
            lambda x, key, value, *W: _decode(x, value, key, *W),
            "The cached keys and values are exchanged: the new key belongs behind key, the new value behind value.",
        ),
        Mistake(
            "new_exchanged",
            lambda x, key, value, W_q, W_k, W_v, W_o: _decode(x, key, value, W_q, W_v, W_k, W_o),
            "The new key and value are exchanged: W_k gives the key, W_v the value.",
        ),
        Mistake(
            "W_q_not_transposed",
            lambda x, key, value, W_q, *W: _decode(x, key, value, W_q.mT, *W),
            "W_q is (out, in) like the others: x @ W_q.T. No error is raised, since it is square.",
        ),
        Mistake(
            "W_q_and_W_o_not_transposed",
            lambda x, key, value, W_q, W_k, W_v, W_o: _decode(
                x, key, value, W_q.mT, W_k, W_v, W_o.mT
            ),
            "W_q and W_o are (out, in) like the others: x @ W_q.T and … @ W_o.T. No error is raised, since they are square.",
        ),
        Mistake(
            "over_queries",
            lambda *a: _decode(*a, dim=-2),
            "Your softmax runs over the queries. There is one, so every weight is 1. dim=-1 runs over the keys.",
        ),
        Mistake(
            "last_overwritten",
            lambda *a: _decode(
                *a, append=lambda cached, new: torch.cat([cached[..., :-1, :], new], -2)
            ),
            "The new token overwrites the last one in the cache. Append it: the cache grows by one.",
        ),
        Mistake(
            "first_dropped",
            lambda *a: _decode(
                *a, append=lambda cached, new: torch.cat([cached[..., 1:, :], new], -2)
            ),
            "The oldest token is dropped. Append the new one: the cache grows by one.",
        ),
        Mistake(
            "by_d_head",
            lambda *a: _decode(*a, root=a[1].shape[-1] ** 2),
            "You divide the scores by d_head. Divide by its square root.",
        ),
        Mistake(
            "value_by_W_k",
            lambda x, key, value, W_q, W_k, W_v, W_o: _decode(x, key, value, W_q, W_k, W_k, W_o),
            "The new token's value is projected with W_k. W_k gives its key, W_v its value.",
        ),
        Mistake(
            "key_by_W_v",
            lambda x, key, value, W_q, W_k, W_v, W_o: _decode(x, key, value, W_q, W_v, W_v, W_o),
            "The new token's key is projected with W_v. W_k gives its key, W_v its value.",
        ),
    ),
    hints=(
        "Which of the four projections must be computed for the new token, and which results are cached already?",
        "d_head is the last axis of the cache, and the number of query heads is W_q.shape[0] // d_head. Append the "
        "new key and value along the axis of the positions.",
        "Repeat the keys and values with repeat_interleave(group, dim=1), or view the queries as "
        "(batch, kv_heads, group, d_head). No mask is needed.",
    ),
)
