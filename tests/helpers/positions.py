"""Formulas and comparisons for the tests of positional encodings."""

import math

import torch

BASES = [10000.0, 100, 500_000.0, 0.5]

# No two axes are equally long, so that none can be taken for another.
BATCH, HEADS, LENGTH, D_HEAD = 2, 3, 5, 8
D_MODEL = HEADS * D_HEAD


def by_formula(positions, size, base=10000.0):
    """Section 3.5, one number at a time: a sine and a cosine for each pair."""
    rows = []
    for p in positions:
        row = []
        for i in range(size // 2):
            angle = p / base ** (2 * i / size)
            row += [math.sin(angle), math.cos(angle)]
        rows.append(row)
    return torch.tensor(rows, dtype=torch.float64)


def heads(*shape, dtype=torch.float64):
    return torch.randn(BATCH, *shape, dtype=dtype, requires_grad=True)


def learned(module):
    return {name: tuple(parameter.shape) for name, parameter in module.named_parameters()}


def by_complex_numbers(x, positions, base=10000.0, layout="interleaved"):
    """Each pair is a complex number, multiplied by e^(i p ω)."""
    size = x.shape[-1]
    pairs = x.unflatten(-1, (-1, 2)) if layout == "interleaved" else x.unflatten(-1, (2, -1)).mT
    turns = torch.tensor(
        [[p / base ** (2 * i / size) for i in range(size // 2)] for p in positions],
        dtype=torch.float64,
    )
    numbers = torch.view_as_complex(pairs.contiguous()) * torch.polar(torch.ones_like(turns), turns)
    pairs = torch.view_as_real(numbers)
    return (pairs if layout == "interleaved" else pairs.mT).flatten(-2)


def of_the_authors(n):
    """`get_slopes` of ofirpress/attention_with_linear_biases, as published."""

    def get_slopes_power_of_2(n):
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        ratio = start
        return [start * ratio**i for i in range(n)]

    if math.log2(n).is_integer():
        return get_slopes_power_of_2(n)
    closest_power_of_2 = 2 ** math.floor(math.log2(n))
    return (
        get_slopes_power_of_2(closest_power_of_2)
        + of_the_authors(2 * closest_power_of_2)[0::2][: n - closest_power_of_2]
    )


def biases(count, queries, keys):
    """Figure 3, one number at a time."""
    first = keys - queries
    return torch.tensor(
        [
            [[-slope * abs(first + i - j) for j in range(keys)] for i in range(queries)]
            for slope in of_the_authors(count)
        ],
        dtype=torch.float64,
    )
