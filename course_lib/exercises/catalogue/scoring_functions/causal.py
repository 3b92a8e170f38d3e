"""Exercise `causal` of notebook 02."""

import torch

from course_lib.exercises.edits import mistakes
from course_lib.exercises.exercise import Case, Exercise
from course_lib.masks import causal_mask


def causal(query_length, key_length):
    everything = torch.ones(query_length, key_length, dtype=torch.bool)
    # tril keeps the diagonal and what is left of it; the last query attends to every key
    mask = everything.tril(diagonal=key_length - query_length)  # (query, key)
    return mask


DIAGONAL = "diagonal=key_length - query_length"
MISTAKES = f"""
{DIAGONAL} -> {DIAGONAL} - 1
    Your mask excludes the diagonal: a query attends to its own position too. In a square mask the first row is fully
    masked now.
{DIAGONAL} -> {DIAGONAL} + 1
    Off by one: each query attends to the position after its own, which the model is to predict.
{DIAGONAL} -> diagonal=1
    Off by one: a square mask allows the position after the query's own. And with fewer queries than keys, the queries
    are the last ones.
everything.tril -> everything.triu
    Upper triangle instead of lower: your queries attend to later positions, and earlier ones are masked.
return mask -> return ~mask
    True and False are swapped: in this course True means 'may attend'.
everything.tril -> everything.triu
+ {DIAGONAL} -> diagonal=1
    torch.triu(…, 1) is True where a pair is masked, as nn.MultiheadAttention expects. Here True means 'may attend'.
    And with fewer queries than keys, the queries are the last ones.
everything.tril -> everything.triu
+ {DIAGONAL} -> diagonal=0
    Upper triangle instead of lower: your queries attend to later positions. Keep the lower triangle, and let the last
    query attend to every key.
{DIAGONAL} -> diagonal=-1
    Your mask excludes the diagonal: a query attends to its own position too. And with fewer queries than keys, the
    queries are the last ones.
{DIAGONAL} -> diagonal=query_length - key_length
    The sign of the diagonal is wrong: with more keys than queries the diagonal moves to the right.
{DIAGONAL} ->
    With fewer queries than keys, the queries are the last ones: the last query attends to every key.
{DIAGONAL} -> diagonal=query_length
    The diagonal moves by the number of queries. It must move by key_length - query_length, so that the last query
    attends to every key.
, dtype=torch.bool ->
return mask -> return mask.long()
return mask -> return mask.int()
    Your mask is not boolean: torch.ones(…, dtype=torch.bool), or .bool() at the end.
return mask -> return torch.zeros(mask.shape).masked_fill(~mask, -torch.inf)
return mask -> return torch.zeros(mask.shape).masked_fill(~mask, -1e9)
    This is an additive mask, 0 where a pair is allowed and a large negative number elsewhere. Return the boolean
    mask: True = may attend.
return mask -> return torch.zeros(mask.shape).masked_fill(mask, -torch.inf)
    This is an additive mask, and it masks the allowed pairs. Return a boolean mask: True = may attend.
return mask -> return mask.T
    The axes are exchanged: yours is (key, query). Return (query, key).
torch.ones(query_length, key_length -> torch.ones(key_length, query_length
    The axes are exchanged: your mask has one row per key. Return (query, key): torch.ones(query_length, key_length,
    …).
torch.ones(query_length, key_length -> torch.ones(query_length, query_length
+ {DIAGONAL} -> diagonal=0
    Your mask is square, (query, query). There are key_length columns, and the queries are the last positions.
torch.ones(query_length, key_length -> torch.ones(key_length, key_length
+ {DIAGONAL} -> diagonal=0
    Your mask is square, (key, key). Keep the last query_length rows: those are the positions of the queries.
everything.tril(diagonal=key_length - query_length) -> everything
    Every query may attend to every key, also to later ones. Keep the lower triangle.
torch.ones -> torch.zeros
    Your mask is False everywhere. Begin with torch.ones: tril keeps the lower triangle of it.
return mask -> return mask & (torch.arange(key_length) >= key_length - query_length)
    The keys before the first query are masked. Each query attends to all positions up to its own.
return mask -> return mask & everything.triu({DIAGONAL})
    Each query attends to its own position only. It may attend to all earlier positions as well: <= instead of ==.
return mask -> return torch.eye(query_length, key_length, dtype=torch.bool)
    This is the diagonal of a square mask. Each query attends to all positions up to its own, and with fewer queries
    than keys, the queries are the last ones.
everything.tril -> everything.triu
+ {DIAGONAL} -> {DIAGONAL} + 2
    Your mask allows later positions only, and not even the next one. Keep the lower triangle.
everything.tril -> everything.triu
+ {DIAGONAL} -> {DIAGONAL} - 1
    Your mask allows the position before each query, its own, and later ones. Keep the lower triangle.
"""

EXERCISE = Exercise(
    title="A causal mask, also with fewer queries than keys",
    reference=lambda query_length, key_length: causal_mask(query_length, key_length),
    solution=causal,
    cases=(
        Case(query_length=3, key_length=3),
        Case(query_length=3, key_length=4),
        Case(query_length=2, key_length=5),
        Case(query_length=1, key_length=4),
    ),
    mistakes=mistakes(causal, MISTAKES),
    hints=(
        "torch.ones(m, n, dtype=torch.bool).tril() keeps the lower triangle, diagonal included.",
        "With 2 queries and 5 keys, the queries are at positions 3 and 4. To which keys may each attend?",
        "tril takes diagonal=key_length - query_length. Or compare positions: torch.arange(n)[None, :] <= positions[:, None].",
    ),
    differentiable=False,
)
