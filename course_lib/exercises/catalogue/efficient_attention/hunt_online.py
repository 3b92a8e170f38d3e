"""Bug hunt: attention in blocks of keys."""

import math

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.topics.efficient import flash_attention


def in_blocks(q, k, v, block):
    m = torch.full((len(q), 1), -torch.inf)
    total, out = torch.zeros(len(q), 1), torch.zeros(len(q), v.shape[1])
    for k_j, v_j in zip(k.split(block), v.split(block), strict=True):
        s = q @ k_j.T / math.sqrt(q.shape[-1])
        m_new = torch.maximum(m, s.amax(dim=-1, keepdim=True))
        p, rescale = torch.exp(s - m_new), torch.exp(m - m_new)
        total = total * rescale + p.sum(dim=-1, keepdim=True)
        out = out * rescale + p @ v_j  # relative to the new maximum, like total
        m = m_new
    return out / total


def reference(q, k, v, block):
    return flash_attention(q, k, v, block_size=block)


BLOCKS = "for k_j, v_j in zip(k.split(block), v.split(block))"
EACH = f"torch.softmax(q @ k_j.T / math.sqrt(q.shape[-1]), dim=-1) @ v_j {BLOCKS}"
MISTAKES = rf"""
total * rescale -> total
    Now out is rescaled and total is not. Both are sums relative to the running maximum: both need exp(m - m_new).
total * rescale -> total
+ out * rescale -> out
    Neither sum is rescaled, so blocks that were added relative to a smaller maximum weigh too much. Multiply both by
    exp(m - m_new).
out * rescale -> out / rescale
    Everything is NaN from the first block on, where m is -inf. exp(m - m_new) is 0 there; its inverse exp(m_new - m)
    is infinite, and so is the first factor with a minimum instead of the maximum.
torch.maximum(m, s.amax(dim=-1, keepdim=True)) -> s.amax(dim=-1, keepdim=True)
    The running maximum falls, so exponentials overflow. Keep the larger of the old and the new one.
torch.exp(s - m_new), torch.exp(m - m_new) -> torch.exp(s), 1
    Without the maximum, exp overflows for large scores, and inf / inf is NaN.
return out / total -> return sum({EACH}) / len(k.split(block))
    You average the outputs of the blocks. A block with large scores must count more than one with small ones:
    accumulate sums, and divide once.
total * rescale + ->
+ out * rescale + ->
m = m_new -> pass
    Only the last block of keys is left in the output.
/ math.sqrt(q.shape[-1]) ->
    The scores are not divided by √d any more; that was right.
total = total * rescale + -> total =
    total contains the last block only. It is a sum over all blocks, like out.
s.amax(dim=-1, keepdim=True) -> s.amax()
    One maximum for all queries: those with far smaller scores underflow to 0, and 0 / 0 is NaN. Each query needs its
    own: dim=-1.
s.amax(dim=-1, keepdim=True) -> s.amax(dim=0, keepdim=True)
    Your maximum runs over the queries. Each query has its own, over the keys: dim=-1.
return out / total -> return out
    The output is not divided any more: out is a weighted sum, and total the sum of its weights.
out * rescale + p @ v_j -> (out * rescale + p @ v_j) / total
+ return out / total -> return out
    You divide by total in every block, so what earlier blocks have added is divided again. Divide once, at the end.
out * rescale + p @ v_j -> (out + p @ v_j) * rescale
    You rescale the new block as well. It is relative to the new maximum already: out * exp(m - m_new) + p @ v_j.
total * rescale + p.sum(dim=-1, keepdim=True) -> (total + p.sum(dim=-1, keepdim=True)) * rescale
+ out * rescale + p @ v_j -> (out + p @ v_j) * rescale
    You rescale the new block as well, in both sums. It is relative to the new maximum already: only what was
    accumulated is multiplied by exp(m - m_new).
math.sqrt(q.shape[-1]) -> q.shape[-1]
    The scores are divided by d now. The √d was right.
math.sqrt(q.shape[-1]) -> math.sqrt(v.shape[1])
    You scale by the dimension of the values. A score is a sum over the components of q: √q.shape[-1].
out * rescale -> out * torch.exp(m)
    Your factor for out is exp(m). What is relative to m becomes relative to m_new by exp(m - m_new), like total.
p.sum(dim=-1, keepdim=True) -> p.sum()
    Your total adds up all queries. Each query has its own: dim=-1, keepdim=True.
"""

GIVEN = "out * rescale -> out"
CASES = (
    dict(  # the exponentials of the scores are 1, 3 and 4
        q=torch.tensor([[2.0, 0.0, 0.0, 0.0]]),
        k=torch.tensor([[0.0], [math.log(3)], [math.log(4)]]) * torch.eye(4)[0],
        v=torch.tensor([[8.0], [0.0], [4.0]]),
        block=1,
    ),
    dict(  # exp of the scores of the first two queries overflows
        q=torch.tensor([[100.0], [100.0], [1.0]]) * random_tensor(3, 4, seed=4),
        k=random_tensor(5, 4, seed=5),
        v=random_tensor(5, 3, seed=6),
        block=2,
    ),
    dict(
        q=random_tensor(3, 4, seed=1),
        k=random_tensor(7, 4, seed=2),
        v=random_tensor(7, 2, seed=3),
        block=3,
    ),
    dict(  # the map has 2,048 elements
        q=random_tensor(32, 2, seed=7),
        k=random_tensor(64, 2, seed=8),
        v=random_tensor(64, 2, seed=9),
        block=4,
    ),
)
HINTS = """
Take one query and two blocks of one key each. Which numbers are relative to which maximum?
When the maximum grows from m to m_new, everything that was accumulated relative to m is too large by exp(m_new - m).
total is multiplied by exp(m - m_new). What about out?
"""
MOST_ELEMENTS = 1024
