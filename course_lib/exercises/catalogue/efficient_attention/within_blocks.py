"""Block attention of any length."""

import math

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.topics.efficient import block_attention


def within_blocks(q, k, v, size):
    outputs = []
    for q_b, k_b, v_b in zip(q.split(size), k.split(size), v.split(size), strict=True):
        weights = torch.softmax(q_b @ k_b.T / math.sqrt(q.shape[-1]), dim=-1)
        outputs.append(weights @ v_b)
    return torch.cat(outputs)


SCORES = "q_b @ k_b.T / math.sqrt(q.shape[-1])"
PAD = "q, k, v = (torch.nn.functional.pad(x, (0, 0, 0, -n % size)) for x in (q, k, v))"
DENSE = "zip(q.split(size), k.split(size), v.split(size), strict=True) -> zip([q], [k], [v])"
ROW, COLUMN = "torch.arange(len(q))[:, None]", "torch.arange(len(q))"
MISTAKES = rf"""
outputs = [] -> n, outputs = len(q), []\n{PAD}
+ torch.cat(outputs) -> torch.cat(outputs)[:n]
    The queries of the last block attend to the zeros that you padded with: a score of 0 is not minus infinity. Mask
    them, or handle the last block by itself.
outputs = [] -> n, outputs = len(q), []\n{PAD}
    Your output has rows for the padding as well, and the queries of the last block attend to it. Handle the last
    block by itself, or mask the padding and cut it off.
torch.cat(outputs) -> torch.cat(outputs)[: len(q) // size * size]
    The positions of the last, shorter block are missing from the output.
torch.cat(outputs) -> torch.nn.functional.pad(torch.cat(outputs)[: len(q) // size * size], (0, 0, 0, len(q) % size))
    The rows of the last, shorter block are zeros. It is a block like the others: compute its outputs too.
{DENSE}
    Every query attends to every key. Only keys of the same block may be compared.
{DENSE}
+ {SCORES} -> ({SCORES}).masked_fill(({ROW} - {COLUMN}).abs() >= size, -torch.inf)
{DENSE}
+ {SCORES} -> ({SCORES}).masked_fill(({ROW} - {COLUMN}).abs() > size, -torch.inf)
    That is a window: it crosses the borders of the blocks. Position size - 1 and position size are in different
    blocks.
{DENSE}
+ {SCORES} -> ({SCORES}).masked_fill({ROW} % size != {COLUMN} % size, -torch.inf)
    Your groups are every size-th position. A block is size neighbouring positions: i // size.
{SCORES} -> ({SCORES}).masked_fill({ROW}[: len(q_b)] < {COLUMN}[: len(q_b)], -torch.inf)
    Your blocks are causal. A query attends to every key of its block.
/ math.sqrt(q.shape[-1]) ->
    The scale is missing. Divide the scores by √d.
math.sqrt(q.shape[-1]) -> math.sqrt(size)
math.sqrt(q.shape[-1]) -> math.sqrt(len(q_b))
    You scale by √size. The score is a sum over d components: √d.
dim=-1) -> dim=0)
    Your softmax runs over the queries. Each query has a distribution over the keys: dim=-1.
math.sqrt(q.shape[-1]) -> q.shape[-1]
    You divide the scores by d. Divide by its square root.
math.sqrt(q.shape[-1]) -> math.sqrt(len(q))
    You scale by √n. The score is a sum over d components: √d.
.split(size) => .chunk(size)
    chunk(size) makes `size` blocks. split(size) makes blocks of `size` positions.
torch.cat(outputs) -> torch.stack(outputs)
    stack gives the blocks an axis of their own, and needs them to be equally long. cat joins them along the
    positions.
outputs = [] -> outputs = [q.unflatten(0, (-1, size))][:0]
outputs = [] -> outputs = [q.unflatten(0, (len(q) // size, size))][:0]
outputs = [] -> outputs = [q.view(-1, size, q.shape[-1])][:0]
outputs = [] -> outputs = [q.view(len(q) // size, size, q.shape[-1])][:0]
    Right where the length is a multiple of size. The last block may be shorter, and a view needs blocks of equal
    length. Handle the last block by itself, or pad and mask.
{DENSE}
+ torch.softmax({SCORES}, dim=-1) -> torch.softmax({SCORES}, dim=-1) * ({ROW} // size == {COLUMN} // size)
    You mask after the softmax, so the weights of a row no longer sum to 1. Compute the softmax over each block.
{DENSE}
+ {SCORES} -> ({SCORES}) * ({ROW} // size == {COLUMN} // size)
    A score of 0 masks nothing: exp(0) is 1. Compute the softmax over each block.
torch.softmax({SCORES}, dim=-1) -> {SCORES}
    The softmax is missing: you average with the scores themselves.
"""

reference = block_attention
CASES = (
    dict(  # blocks of two and of one
        q=torch.tensor([[1.0], [0.0], [2.0]]),
        k=torch.tensor([[1.0], [2.0], [0.0]]),
        v=torch.tensor([[2.0], [4.0], [9.0]]),
        size=2,
    ),
    dict(
        q=random_tensor(6, 5, seed=4),
        k=random_tensor(6, 5, seed=5),
        v=random_tensor(6, 5, seed=6),
        size=3,
    ),
    dict(
        q=random_tensor(10, 4, seed=1),
        k=random_tensor(10, 4, seed=2),
        v=random_tensor(10, 4, seed=3),
        size=4,
    ),
    dict(  # n² is 4,096
        q=random_tensor(64, 2, seed=7),
        k=random_tensor(64, 2, seed=8),
        v=random_tensor(64, 2, seed=9),
        size=4,
    ),
)
HINTS = """
q.split(size) returns the blocks, the last one shorter if need be.
Loop over the blocks of q, k and v together: each is a small attention.
torch.cat joins the outputs of the blocks.
"""
MOST_ELEMENTS = 2048
