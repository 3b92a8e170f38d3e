"""Helpers of several exercises of notebook 05."""

import math

from course_lib.attention import scaled_dot_product_attention
from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.multihead import merge_heads, split_heads


def projection_matrices(size, seed):
    """W_q, W_k, W_v and W_o."""
    matrices = (random_tensor(4, size, size, seed=seed) / math.sqrt(size)).round(decimals=1)
    return dict(zip(("W_q", "W_k", "W_v", "W_o"), matrices, strict=True))


def merge_without_transpose(heads):
    return heads.reshape(heads.shape[0], heads.shape[2], -1)


def multi_head_reference(
    query, key, value, mask, W_q, W_k, W_v, W_o, num_heads, *, join=merge_heads
):
    q = split_heads(query @ W_q.mT, num_heads)
    k = split_heads(key @ W_k.mT, num_heads)
    v = split_heads(value @ W_v.mT, num_heads)
    mask = None if mask is None else mask[:, None]
    return join(scaled_dot_product_attention(q, k, v, mask).output) @ W_o.mT
