"""Bug hunt: scores with shared keys and QK-norm."""

import torch
import torch.nn.functional as F

from course_lib.exercises.catalogue._shared import random_tensor


def normed_scores(q, k, q_gain, k_gain):
    group = q.shape[1] // k.shape[1]  # query heads per KV head
    k = k.repeat_interleave(group, dim=1)  # (batch, heads, key, d_head)
    q_size = (q.square().mean(dim=-1, keepdim=True) + 1e-6).sqrt()  # (batch, heads, query, 1)
    k_size = (k.square().mean(dim=-1, keepdim=True) + 1e-6).sqrt()  # (batch, heads, key, 1)
    q, k = q / q_size * q_gain, k / k_size * k_gain
    return q @ k.mT / q.shape[-1] ** 0.5  # (batch, heads, query, key)


def reference(q, k, q_gain, k_gain):
    q = F.rms_norm(q, q.shape[-1:], q_gain, 1e-6)
    k = F.rms_norm(k, k.shape[-1:], k_gain, 1e-6)
    q = q.unflatten(1, (k.shape[1], -1))  # (batch, kv_heads, group, query, d_head)
    return (q @ k[:, :, None].mT / q.shape[-1] ** 0.5).flatten(1, 2)


BUGS = """
k.repeat_interleave(group, dim=1) -> k.repeat(1, group, 1, 1)
    a head gets the keys of another group
mean(dim=-1, keepdim=True) => mean(dim=(1, -1), keepdim=True)
    all heads of a token share one root mean square
"""
MISTAKES = """
q / q_size -> q
    Your queries are not normalised. That part was right.
k / k_size -> k
    Your keys are not normalised. That part was right.
q / q_size * q_gain, k / k_size * k_gain -> q / q_size, k / k_size
    Your gains are not used. They multiply, component by component.
mean(dim=-1, keepdim=True) => sum(dim=-1, keepdim=True)
    You divide by the norm. RMSNorm divides by the root of the *mean* square: the vectors have norm sqrt(d_head) afterwards.
mean(dim=-1, keepdim=True) => mean(dim=(-2, -1), keepdim=True)
    All tokens of a head share one root mean square. Each token has its own: dim=-1.
/ q.shape[-1] ** 0.5 -> / 1
    The scale 1 / sqrt(d_head) is gone. It was right.
"""

CASES = (
    dict(
        q=torch.tensor([[[[1.0, 1.0]], [[3.0, 0.0]], [[0.0, 2.0]], [[1.0, -1.0]]]]),
        k=torch.tensor([[[[1.0, 0.0]], [[0.0, 5.0]]]]),
        q_gain=torch.tensor([1.0, 1.0]),
        k_gain=torch.tensor([1.0, 2.0]),
    ),
    dict(
        q=random_tensor(2, 6, 3, 4, seed=1),
        k=random_tensor(2, 2, 5, 4, seed=2),
        q_gain=random_tensor(4, seed=3) + 2,
        k_gain=random_tensor(4, seed=4) + 2,
    ),
)
HINTS = """
Give every head other values. Which KV head should heads 0 and 1 of 4 share, if there are two?
Which numbers share a root mean square? A head is normalised on its own.
repeat_interleave(group, dim=1) keeps consecutive heads together; the mean square is over dim=-1 alone.
"""
