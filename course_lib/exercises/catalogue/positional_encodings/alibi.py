"""Exercise `alibi` of notebook 06."""

import math
from functools import partial

import torch

from course_lib.exercises.catalogue._shared import random_tensor, rounded_tensor
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.positions import (
    alibi_bias,
    alibi_slopes,
    relative_positions,
)


def alibi(scores):
    heads, queries, keys = scores.shape[1:]
    below = 2 ** int(math.log2(heads))  # heads, or the largest power of two below
    slopes = [2 ** (-8 * (h + 1) / below) for h in range(below)]
    slopes += [2 ** (-4 * (2 * h + 1) / below) for h in range(heads - below)]  # of 2 · below
    i = torch.arange(keys - queries, keys)[:, None]  # (query, 1): the queries are the last
    distance = (i - torch.arange(keys)).abs()  # (query, key)
    return scores - torch.tensor(slopes)[:, None, None] * distance


def _head_numbers(heads):
    return torch.arange(1, heads + 1)


def _geometric_slopes(heads):
    """The slopes if the number of heads is a power of two; wrong otherwise."""
    return 2 ** (-8 * _head_numbers(heads) / heads)


def _slopes_from_1(heads):
    """The exponents begin at 0, so the first slope is 1; otherwise built as the right ones."""
    below = 2 ** int(math.log2(heads))
    more = 2 ** (-4 * torch.arange(2 * below) / below)[0::2]
    return torch.cat([2 ** (-8 * torch.arange(below) / below), more[: heads - below]])


def _distance(queries, keys):
    return relative_positions(queries, keys).abs()  # (query, key)


def _signed_distance(queries, keys):
    return -relative_positions(queries, keys)  # i - j


def _distance_from_zero(queries, keys):
    return (torch.arange(queries)[:, None] - torch.arange(keys)).abs()


def _alibi(scores, *, slopes=alibi_slopes, distance=_distance, sign=-1):
    heads, *lengths = scores.shape[1:]
    return scores + sign * slopes(heads)[:, None, None] * distance(*lengths)


def _causal_too(scores, *, slopes=alibi_slopes):
    return _alibi(scores, slopes=slopes).masked_fill(
        _signed_distance(*scores.shape[-2:]) < 0, -torch.inf
    )


def _one_slope_per_query(scores):
    return scores - alibi_slopes(scores.shape[1])[:, None] * _distance(*scores.shape[-2:])


def _after_softmax(scores, *, slopes=alibi_slopes):
    return _alibi(torch.softmax(scores, dim=-1), slopes=slopes)


def _weights(scores, *, slopes=alibi_slopes):
    return torch.softmax(_alibi(scores, slopes=slopes), dim=-1)


_ALSO = " After that, look at numbers of heads that are not a power of two."


def _with_either_slopes(name, wrong, message):
    """Two mistakes: `wrong` with the right slopes, and with slopes that are right for powers of two only."""
    return (
        Mistake(name, wrong, message),
        Mistake(f"{name}_and_geometric", partial(wrong, slopes=_geometric_slopes), message + _ALSO),
    )


def _with_slopes(slopes):
    return partial(_alibi, slopes=slopes)


def _joined_slopes(heads, choose):
    """The slopes of the largest power of two below, and those that `choose` takes of the next one."""
    below = 2 ** int(math.log2(heads))
    return torch.cat(
        [_geometric_slopes(below), choose(_geometric_slopes(2 * below), heads - below)]
    )


EXERCISE = Exercise(
    name="alibi",
    notebook="06_positional_encodings",
    title="ALiBi for any number of heads",
    reference=lambda scores: scores + alibi_bias(*scores.shape[1:]),
    solution=alibi,
    cases=(
        Case(scores=rounded_tensor(1, 2, 2, 3, seed=7)),  # as many heads as queries
        Case(scores=random_tensor(1, 3, 2, 5, seed=8)),  # not a power of two
        Case(
            scores=random_tensor(1, 6, 2, 4, seed=10)
        ),  # two slopes are added, and one is left out
        Case(scores=random_tensor(2, 4, 3, 6, seed=9)),
    ),
    mistakes=(
        Mistake(
            "always_geometric",
            _with_slopes(_geometric_slopes),
            "Right where the number of heads is a power of two. Other numbers take the slopes of the largest power "
            "of two below, and then every second one, from the first on, of the next power of two.",
        ),
        Mistake(
            "every_second_from_the_second",
            _with_slopes(lambda n: _joined_slopes(n, lambda more, count: more[1::2][:count])),
            "With 3 heads two of yours have the same slope. Of the next power of two take every second slope from "
            "the first on; the others are among the slopes you have already.",
        ),
        Mistake(
            "next_power",
            _with_slopes(lambda n: _geometric_slopes(2 ** math.ceil(math.log2(n)))[:n]),
            "With 3 heads you take the first three slopes for 4. Take those for 2, and then every second one, from "
            "the first on, of those for 4.",
        ),
        Mistake(
            "as_for_eight",
            _with_slopes(lambda n: 0.5 ** _head_numbers(n)),
            "1/2, 1/4, 1/8, … are the slopes for 8 heads. For n heads each is 2^(-8/n) times the one before.",
        ),
        Mistake(
            "exponents_from_zero",
            _with_slopes(lambda n: 2 ** (-8 * (_head_numbers(n) - 1) / n)),
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
            _with_slopes(lambda n: _head_numbers(n) / n),
            "Your slopes grow in equal steps. They are a geometric sequence: each is 2^(-8/heads) times the one "
            "before.",
        ),
        Mistake(
            "exponent_alone",
            _with_slopes(lambda n: 8 * _head_numbers(n) / n),
            "8 (h + 1) / heads is the exponent. The slope is 2 to the minus that.",
        ),
        Mistake(
            "growing",
            _with_slopes(lambda n: 2 ** (8 * _head_numbers(n) / n)),
            "The exponent of your slopes lacks its minus: they grow up to 256.",
        ),
        Mistake(
            "reversed",
            _with_slopes(lambda n: _geometric_slopes(n).flip(0)),
            "Your slopes are in reverse order. Head 0 has the steepest one.",
        ),
        Mistake(
            "same_slope",
            _with_slopes(lambda n: torch.full((n,), 2 ** (-8 / n))),
            "All your heads have the same slope. Head h has 2^(-8 (h + 1) / heads).",
        ),
        Mistake(
            "no_slope",
            _with_slopes(torch.ones),
            "You subtract the distance itself. Multiply it by the slope of the head.",
        ),
        *_with_either_slopes(
            "added",
            partial(_alibi, sign=1),
            "Wrong sign: distant keys get a higher score. Subtract.",
        ),
        *_with_either_slopes(
            "without_offset",
            partial(_alibi, distance=_distance_from_zero),
            "You count the queries from 0. They are the last ones: the first is at position keys - queries.",
        ),
        *_with_either_slopes(
            "added_without_offset",
            partial(_alibi, distance=_distance_from_zero, sign=1),
            "Wrong sign: distant keys get a higher score. And the queries are the last ones: the first of them "
            "is at position keys - queries.",
        ),
        *_with_either_slopes(
            "signed",
            partial(_alibi, distance=_signed_distance),
            "Keys after the query gain by their distance here. A causal mask would make the difference invisible; "
            "the exercise asks for |i - j|, which also works without a mask.",
        ),
        *_with_either_slopes(
            "signed_without_offset",
            partial(_alibi, distance=lambda q, k: torch.arange(q)[:, None] - torch.arange(k)),
            "You count the queries from 0. They are the last ones: the first is at position keys - queries. And "
            "a distance is |i - j|, never negative.",
        ),
        *_with_either_slopes(
            "signed_and_added",
            partial(_alibi, distance=_signed_distance, sign=1),
            "Wrong sign: keys before the query gain by their distance. Subtract slope · |i - j|.",
        ),
        *_with_either_slopes(
            "clamped",
            partial(_alibi, distance=lambda *n: _signed_distance(*n).clamp(min=0)),
            "Keys after the query keep their scores. A causal mask would make the difference invisible; use |i - j|.",
        ),
        *_with_either_slopes(
            "masked_too",
            _causal_too,
            "You mask the keys after the query as well. The exercise asks for the bias only.",
        ),
        *_with_either_slopes(
            "position_of_the_key",
            partial(_alibi, distance=lambda queries, keys: torch.arange(keys), sign=1),
            "You add slope · j. After a causal mask and a softmax the weights are the same, since each row differs "
            "by a constant; but the exercise asks for scores minus slope · |i - j|.",
        ),
        *_with_either_slopes(
            "one_too_many",
            partial(_alibi, distance=lambda *n: _distance(*n) + 1),
            "Your distances are one too large: a query is 0 away from itself.",
        ),
        Mistake(  # with either slopes: with 3 heads it raises
            "along_the_queries",
            _one_slope_per_query,
            "Your slopes broadcast along the queries, which runs only if there are as many heads. Add two axes: "
            "slopes[:, None, None].",
        ),
        *_with_either_slopes(
            "after_softmax",
            _after_softmax,
            "You subtract from the weights. The bias belongs to the scores, before the softmax.",
        ),
        *_with_either_slopes(
            "weights",
            _weights,
            "These are the weights. Return the scores, before the softmax.",
        ),
        Mistake(
            "without_the_step",
            _with_slopes(lambda n: _joined_slopes(n, lambda more, count: more[:count])),
            "The slopes that you add are the first ones of the next power of two. Take every second one, from the first on: "
            "the others are among the slopes you have already.",
        ),
        Mistake(
            "last_of_the_next_power",
            _with_slopes(
                lambda n: _joined_slopes(n, lambda more, count: more[0::2].flip(0)[:count])
            ),
            "The slopes that you add are the last ones of every second of the next power of two. Take them from the first on.",
        ),
        Mistake(
            "added_slopes_first",
            _with_slopes(lambda n: alibi_slopes(n).roll(n - 2 ** int(math.log2(n)))),
            "The right slopes in another order: those of the largest power of two below come first, then those that are added.",
        ),
        Mistake(
            "sorted",
            _with_slopes(lambda n: alibi_slopes(n).sort(descending=True).values),
            "The right slopes in another order: you sort them. Those of the largest power of two below come first, then those "
            "that are added.",
        ),
        Mistake(
            "reversed_for_any_number",
            _with_slopes(lambda n: alibi_slopes(n).flip(0)),
            "Your slopes are in reverse order. Head 0 has the first of them.",
        ),
        Mistake(
            "exponents_from_zero_for_any_number",
            _with_slopes(
                lambda n: (
                    alibi_slopes(n) * 2 ** (8 / n) if math.log2(n).is_integer() else alibi_slopes(n)
                )
            ),
            "For a power of two your exponents begin at 0, so that the first slope is 1. They begin at -8/heads and end at -8.",
        ),
        *_with_either_slopes(
            "squared",
            partial(_alibi, distance=lambda *n: _distance(*n) ** 2),
            "You square the distance. The bias is linear in it: slope · |i - j|.",
        ),
        *_with_either_slopes(
            "multiplied",
            lambda scores, slopes=alibi_slopes: (
                scores * (_alibi(torch.zeros_like(scores), slopes=slopes))
            ),
            "You multiply the scores by the bias. Subtract: scores - slope · |i - j|.",
        ),
        *_with_either_slopes(
            "bias_alone",
            lambda scores, slopes=alibi_slopes: _alibi(torch.zeros_like(scores), slopes=slopes),
            "You return the bias alone. Add it to the scores.",
        ),
        *_with_either_slopes(
            "half_the_distance",
            partial(_alibi, distance=lambda *n: _distance(*n) / 2),
            "Your bias is half of what it should be: slope · |i - j|.",
        ),
        Mistake(
            "same_first_slope",
            _with_slopes(lambda n: alibi_slopes(n)[:1].expand(n)),
            "All your heads have the same slope. Each has its own.",
        ),
        Mistake(
            "every_second_of_twice_the_next_power",
            _with_slopes(lambda n: _geometric_slopes(2 * 2 ** math.ceil(math.log2(n)))[0::2][:n]),
            "You take every second slope of a larger power of two for all heads. The first ones are those of the largest power of "
            "two below; only the others are every second one of the next.",
        ),
        *_with_either_slopes(
            "log_distance",
            partial(_alibi, distance=lambda *n: torch.log1p(_distance(*n))),
            "Your bias grows with the logarithm of the distance. It is linear in it: slope · |i - j|.",
        ),
        Mistake(
            "exponents_from_zero_for_any_heads",
            partial(_alibi, slopes=_slopes_from_1),
            "Your first slope is 1, because your exponents begin at 0. For n heads, n a power of two, they are -8/n, -16/n, …: "
            "2 ** (-8 * (h + 1) / n), with h counted from 0.",
        ),
    ),
    hints=(
        "You need a distance for each query and key, and a slope for each head. Which axes does each need?",
        "torch.arange(keys - queries, keys)[:, None] are the positions of the queries. Slopes: 2^(-8 (h + 1) / heads) "
        "for a power of two. For 3 heads: those for 2, then every second one of those for 4.",
        "Subtract slopes[:, None, None] * distance. With below = 2 ** int(math.log2(heads)): the slopes for below "
        "heads, then the first heads - below of [0::2] of the slopes for 2 * below heads.",
    ),
)
