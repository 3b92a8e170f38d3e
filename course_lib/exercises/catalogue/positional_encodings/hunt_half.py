"""Bug hunt `hunt_half` of notebook 06."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.catalogue.positional_encodings._shared import (
    join_halves,
    repeat_all,
    repeat_each,
    rotate_each,
    rotate_with,
    rotation_angles,
    swap_halves,
    swap_pairs,
)
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.positions import (
    rotary,
)


def rotate_half_layout(x, positions):
    d = x.shape[-1]
    omega = 10000 ** (-torch.arange(0, d, 2) / d)  # (pair,)
    angles = positions[:, None] * omega  # (length, pair)
    angles = torch.cat([angles, angles], dim=-1)  # (length, d): 0 1 2 0 1 2, as the halves are
    a, b = x.chunk(2, dim=-1)  # (…, length, pair) each
    rotated = torch.cat([-b, a], dim=-1)
    return x * angles.cos() + rotated * angles.sin()


def _given(x, positions):
    d = x.shape[-1]
    omega = 10000 ** (-torch.arange(0, d, 2) / d)
    angles = positions[:, None] * omega
    angles = angles.repeat_interleave(2, dim=-1)
    a, b = x.chunk(2, dim=-1)
    rotated = torch.cat([-b, a], dim=-1)
    return x * angles.cos() + rotated * angles.sin()


def _half_layout(x, positions, **exponent):
    return rotate_with(x, positions, 10000.0, layout="half", **exponent)


def _angles_of(x, positions):
    return rotation_angles(positions, x.shape[-1])


def _swap_without_minus(x):
    a, b = x.chunk(2, dim=-1)
    return join_halves(b, a)


def _minus_first_half(x):
    a, b = x.chunk(2, dim=-1)
    return join_halves(-a, b)


def _swapped_as_neighbours(x):
    a, b = x.chunk(2, dim=-1)
    return torch.stack([-b, a], dim=-1).flatten(-2)


EXERCISE = Exercise(
    name="hunt_half",
    notebook="06_positional_encodings",
    title="Bug hunt: RoPE in the half layout",
    reference=lambda x, positions: rotary(x, positions, layout="half"),
    solution=rotate_half_layout,
    cases=(
        Case(
            x=torch.tensor([[1.0, 2.0, 3.0, 4.0], [2.0, 0.0, -1.0, 1.0]]),
            positions=torch.tensor([1, 3]),
        ),
        Case(x=random_tensor(2, 3, 5, 6, seed=16), positions=torch.arange(4, 9)),
    ),
    mistakes=(
        Mistake(
            "interleaved",
            lambda x, p: rotate_with(x, p, 10000.0),
            "This is a rotation again, but of neighbouring components. Here component i is paired with component "
            "i + d / 2: keep the halves, and arrange the angles for them.",
        ),
        Mistake(
            "interleaved_other_direction",
            lambda x, p: rotate_with(x, -p, 10000.0),
            "This is a rotation again, but of neighbouring components, and in the other direction. Keep the halves, "
            "and arrange the angles for them.",
        ),
        Mistake(
            "neighbours_of_halves",
            lambda x, p: rotate_each(x, repeat_all(_angles_of(x, p)), swap_pairs),
            "You have changed both lines, and the two layouts are still mixed. The halves were right; only the "
            "angles were not.",
        ),
        Mistake(
            "other_direction",
            lambda x, p: _half_layout(x, -p),
            "This is a rotation again, but in the other direction: the minus was right.",
        ),
        Mistake(
            "other_direction_still_mixed",
            lambda x, p: rotate_each(x, repeat_each(_angles_of(x, -p)), swap_halves),
            "The minus was right. Components i and i + d / 2 are a pair: do they get the same angle?",
        ),
        Mistake(
            "no_minus",
            lambda x, p: rotate_each(x, repeat_all(_angles_of(x, p)), _swap_without_minus),
            "The angles are right now, but the minus is missing, so norms still change.",
        ),
        Mistake(
            "halves_not_swapped",
            lambda x, p: rotate_each(x, repeat_all(_angles_of(x, p)), _minus_first_half),
            "The angles are right now, but each component needs the other one of its pair: [-b, a], not [-a, b].",
        ),
        Mistake(
            "mirrored",
            lambda x, p: rotate_each(
                x, join_halves(t := _angles_of(x, p), t.flip(-1)), swap_halves
            ),
            "Your second half has the angles in reverse order. Component i + d / 2 needs the angle of component i.",
        ),
        Mistake(
            "one_frequency",
            lambda x, p: _half_layout(x, p, times=0),
            "All pairs have the same frequency now. Each needs its own.",
        ),
        Mistake(
            "by_index",
            lambda x, p: _half_layout(x, torch.arange(len(p))),
            "The layout is right now, but you count the positions from 0. Use the given ones.",
        ),
        Mistake(
            "doubled",
            lambda x, p: _half_layout(x, p, times=4),
            "The layout is right now, but the exponents are doubled.",
        ),
        Mistake(
            "halved",
            lambda x, p: _half_layout(x, p, times=1),
            "The layout is right now, but the exponents are half of what they were: pair i has the exponent -2 i / d.",
        ),
        Mistake(
            "frequency_of_each_component",
            lambda x, p: rotate_each(
                x, p[:, None] * 10000 ** (-torch.arange(x.shape[-1]) / x.shape[-1]), swap_halves
            ),
            "Every component has a frequency of its own now. The two components of a pair, i and i + d / 2, need the same one.",
        ),
        Mistake(
            "sine_subtracted",
            lambda x, p: rotate_each(
                x, repeat_all(_angles_of(x, p)), lambda x: -_swap_without_minus(x)
            ),
            "The angles are right now, but both sines are subtracted, so norms still change. Only the first half has a minus: "
            "[-b, a].",
        ),
        Mistake(
            "second_half_not_rotated",
            lambda x, p: rotate_each(
                x, join_halves(t := _angles_of(x, p), torch.zeros_like(t)), swap_halves
            ),
            "The angles of the second half are 0 now. Component i + d / 2 needs the angle of component i.",
        ),
        Mistake(
            "sine_and_cosine_exchanged",
            lambda x, p: (
                x * repeat_all(_angles_of(x, p)).sin()
                + swap_halves(x) * repeat_all(_angles_of(x, p)).cos()
            ),
            "The angles are right now, but sine and cosine are exchanged: x · cos + rotated · sin, as before.",
        ),
        Mistake(
            "joined_as_neighbours",
            lambda x, p: rotate_each(x, repeat_each(_angles_of(x, p)), _swapped_as_neighbours),
            "You join -b and a as neighbours now, in another order than x. Joining them as halves was right, and the bug is still "
            "there.",
        ),
        Mistake(
            "joined_as_neighbours_angles_right",
            lambda x, p: rotate_each(x, repeat_all(_angles_of(x, p)), _swapped_as_neighbours),
            "The angles are right now, but you join -b and a as neighbours, in another order than x. Joining them as halves was "
            "right.",
        ),
    ),
    hints=(
        "A rotation keeps norms. Compare x.norm(dim=-1) before and after, first with d = 2, then with d = 4.",
        "With which component is component 0 combined in the last line? Do the two get the same angle?",
        "Component i is paired with i + d / 2, so the angles must be those of pairs 0 1 2 0 1 2, not 0 0 1 1 2 2: "
        "torch.cat([angles, angles], dim=-1).",
    ),
    given=_given,
)
