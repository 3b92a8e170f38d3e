"""Exercise `shift` of notebook 06."""

import torch

from course_lib.exercises.catalogue.positional_encodings._shared import (
    interleave,
    rotate_by,
    rotation_angles,
    sines_and_cosines,
)
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.positions import (
    rotary,
    sinusoidal_table,
)


def shift(rows, k, base):
    d_model = rows.shape[-1]
    omega = base ** (-torch.arange(0, d_model, 2) / d_model)  # (pair,)
    sin, cos = torch.sin(k * omega), torch.cos(k * omega)  # the same for all rows
    s, c = rows[:, 0::2], rows[:, 1::2]  # (length, pair) each
    pairs = [s * cos + c * sin, c * cos - s * sin]  # sin(a + b), cos(a + b)
    return torch.stack(pairs, dim=-1).flatten(-2)  # (length, d_model)


def _shift_with(rows, k, base, *, layout="interleaved", by=None, **exponent):
    """Rotate all rows by k positions, or each row by its own number of positions, `by`."""
    by = torch.full((len(rows),), k) if by is None else by
    return rotate_by(rows, rotation_angles(-by, rows.shape[-1], base, **exponent), layout)


def _new_rows(rows, k, base):
    return sines_and_cosines(rotation_angles(torch.arange(len(rows)) + k, rows.shape[-1], base))


def _shift_without_minus(rows, k, base):
    angles = rotation_angles(torch.tensor([k]), rows.shape[-1], base)
    s, c = rows[:, 0::2], rows[:, 1::2]
    return interleave(s * angles.cos() + c * angles.sin(), c * angles.cos() + s * angles.sin())


def _shift_overwritten(rows, k, base):
    angles = rotation_angles(torch.tensor([k]), rows.shape[-1], base)
    s = rows[:, 0::2] * angles.cos() + rows[:, 1::2] * angles.sin()
    return interleave(s, rows[:, 1::2] * angles.cos() - s * angles.sin())


def _angles_added(rows, k, base, inverse):
    columns = rows[:, 0::2] if inverse is torch.asin else rows[:, 1::2]
    angles = inverse(columns.clamp(-1, 1)) + rotation_angles(
        torch.tensor([k]), rows.shape[-1], base
    )
    return sines_and_cosines(angles)


EXERCISE = Exercise(
    name="shift",
    notebook="06_positional_encodings",
    title="Shift sinusoidal rows by k positions",
    reference=lambda rows, k, base: rotary(rows, torch.full((len(rows),), -k), base),
    solution=shift,
    cases=(
        Case(rows=sinusoidal_table(5, 4, 100.0)[3:].clone(), k=2, base=100.0),
        Case(rows=sinusoidal_table(9, 6, 50.0)[4:].clone(), k=-3, base=50.0),
        Case(rows=sinusoidal_table(7, 8), k=5, base=10000.0),
    ),
    mistakes=(
        Mistake(
            "wrong_direction",
            lambda rows, k, base: _shift_with(rows, -k, base),
            "You rotate in the other direction and get the row k positions earlier. In these pairs the sine comes first: "
            "sin(a + b) = sin a cos b + cos a sin b.",
        ),
        Mistake(
            "one_frequency",
            lambda *a: _shift_with(*a, times=0),
            "You rotate every pair by the angle k. Each pair has its own frequency: the angle is k · ω of that pair.",
        ),
        Mistake(
            "doubled",
            lambda *a: _shift_with(*a, times=4),
            "Your exponents are doubled: if i steps by two, it is i / d_model.",
        ),
        Mistake(
            "halved",
            lambda *a: _shift_with(*a, times=1),
            "Your exponents are half of what they should be: if i counts the pairs, it is 2 i / d_model.",
        ),
        Mistake(
            "halves",
            lambda *a: _shift_with(*a, layout="half"),
            "You pair the first half with the second. In this table the sine and cosine of a pair are neighbours: "
            "rows[:, 0::2] and rows[:, 1::2].",
        ),
        Mistake(
            "left_in_halves",
            lambda *a: torch.cat([(out := _shift_with(*a))[:, 0::2], out[:, 1::2]], dim=-1),
            "The rotation is right, but all sines come first and then all cosines. Interleave the pairs again: "
            "stack, then flatten.",
        ),
        Mistake(
            "rolled",
            lambda rows, k, base: rows.roll(-k, 0),
            "You roll the rows: those that leave at one end come back at the other. Rotate the pairs within each "
            "row instead.",
        ),
        Mistake(
            "new_table",
            _new_rows,
            "You compute new rows, counted from position 0. The given rows may start anywhere: rotate those.",
        ),
        Mistake(
            "by_row",
            lambda rows, k, base: _shift_with(rows, k, base, by=torch.arange(len(rows)) + k),
            "You rotate each row further than the one before. All of them move by the same k.",
        ),
        Mistake(
            "one_step",
            lambda rows, k, base: _shift_with(rows, 1, base),
            "You always move by one position, whatever k is.",
        ),
        Mistake(
            "no_minus",
            _shift_without_minus,
            "One sign is wrong: cos(a + b) = cos a cos b - sin a sin b. As it is, the norm of the pair changes.",
        ),
        Mistake(
            "added",
            lambda rows, k, base: rows + _new_rows(rows[:1], k, base),
            "You add the row of position k. The angles are to be added, not their sines.",
        ),
        Mistake(
            "base_ignored",
            lambda rows, k, base: _shift_with(rows, k, 10000.0),
            "You always use 10000. The base is an argument.",
        ),
        Mistake(
            "sines_and_cosines_exchanged",
            lambda *a: interleave((out := _shift_with(*a))[:, 1::2], out[:, 0::2]),
            "The rotation is right, but the cosine of each pair comes before the sine. Column 2i holds the sine.",
        ),
        Mistake(
            "overwritten",
            _shift_overwritten,
            "You write the new sines over the old ones and then compute the cosines from the new ones. Compute both from the "
            "given columns: sin(a + b) and cos(a + b) need sin a and cos a.",
        ),
        Mistake(
            "exponent_without_minus",
            lambda *a: _shift_with(*a, times=-2),
            "Your frequencies grow from pair to pair: the exponent has lost its minus. ω is base^(-2 i / d_model).",
        ),
        Mistake(
            "by_arcsine",
            lambda rows, k, base: _angles_added(rows, k, base, torch.asin),
            "asin returns angles between -π/2 and π/2 only, so in half of the rows it is another angle than the one that was "
            "encoded. No angle is needed: sin(a + b) = sin a cos b + cos a sin b.",
        ),
        Mistake(
            "by_arccosine",
            lambda rows, k, base: _angles_added(rows, k, base, torch.acos),
            "acos returns angles between 0 and π only, so in half of the rows it is another angle than the one that was "
            "encoded. No angle is needed: sin(a + b) = sin a cos b + cos a sin b.",
        ),
        Mistake(
            "absolute_shift",
            lambda rows, k, base: _shift_with(rows, abs(k), base),
            "You always move forward. A negative k moves back.",
        ),
    ),
    hints=(
        "sin(a + b) = sin a cos b + cos a sin b. Where in rows are sin a and cos a, and what is b?",
        "cos(a + b) = cos a cos b - sin a sin b, with b = k * omega: one angle per pair, the same for all rows.",
        "s, c = rows[:, 0::2], rows[:, 1::2]. The new pairs are s cos b + c sin b and c cos b - s sin b. Stack and "
        "flatten them.",
    ),
)
