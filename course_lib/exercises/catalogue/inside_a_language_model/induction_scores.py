"""Induction scores."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.topics.interpretability import induction_score


def induction_scores(weights, period):
    queries = torch.arange(period, weights.shape[-1])
    keys = queries - period + 1  # the token after the previous occurrence
    return weights[..., queries, keys].mean(dim=-1)  # (layer, head)


def _case(layers, heads, length, period, seed):
    weights = random_tensor(layers, heads, length, length, seed=seed)
    causal = torch.ones(length, length, dtype=torch.bool).tril()
    weights = weights.masked_fill(~causal, -torch.inf).softmax(dim=-1)
    return dict(weights=weights, period=period)


_SMALL = torch.tensor([[1.0, 0, 0, 0], [0.5, 0.5, 0, 0], [0.25, 0.5, 0.25, 0], [0, 0.25, 0.75, 0]])

KEY = "torch.arange(weights.shape[-1])"
SUCCESSORS = f"(((keys[:, None] - {KEY}) % period == 0) & ({KEY} > 0) & ({KEY} <= keys[:, None]))"
MISTAKES = rf"""
weights[..., queries, keys] -> weights[..., queries, 1]
    You read one column for all queries. The key that a query should attend to moves with it: one for each.
queries - period + 1 -> queries - period
    You take the weight on the previous occurrence itself. An induction head attends to the token after it, one
    position later.
queries - period + 1 -> queries - period - 1
+ arange(period, -> arange(period + 1,
queries - period + 1 -> queries - period - 1
    You take the weight on the token before the previous occurrence. An induction head attends to the one after it.
queries - period + 1 -> queries - period + 2
    You take the weight on the second token after the previous occurrence. An induction head attends to the first one
    after it.
queries - period + 1 -> queries % period + 1
    You take the weight on the token after the first occurrence. The previous one is a period before the query.
weights[..., queries, keys] -> (weights[..., queries, :] * {SUCCESSORS}).sum(dim=-1)
    You add up the weights on the tokens after all earlier occurrences. Only the previous one counts: the key is query
    - period + 1.
arange(period, -> arange(period - 1,
    You count one query too many: the one at position period - 1, whose token has not occurred before. The queries
    begin at position `period`.
arange(period, -> arange(
    You count all queries. The tokens before position `period` have not occurred before: the queries begin there.
arange(period, -> arange(period + 1,
    You leave out the query at position `period`. Its token is the first that has occurred before.
weights.shape[-1]) -> weights.shape[-1] - 1)
    You leave out the last query.
weights.shape[-1]) -> 2 * period)
    You stop after one period. All queries from position `period` to the end count.
arange(period, -> arange(2 * period - 1,
    You leave out more than the first number of the diagonal: it begins at the query period - 1, so one is too many.
arange(period, -> arange(weights.shape[-1] - 1,
    This is the weight of the last query alone. Take the mean over all queries from `period` on.
queries - period + 1 -> queries - 1
    This is the previous-token score of the later queries: the key must be period - 1 positions before the query.
queries - period + 1 -> queries
    You take the weight of each query on its own position. The key is period - 1 positions before it.
queries - period + 1 -> period
    The key is the same for all of your queries. It moves with the query: query - period + 1.
queries - period + 1 -> 0
    This is the first-token score of the later queries. The key is query - period + 1.
queries, keys] -> keys, queries]
    You read the weights of keys after the query, and a causal head gives them none. The index is weights[..., query,
    key], and the key is period - 1 positions before the query.
queries, keys] -> queries, :].amax(dim=-1)
    You take the largest weight of each query, wherever it is. Take the weight at one key: query - period + 1.
queries, keys].mean(dim=-1) -> queries, :].mean(dim=(-2, -1))
    This is the mean over all keys. Each query has one key that counts: query - period + 1.
queries, keys].mean(dim=-1) -> queries[:, None], keys].mean(dim=(-2, -1))
    This is the mean over all pairs of a query and a key. Each query has one key that counts: index queries and keys
    together.
queries, keys].mean(dim=-1) -> queries[:, None], keys].mean(dim=-1)
    Your index gives all pairs of a query and a key. Each query has one key that counts: index queries and keys
    together.
.mean(dim=-1) -> .sum(dim=-1)
    Right weights, but summed. Take their mean over the queries.
.mean(dim=-1) -> .sum(dim=-1) / weights.shape[-1]
    You divide by the length of the text. Divide by the number of queries that count, length - period.
.mean(dim=-1) -> .sum(dim=-1) / period
    You divide by the period. Divide by the number of queries that count, length - period.
.mean(dim=-1) -> .sum(dim=-1) / (len(queries) + 1)
    You divide by one too many: length - period queries count.
.mean(dim=-1) -> .sum(dim=-1) / (len(queries) - 1)
    You divide by one too few: length - period queries count.
.mean(dim=-1) -> .amax(dim=-1)
    Right weights, but you take the largest of them. Take their mean over the queries.
.mean(dim=-1) -> .median(dim=-1).values
    Right weights, but you take their median. Take their mean over the queries.
.mean(dim=-1) -> .mean()
    This is one number for the whole model. Return one for each layer and head.
.mean(dim=-1) -> .mean(dim=(1, 2))
    The mean also runs over the heads. Return one number for each layer and head.
.mean(dim=-1) -> .mean(dim=(0, 2))
    The mean also runs over the layers. Return one number for each layer and head.
.mean(dim=-1) ->
    These are the right weights, one for each query. Take their mean.
.mean(dim=-1) -> .mean(dim=-1, keepdim=True)
    The values are right, with one axis too many. Leave out keepdim.
"""

reference = induction_score
CASES = (
    dict(weights=_SMALL[None, None], period=2),
    _case(2, 3, 6, 3, seed=1),
    _case(3, 2, 9, 3, seed=2),
    _case(2, 4, 11, 5, seed=3),
)
HINTS = """
The query at position i has the token of position i - period. What is the position of the token after that one?
For i from period to the end, average weights[:, :, i, i - period + 1].
weights.diagonal(1 - period, -2, -1) holds these numbers, and one more at its start.
"""
