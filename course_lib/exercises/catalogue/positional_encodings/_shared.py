"""Helpers of several exercises of notebook 06."""

import torch

from course_lib.positions.rotary import phases, rotate_pairs


def rotation_angles(positions, size, base=10000.0, *, times=2.0, over=None):
    """Position · base^-(times · i / over) for each pair i: correct with `times` 2 and `over` = `size`."""
    pairs = torch.arange(size // 2)
    return positions[:, None] * base ** (-times * pairs / (size if over is None else over))


def interleave(first, second):
    return torch.stack([first, second], dim=-1).flatten(-2)


def join_halves(first, second):
    return torch.cat([first, second], dim=-1)


def sines_and_cosines(angles, *, join=interleave):
    return join(angles.sin(), angles.cos())


def rotate_by(x, angles, layout="interleaved"):
    return rotate_pairs(x.contiguous(), phases(angles, x), layout)


def swap_pairs(x):
    return interleave(-x[..., 1::2], x[..., 0::2])


def swap_halves(x):
    a, b = x.chunk(2, dim=-1)
    return join_halves(-b, a)


def rotate_each(x, angles, swap):
    """Rotate each component by its own angle, (length, d); `swap` gives the partner of each."""
    return x * angles.cos() + swap(x) * angles.sin()


def repeat_each(angles):
    return angles.repeat_interleave(2, dim=-1)  # 0 0 1 1


def repeat_all(angles):
    return angles.repeat(1, 2)  # 0 1 0 1


def rotate_with(x, positions, base, *, layout="interleaved", **exponent):
    return rotate_by(x, rotation_angles(positions, x.shape[-1], base, **exponent), layout)
