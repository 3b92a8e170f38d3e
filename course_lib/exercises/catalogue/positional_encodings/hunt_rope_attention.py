"""Bug hunt `hunt_rope_attention` of notebook 06."""

import math
from functools import partial

import torch

from course_lib.attention import scaled_dot_product_attention
from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.catalogue.positional_encodings._shared import rotate_by, rotation_angles
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.positions import (
    rotary,
)


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


def _given(query, key, value):
    length, d = query.shape[-2:]
    omega = 10000 ** (-torch.arange(0, d, 2) / d)
    angles = torch.arange(length)[:, None] * omega

    def rotate(x):
        a, b = x[..., 0::2], x[..., 1::2]
        pairs = [a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()]
        return torch.stack(pairs, dim=-1).flatten(-2)

    scores = rotate(query) @ rotate(key).mT / math.sqrt(d)
    return torch.softmax(scores, dim=-1) @ rotate(value)


def _rotated_by(x, times, layout="interleaved", first=0):
    """Rotated by `times` the angle of its position, of which `first` is the first."""
    positions = torch.arange(first, first + x.shape[-2])
    return rotate_by(x, rotation_angles(times * positions, x.shape[-1]), layout)


def _rotary_attention(
    query, key, value, *, q=1, k=1, v=0, out=0, root=None, layout="interleaved", first=0
):
    scores = _rotated_by(query, q, layout) @ _rotated_by(key, k, layout).mT
    weights = torch.softmax(scores / math.sqrt(query.shape[-1] if root is None else root), dim=-1)
    return _rotated_by(weights @ _rotated_by(value, v, layout, first), out)


def _reference(query, key, value):
    positions = torch.arange(query.shape[-2])
    query, key = rotary(query, positions), rotary(key, positions)
    return scaled_dot_product_attention(query, key, value).output


EXERCISE = Exercise(
    name="hunt_rope_attention",
    notebook="06_positional_encodings",
    title="Bug hunt: attention with RoPE",
    reference=_reference,
    solution=rotary_attention,
    cases=(
        Case(
            query=torch.tensor([[[1.0, 0.0], [0.0, 2.0]]]),
            key=torch.tensor([[[1.0, 1.0], [0.0, 3.0]]]),
            value=torch.tensor([[[1.0, 2.0], [4.0, 0.0]]]),
        ),
        Case(
            query=random_tensor(2, 5, 4, seed=12),
            key=random_tensor(2, 5, 4, seed=13),
            value=random_tensor(2, 5, 4, seed=14),
        ),
    ),
    mistakes=(
        Mistake(
            "nothing_rotated",
            partial(_rotary_attention, q=0, k=0),
            "Nothing is rotated now, so the order of the tokens has no effect. Rotate the queries and the keys.",
        ),
        Mistake(
            "only_value",
            partial(_rotary_attention, q=0, k=0, v=1),
            "Queries and keys are not rotated any more, and the values still are. Rotate queries and keys, not values.",
        ),
        Mistake(
            "only_query",
            partial(_rotary_attention, k=0),
            "Only the queries are rotated, so a score depends on the position of the query instead of the offset. "
            "Rotate the keys too.",
        ),
        Mistake(
            "only_key",
            partial(_rotary_attention, q=0),
            "Only the keys are rotated, so a score depends on the position of the key instead of the offset. "
            "Rotate the queries too.",
        ),
        Mistake(
            "key_not_rotated",
            partial(_rotary_attention, k=0, v=1),
            "The keys must be rotated: a score is the dot product of a rotated query and a rotated key. Another "
            "rotation is the bug.",
        ),
        Mistake(
            "query_not_rotated",
            partial(_rotary_attention, q=0, v=1),
            "The queries must be rotated: a score is the dot product of a rotated query and a rotated key. Another "
            "rotation is the bug.",
        ),
        Mistake(
            "output_rotated",
            partial(_rotary_attention, out=1),
            "The values are not rotated any more, but the output is. It still depends on absolute positions.",
        ),
        Mistake(
            "rotated_back",
            partial(_rotary_attention, v=1, out=-1),
            "You rotate the output back by the position of its query. The result depends on offsets only, but it is "
            "another method: RoPE does not rotate the values.",
        ),
        Mistake(
            "opposite_directions",
            partial(_rotary_attention, q=-1),
            "You rotate queries and keys in opposite directions, so a score depends on the sum of the positions. "
            "Rotate both in the same direction.",
        ),
        Mistake(
            "no_scale",
            partial(_rotary_attention, root=1),
            "The values are right now, but the scale is missing: divide the scores by √d.",
        ),
        Mistake(
            "opposite_directions_of_keys",
            partial(_rotary_attention, k=-1),
            "You rotate queries and keys in opposite directions, so a score depends on the sum of the positions. "
            "Rotate both in the same direction.",
        ),
        Mistake(
            "other_direction",
            partial(_rotary_attention, q=-1, k=-1),
            "The values are not rotated any more, but queries and keys are rotated in the other direction. A score depends "
            "on the offset, with the wrong sign. The function `rotate` was right.",
        ),
        Mistake(
            "half_layout",
            partial(_rotary_attention, layout="half"),
            "The values are not rotated any more, but you pair the first half of the components with the second. The function "
            "`rotate` was right: it pairs neighbours.",
        ),
        Mistake(
            "by_d",
            lambda *a: _rotary_attention(*a, root=a[0].shape[-1] ** 2),
            "The values are right now, but you divide the scores by d. Divide by √d.",
        ),
        Mistake(
            "still_there_other_direction",
            partial(_rotary_attention, q=-1, k=-1, v=-1),
            "Everything is rotated in the other direction now. The function `rotate` was right, and the bug is still there: the "
            "output depends on absolute positions.",
        ),
        Mistake(
            "still_there_half_layout",
            partial(_rotary_attention, v=1, layout="half"),
            "You pair the first half of the components with the second now. The function `rotate` was right, and the bug is still "
            "there: the output depends on absolute positions.",
        ),
        Mistake(
            "still_there_positions_from_1",
            partial(_rotary_attention, v=1, first=1),
            "The positions begin at 1 now. That changes no offset, and the bug is still there: the output depends on absolute "
            "positions.",
        ),
        Mistake(
            "still_there_no_scale",
            partial(_rotary_attention, v=1, root=1),
            "The scale was right: divide the scores by √d. The bug is still there: the output depends on absolute positions.",
        ),
    ),
    hints=(
        "Give all positions the same value. Whatever the weights are, what must the output be?",
        "Offsets come from a dot product of two rotated vectors: R_m^T R_n = R_(n-m). In which of the two matrix "
        "products are both factors rotated?",
        "Rotate queries and keys only. The values are averaged without a rotation.",
    ),
    given=_given,
)
