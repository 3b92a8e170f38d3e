"""Helpers of several exercises of notebook 04."""

import torch

from course_lib.exercises.catalogue._shared import attention_scores, softmax_where_allowed


def masked_attention(query, key, value, mask, *, root=None, **softmax):
    return softmax_where_allowed(attention_scores(query, key, root), mask, **softmax) @ value


def lower_triangle(n, diagonal=0):
    return torch.ones(n, n, dtype=torch.bool).tril(diagonal)


def length_mask(lengths, n):
    return torch.arange(n) < lengths[:, None]  # (batch, key)
