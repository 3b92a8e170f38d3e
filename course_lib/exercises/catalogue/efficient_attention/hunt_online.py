"""Bug hunt `hunt_online` of notebook 10."""

import math
from functools import partial

import torch

from course_lib.efficient import flash_attention
from course_lib.exercises.catalogue._shared import attention_scores, random_tensor
from course_lib.exercises.exercise import Case, Exercise, Mistake


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


def _forward(x):
    return x


def _nothing(factor):
    return torch.ones_like(factor)


def _in_blocks(
    q, k, v, block, *, total_factor=_forward, out_factor=_forward, root=None, maximum=torch.maximum
):
    m = q.new_full((len(q), 1), -torch.inf)
    total, out = q.new_zeros(len(q), 1), q.new_zeros(len(q), v.shape[1])
    for k_j, v_j in zip(k.split(block), v.split(block), strict=True):
        s = attention_scores(q, k_j, root)
        m_new = maximum(m, s.amax(dim=-1, keepdim=True))
        p, rescale = torch.exp(s - m_new), torch.exp(m - m_new)
        total = total * total_factor(rescale) + p.sum(dim=-1, keepdim=True)
        out = out * out_factor(rescale) + p @ v_j
        m = m_new
    return out / total


def _without_maximum(q, k, v, block):
    p = torch.exp(attention_scores(q, k))
    return p @ v / p.sum(dim=-1, keepdim=True)


def _each(q, k, v, block):
    """The output of attention over each block of keys alone."""
    return [
        torch.softmax(attention_scores(q, k_j), dim=-1) @ v_j
        for k_j, v_j in zip(k.split(block), v.split(block), strict=True)
    ]


EXERCISE = Exercise(
    name="hunt_online",
    notebook="10_efficient_attention",
    title="Bug hunt: attention in blocks of keys",
    reference=lambda q, k, v, block: flash_attention(q, k, v, block_size=block),
    solution=in_blocks,
    cases=(
        Case(
            q=torch.tensor([[1.0]]),
            k=torch.tensor([[0.0], [2.0]]),
            v=torch.tensor([[1.0], [3.0]]),
            block=1,
        ),
        Case(  # exp of a score overflows
            q=100 * random_tensor(2, 4, seed=4),
            k=random_tensor(5, 4, seed=5),
            v=random_tensor(5, 3, seed=6),
            block=2,
        ),
        Case(
            q=random_tensor(3, 4, seed=1),
            k=random_tensor(7, 4, seed=2),
            v=random_tensor(7, 2, seed=3),
            block=3,
        ),
    ),
    mistakes=(
        Mistake(
            "total_not_rescaled",
            partial(_in_blocks, total_factor=_nothing),
            "Now out is rescaled and total is not. Both are sums relative to the running maximum: both need "
            "exp(m - m_new).",
        ),
        Mistake(
            "neither_rescaled",
            partial(_in_blocks, total_factor=_nothing, out_factor=_nothing),
            "Neither sum is rescaled, so blocks that were added relative to a smaller maximum weigh too much. "
            "Multiply both by exp(m - m_new).",
        ),
        Mistake(
            "inverted",
            partial(_in_blocks, out_factor=lambda factor: 1 / factor),
            "out is rescaled by the inverse factor. A sum relative to m becomes one relative to m_new by "
            "exp(m - m_new), which is at most 1.",
        ),
        Mistake(
            "smaller_maximum",
            partial(
                _in_blocks,
                maximum=lambda m, new: torch.where(m == -torch.inf, new, torch.minimum(m, new)),
            ),
            "The running maximum falls, so exponentials overflow. Keep the larger of the old and the new one.",
        ),
        Mistake(
            "no_maximum",
            _without_maximum,
            "Right for small scores, but without the maximum exp overflows for large ones, and inf / inf is NaN.",
        ),
        Mistake(
            "mean_of_blocks",
            lambda *a: torch.stack(_each(*a)).mean(dim=0),
            "You average the outputs of the blocks. A block with large scores must count more than one with small "
            "ones: accumulate sums, and divide once.",
        ),
        Mistake(
            "last_block",
            lambda *a: _each(*a)[-1],
            "Only the last block of keys is left in the output.",
        ),
        Mistake(
            "no_scale",
            partial(_in_blocks, root=1),
            "The scores are not divided by √d any more; that was right.",
        ),
    ),
    hints=(
        "Take one query and two blocks of one key each. Which numbers are relative to which maximum?",
        "When the maximum grows from m to m_new, everything that was accumulated relative to m is too large by "
        "exp(m_new - m).",
        "total is multiplied by exp(m - m_new). What about out?",
    ),
    given=partial(_in_blocks, out_factor=_nothing),
)
