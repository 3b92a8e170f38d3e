"""Exercises and bug hunts of notebook 06."""

import math
from functools import partial

import torch
from torch.func import functional_call

from course_lib.attention import scaled_dot_product_attention
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.positions import (
    LearnedPositions,
    T5RelativeBias,
    alibi_bias,
    alibi_slopes,
    relative_positions,
    rotary,
    sinusoidal_table,
    t5_bucket,
)
from course_lib.positions.rotary import turned

_NOTEBOOK = "06_positional_encodings"


def _drawn(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def _short(*shape, seed):
    """Drawn as well, with one decimal: for a report that is read."""
    return _drawn(*shape, seed=seed).round(decimals=1)


def _angles(positions, size, base=10000.0, *, times=2.0, over=None):
    """Position · base^-(times · i / over) for each pair i: right with 2 and `size`."""
    pairs = torch.arange(size // 2)
    return positions[:, None] * base ** (-times * pairs / (size if over is None else over))


def _in_pairs(first, second):
    return torch.stack([first, second], dim=-1).flatten(-2)


def _in_halves(first, second):
    return torch.cat([first, second], dim=-1)


def _waves(angles, *, join=_in_pairs):
    return join(angles.sin(), angles.cos())


def _by_column(angles):
    """Sines in even columns, cosines in odd ones, of an angle for each column."""
    even = torch.arange(angles.shape[-1]) % 2 == 0
    return torch.where(even, angles.sin(), angles.cos())


def _columns(length, size, base=10000.0, *, exponent):
    """The table where the exponent of the base is -exponent(column) / size."""
    angles = torch.arange(length)[:, None] * base ** (-exponent(torch.arange(size)) / size)
    return _by_column(angles)


def _turn(x, angles, layout="interleaved"):
    return turned(x, angles.cos(), angles.sin(), layout)


def _swap_pairs(x):
    return _in_pairs(-x[..., 1::2], x[..., 0::2])


def _swap_halves(x):
    a, b = x.chunk(2, dim=-1)
    return _in_halves(-b, a)


def _turn_each(x, angles, swap):
    """Each number turned with an angle of its own, (length, d); `swap` says who its partner is."""
    return x * angles.cos() + swap(x) * angles.sin()


def _twice_each(angles):
    return angles.repeat_interleave(2, dim=-1)  # 0 0 1 1


def _twice_all(angles):
    return angles.repeat(1, 2)  # 0 1 0 1


# --- sinusoid --------------------------------------------------------------------------------


def sinusoid(length, d_model, base):
    positions = torch.arange(length)[:, None]  # (length, 1)
    omega = base ** (-torch.arange(0, d_model, 2) / d_model)  # (pair,)
    angles = positions * omega  # (length, pair)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)  # (length, d_model)


def _sinusoid(length, d_model, base, *, start=0, turns=1.0, join=_in_pairs, **exponent):
    positions = torch.arange(start, start + length)
    return _waves(turns * _angles(positions, d_model, base, **exponent), join=join)


def _of_frequencies(length, omega):
    return _waves(torch.arange(length)[:, None] * omega)


_SINUSOID = Exercise(
    name="sinusoid",
    notebook=_NOTEBOOK,
    title="The table of sines and cosines",
    reference=sinusoidal_table,
    solution=sinusoid,
    cases=(
        Case(length=2, d_model=4, base=100.0),
        Case(length=5, d_model=6, base=50.0),
        Case(length=3, d_model=8, base=10000.0),
    ),
    mistakes=(
        Mistake(
            "doubled",
            lambda *a: _sinusoid(*a, times=4),
            "Your exponents are doubled. Either i counts the pairs and the exponent is 2 i / d_model, or i steps by "
            "two and has the 2 in it already.",
        ),
        Mistake(
            "halved",
            lambda *a: _sinusoid(*a, times=1),
            "Your exponents are half of what they should be. If i counts the pairs, the exponent is 2 i / d_model.",
        ),
        Mistake(
            "own_frequencies",
            lambda n, d, base: _columns(n, d, base, exponent=lambda c: c),
            "Each of your columns has a frequency of its own. The sine and the cosine of a pair share one, or moving "
            "on is no rotation.",
        ),
        Mistake(
            "own_frequencies_and_doubled",
            lambda n, d, base: _columns(n, d, base, exponent=lambda c: 2 * c),
            "Two things at once: the exponents are doubled, and the cosine has another frequency than its sine. Both "
            "columns of pair i use base^(-2 i / d_model).",
        ),
        Mistake(
            "one_frequency",
            lambda *a: _sinusoid(*a, times=0),
            "All your pairs turn at the same speed. Pair i has the frequency base^(-2 i / d_model).",
        ),
        Mistake(
            "halves",
            lambda *a: _sinusoid(*a, join=_in_halves),
            "Sines in the first half and cosines in the second: so tensor2tensor lays its table out. The numbers are "
            "those of the paper, the order is not: there each sine has its cosine beside it.",
        ),
        Mistake(
            "slowest_is_base",
            lambda n, d, base: _sinusoid(n, d, base, times=1, over=d // 2 - 1),
            "Your slowest pair has the frequency 1 / base exactly: you divide by the number of pairs less one, as "
            "tensor2tensor does. In the paper's formula it is 2 i / d_model.",
        ),
        Mistake(
            "tensor2tensor",
            lambda n, d, base: _sinusoid(n, d, base, times=1, over=d // 2 - 1, join=_in_halves),
            "This is the table of tensor2tensor: first all sines, then all cosines, and the slowest frequency is "
            "1 / base exactly. The paper's formula alternates, with the exponent 2 i / d_model.",
        ),
        Mistake(
            "swapped",
            lambda *a: _sinusoid(*a, join=lambda sin, cos: _in_pairs(cos, sin)),
            "Your cosines come first. Column 2 i holds the sine, column 2 i + 1 the cosine.",
        ),
        Mistake(
            "sines_only",
            lambda *a: _sinusoid(*a, join=lambda sin, cos: _in_pairs(sin, sin)),
            "Both numbers of your pairs are sines. The second is the cosine.",
        ),
        Mistake(
            "from_one",
            lambda *a: _sinusoid(*a, start=1),
            "Your first row belongs to position 1. Positions count from 0.",
        ),
        Mistake(
            "degrees",
            lambda *a: _sinusoid(*a, turns=math.pi / 180),
            "You take the angles for degrees. sin and cos want radians, and that is what position · ω is.",
        ),
        Mistake(
            "whole_turns",
            lambda *a: _sinusoid(*a, turns=2 * math.pi),
            "There is a 2π too many. position · ω is the angle; the wavelength is 2π / ω by itself.",
        ),
        Mistake(
            "inverted",
            lambda *a: _sinusoid(*a, times=-2),
            "Your frequencies grow from pair to pair. Divide by base^(2 i / d_model), or use a negative exponent.",
        ),
        Mistake(
            "divided_too_late",
            lambda n, d, base: _of_frequencies(n, base ** -torch.arange(0.0, d, 2) / d),
            "Python takes powers before it divides: base ** i / d is (base ** i) / d. Put the whole exponent into "
            "parentheses.",
        ),
        Mistake(
            "divided_too_late_below",
            lambda n, d, base: _of_frequencies(n, d / base ** torch.arange(0.0, d, 2)),
            "Below your fraction stands base ** i / d, and that is (base ** i) / d. Put the whole exponent into "
            "parentheses.",
        ),
        Mistake(
            "base_times_exponent",
            lambda n, d, base: _of_frequencies(n, 1 / (base * torch.arange(0, d, 2) / d)),
            "You multiply the base by 2 i / d_model, which is 0 for the first pair, and divide by that. It is an "
            "exponent: base ** (2 i / d_model).",
        ),
        Mistake(
            "base_ignored",
            lambda n, d, base: _sinusoid(n, d, 10000.0),
            "You always use 10000. The base is an argument.",
        ),
    ),
    hints=(
        "A row per position, a column per pair: which angle has pair i at position p?",
        "omega = base ** (-torch.arange(0, d_model, 2) / d_model). Positions as a column times omega gives all "
        "angles, (length, pair).",
        "torch.stack([angles.sin(), angles.cos()], dim=-1) is (length, pair, 2). Flatten the last two axes.",
    ),
    differentiable=False,
)


# --- shift -----------------------------------------------------------------------------------


def shift(rows, k, base):
    d_model = rows.shape[-1]
    omega = base ** (-torch.arange(0, d_model, 2) / d_model)  # (pair,)
    sin, cos = torch.sin(k * omega), torch.cos(k * omega)  # the same for all rows
    s, c = rows[:, 0::2], rows[:, 1::2]  # (length, pair) each
    pairs = [s * cos + c * sin, c * cos - s * sin]  # sin(a + b), cos(a + b)
    return torch.stack(pairs, dim=-1).flatten(-2)  # (length, d_model)


def _shift(rows, k, base, *, layout="interleaved", by=None, **exponent):
    """Rows turned by k positions, or each row by its own number of positions, `by`."""
    by = torch.full((len(rows),), k) if by is None else by
    return _turn(rows, _angles(-by, rows.shape[-1], base, **exponent), layout)


def _new_rows(rows, k, base):
    return _waves(_angles(torch.arange(len(rows)) + k, rows.shape[-1], base))


def _shift_without_minus(rows, k, base):
    angles = _angles(torch.tensor([k]), rows.shape[-1], base)
    s, c = rows[:, 0::2], rows[:, 1::2]
    return _in_pairs(s * angles.cos() + c * angles.sin(), c * angles.cos() + s * angles.sin())


_SHIFT = Exercise(
    name="shift",
    notebook=_NOTEBOOK,
    title="From one position to another, by turning",
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
            lambda rows, k, base: _shift(rows, -k, base),
            "You turn the other way, and land k positions earlier. In these pairs the sine stands first: "
            "sin(a + b) = sin a cos b + cos a sin b.",
        ),
        Mistake(
            "one_frequency",
            lambda *a: _shift(*a, times=0),
            "You turn every pair by the angle k. Each pair has its own speed: the angle is k · ω of that pair.",
        ),
        Mistake(
            "doubled",
            lambda *a: _shift(*a, times=4),
            "Your exponents are doubled: if i steps by two, it is i / d_model.",
        ),
        Mistake(
            "halved",
            lambda *a: _shift(*a, times=1),
            "Your exponents are half of what they should be: if i counts the pairs, it is 2 i / d_model.",
        ),
        Mistake(
            "halves",
            lambda *a: _shift(*a, layout="half"),
            "You pair the first half with the second. In this table the sine and cosine of a pair are neighbours: "
            "rows[:, 0::2] and rows[:, 1::2].",
        ),
        Mistake(
            "left_in_halves",
            lambda *a: torch.cat([(out := _shift(*a))[:, 0::2], out[:, 1::2]], dim=-1),
            "Turned right, but you put all sines first and all cosines behind them. Put each pair back together: "
            "stack, then flatten.",
        ),
        Mistake(
            "rolled",
            lambda rows, k, base: rows.roll(-k, 0),
            "You move the rows, and those that fall off at one end come back at the other. Turn the numbers of each "
            "row.",
        ),
        Mistake(
            "new_table",
            _new_rows,
            "You make new rows, counted from 0. Those that come may start anywhere: turn what is given.",
        ),
        Mistake(
            "by_row",
            lambda rows, k, base: _shift(rows, k, base, by=torch.arange(len(rows)) + k),
            "Each of your rows is turned further than the one before. All of them move by the same k.",
        ),
        Mistake(
            "one_step",
            lambda rows, k, base: _shift(rows, 1, base),
            "You go one position further, whatever k is.",
        ),
        Mistake(
            "no_minus",
            _shift_without_minus,
            "One sign is wrong: cos(a + b) = cos a cos b - sin a sin b. As it is, the pair gets longer or shorter.",
        ),
        Mistake(
            "added",
            lambda rows, k, base: rows + _new_rows(rows[:1], k, base),
            "You add the row of position k. It is the angles that add up, not their sines.",
        ),
        Mistake(
            "base_ignored",
            lambda rows, k, base: _shift(rows, k, 10000.0),
            "You always use 10000. The base is an argument.",
        ),
    ),
    hints=(
        "sin(a + b) = sin a cos b + cos a sin b. Where in rows are sin a and cos a, and what is b?",
        "cos(a + b) = cos a cos b - sin a sin b, with b = k * omega: one angle per pair, the same for all rows.",
        "s, c = rows[:, 0::2], rows[:, 1::2]. The new pairs are s cos b + c sin b and c cos b - s sin b. Stack and "
        "flatten them.",
    ),
)


# --- rotate ----------------------------------------------------------------------------------


def rotate(x, positions, base):
    d_head = x.shape[-1]
    omega = base ** (-torch.arange(0, d_head, 2) / d_head)  # (pair,)
    angles = positions[:, None] * omega  # (length, pair)
    a, b = x[..., 0::2], x[..., 1::2]  # (…, length, pair) each
    pairs = [a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()]
    return torch.stack(pairs, dim=-1).flatten(-2)  # (…, length, d_head)


def _rotate(x, positions, base, *, layout="interleaved", **exponent):
    return _turn(x, _angles(positions, x.shape[-1], base, **exponent), layout)


def _rotate_without_minus(x, positions, base):
    angles = _angles(positions, x.shape[-1], base)
    a, b = x[..., 0::2], x[..., 1::2]
    return _in_pairs(a * angles.cos() + b * angles.sin(), a * angles.sin() + b * angles.cos())


def _per_number(x, positions, base):
    """Every number with the frequency of its own column."""
    size = x.shape[-1]
    angles = positions[:, None] * base ** (-torch.arange(size) / size)
    return _turn_each(x, angles, _swap_pairs)


_ROTATE = Exercise(
    name="rotate",
    notebook=_NOTEBOOK,
    title="Rotary positions",
    reference=rotary,
    solution=rotate,
    cases=(
        Case(x=_short(2, 4, seed=0), positions=torch.tensor([1, 3]), base=100.0),
        Case(x=_drawn(3, 5, 4, seed=1), positions=torch.tensor([0, 1, 3, 2, 5]), base=10000.0),
        Case(x=_drawn(2, 3, 5, 6, seed=2), positions=torch.arange(4, 9), base=50.0),
    ),
    mistakes=(
        Mistake(
            "one_frequency",
            lambda *a: _rotate(*a, times=0),
            "You turn every pair by the position itself. Rotary has a frequency per pair: base^(-2 i / d_head).",
        ),
        Mistake(
            "one_slow_frequency",
            lambda x, p, base: _rotate(x, p / base, base, times=0),
            "All your pairs turn by position / base. Rotary has a frequency per pair: base^(-2 i / d_head).",
        ),
        Mistake(
            "halves",
            lambda *a: _rotate(*a, layout="half"),
            "You pair number i with number i + d_head / 2: the layout of LLaMA. Here neighbours are pairs.",
        ),
        Mistake(
            "halves_other_direction",
            lambda x, p, base: _rotate(x, -p, base, layout="half"),
            "You pair number i with number i + d_head / 2, and you turn the other way. Here neighbours are pairs: "
            "a cos - b sin, a sin + b cos.",
        ),
        Mistake(
            "halves_of_neighbours",
            lambda x, p, base: _turn_each(
                x, _twice_each(_angles(p, x.shape[-1], base)), _swap_halves
            ),
            "Two layouts are mixed: the angles are laid out for neighbours, the numbers swapped between the halves. "
            "What you get is no rotation.",
        ),
        Mistake(
            "neighbours_of_halves",
            lambda x, p, base: _turn_each(
                x, _twice_all(_angles(p, x.shape[-1], base)), _swap_pairs
            ),
            "Two layouts are mixed: neighbours are swapped, and the angles are laid out for two halves. What you get "
            "is no rotation.",
        ),
        Mistake(
            "left_in_halves",
            lambda *a: torch.cat([(out := _rotate(*a))[..., 0::2], out[..., 1::2]], dim=-1),
            "Turned right, but the pairs are torn apart: all first numbers, then all second ones. Stack them on a "
            "new last axis, then flatten.",
        ),
        Mistake(
            "other_direction",
            lambda x, p, base: _rotate(x, -p, base),
            "You turn the other way, as if each position were negative. The first number becomes a cos - b sin, the "
            "second a sin + b cos.",
        ),
        Mistake(
            "doubled",
            lambda *a: _rotate(*a, times=4),
            "Your exponents are doubled: if i steps by two, it is i / d_head.",
        ),
        Mistake(
            "halved",
            lambda *a: _rotate(*a, times=1),
            "Your exponents are half of what they should be: if i counts the pairs, it is 2 i / d_head.",
        ),
        Mistake(
            "inverted",
            lambda *a: _rotate(*a, times=-2),
            "Your frequencies grow from pair to pair. The exponent is negative: base^(-2 i / d_head).",
        ),
        Mistake(
            "per_number",
            _per_number,
            "Each number has a frequency of its own. The two of a pair share one, or it is no rotation.",
        ),
        Mistake(
            "by_index",
            lambda x, p, base: _rotate(x, torch.arange(len(p)), base),
            "You count the positions from 0 yourself. Use those that are given: they may start anywhere, and skip.",
        ),
        Mistake(
            "from_one",
            lambda x, p, base: _rotate(x, p + 1, base),
            "Each vector is turned by one position too many. Position 0 is not turned at all.",
        ),
        Mistake(
            "no_minus",
            _rotate_without_minus,
            "One sign is wrong: a cos - b sin, a sin + b cos. As it is, vectors get longer or shorter.",
        ),
        Mistake(
            "cosines_only",
            lambda x, p, base: x * _twice_each(_angles(p, x.shape[-1], base)).cos(),
            "You multiply by the cosines and leave the sines out. A rotation needs both.",
        ),
        Mistake(
            "added",
            lambda x, p, base: x + _waves(_angles(p, x.shape[-1], base)),
            "You add sines and cosines. That is the sinusoidal encoding; rotary turns the vector itself.",
        ),
        Mistake(
            "base_ignored",
            lambda x, p, base: _rotate(x, p, 10000.0),
            "You always use 10000. The base is an argument.",
        ),
    ),
    hints=(
        "Two numbers and an angle: how do you rotate (a, b)? Which two numbers are pair i, and what is its angle?",
        "angles = positions[:, None] * omega is (length, pair). a, b = x[..., 0::2], x[..., 1::2] fit beside it.",
        "a cos - b sin and a sin + b cos, then torch.stack([…, …], dim=-1).flatten(-2).",
    ),
)


# --- add_t5_bias -----------------------------------------------------------------------------


def add_t5_bias(scores, table, buckets):
    bias = table[buckets]  # (query, key, heads)
    return scores + bias.permute(2, 0, 1)  # (heads, query, key): the same for the whole batch


_FAR = 4  # from this distance on, all share a bucket


def _t5(scores, table, buckets):
    """The layer with this table; it finds the buckets of these lengths itself."""
    layer = T5RelativeBias(scores.shape[1], num_buckets=len(table), max_distance=_FAR)
    return scores + functional_call(layer, {"table": table}, scores.shape[-2:])


def _t5_case(*shape, num_buckets, seed, draw):
    relative = relative_positions(*shape[-2:])
    return Case(
        scores=draw(*shape, seed=seed),
        table=draw(num_buckets, shape[1], seed=seed + 1),
        buckets=t5_bucket(relative, num_buckets=num_buckets, max_distance=_FAR),
    )


def _bias(table, buckets):
    return table[buckets].permute(2, 0, 1)  # (heads, query, key)


_ADD_T5_BIAS = Exercise(
    name="add_t5_bias",
    notebook=_NOTEBOOK,
    title="A learned number per head and bucket, added to the scores",
    reference=_t5,
    solution=add_t5_bias,
    cases=(
        # As many heads as queries and keys: many wrong orders of the axes fit.
        _t5_case(1, 2, 2, 2, num_buckets=4, seed=3, draw=_short),
        _t5_case(2, 3, 4, 5, num_buckets=8, seed=5, draw=_drawn),
    ),
    mistakes=(
        Mistake(
            "heads_last",
            lambda s, t, b: s + t[b],
            "table[buckets] is (query, key, heads), and you add it as it is. It runs only where the sizes happen to "
            "fit. Bring the heads to the front.",
        ),
        Mistake(
            "reshaped",
            lambda s, t, b: s + t[b].reshape(s.shape[1:]),
            "The shape fits and the numbers are mixed up: reshape cuts the row of all numbers anew. Move the axis, "
            "with permute.",
        ),
        Mistake(
            "transposed",
            lambda s, t, b: s + _bias(t, b).mT,
            "Your bias is transposed: (heads, key, query). A key behind gets what belongs to a key in front.",
        ),
        Mistake(
            "one_axis_too_far",
            lambda s, t, b: s + t[b].permute(0, 2, 1),
            "Yours is (query, heads, key): the heads stand in the middle. The order is (heads, query, key).",
        ),
        Mistake(
            "first_head",
            lambda s, t, b: s + t[b][..., 0],
            "All heads get the bias of head 0. Each has its own column in the table.",
        ),
        Mistake(
            "averaged",
            lambda s, t, b: s + t[b].mean(-1),
            "All heads get the mean of their biases. Each has its own column in the table.",
        ),
        Mistake(
            "summed",
            lambda s, t, b: s + t[b].sum(-1),
            "All heads get the sum of their biases. Each has its own column in the table.",
        ),
        Mistake(
            "multiplied",
            lambda s, t, b: s * _bias(t, b),
            "You multiply. The bias is added to the scores.",
        ),
        Mistake(
            "subtracted",
            lambda s, t, b: s - _bias(t, b),
            "You subtract. The table is learned, with either sign, and it is added.",
        ),
        Mistake(
            "after_softmax",
            lambda s, t, b: torch.softmax(s, dim=-1) + _bias(t, b),
            "You add the bias to the weights. It belongs to the scores, before the softmax.",
        ),
        Mistake(
            "weights",
            lambda s, t, b: torch.softmax(s + _bias(t, b), dim=-1),
            "These are the weights. The scores are asked for: no softmax yet.",
        ),
        Mistake(
            "bias_alone",
            lambda s, t, b: _bias(t, b).expand(s.shape),
            "This is the bias. Add it to the scores.",
        ),
        Mistake(
            "numbers_of_buckets",
            lambda s, t, b: s + b,
            "You add the numbers of the buckets. They say which row of the table to look in.",
        ),
    ),
    hints=(
        "buckets says which row of the table each pair of query and key needs. What shape has table[buckets]?",
        "table[buckets] is (query, key, heads). The scores are (batch, heads, query, key).",
        "table[buckets].permute(2, 0, 1) is (heads, query, key), and the batch broadcasts.",
    ),
)


# --- alibi -----------------------------------------------------------------------------------


def alibi(scores):
    heads, queries, keys = scores.shape[1:]
    below = 2 ** int(math.log2(heads))  # heads, or the largest power of two below
    slopes = [2 ** (-8 * (h + 1) / below) for h in range(below)]
    slopes += [2 ** (-4 * (2 * h + 1) / below) for h in range(heads - below)]  # of 2 · below
    i = torch.arange(keys - queries, keys)[:, None]  # (query, 1): the queries are the last
    distance = (i - torch.arange(keys)).abs()  # (query, key)
    return scores - torch.tensor(slopes)[:, None, None] * distance


def _numbers(heads):
    return torch.arange(1, heads + 1)


def _geometric(heads):
    """What is right where the number of heads is a power of two."""
    return 2 ** (-8 * _numbers(heads) / heads)


def _apart(queries, keys):
    return relative_positions(queries, keys).abs()  # (query, key)


def _in_front(queries, keys):
    return -relative_positions(queries, keys)  # i - j


def _from_zero(queries, keys):
    return (torch.arange(queries)[:, None] - torch.arange(keys)).abs()


def _alibi(scores, *, slopes=alibi_slopes, distance=_apart, sign=-1):
    heads, *lengths = scores.shape[1:]
    return scores + sign * slopes(heads)[:, None, None] * distance(*lengths)


def _hidden_too(scores, *, slopes=alibi_slopes):
    return _alibi(scores, slopes=slopes).masked_fill(_in_front(*scores.shape[-2:]) < 0, -torch.inf)


def _along_the_queries(scores):
    return scores - alibi_slopes(scores.shape[1])[:, None] * _apart(*scores.shape[-2:])


def _after_softmax(scores, *, slopes=alibi_slopes):
    return _alibi(torch.softmax(scores, dim=-1), slopes=slopes)


def _weights(scores, *, slopes=alibi_slopes):
    return torch.softmax(_alibi(scores, slopes=slopes), dim=-1)


_ALSO = " After that, look at numbers of heads that are no power of two."


def _with_either_slopes(name, wrong, says):
    """A mistake of whoever has the slopes right, and of whoever has only those of powers of two."""
    return (
        Mistake(name, wrong, says),
        Mistake(f"{name}_and_geometric", partial(wrong, slopes=_geometric), says + _ALSO),
    )


def _with_slopes(slopes):
    return partial(_alibi, slopes=slopes)


_ALIBI = Exercise(
    name="alibi",
    notebook=_NOTEBOOK,
    title="What is further away scores less",
    reference=lambda scores: scores + alibi_bias(*scores.shape[1:]),
    solution=alibi,
    cases=(
        Case(scores=_short(1, 2, 2, 3, seed=7)),  # as many heads as queries
        Case(scores=_drawn(1, 3, 2, 5, seed=8)),  # not a power of two
        Case(scores=_drawn(2, 4, 3, 6, seed=9)),
    ),
    mistakes=(
        Mistake(
            "always_geometric",
            _with_slopes(_geometric),
            "Right where the number of heads is a power of two. Other numbers take the slopes of the largest power "
            "of two below, and then every second one, from the first on, of the next power of two.",
        ),
        Mistake(
            "every_second_from_the_second",
            _with_slopes(
                lambda n: torch.cat(
                    [
                        _geometric(below := 2 ** int(math.log2(n))),
                        _geometric(2 * below)[1::2][: n - below],
                    ]
                )
            ),
            "With 3 heads two of yours have the same slope. Of the next power of two take every second slope from "
            "the first on, not from the second: those are in use.",
        ),
        Mistake(
            "next_power",
            _with_slopes(lambda n: _geometric(2 ** math.ceil(math.log2(n)))[:n]),
            "With 3 heads you take the first three slopes for 4. Take those for 2, and then every second one, from "
            "the first on, of those for 4.",
        ),
        Mistake(
            "as_for_eight",
            _with_slopes(lambda n: 0.5 ** _numbers(n)),
            "1/2, 1/4, 1/8, … are the slopes for 8 heads. For n heads each is 2^(-8/n) times the one before.",
        ),
        Mistake(
            "exponents_from_zero",
            _with_slopes(lambda n: 2 ** (-8 * (_numbers(n) - 1) / n)),
            "Your exponents begin at 0, so that the first slope is 1. They begin at -8/heads and end at -8.",
        ),
        Mistake(
            "evenly",
            _with_slopes(lambda n: torch.linspace(2 ** (-8 / n), 2**-8, n)),
            "Your slopes go down in equal steps. They are a geometric sequence: each is 2^(-8/heads) times the one "
            "before.",
        ),
        Mistake(
            "linear",
            _with_slopes(lambda n: _numbers(n) / n),
            "Your slopes grow in equal steps. They are a geometric sequence: each is 2^(-8/heads) times the one "
            "before.",
        ),
        Mistake(
            "exponent_alone",
            _with_slopes(lambda n: 8 * _numbers(n) / n),
            "8 (h + 1) / heads is the exponent. The slope is 2 to the minus that.",
        ),
        Mistake(
            "growing",
            _with_slopes(lambda n: 2 ** (8 * _numbers(n) / n)),
            "The exponent of your slopes lacks its minus: they grow up to 256.",
        ),
        Mistake(
            "reversed",
            _with_slopes(lambda n: _geometric(n).flip(0)),
            "Your slopes are in reverse. Head 0 has the steepest one.",
        ),
        Mistake(
            "same_slope",
            _with_slopes(lambda n: torch.full((n,), 2 ** (-8 / n))),
            "All your heads have the same slope. Head h has 2^(-8 (h + 1) / heads).",
        ),
        Mistake(
            "no_slope",
            _with_slopes(torch.ones),
            "You subtract the distance itself. Each head has a slope to multiply it with.",
        ),
        *_with_either_slopes(
            "added",
            partial(_alibi, sign=1),
            "Wrong sign: what is further away scores more. Subtract.",
        ),
        *_with_either_slopes(
            "without_offset",
            partial(_alibi, distance=_from_zero),
            "You count the queries from 0. They are the last ones: the first of them stands at keys - queries.",
        ),
        *_with_either_slopes(
            "added_without_offset",
            partial(_alibi, distance=_from_zero, sign=1),
            "Wrong sign: what is further away scores more. And the queries are the last ones: the first of them "
            "stands at keys - queries.",
        ),
        *_with_either_slopes(
            "signed",
            partial(_alibi, distance=_in_front),
            "Keys behind the query win by their distance here. Under a causal mask nobody would see it; asked for "
            "is |i - j|, which serves without a mask too.",
        ),
        *_with_either_slopes(
            "signed_without_offset",
            partial(_alibi, distance=lambda q, k: torch.arange(q)[:, None] - torch.arange(k)),
            "You count the queries from 0. They are the last ones: the first of them stands at keys - queries. And "
            "a distance is |i - j|, never negative.",
        ),
        *_with_either_slopes(
            "signed_and_added",
            partial(_alibi, distance=_in_front, sign=1),
            "Wrong sign: keys in front of the query win by their distance. Subtract slope · |i - j|.",
        ),
        *_with_either_slopes(
            "clamped",
            partial(_alibi, distance=lambda *n: _in_front(*n).clamp(min=0)),
            "Keys behind the query keep their scores. Under a causal mask nobody would see it; asked for is |i - j|.",
        ),
        *_with_either_slopes(
            "hidden_too",
            _hidden_too,
            "You hide the keys behind the query as well. That is the task of the mask, which comes later.",
        ),
        *_with_either_slopes(
            "place_of_the_key",
            partial(_alibi, distance=lambda queries, keys: torch.arange(keys), sign=1),
            "You add slope · j. A causal mask and a softmax later it is the same, since each row has moved by one "
            "number only; asked for is to subtract slope · |i - j|.",
        ),
        *_with_either_slopes(
            "one_too_many",
            partial(_alibi, distance=lambda *n: _apart(*n) + 1),
            "Your distances are one too large: a query is 0 away from itself.",
        ),
        Mistake(  # with either slopes: with 3 heads it raises
            "along_the_queries",
            _along_the_queries,
            "Your slopes line up with the queries, and it runs only where there are as many heads. Give them two "
            "axes behind: slopes[:, None, None].",
        ),
        *_with_either_slopes(
            "after_softmax",
            _after_softmax,
            "You subtract from the weights. The bias belongs to the scores, before the softmax.",
        ),
        *_with_either_slopes(
            "weights",
            _weights,
            "These are the weights. The scores are asked for: no softmax yet.",
        ),
    ),
    hints=(
        "Two things: a distance for each query and key, and a slope for each head. Which axes does each need?",
        "torch.arange(keys - queries, keys)[:, None] are the places of the queries. Slopes: 2^(-8 (h + 1) / heads) "
        "for a power of two. For 3 heads: those for 2, then every second one of those for 4.",
        "Subtract slopes[:, None, None] * distance. With below = 2 ** int(math.log2(heads)): the slopes for below "
        "heads, then the first heads - below of [0::2] of the slopes for 2 * below heads.",
    ),
)


# --- bug hunts -------------------------------------------------------------------------------


def table(length, d_model):
    positions = torch.arange(length)[:, None]  # (length, 1)
    i = torch.arange(0, d_model, 2)  # 0, 2, 4, …: the 2 is in it
    angles = positions / 10000 ** (i / d_model)  # (length, pair)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)


def _given_table(length, d_model):
    positions = torch.arange(length)[:, None]
    i = torch.arange(0, d_model, 2)
    angles = positions / 10000 ** (2 * i / d_model)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)


def _hunted(length, d_model, **wrong):
    return _sinusoid(length, d_model, 10000.0, **wrong)


_HUNT_EXPONENT = Exercise(
    name="hunt_exponent",
    notebook=_NOTEBOOK,
    title="Bug hunt: half of the pairs stand nearly still",
    reference=sinusoidal_table,
    solution=table,
    cases=(Case(length=2, d_model=4), Case(length=5, d_model=6), Case(length=3, d_model=10)),
    mistakes=(
        Mistake(
            "halved",
            partial(_hunted, times=1),
            "Now the exponents are half of what they should be. The 2 must be there once: in the steps of i, or in "
            "the formula.",
        ),
        Mistake(
            "more_than_doubled",
            partial(_hunted, times=8),
            "The exponents have grown again. i steps by two already: i / d_model is enough.",
        ),
        Mistake(
            "one_frequency",
            partial(_hunted, times=0),
            "All pairs turn at the same speed now. Pair number n needs the exponent 2 n / d_model.",
        ),
        Mistake(
            "inverted",
            partial(_hunted, times=-2),
            "Now the frequencies grow from pair to pair. They shrink: divide by the power.",
        ),
        Mistake(
            "halves",
            partial(_hunted, join=_in_halves),
            "The frequencies are right now. But a sine and its cosine were neighbours, and you have put all sines "
            "first.",
        ),
        Mistake(
            "halves_and_doubled",
            partial(_hunted, join=_in_halves, times=4),
            "The order of the columns was right; put it back. Look at the numbers in them.",
        ),
        Mistake(
            "swapped",
            partial(_hunted, join=lambda sin, cos: _in_pairs(cos, sin)),
            "The frequencies are right now. But the sine comes first.",
        ),
        Mistake(
            "swapped_and_doubled",
            partial(_hunted, join=lambda sin, cos: _in_pairs(cos, sin), times=4),
            "Sine before cosine was right; put it back. Look at the angles.",
        ),
        Mistake(
            "by_column",
            lambda n, d: _columns(n, d, exponent=lambda c: c),
            "Now each column has a frequency of its own. The two of a pair share one.",
        ),
        Mistake(
            "from_one",
            partial(_hunted, start=1),
            "The frequencies are right now. But positions count from 0.",
        ),
    ),
    hints=(
        "With d_model = 4 there are two pairs. Print the angles of position 1. Which should they be?",
        "Which values does i take? In the formula, 2 i / d_model, i counts the pairs: 0, 1, 2, …",
        "torch.arange(0, d_model, 2) is 2 i already: the exponent is i / d_model.",
    ),
    given=_given_table,
    differentiable=False,
)


def waves(length, d_model):
    positions = torch.arange(length)[:, None]  # (length, 1)
    column = torch.arange(d_model)  # (d_model,)
    pair = column // 2  # 0, 0, 1, 1, …: both of a pair turn at one speed
    angles = positions / 10000 ** (2 * pair / d_model)  # (length, d_model)
    return torch.where(column % 2 == 0, angles.sin(), angles.cos())


def _given_waves(length, d_model):
    positions = torch.arange(length)[:, None]
    column = torch.arange(d_model)
    angles = positions / 10000 ** (column / d_model)
    return torch.where(column % 2 == 0, angles.sin(), angles.cos())


def _waved(exponent):
    return lambda length, d_model: _columns(length, d_model, exponent=exponent)


_HUNT_PAIRS = Exercise(
    name="hunt_pairs",
    notebook=_NOTEBOOK,
    title="Bug hunt: a sine and a cosine that part company",
    reference=sinusoidal_table,
    solution=waves,
    cases=(Case(length=2, d_model=4), Case(length=5, d_model=6), Case(length=3, d_model=10)),
    mistakes=(
        Mistake(
            "halved",
            _waved(lambda c: c // 2),
            "Both of a pair share a frequency now. But the exponents are half of what they should be: "
            "2 (column // 2) / d_model.",
        ),
        Mistake(
            "doubled",
            _waved(lambda c: 4 * (c // 2)),
            "Both of a pair share a frequency now. But the exponents are doubled: 2 (column // 2) is the even "
            "column of the pair.",
        ),
        Mistake(
            "rounded_up",
            _waved(lambda c: 2 * ((c + 1) // 2)),
            "Each cosine shares the frequency of the next sine, to its right. Its partner stands to its left: round "
            "down.",
        ),
        Mistake(
            "own_and_doubled",
            _waved(lambda c: 2 * c),
            "Now every column has a frequency of its own, and the exponents are doubled. Which two columns belong "
            "together?",
        ),
        Mistake(
            "two_speeds",
            _waved(lambda c: c % 2),
            "column % 2 says which of the two it is. Which pair it belongs to, column // 2 says.",
        ),
        Mistake(
            "one_frequency",
            _waved(lambda c: 0 * c),
            "All pairs turn at the same speed now. Those of one pair share a frequency; each pair has its own.",
        ),
        Mistake(
            "halves",
            partial(_hunted, join=_in_halves),
            "The frequencies are right now. But a sine and its cosine were neighbours, and you have put all sines "
            "first.",
        ),
        Mistake(
            "swapped",
            partial(_hunted, join=lambda sin, cos: _in_pairs(cos, sin)),
            "The frequencies are right now. But the sine comes first.",
        ),
        Mistake(
            "sines_only",
            partial(_hunted, join=lambda sin, cos: _in_pairs(sin, sin)),
            "The frequencies are right now. But both of a pair are sines.",
        ),
        Mistake(
            "from_one",
            partial(_hunted, start=1),
            "The frequencies are right now. But positions count from 0.",
        ),
    ),
    hints=(
        "A pair is a point on a circle: the sum of its squares is 1. Is it, in row 1?",
        "Print column / d_model. Which columns should have the same exponent?",
        "column // 2 is the number of the pair, 0, 0, 1, 1, …, and 2 * (column // 2) / d_model its exponent.",
    ),
    given=_given_waves,
    differentiable=False,
)


def rotary_attention(query, key, value):
    length, d = query.shape[-2:]
    omega = 10000 ** (-torch.arange(0, d, 2) / d)  # (pair,)
    angles = torch.arange(length)[:, None] * omega  # (length, pair)

    def turn(x):
        a, b = x[..., 0::2], x[..., 1::2]
        pairs = [a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()]
        return torch.stack(pairs, dim=-1).flatten(-2)

    scores = turn(query) @ turn(key).mT / math.sqrt(d)  # (batch, query, key)
    return torch.softmax(scores, dim=-1) @ value  # values say what, not where


def _given_rotary_attention(query, key, value):
    length, d = query.shape[-2:]
    omega = 10000 ** (-torch.arange(0, d, 2) / d)
    angles = torch.arange(length)[:, None] * omega

    def turn(x):
        a, b = x[..., 0::2], x[..., 1::2]
        pairs = [a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()]
        return torch.stack(pairs, dim=-1).flatten(-2)

    scores = turn(query) @ turn(key).mT / math.sqrt(d)
    return torch.softmax(scores, dim=-1) @ turn(value)


def _turned_by(x, times):
    """Turned to `times` its position."""
    return _turn(x, _angles(times * torch.arange(x.shape[-2]), x.shape[-1]))


def _rotary_attention(query, key, value, *, q=1, k=1, v=0, out=0, root=None):
    scores = _turned_by(query, q) @ _turned_by(key, k).mT
    weights = torch.softmax(scores / math.sqrt(query.shape[-1] if root is None else root), dim=-1)
    return _turned_by(weights @ _turned_by(value, v), out)


def _rotary_reference(query, key, value):
    positions = torch.arange(query.shape[-2])
    query, key = rotary(query, positions), rotary(key, positions)
    return scaled_dot_product_attention(query, key, value).output


_HUNT_VALUES = Exercise(
    name="hunt_values",
    notebook=_NOTEBOOK,
    title="Bug hunt: the same words elsewhere mean something else",
    reference=_rotary_reference,
    solution=rotary_attention,
    cases=(
        Case(
            query=_short(1, 2, 2, seed=10),
            key=_short(1, 2, 2, seed=11),
            value=torch.tensor([[[1.0, 2.0], [4.0, 0.0]]]),
        ),
        Case(
            query=_drawn(2, 5, 4, seed=12),
            key=_drawn(2, 5, 4, seed=13),
            value=_drawn(2, 5, 4, seed=14),
        ),
    ),
    mistakes=(
        Mistake(
            "nothing_turned",
            partial(_rotary_attention, q=0, k=0),
            "Nothing is turned now, so the order of the words does not count. Queries and keys must be turned.",
        ),
        Mistake(
            "only_value",
            partial(_rotary_attention, q=0, k=0, v=1),
            "Queries and keys are not turned any more; what is left turned is the one that should not be.",
        ),
        Mistake(
            "only_query",
            partial(_rotary_attention, k=0),
            "Only the queries are turned, so a score depends on where the query stands, not on the distance. Keys "
            "must be turned too.",
        ),
        Mistake(
            "only_key",
            partial(_rotary_attention, q=0),
            "Only the keys are turned, so a score depends on where the key stands, not on the distance. Queries must "
            "be turned too.",
        ),
        Mistake(
            "key_not_turned",
            partial(_rotary_attention, k=0, v=1),
            "The keys must be turned: a score compares a turned query with a turned key. Something else should not "
            "be.",
        ),
        Mistake(
            "query_not_turned",
            partial(_rotary_attention, q=0, v=1),
            "The queries must be turned: a score compares a turned query with a turned key. Something else should "
            "not be.",
        ),
        Mistake(
            "output_turned",
            partial(_rotary_attention, out=1),
            "The values are left alone now, but you turn the output. It still depends on where the words stand.",
        ),
        Mistake(
            "turned_back",
            partial(_rotary_attention, v=1, out=-1),
            "You turn the output back by the position of its query. That does depend on distances alone, and it is "
            "another method: rotary leaves the values as they are.",
        ),
        Mistake(
            "against_each_other",
            partial(_rotary_attention, q=-1),
            "Queries and keys turn in opposite directions, so a score depends on the sum of the positions. Both turn "
            "the same way.",
        ),
        Mistake(
            "no_scale",
            partial(_rotary_attention, root=1),
            "The values are left alone now, but the scale is gone: divide by √d.",
        ),
    ),
    hints=(
        "Give all positions the same value. Whatever the weights are, what must the output be?",
        "Weights depend on distances alone: a product of two turned vectors sees only how far apart they are. Is "
        "there such a product in the last line?",
        "Turn queries and keys. The values are averaged as they are: @ value.",
    ),
    given=_given_rotary_attention,
)


def turn(x, positions):
    d = x.shape[-1]
    omega = 10000 ** (-torch.arange(0, d, 2) / d)  # (pair,)
    angles = positions[:, None] * omega  # (length, pair)
    angles = torch.cat([angles, angles], dim=-1)  # (length, d): 0 1 2 0 1 2, as the halves are
    a, b = x.chunk(2, dim=-1)  # (…, length, pair) each
    swapped = torch.cat([-b, a], dim=-1)
    return x * angles.cos() + swapped * angles.sin()


def _given_turn(x, positions):
    d = x.shape[-1]
    omega = 10000 ** (-torch.arange(0, d, 2) / d)
    angles = positions[:, None] * omega
    angles = angles.repeat_interleave(2, dim=-1)
    a, b = x.chunk(2, dim=-1)
    swapped = torch.cat([-b, a], dim=-1)
    return x * angles.cos() + swapped * angles.sin()


def _half(x, positions, **exponent):
    return _rotate(x, positions, 10000.0, layout="half", **exponent)


def _angles_of(x, positions):
    return _angles(positions, x.shape[-1])


def _swap_without_minus(x):
    a, b = x.chunk(2, dim=-1)
    return _in_halves(b, a)


def _minus_first_half(x):
    a, b = x.chunk(2, dim=-1)
    return _in_halves(-a, b)


_HUNT_LAYOUT = Exercise(
    name="hunt_layout",
    notebook=_NOTEBOOK,
    title="Bug hunt: a rotation that changes lengths",
    reference=lambda x, positions: rotary(x, positions, layout="half"),
    solution=turn,
    cases=(
        Case(x=_short(2, 4, seed=15), positions=torch.tensor([1, 3])),
        Case(x=_drawn(2, 3, 5, 6, seed=16), positions=torch.arange(4, 9)),
    ),
    mistakes=(
        Mistake(
            "interleaved",
            lambda x, p: _rotate(x, p, 10000.0),
            "A rotation again, and you have made neighbours the pairs. Here number i belongs to number i + d / 2: "
            "keep the halves, and lay the angles out for them.",
        ),
        Mistake(
            "interleaved_other_direction",
            lambda x, p: _rotate(x, -p, 10000.0),
            "A rotation again, but you have made neighbours the pairs, and it turns the other way. Keep the halves, "
            "and lay the angles out for them.",
        ),
        Mistake(
            "neighbours_of_halves",
            lambda x, p: _turn_each(x, _twice_all(_angles_of(x, p)), _swap_pairs),
            "You have changed both lines, and the layouts are mixed the other way round. The halves were right; only "
            "the angles were not.",
        ),
        Mistake(
            "other_direction",
            lambda x, p: _half(x, -p),
            "A rotation again, but it turns the other way: the minus was at its place.",
        ),
        Mistake(
            "other_direction_still_mixed",
            lambda x, p: _turn_each(x, _twice_each(_angles_of(x, -p)), _swap_halves),
            "The minus was at its place. Number i and number i + d / 2 are a pair: do they get the same angle?",
        ),
        Mistake(
            "no_minus",
            lambda x, p: _turn_each(x, _twice_all(_angles_of(x, p)), _swap_without_minus),
            "The angles are right now, but the minus is gone, and lengths still change.",
        ),
        Mistake(
            "halves_not_swapped",
            lambda x, p: _turn_each(x, _twice_all(_angles_of(x, p)), _minus_first_half),
            "The angles are right now, but each number must meet its partner: [-b, a], not [-a, b].",
        ),
        Mistake(
            "mirrored",
            lambda x, p: _turn_each(x, _in_halves(t := _angles_of(x, p), t.flip(-1)), _swap_halves),
            "Your second half has the angles in reverse. Number i + d / 2 needs the angle of number i.",
        ),
        Mistake(
            "one_frequency",
            lambda x, p: _half(x, p, times=0),
            "All pairs turn at the same speed now. Each has its own frequency.",
        ),
        Mistake(
            "by_index",
            lambda x, p: _half(x, torch.arange(len(p))),
            "The layout is right now. But you count the positions from 0; use those that are given.",
        ),
        Mistake(
            "doubled",
            lambda x, p: _half(x, p, times=4),
            "The layout is right now. But the exponents are doubled.",
        ),
    ),
    hints=(
        "A rotation keeps lengths. Compare x.norm(dim=-1) before and after, first with d = 2, then with d = 4.",
        "Which number does number 0 meet in swapped? Do the two get the same angle?",
        "Number i is paired with number i + d / 2, so the angles must read 0 1 2 0 1 2, not 0 0 1 1 2 2: "
        "torch.cat([angles, angles], dim=-1).",
    ),
    given=_given_turn,
)


def step(new, past, table):
    fresh = new.shape[1]
    return new + table[past : past + fresh]  # (fresh, d_model), the same for the whole batch


def _given_step(new, past, table):
    return new + table[: new.shape[1]]


def _learned(new, past, table):
    """The layer with this table."""
    return functional_call(LearnedPositions(*table.shape), {"table": table}, (new, past))


_HUNT_FIRST = Exercise(
    name="hunt_first",
    notebook=_NOTEBOOK,
    title="Bug hunt: every new token is the first",
    reference=_learned,
    solution=step,
    cases=(
        Case(
            new=torch.tensor([[[0.5, -1.0]]]),
            past=2,
            table=torch.tensor([[1.0, 2.0], [3.0, 5.0], [4.0, 8.0], [6.0, 7.0], [9.0, 0.0]]),
        ),
        Case(new=_drawn(3, 2, 4, seed=17), past=1, table=_drawn(6, 4, seed=18)),
        Case(new=_drawn(2, 3, 5, seed=19), past=0, table=_drawn(8, 5, seed=20)),  # the first step
        Case(new=_drawn(2, 3, 5, seed=21), past=4, table=_drawn(9, 5, seed=22)),
    ),
    mistakes=(
        Mistake(
            "one_row",
            lambda new, past, table: new + table[past],
            "Right for one new token. When several come at once, yours all stand at the position of the first.",
        ),
        Mistake(
            "one_too_late",
            lambda new, past, table: new + table[past + 1 : past + 1 + new.shape[1]],
            "Off by one: with `past` tokens before it, a token stands at position `past`, since positions count from 0.",
        ),
        Mistake(
            "one_too_early",
            lambda new, past, table: new + table[past - 1 : past - 1 + new.shape[1]],
            "Off by one: with `past` tokens before it, a token stands at position `past`. Yours repeats the position "
            "of the token before.",
        ),
        Mistake(
            "end_not_moved",
            lambda new, past, table: new + table[past : new.shape[1]],
            "You moved the beginning of the slice and not its end, so it holds too few rows, or none.",
        ),
        Mistake(
            "to_the_end",
            lambda new, past, table: new + table[past:],
            "Your slice has no end: it holds all rows that are left. As many as there are new tokens are needed.",
        ),
        Mistake(
            "all_up_to_now",
            lambda new, past, table: new + table[: past + new.shape[1]],
            "Your slice holds the rows of the past as well. Only the new tokens are here.",
        ),
        Mistake(
            "last_rows",
            lambda new, past, table: new + table[-new.shape[1] :],
            "You take the last rows of the table. The table is longer than the text: count from `past`.",
        ),
        Mistake(
            "row_behind",
            lambda new, past, table: new + table[past + new.shape[1]],
            "All your new tokens get one row, that of the token that comes after them.",
        ),
        Mistake(
            "nothing_added",
            lambda new, past, table: new.clone(),
            "Now the new tokens have no position at all.",
        ),
        Mistake(
            "rows_alone",
            lambda new, past, table: table[past : past + new.shape[1]].expand(new.shape),
            "These are the right rows. Add them to new.",
        ),
    ),
    hints=(
        "Call it three times with one new token each, past = 0, 1, 2. Which row is added?",
        "With past tokens before it, at which position does the first new one stand? And the last?",
        "table[past : past + new.shape[1]].",
    ),
    given=_given_step,
)

EXERCISES = (
    _HUNT_EXPONENT,
    _HUNT_PAIRS,
    _HUNT_VALUES,
    _HUNT_LAYOUT,
    _HUNT_FIRST,
    _SINUSOID,
    _SHIFT,
    _ROTATE,
    _ADD_T5_BIAS,
    _ALIBI,
)
