"""From MHA to GQA: pool the heads of each group."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor


def pool_kv_heads(W, num_heads, num_kv_heads):
    d_model, group = W.shape[1], num_heads // num_kv_heads
    heads = W.view(num_kv_heads, group, -1, d_model)  # (kv_heads, group, d_head, d_model)
    return heads.mean(dim=1).flatten(0, 1)  # (kv_heads * d_head, d_model)


def reference(W, num_heads, num_kv_heads):
    heads = W.chunk(num_heads)
    group = num_heads // num_kv_heads
    means = [
        torch.stack(heads[first : first + group]).mean(dim=0)
        for first in range(0, num_heads, group)
    ]
    return torch.cat(means)


VIEW = "W.view(num_kv_heads, group, -1, d_model)"
MEAN = "heads.mean(dim=1)"
MISTAKES = f"""
{MEAN} -> heads.sum(dim=1)
    You add up the heads of a group. Take their mean, so that the keys keep their scale.
{MEAN} -> heads[:, 0]
    You keep the first head of each group and drop the others. Take the mean of the group.
{MEAN} -> heads[:, -1]
    You keep the last head of each group and drop the others. Take the mean of the group.
{VIEW} -> W.view(group, num_kv_heads, -1, d_model).transpose(0, 1)
    You group the heads 0, num_kv_heads, 2 · num_kv_heads, … Consecutive query heads share a KV head, so a group is
    consecutive.
{VIEW} -> W.view(num_kv_heads, -1, group, d_model).transpose(1, 2)
    You average neighbouring rows of one head. A head has d_head consecutive rows: average row by row over the heads
    of a group.
{MEAN}.flatten(0, 1) -> {MEAN}
    The heads still have an axis of their own. Put their rows one below the other: (num_kv_heads · d_head, d_model).
{MEAN}.flatten(0, 1) -> {MEAN}.transpose(0, 1).flatten(0, 1)
    The rows of different heads alternate. Keep the d_head rows of a head together.
{MEAN}.flatten(0, 1) -> {MEAN}.repeat_interleave(group, dim=0).flatten(0, 1)
    You repeat each mean for every query head, so the matrix is as large as before. Return each KV head once.
{MEAN}.flatten(0, 1) -> heads.mean(dim=(0, 1))
    This is one mean over all heads, as for MQA. Each group has its own.
{MEAN}.flatten(0, 1) -> {MEAN}.flatten(0, 1).mT
    Your matrix is transposed. It is used as x @ W.T, like W: (num_kv_heads · d_head, d_model).
{MEAN} -> heads.median(dim=1).values
    This is the median of each group. Take the mean.
W.view(num_kv_heads, group, -1, d_model) -> W.view(group, num_kv_heads, -1, d_model)
    Your groups have num_kv_heads heads each. There are num_kv_heads groups, of num_heads // num_kv_heads heads.
"""

CASES = (
    dict(W=torch.arange(16.0).view(8, 2) ** 2, num_heads=4, num_kv_heads=2),  # heads of 2 rows
    dict(W=random_tensor(24, 4, seed=2), num_heads=8, num_kv_heads=1),
    dict(W=random_tensor(24, 5, seed=1), num_heads=6, num_kv_heads=2),
)
HINTS = """
Which rows of W belong to head 0, and which heads belong to the first group?
View W as (num_kv_heads, group, d_head, d_model), where group = num_heads // num_kv_heads.
Take the mean over the axis of the group, then flatten the first two axes.
"""
