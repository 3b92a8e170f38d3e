"""Exercise `within_blocks` of notebook 10."""

import math
from functools import partial

import torch
import torch.nn.functional as F

from course_lib.efficient import block_attention
from course_lib.exercises.catalogue._shared import attention_scores, random_tensor
from course_lib.exercises.exercise import Case, Exercise, Mistake


def within_blocks(q, k, v, size):
    outputs = []
    for q_b, k_b, v_b in zip(q.split(size), k.split(size), v.split(size), strict=True):
        weights = torch.softmax(q_b @ k_b.T / math.sqrt(q.shape[-1]), dim=-1)
        outputs.append(weights @ v_b)
    return torch.cat(outputs)


def _masked(q, k, v, allowed, *, root=None, dim=-1):
    scores = attention_scores(q, k, root).masked_fill(~allowed, -torch.inf)
    return torch.softmax(scores, dim=dim) @ v


def _allowed(q, size, *, same=lambda i, j, size: i // size == j // size):
    places = torch.arange(len(q))
    return same(places[:, None], places, size)


def _blocks(q, k, v, size, *, same=lambda i, j, size: i // size == j // size, **options):
    return _masked(q, k, v, _allowed(q, size, same=same), **options)


def _padded(q, k, v, size):
    missing = -len(q) % size
    parts = (F.pad(x, (0, 0, 0, missing)).unflatten(0, (-1, size)) for x in (q, k, v))
    q_b, k_b, v_b = parts
    return (torch.softmax(attention_scores(q_b, k_b), dim=-1) @ v_b).flatten(0, 1)[: len(q)]


def _dropped(q, k, v, size):
    whole = len(q) // size * size
    return _blocks(q[:whole], k[:whole], v[:whole], size)


EXERCISE = Exercise(
    name="within_blocks",
    notebook="10_efficient_attention",
    title="Block attention of any length",
    reference=block_attention,
    solution=within_blocks,
    cases=(
        Case(  # blocks of two and of one
            q=torch.tensor([[1.0], [0.0], [2.0]]),
            k=torch.tensor([[1.0], [2.0], [0.0]]),
            v=torch.tensor([[2.0], [4.0], [9.0]]),
            size=2,
        ),
        Case(
            q=random_tensor(6, 5, seed=4),
            k=random_tensor(6, 5, seed=5),
            v=random_tensor(6, 5, seed=6),
            size=3,
        ),
        Case(
            q=random_tensor(10, 4, seed=1),
            k=random_tensor(10, 4, seed=2),
            v=random_tensor(10, 4, seed=3),
            size=4,
        ),
        Case(  # n² is 4,096
            q=random_tensor(64, 2, seed=7),
            k=random_tensor(64, 2, seed=8),
            v=random_tensor(64, 2, seed=9),
            size=4,
        ),
    ),
    most_elements=2048,
    mistakes=(
        Mistake(
            "padding",
            _padded,
            "The queries of the last block attend to the zeros that you padded with: a score of 0 is not minus "
            "infinity. Mask them, or handle the last block by itself.",
        ),
        Mistake(
            "last_block_dropped",
            _dropped,
            "The positions of the last, shorter block are missing from the output.",
        ),
        Mistake(
            "dense",
            partial(_blocks, same=lambda i, j, size: (i == i) & (j == j)),
            "Every query attends to every key. Only keys of the same block may be compared.",
        ),
        Mistake(
            "window",
            partial(_blocks, same=lambda i, j, size: (i - j).abs() < size),
            "That is a window: it crosses the borders of the blocks. Position size - 1 and position size are in "
            "different blocks.",
        ),
        Mistake(
            "strided",
            partial(_blocks, same=lambda i, j, size: i % size == j % size),
            "Your groups are every size-th position. A block is size neighbouring positions: i // size.",
        ),
        Mistake(
            "causal",
            partial(_blocks, same=lambda i, j, size: (i // size == j // size) & (j <= i)),
            "Your blocks are causal. A query attends to every key of its block.",
        ),
        Mistake(
            "no_scale",
            partial(_blocks, root=1),
            "The scale is missing. Divide the scores by √d.",
        ),
        Mistake(
            "scaled_by_the_block",
            lambda q, k, v, size: _blocks(q, k, v, size, root=size),
            "You scale by √size. The score is a sum over d components: √d.",
        ),
        Mistake(
            "over_queries",
            partial(_blocks, dim=0),
            "Your softmax runs over the queries. Each query has a distribution over the keys: dim=-1.",
        ),
    ),
    hints=(
        "q.split(size) returns the blocks, the last one shorter if need be.",
        "Loop over the blocks of q, k and v together: each is a small attention.",
        "torch.cat joins the outputs of the blocks.",
    ),
)
