"""Exercise `alibi` of notebook 06."""

import math

import torch

from course_lib.exercises.catalogue._shared import random_tensor, rounded_tensor
from course_lib.exercises.edits import mistakes
from course_lib.exercises.exercise import Case, Exercise
from course_lib.positions import alibi_bias


def alibi(scores):
    heads, queries, keys = scores.shape[1:]
    below = 2 ** int(math.log2(heads))  # heads, or the largest power of two below
    slopes = [2 ** (-8 * (h + 1) / below) for h in range(below)]
    slopes += [2 ** (-4 * (2 * h + 1) / below) for h in range(heads - below)]  # of 2 · below
    i = torch.arange(keys - queries, keys)[:, None]  # (query, 1): the queries are the last
    distance = (i - torch.arange(keys)).abs()  # (query, key)
    return scores - torch.tensor(slopes)[:, None, None] * distance


GEOMETRIC = "2 ** int(math.log2(heads)) -> heads"
DISTANCE = "(i - torch.arange(keys)).abs()"
MISTAKES = rf"""
{GEOMETRIC}
    Your slopes are right only for a power of two. Other numbers of heads take the slopes of the largest power of two
    below, and then every second one, from the first on, of the next power of two.
int(math.log2(heads)) -> int(math.log(heads))
    math.log is the natural logarithm, so 2 ** int(math.log(heads)) is not the largest power of two. Use math.log2.
2 * h + 1 -> 2 * h + 2
    With 3 heads two of yours have the same slope. Of the next power of two take every second slope from the first on;
    the others are among the slopes you have already.
int(math.log2(heads)) -> math.ceil(math.log2(heads))
+ in range(below) -> in range(heads)
    With 3 heads you take the first three slopes for 4. Take those for 2, and then every second one, from the first
    on, of those for 4.
int(math.log2(heads)) -> math.ceil(math.log2(heads))
+ -8 * (h + 1) -> -4 * (2 * h + 1)
+ in range(below) -> in range(heads)
    You take every second slope of a larger power of two for all heads. The first ones are those of the largest power
    of two below; only the others are every second one of the next.
-4 * (2 * h + 1) -> -4 * (h + 1)
    The slopes that you add are the first ones of the next power of two. Take every second one, from the first on: the
    others are among the slopes you have already.
-4 * (2 * h + 1) -> -8 * (2 * h + 1)
    The slopes that you add belong to the largest power of two below. Take those of the next power of two, every
    second one from the first on.
2 * h + 1 -> 2 * (below - 1 - h) + 1
    The slopes that you add are the last ones of every second of the next power of two. Take them from the first on.
(h + 1) / below -> (h + 1) / heads
    The first slopes are those of the largest power of two below: divide by that number, not by the number of heads.
(2 * h + 1) / below -> (2 * h + 1) / heads
    The slopes that you add are those of the next power of two: divide by that number, not by twice the number of
    heads.
tensor(slopes) -> tensor(slopes[below:] + slopes[:below])
    Your slopes are in another order: those of the largest power of two below come first, then those that are added.
tensor(slopes) -> tensor(sorted(slopes, reverse=True))
    Your slopes are in another order: you sort them. Those of the largest power of two below come first, then those
    that are added.
tensor(slopes) -> tensor(slopes[::-1])
    Your slopes are in reverse order. Head 0 has the first of them.
{GEOMETRIC}
+ -8 * (h + 1) / below -> -(h + 1)
-8 * (h + 1) / below -> -(h + 1)
    1/2, 1/4, 1/8, … are the slopes for 8 heads. For n heads, a power of two, each is 2^(-8/n) times the one before.
{GEOMETRIC}
+ -8 * (h + 1) -> -8 * h
-8 * (h + 1) -> -8 * h
-8 * (h + 1) -> -8 * h
+ 2 * h + 1 -> 2 * h
    Your first slope is 1, because your exponents begin at 0. For n heads, n a power of two, they are -8/n, -16/n, …:
    2 ** (-8 * (h + 1) / n), with h counted from 0.
-8 * (h + 1) -> -8 * (h + (heads > below))
    For a power of two your exponents begin at 0, so that the first slope is 1. They begin at -8/heads and end at -8.
torch.tensor(slopes) -> torch.linspace(2 ** (-8 / heads), 2**-8, heads)
    Your slopes go down in equal steps. They are a geometric sequence: each is 2^(-8/heads) times the one before.
torch.tensor(slopes) -> (torch.arange(1, heads + 1) / heads)
    Your slopes grow in equal steps. They are a geometric sequence: each is 2^(-8/heads) times the one before.
torch.tensor(slopes) -> (8 * torch.arange(1, heads + 1) / heads)
    8 (h + 1) / heads is the exponent. The slope is 2 to the minus that.
{GEOMETRIC}
+ (-8 -> (8
(-8 -> (8
+ (-4 -> (4
    The exponent of your slopes lacks its minus: they grow up to 256.
2 ** (-8 -> math.exp(-8
+ 2 ** (-4 -> math.exp(-4
{GEOMETRIC}
+ 2 ** (-8 -> math.exp(-8
    Your slopes are powers of e. They are powers of 2: 2^(-8 (h + 1) / heads).
torch.tensor(slopes) -> torch.full((heads,), 2 ** (-8 / heads))
torch.tensor(slopes) -> torch.tensor(slopes[:1])
    All your heads have the same slope. Each has its own.
torch.tensor(slopes)[:, None, None] * ->
    You subtract the distance itself. Multiply it by the slope of the head.
scores - torch -> scores + torch
    Wrong sign: distant keys get a higher score. Subtract.
keys - queries, keys -> queries
    You count the queries from 0. They are the last ones: the first is at position keys - queries.
keys - queries, keys -> queries
+ scores - torch -> scores + torch
    Wrong sign: distant keys get a higher score. And the queries are the last ones: the first of them is at position
    keys - queries.
keys - queries, keys -> keys - queries + 1, keys + 1
    Your queries are one position too late. The last of them is at position keys - 1, as the last key is.
keys - queries, keys -> keys - queries - 1, keys - 1
    Your queries are one position too early. The last of them is at position keys - 1, as the last key is.
.abs() ->
    Keys after the query gain by their distance here. A causal mask would make the difference invisible; the exercise
    asks for |i - j|, which also works without a mask.
{DISTANCE} -> (torch.arange(keys) - i)
    Wrong sign: keys before the query gain by their distance. Subtract slope · |i - j|.
keys - queries, keys -> queries
+ .abs() ->
    You count the queries from 0. They are the last ones: the first is at position keys - queries. And a distance is
    |i - j|, never negative.
.abs() -> .clamp(min=0)
    Keys after the query keep their scores. A causal mask would make the difference invisible; use |i - j|.
* distance -> * torch.where(i < torch.arange(keys), torch.inf, distance)
    You mask the keys after the query as well. The exercise asks for the bias only.
{DISTANCE} -> -torch.arange(keys)
    You add slope · j. After a causal mask and a softmax the weights are the same, since each row differs by a
    constant; but the exercise asks for scores minus slope · |i - j|.
.abs() -> .abs() + 1
    Your distances are one too large: a query is 0 away from itself.
.abs() -> ** 2
    You square the distance. The bias is linear in it: slope · |i - j|.
.abs() -> .abs() / 2
    Your bias is half of what it should be: slope · |i - j|.
.abs() -> .abs().log1p()
    Your bias grows with the logarithm of the distance. It is linear in it: slope · |i - j|.
.abs() -> .abs().sqrt()
    Your bias grows with the root of the distance. It is linear in it: slope · |i - j|.
[:, None, None] -> [:, None]
    Your slopes broadcast along the queries, which runs only if there are as many heads. Add two axes: slopes[:, None,
    None].
[:, None, None] ->
    Your slopes broadcast along the keys, which runs only if there are as many heads. Add two axes: slopes[:, None,
    None].
return scores - -> return torch.softmax(scores, dim=-1) -
    You subtract from the weights. The bias belongs to the scores, before the softmax.
return scores - torch.tensor(slopes)[:, None, None] * -> return (scores - torch.tensor(slopes)[:, None, None] *
+ * distance -> * distance).softmax(dim=-1)
    You return the weights. Return the scores, before the softmax.
scores - torch -> scores * -torch
scores - torch -> scores * torch
    You multiply the scores by the bias. Subtract: scores - slope · |i - j|.
return scores - -> return 0 * scores -
return scores - -> return -
return scores - ->  return
    You return the bias alone. Subtract slope · |i - j| from the scores.
"""

EXERCISE = Exercise(
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
    mistakes=mistakes(alibi, MISTAKES),
    hints=(
        "You need a distance for each query and key, and a slope for each head. Which axes does each need?",
        "torch.arange(keys - queries, keys)[:, None] are the positions of the queries. Slopes: 2^(-8 (h + 1) / heads) "
        "for a power of two. For 3 heads: those for 2, then every second one of those for 4.",
        "Subtract slopes[:, None, None] * distance. With below = 2 ** int(math.log2(heads)): the slopes for below "
        "heads, then the first heads - below of [0::2] of the slopes for 2 * below heads.",
    ),
)
