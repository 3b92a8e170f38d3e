"""Bug hunt: RoPE in the half layout."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.transformer.positions import rotary


def rotate_half_layout(x, positions):
    d = x.shape[-1]
    omega = 10000 ** (-torch.arange(0, d, 2) / d)  # (pair,)
    angles = positions[:, None] * omega  # (length, pair)
    angles = torch.cat([angles, angles], dim=-1)  # (length, d): 0 1 2 0 1 2, as the halves are
    a, b = x.chunk(2, dim=-1)  # (…, length, pair) each
    rotated = torch.cat([-b, a], dim=-1)
    return x * angles.cos() + rotated * angles.sin()


def reference(x, positions):
    return rotary(x, positions, layout="half")


GIVEN = "torch.cat([angles, angles], dim=-1) -> angles.repeat_interleave(2, dim=-1)"
NEIGHBOURS = "x.chunk(2, dim=-1) -> x[..., 0::2], x[..., 1::2]"
JOINED = "torch.cat([-b, a], dim=-1) -> torch.stack([-b, a], dim=-1).flatten(-2)"
MISTAKES = rf"""
{GIVEN}
+ {NEIGHBOURS}
+ {JOINED}
    This is a rotation again, but of neighbouring components. Here component i is paired with component i + d / 2:
    keep the halves, and arrange the angles for them.
{GIVEN}
+ {NEIGHBOURS}
+ torch.cat([-b, a], dim=-1) -> torch.stack([b, -a], dim=-1).flatten(-2)
    This is a rotation again, but of neighbouring components, and in the other direction. Keep the halves, and arrange
    the angles for them.
{NEIGHBOURS}
+ {JOINED}
    You have changed both lines, and the two layouts are still mixed. The halves were right; only the angles were not.
{NEIGHBOURS}
    You split x into neighbours and join them as halves. The halves were right.
{GIVEN}
+ {NEIGHBOURS}
    You split x into neighbours and join them as halves. The halves were right, and the bug is still there.
[-b, a] -> [b, -a]
    This is a rotation again, but in the other direction: the minus was right.
{GIVEN}
+ [-b, a] -> [b, -a]
    The minus was right. Components i and i + d / 2 are a pair: do they get the same angle?
[-b, a] -> [b, a]
    The minus is missing, so norms still change: `rotated` is [-b, a].
{GIVEN}
+ [-b, a] -> [b, a]
    The minus is gone now, and the bug is still there. Components i and i + d / 2 are a pair: do they get the same
    angle?
[-b, a] -> [-b, -a]
[angles, angles] -> [angles, -angles]
    Both sines are subtracted, so norms still change. Only the first half has a minus, [-b, a], and components i and i
    + d / 2 have the same angle.
[-b, a] -> [-a, b]
[-b, a] -> [a, -b]
[-b, a] -> [a, b]
[-b, a] -> [-a, -b]
    Each component needs the other one of its pair: the halves of `rotated` are -b and a.
[angles, angles] -> [angles, angles.flip(-1)]
    Your second half has the angles in reverse order. Component i + d / 2 needs the angle of component i.
[angles, angles] -> [angles, 0 * angles]
    The angles of the second half are 0 now. Component i + d / 2 needs the angle of component i.
[angles, angles] -> [0 * angles, angles]
    The angles of the first half are 0 now. Components i and i + d / 2 need the same angle.

torch.arange(0, d, 2) / d -> torch.arange(d) / d
+ torch.cat([angles, angles], dim=-1) -> angles
    Every component has a frequency of its own now. The two components of a pair, i and i + d / 2, need the same one.
10000 ** (-torch.arange(0, d, 2) / d) -> torch.ones(d // 2)
    All pairs have the same frequency now. Each needs its own.
positions[:, None] -> torch.arange(len(positions))[:, None]
    You count the positions from 0. Use the given ones.
positions[:, None] -> (positions[:, None] + 1)
    You add 1 to the positions. Use the given ones.
(0, d, 2) / d -> (0, d, 2) / (d / 2)
    The exponents are doubled: pair i has the exponent -2 i / d.
(0, d, 2) / d -> (0, d, 2) / (2 * d)
    The exponents are half of what they were: pair i has the exponent -2 i / d.
(-torch -> (torch
    The exponents have lost their minus: the frequencies fall from pair to pair.
angles.cos() -> angles.sin()
+ rotated * angles.sin() -> rotated * angles.cos()
    Sine and cosine are exchanged: x · cos + rotated · sin, as before.
x * angles.cos() + rotated * angles.sin() -> a.repeat_interleave(2, -1) * angles.cos() + rotated * angles.sin()
    The cosine is multiplied by the first half alone. It is x · cos + rotated · sin.
{GIVEN}
+ {JOINED}
    You join -b and a as neighbours, in another order than x. Joining them as halves was right, and the bug is still
    there.
{JOINED}
    You join -b and a as neighbours, in another order than x. Joining them as halves was right.
"""

CASES = (
    dict(
        x=torch.tensor([[1.0, 2.0, 3.0, 4.0], [2.0, 0.0, -1.0, 1.0]]),
        positions=torch.tensor([1, 3]),
    ),
    dict(x=random_tensor(2, 3, 5, 6, seed=16), positions=torch.arange(4, 9)),
)
HINTS = """
A rotation keeps norms. Compare x.norm(dim=-1) before and after, first with d = 2, then with d = 4.
With which component is component 0 combined in the last line? Do the two get the same angle?
Component i is paired with i + d / 2, so the angles must be those of pairs 0 1 2 0 1 2, not 0 0 1 1 2 2:
    torch.cat([angles, angles], dim=-1).
"""
