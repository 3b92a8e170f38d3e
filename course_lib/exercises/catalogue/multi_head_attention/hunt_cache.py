"""Bug hunt: decoding with a cache."""

import math

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.transformer.attention import scaled_dot_product_attention
from course_lib.transformer.masks import causal_mask


def newest(query, key, value):
    new, total = query.shape[-2], key.shape[-2]
    scores = query @ key.mT / math.sqrt(query.shape[-1])  # (batch, heads, new, total)
    mask = torch.ones(new, total, dtype=torch.bool).tril(total - new)  # the queries are the last
    scores = scores.masked_fill(~mask, -torch.inf)
    return torch.softmax(scores, dim=-1) @ value  # (batch, heads, new, d)


def reference(q, k, v):
    return scaled_dot_product_attention(q, k, v, causal_mask(q.shape[-2], k.shape[-2])).output


OFFSET = ".tril(total - new)"
SOFTMAX = "torch.softmax(scores, dim=-1)"
MISTAKES = f"""
{OFFSET} -> .tril(total - new - 1)
    Off by one: a query does not attend to its own position, and without cached keys the first one is fully masked.
    The offset is total - new.
{OFFSET} -> .tril(total - new + 1)
    Off by one: each query attends to the token after its own. The offset is total - new.
{OFFSET} -> .tril(1)
    A constant offset of 1 is wrong in general. It depends on how many keys were cached: total - new.
{OFFSET} -> .tril(new)
    Your offset is the number of new tokens. It must be the number of cached ones: total - new.
{OFFSET} ->
    Nothing is masked: with several new tokens, none may attend to those after it. Keep the mask, and shift it by the
    number of cached keys.
{OFFSET} -> .tril(new - total)
|| -torch.inf -> -1e9
    Your offset has the wrong sign: the queries come after the cached keys, not before them.
torch.ones(new, total, dtype=torch.bool){OFFSET} -> torch.ones(new, new, dtype=torch.bool).tril()
    Your mask is (new, new). There are more keys than new tokens: it must be (new, total).
torch.ones(new, total, dtype=torch.bool){OFFSET} -> torch.ones(total, total, dtype=torch.bool).tril()
    Your mask is (total, total). There are fewer new tokens than keys: it must be (new, total), the last rows of
    yours.
{OFFSET} -> {OFFSET} & (torch.arange(total) >= total - new)
    Your new tokens attend only to each other: the cached keys are masked.
{OFFSET} -> .triu(total - new)
    Your mask is the upper triangle: the queries attend to themselves and to the future.
{OFFSET} -> .tril(total - new - 1)
+ {SOFTMAX} -> {SOFTMAX}.nan_to_num()
{OFFSET} -> .tril(total - new - 1)
+ -torch.inf -> -1e9
    Off by one: a query does not attend to its own position. The offset is total - new.
/ math.sqrt(query.shape[-1]) ->
    The scale is missing: divide the scores by √d.
dim=-1) @ -> dim=-2) @
    Your softmax runs over the queries: each query has a distribution over the keys, dim=-1.
~mask -> mask
    The mask is inverted: the queries attend only to keys that come after them, and the last one to none.
~mask -> mask
+ {SOFTMAX} -> {SOFTMAX}.nan_to_num()
~mask, -torch.inf -> mask, -1e9
    The mask is inverted: the queries attend only to keys that come after them, and the last one to none.
{OFFSET} -> {OFFSET} | (new < total)
    As soon as keys are cached, nothing is masked. That is right for one new token; of several, none may attend to
    those after it. Keep the mask, and shift it by the number of cached keys.
{OFFSET} -> .tril() | (new == 1)
    That helps for one new token only. With several and a cache, your mask still has no offset: it must be shifted by
    the number of cached keys.
{OFFSET} -> .tril(total // 2)
    Your offset is half the number of keys. It is the number of cached keys: total - new.
-torch.inf -> 0.0
    Masked scores are 0 now, which masks nothing: exp(0) is 1. Masked scores must be -inf.
scores.masked_fill(~mask, -torch.inf) -> scores
+ {SOFTMAX} -> {SOFTMAX} * mask
    You mask after the softmax, so the weights of a row no longer sum to 1. Set the scores to -inf before it.
math.sqrt(query.shape[-1]) -> query.shape[-1]
    You divide the scores by d. Divide by its square root.
scores.masked_fill(~mask, -torch.inf) -> scores + ~mask * -torch.inf
    Everything is NaN: 0 · (-inf) is NaN. Set the scores to -inf with masked_fill.
torch.ones(new, total, dtype=torch.bool){OFFSET} -> torch.arange(total) < total - new
    The mask allows cached keys only, so the new tokens attend neither to themselves nor to each other.
torch.ones(new, total, dtype=torch.bool){OFFSET} -> torch.arange(total) <= total - new
    Every new token attends to what the first one may attend to. Each row of the mask allows one key more.
"""

GIVEN = ".tril(total - new) -> .tril()"
CASES = (
    dict(
        query=torch.tensor([[[[1.0], [2.0]]]]),
        key=torch.tensor([[[[1.0], [0.0], [2.0], [-1.0], [1.0]]]]),
        value=torch.tensor([[[[1.0], [2.0], [4.0], [8.0], [16.0]]]]),
    ),
    dict(
        query=random_tensor(2, 3, 1, 4, seed=38),
        key=random_tensor(2, 3, 5, 4, seed=39),
        value=random_tensor(2, 3, 5, 4, seed=40),
    ),
    dict(  # an empty cache
        query=random_tensor(2, 4, 3, 5, seed=41),
        key=random_tensor(2, 4, 3, 5, seed=42),
        value=random_tensor(2, 4, 3, 5, seed=43),
    ),
    dict(
        query=random_tensor(2, 3, 4, 5, seed=44),
        key=random_tensor(2, 3, 7, 5, seed=45),
        value=random_tensor(2, 3, 7, 5, seed=46),
    ),
)
HINTS = """
With 7 keys and 2 queries, which positions do the queries have? Print the mask.
The last query may attend to every key, so its row must be all True, however many keys were cached.
.tril(diagonal=total - new) shifts the triangle to the positions of the queries. PyTorch's
    scaled_dot_product_attention(…, is_causal=True) does not shift it: with a cache, pass attn_mask.
"""
