"""ALiBi with a KV cache."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor, rounded_tensor
from course_lib.transformer.positions import alibi_bias


def alibi(scores):
    heads, queries, keys = scores.shape[1:]
    slopes = [2 ** (-8 * (h + 1) / heads) for h in range(heads)]
    i = torch.arange(keys - queries, keys)[:, None]  # (query, 1): the queries are the last
    distance = (i - torch.arange(keys)).abs()  # (query, key)
    return scores - torch.tensor(slopes)[:, None, None] * distance


def reference(scores):
    return scores + alibi_bias(*scores.shape[1:])


DISTANCE = "(i - torch.arange(keys)).abs()"
MISTAKES = rf"""
tensor(slopes) -> tensor(slopes[::-1])
    Your slopes are in reverse order. Head 0 has the first of them.
torch.tensor(slopes) -> torch.linspace(2 ** (-8 / heads), 2**-8, heads)
    Your slopes go down in equal steps. They are a geometric sequence: each is 2^(-8/heads) times the one before.
torch.tensor(slopes) -> (torch.arange(1, heads + 1) / heads)
    Your slopes grow in equal steps. They are a geometric sequence: each is 2^(-8/heads) times the one before.
torch.tensor(slopes) -> (8 * torch.arange(1, heads + 1) / heads)
    8 (h + 1) / heads is the exponent. The slope is 2 to the minus that.
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
-8 * (h + 1) / heads -> -(h + 1)
    1/2, 1/4, 1/8, … are the slopes for 8 heads. For n heads each is 2^(-8/n) times the one before.
-8 * (h + 1) -> -8 * h
    Your first slope is 1, because your exponents begin at 0. They are -8/n, -16/n, …: 2 ** (-8 * (h + 1) / n), with
    h counted from 0.
(-8 -> (8
    The exponent of your slopes lacks its minus: they grow up to 256.
2 ** (-8 -> math.exp(-8
    Your slopes are powers of e. They are powers of 2: 2^(-8 (h + 1) / heads).
2 ** (-8 * (h + 1) / heads) -> 1 / (h + 1)
    Your slopes are 1, 1/2, 1/3, … They are a geometric series: 2 ** (-8 * (h + 1) / heads), with h counted from 0.
"""

CASES = (
    dict(scores=rounded_tensor(1, 2, 2, 3, seed=7)),  # as many heads as queries
    dict(scores=random_tensor(1, 4, 2, 5, seed=8)),
    dict(scores=random_tensor(2, 4, 3, 6, seed=9)),
)
HINTS = """
You need a distance for each query and key, and a slope for each head. Which axes does each need?
torch.arange(keys - queries, keys)[:, None] are the positions of the queries, the slopes 2^(-8 (h + 1) / heads).
Subtract slopes[:, None, None] * distance, with the distance |i - j| of shape (query, key).
"""
