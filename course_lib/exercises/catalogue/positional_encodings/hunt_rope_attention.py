"""Bug hunt: attention with RoPE."""

import math

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.transformer.attention import scaled_dot_product_attention
from course_lib.transformer.positions import rotary


def rotary_attention(query, key, value):
    length, d = query.shape[-2:]
    omega = 10000 ** (-torch.arange(0, d, 2) / d)  # (pair,)
    angles = torch.arange(length)[:, None] * omega  # (length, pair)

    def rotate(x):
        a, b = x[..., 0::2], x[..., 1::2]
        pairs = [a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()]
        return torch.stack(pairs, dim=-1).flatten(-2)

    scores = rotate(query) @ rotate(key).mT / math.sqrt(d)  # (batch, query, key)
    return torch.softmax(scores, dim=-1) @ value  # the values are not rotated


def reference(query, key, value):
    positions = torch.arange(query.shape[-2])
    query, key = rotary(query, positions), rotary(key, positions)
    return scaled_dot_product_attention(query, key, value).output


GIVEN = "@ value -> @ rotate(value)"
HALVES = "x[..., 0::2], x[..., 1::2] -> x.chunk(2, dim=-1)"
DIRECTION = "rotate(x): -> rotate(x, angles=angles):"
MISTAKES = rf"""
rotate(query) @ rotate(key) -> query @ key
    Nothing is rotated now, so the order of the tokens has no effect. Rotate the queries and the keys.
rotate(query) @ rotate(key) -> query @ key
+ {GIVEN}
    Queries and keys are not rotated any more, and the values still are. Rotate queries and keys, not values.
rotate(key) -> key
    Only the queries are rotated, so a score depends on the position of the query instead of the offset. Rotate the
    keys too.
rotate(query) -> query
    Only the keys are rotated, so a score depends on the position of the key instead of the offset. Rotate the queries
    too.
rotate(key) -> key
+ {GIVEN}
    The keys must be rotated: a score is the dot product of a rotated query and a rotated key. Another rotation is the
    bug.
rotate(query) -> query
+ {GIVEN}
    The queries must be rotated: a score is the dot product of a rotated query and a rotated key. Another rotation is
    the bug.
torch.softmax(scores, dim=-1) @ value -> rotate(torch.softmax(scores, dim=-1) @ value)
    You rotate the output. It still depends on absolute positions: rotate queries and keys only.
torch.softmax(scores, dim=-1) @ value -> rotate(torch.softmax(scores, dim=-1) @ rotate(value))
    You rotate the output as well now. It still depends on absolute positions: rotate queries and keys only.
{DIRECTION}
+ torch.softmax(scores, dim=-1) @ value -> rotate(torch.softmax(scores, dim=-1) @ rotate(value), -angles)
    You rotate the output back by the position of its query. The result depends on offsets only, but it is another
    method: RoPE does not rotate the values.
{DIRECTION}
+ @ value -> @ rotate(value, -angles)
    You rotate the values in the other direction now. RoPE does not rotate them.
{DIRECTION}
+ rotate(query) -> rotate(query, -angles)
{DIRECTION}
+ rotate(key) -> rotate(key, -angles)
    You rotate queries and keys in opposite directions, so a score depends on the sum of the positions. Rotate both in
    the same direction.
angles = torch -> angles = -torch
    Queries and keys are rotated in the other direction. A score depends on the offset, with the wrong sign. The
    function `rotate` was right.
{HALVES}
    You pair the first half of the components with the second. The function `rotate` was right: it pairs neighbours.
- b * angles.sin() -> + b * angles.sin()
    The minus in `rotate` is gone, so it is no rotation. The function `rotate` was right.
/ math.sqrt(d) ->
    The scale is missing: divide the scores by √d.
math.sqrt(d) -> d
    You divide the scores by d. Divide by √d.
math.sqrt(d) -> math.sqrt(length)
    You divide by the root of the number of keys. Divide the scores by √d.
dim=-1) @ value -> dim=-2) @ value
    Your softmax runs over the queries. The weights of one query sum to 1 over the keys: dim=-1.
10000 ** (-torch.arange(0, d, 2) / d) -> torch.ones(d // 2)
    All pairs have the same frequency. Each needs its own, as before.
(0, d, 2) / d -> (0, d, 2) / (d / 2)
    The exponents are doubled: pair i has the exponent -2 i / d.
(0, d, 2) / d -> (0, d, 2) / (2 * d)
    The exponents are half of what they were: pair i has the exponent -2 i / d.
angles = torch -> angles = -torch
+ {GIVEN}
    Everything is rotated in the other direction now. The function `rotate` was right, and the bug is still there: the
    output depends on absolute positions.
{HALVES}
+ {GIVEN}
{HALVES}
+ torch.stack(pairs, dim=-1).flatten(-2) -> torch.cat(pairs, dim=-1)
+ {GIVEN}
    You pair the first half of the components with the second now. The function `rotate` was right, and the bug is
    still there: the output depends on absolute positions.
torch.arange(length) -> torch.arange(1, length + 1)
+ {GIVEN}
    The positions begin at 1 now. That changes no offset, and the bug is still there: the output depends on absolute
    positions.
/ math.sqrt(d) ->
+ {GIVEN}
    The scale was right: divide the scores by √d. The bug is still there: the output depends on absolute positions.
"""

CASES = (
    dict(
        query=torch.tensor([[[1.0, 0.0], [0.0, 2.0]]]),
        key=torch.tensor([[[1.0, 1.0], [0.0, 3.0]]]),
        value=torch.tensor([[[1.0, 2.0], [4.0, 0.0]]]),
    ),
    dict(
        query=random_tensor(2, 5, 4, seed=12),
        key=random_tensor(2, 5, 4, seed=13),
        value=random_tensor(2, 5, 4, seed=14),
    ),
)
HINTS = """
Give all positions the same value. Whatever the weights are, what must the output be?
Offsets come from a dot product of two rotated vectors: R_m^T R_n = R_(n-m). In which of the two matrix products are
    both factors rotated?
Rotate queries and keys only. The values are averaged without a rotation.
"""
