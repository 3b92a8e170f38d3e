"""Duplicate-token scores."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor


def duplicate_token_scores(weights, tokens):
    same = (tokens[:, None] == tokens).tril(-1)  # (query, earlier key)
    onto = (weights * same).sum(dim=-1)  # (layer, head, query)
    return onto[..., same.any(dim=-1)].mean(dim=-1)  # (layer, head)


def reference(weights, tokens):
    """Loops over queries and keys."""
    layers, heads, length, _ = weights.shape
    total, count = torch.zeros(layers, heads, dtype=weights.dtype), 0
    for query in range(length):
        earlier = [key for key in range(query) if tokens[key] == tokens[query]]
        count += bool(earlier)
        for key in earlier:
            total = total + weights[:, :, query, key]
    return total / count


def _case(layers, heads, length, vocabulary, seed):
    weights = random_tensor(layers, heads, length, length, seed=seed)
    causal = torch.ones(length, length, dtype=torch.bool).tril()
    weights = weights.masked_fill(~causal, -torch.inf).softmax(dim=-1)
    generator = torch.Generator().manual_seed(seed)
    return dict(weights=weights, tokens=torch.randint(vocabulary, (length,), generator=generator))


_SMALL = torch.tensor(
    [[1.0, 0, 0, 0], [0.5, 0.5, 0, 0], [0.25, 0.5, 0.25, 0], [0, 0.25, 0.5, 0.25]]
)

ONTO = "(weights * same).sum(dim=-1)"
MISTAKES = rf"""
.tril(-1) -> .tril()
    You count each query's own position, too. Only earlier positions with the same token count.
.tril(-1) -> .triu(1)
    You look at later positions. A causal head gives them no weight: the earlier ones count.
tokens[:, None] == tokens -> tokens[:, None] == tokens.roll(1)
    You take the weight on the token *after* an earlier occurrence, as the induction score does. Here the earlier
    occurrence itself counts.
{ONTO} -> (weights * same).mean(dim=-1)
    You divide by the number of keys. Add up the weights on all earlier occurrences.
{ONTO} -> (weights * same).amax(dim=-1)
    You take the largest weight on an earlier occurrence. Add up those on all of them.
{ONTO} -> (weights * same).sum(dim=-1) / same.sum(dim=-1).clamp_min(1)
    You take the mean over the earlier occurrences of a token. Add up the weights on all of them.
{ONTO} -> same.float().mean(dim=-1).expand(weights.shape[:-1])
    You count occurrences. Add up the weights on them.
onto[..., same.any(dim=-1)] -> onto
    You average over all queries. Those whose token has not occurred before do not count.
onto[..., same.any(dim=-1)] -> onto[..., same.any(dim=-2)]
    You average over the positions whose token occurs again. The queries are those whose token has occurred before.
.mean(dim=-1)  # (layer, head) -> .sum(dim=-1)
    Right weights, but summed. Take their mean over the queries.
.mean(dim=-1)  # (layer, head) -> .median(dim=-1).values
    Right weights, but you take their median. Take their mean over the queries.
.mean(dim=-1)  # (layer, head) -> .mean()
    This is one number for the whole model. Return one for each layer and head.
.mean(dim=-1)  # (layer, head) ->
    These are the right weights, one for each query. Take their mean.
.mean(dim=-1)  # (layer, head) -> .mean(dim=-1, keepdim=True)
    The values are right, with one axis too many. Leave out keepdim.
"""

CASES = (
    dict(weights=_SMALL[None, None], tokens=torch.tensor([1, 2, 1, 1])),
    _case(2, 3, 6, 3, seed=1),
    _case(3, 2, 9, 4, seed=2),
    _case(2, 4, 11, 3, seed=3),
)
HINTS = """
Which earlier positions have the token of query i? Compare all pairs: tokens[:, None] == tokens, (query, key).
Keep the earlier keys with .tril(-1). (weights * same).sum(dim=-1) is what each query gives to them.
Average over the queries that have one: onto[..., same.any(dim=-1)].mean(dim=-1).
"""
