"""Shift sinusoidal rows by k positions."""

import torch

from course_lib.transformer.positions import rotary, sinusoidal_table


def shift(rows, k, base):
    d_model = rows.shape[-1]
    omega = base ** (-torch.arange(0, d_model, 2) / d_model)  # (pair,)
    sin, cos = torch.sin(k * omega), torch.cos(k * omega)  # the same for all rows
    s, c = rows[:, 0::2], rows[:, 1::2]  # (length, pair) each
    pairs = [s * cos + c * sin, c * cos - s * sin]  # sin(a + b), cos(a + b)
    return torch.stack(pairs, dim=-1).flatten(-2)  # (length, d_model)


def reference(rows, k, base):
    return rotary(rows, torch.full((len(rows),), -k), base)


PAIRS = "[s * cos + c * sin, c * cos - s * sin]"
HALVES = "rows[:, 0::2], rows[:, 1::2] -> rows.chunk(2, dim=-1)"
JOINED = "torch.stack(pairs, dim=-1).flatten(-2) -> torch.cat(pairs, dim=-1)"
MISTAKES = rf"""
k * omega => -k * omega
    You rotate in the other direction and get the row k positions earlier. In these pairs the sine comes first: sin(a
    + b) = sin a cos b + cos a sin b.
base ** (-torch.arange(0, d_model, 2) / d_model) -> torch.ones(d_model // 2)
    You rotate every pair by the angle k. Each pair has its own frequency: the angle is k · ω of that pair.
2) / d_model -> 2) / (d_model / 2)
    Your exponents are doubled: if i steps by two, it is i / d_model.
2) / d_model -> 2) / (2 * d_model)
    Your exponents are half of what they should be: if i counts the pairs, it is 2 i / d_model.
(-torch -> (torch
    Your frequencies grow from pair to pair: the exponent has lost its minus. ω is base^(-2 i / d_model).
{HALVES}
+ {JOINED}
{HALVES}
    You pair the first half with the second. In this table the sine and cosine of a pair are neighbours: rows[:, 0::2]
    and rows[:, 1::2].
{JOINED}
    In your result all sines come first and then all cosines. Interleave the pairs again: stack, then flatten.
torch.stack(pairs, dim=-1).flatten(-2) -> rows.roll(-k, 0)
    You roll the rows: those that leave at one end come back at the other. Rotate the pairs within each row instead.
{PAIRS} -> [f((torch.arange(len(rows)) + k)[:, None] * omega) for f in (torch.sin, torch.cos)]
    You compute new rows, counted from position 0. The given rows may start anywhere: rotate those.
k * omega => (torch.arange(len(rows)) + k)[:, None] * omega
    You rotate each row further than the one before. All of them move by the same k.
k * omega => omega
    You always move by one position, whatever k is.
k * omega => abs(k) * omega
    You always move forward. A negative k moves back.
k * omega => 2 * k * omega
    You move by twice as many positions: the angle is k · ω.
c * cos - s -> c * cos + s
    One sign is wrong: cos(a + b) = cos a cos b - sin a sin b. As it is, the norm of the pair changes.
s * cos + c -> s * cos - c
    One sign is wrong: sin(a + b) = sin a cos b + cos a sin b. As it is, the norm of the pair changes.
torch.sin(k * omega), torch.cos(k * omega) -> torch.cos(k * omega), torch.sin(k * omega)
    Sine and cosine of the angle k · ω are exchanged: sin(a + b) = sin a cos b + cos a sin b.
{PAIRS} -> [s + sin, c + cos]
    You add the row of position k. The angles are to be added, not their sines.
{PAIRS} -> [s * sin, c * cos]
    You multiply sine by sine and cosine by cosine. sin(a + b) = sin a cos b + cos a sin b.
{PAIRS} -> [c * cos - s * sin, s * cos + c * sin]
    In your result the cosine of each pair comes before the sine. Column 2i holds the sine.
pairs = {PAIRS} -> s = s * cos + c * sin\npairs = [s, c * cos - s * sin]
    You write the new sines over the old ones and then compute the cosines from the new ones. Compute both from the
    given columns: sin(a + b) and cos(a + b) need sin a and cos a.
base ** -> 10000.0 **
    You always use 10000. The base is an argument.
pairs = {PAIRS} -> angles = torch.atan2(s, c) + k * omega\npairs = [angles.sin(), angles.cos()]
    You compute the angle of each pair and take sine and cosine of the sum: every pair of yours has norm 1. Some rows
    are multiplied by a number, so rotate the pairs themselves: sin(a + b) = sin a cos b + cos a sin b, and this is
    linear in the pair.
pairs = {PAIRS} -> angles = torch.asin(s.clamp(-1, 1)) + k * omega\npairs = [angles.sin(), angles.cos()]
pairs = {PAIRS} -> angles = torch.asin(s) + k * omega\npairs = [angles.sin(), angles.cos()]
    asin returns angles between -π/2 and π/2 only, so in half of the rows it is another angle than the one that was
    encoded. No angle is needed: sin(a + b) = sin a cos b + cos a sin b.
pairs = {PAIRS} -> angles = torch.acos(c.clamp(-1, 1)) + k * omega\npairs = [angles.sin(), angles.cos()]
pairs = {PAIRS} -> angles = torch.acos(c) + k * omega\npairs = [angles.sin(), angles.cos()]
    acos returns angles between 0 and π only, so in half of the rows it is another angle than the one that was
    encoded. No angle is needed: sin(a + b) = sin a cos b + cos a sin b.
torch.sin(k * omega), torch.cos(k * omega) -> torch.sin(torch.arange(len(rows))[:, None] * k * omega), torch.cos(torch.arange(len(rows))[:, None] * k * omega)
    Your angle grows with the number of the row. Every row is shifted by the same k positions: its angle is k ω.
"""

CASES = (
    dict(rows=sinusoidal_table(5, 4, 100.0)[3:].clone(), k=2, base=100.0),
    # twice the rows: pairs of norm 2
    dict(rows=2 * sinusoidal_table(4, 4, 100.0)[2:], k=1, base=100.0),
    dict(rows=sinusoidal_table(9, 6, 50.0)[4:].clone(), k=-3, base=50.0),
    dict(rows=sinusoidal_table(7, 8), k=5, base=10000.0),
)
HINTS = """
sin(a + b) = sin a cos b + cos a sin b. Where in rows are sin a and cos a, and what is b?
cos(a + b) = cos a cos b - sin a sin b, with b = k * omega: one angle per pair, the same for all rows.
s, c = rows[:, 0::2], rows[:, 1::2]. The new pairs are s cos b + c sin b and c cos b - s sin b. Stack and flatten
    them.
"""
