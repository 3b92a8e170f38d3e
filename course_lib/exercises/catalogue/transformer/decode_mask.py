"""The mask of a decoder, with and without a cache."""

import torch

from course_lib.transformer.masks import causal_mask, combine_masks, padding_mask_from_tokens


def decode_mask(tokens, new, pad_id):
    length = tokens.shape[1]
    positions = torch.arange(length)
    queries = positions[length - new :]  # the new tokens are the last ones
    causal = positions <= queries[:, None]  # (new, length)
    real = tokens != pad_id  # (batch, length)
    return causal & real[:, None, :]  # (batch, new, length)


def reference(tokens, new, pad_id):
    return combine_masks(
        causal_mask(new, tokens.shape[1]), padding_mask_from_tokens(tokens, pad_id)
    )


BOTH = "return causal & real[:, None, :]"
CAUSAL = (
    "causal = positions <= queries[:, None] -> causal = torch.ones(new, length, dtype=torch.bool)"
)
MISTAKES = f"""
positions[length - new :] -> positions[:new]
    Your mask has the rows of the first tokens, as if nothing were cached. The new tokens are the last ones, and they
    may attend to everything cached.
{BOTH} -> return real[:, None, :].expand(-1, new, -1)
    Nothing is causal: with several new tokens, each also attends to the later ones.
<= queries[:, None] -> <= queries[:, None] + 1
    Off by one: each new token may attend to the token after it.
positions <= queries -> positions < queries
    Off by one: a token may attend to its own position too.
{BOTH} -> return causal.expand(len(tokens), new, length)
    Padding is allowed. With padding on the right that is harmless for a decoder; with padding on the left every real
    token attends to it.
real[:, None, :] -> real[:, length - new :, None]
    You mask the queries at padding. Mask the keys: real[:, None, :].
{BOTH} -> return causal & real[:, :, None]
{BOTH} -> return real[:, :, None] & causal
    real[:, :, None] has the shape (batch, length, 1), with padding along the queries. Mask the keys: real[:, None,
    :].
{BOTH} -> return causal & real
{BOTH} -> return real & causal
    real is (batch, length) and causal is (new, length), so broadcasting takes sequences for queries. Give real an
    axis of queries: real[:, None, :].
tokens != pad_id -> tokens[:, length - new :] != pad_id
    You look for padding among the new tokens only. Every token is a key: tokens != pad_id.
tokens != pad_id -> tokens != 0
    You take token 0 for padding. pad_id says which token it is.
tokens != pad_id -> tokens > pad_id
    You take every token up to pad_id for padding. Only pad_id itself is padding: tokens != pad_id.
tokens != pad_id -> tokens == pad_id
    Only padding is allowed. tokens != pad_id is True at real tokens, and True means 'may attend'.
causal & real -> causal | real
    You allow what either mask allows. A key must be allowed by both: use &.
{BOTH} -> return ~(causal & real[:, None, :])
    True and False are swapped: this is the convention of nn.Transformer. In this course True means 'may attend'.
positions <= queries -> positions > queries
    Your mask is the upper triangle without the diagonal: torch.triu(…, 1) marks what to mask, as nn.Transformer
    expects it. Here True means 'may attend'.
real[:, None, :] -> real[:, None, :] & real[:, length - new :, None]
    You mask the queries at padding as well, so their rows are empty, which may give NaN. Their outputs are not used:
    mask only the keys.
{BOTH} -> return causal & (real[:, None, :] | (positions == queries[:, None]))
    A padding token may attend to itself in your mask. It is a key at padding, and no query may attend to that.
{CAUSAL}.tril(new - length)
    Your offset has the wrong sign: the queries come after the cached keys. .tril(length - new)
{CAUSAL}.tril(new)
    Your offset is the number of new tokens. It is the number of cached ones: length - new.
positions <= queries -> positions >= queries
    Your mask is the upper triangle: each new token attends to itself and to later ones.
{CAUSAL}.triu()
    Your mask is an upper triangle without an offset. A token attends to those before it: .tril(length - new).
tokens != pad_id -> positions < (tokens != pad_id).sum(1, keepdim=True)
    You count the real tokens and allow so many keys from the left. That is right only with padding on the right; it
    may stand on either side: tokens != pad_id.
positions[length - new :] -> positions
    Your mask has a row for every token. Only the new ones, the last `new`, are queries.
positions[length - new :] -> positions[length - new + 1 :]
    Off by one: the row of the first new token is missing. The new tokens begin at position length - new.
{BOTH} -> return (causal & real[:, None, :])[:, None]
    Your mask has an additional axis for the heads. Here it is (batch, new, length).
{BOTH} -> return (causal & real[:, None, :]).mT
    The last two axes are exchanged. Rows are queries and columns are keys: (batch, new, length).
causal & real -> causal & (positions >= length - new) & real
    Your new tokens attend only to each other. They may attend to everything cached too.
positions <= queries[:, None] -> (positions < length - new).expand(new, -1)
    Your new tokens attend only to the cached ones. Each attends to itself and to the new ones before it too.
positions <= queries -> positions == queries
    Your new tokens attend only to themselves. Each attends to all tokens before it too.
{BOTH} -> return torch.ones(len(tokens), new, length, dtype=torch.bool)
    Everything is allowed. A key is allowed if it is not after its query and is not padding.
{BOTH} -> return torch.where(causal & real[:, None, :], 0.0, -torch.inf)
    Your mask holds 0 and -inf, to be added to the scores. Return booleans: True means 'may attend'.
"""

CASES = (
    dict(tokens=torch.tensor([[1, 5, 7]]), new=2, pad_id=0),
    dict(  # no cache: all tokens are new
        tokens=torch.tensor([[1, 5, 2, 0], [1, 6, 8, 2]]), new=4, pad_id=0
    ),
    dict(  # padding on the left, and another padding token
        tokens=torch.tensor([[3, 3, 1, 5], [1, 0, 7, 4], [3, 1, 4, 0]]), new=2, pad_id=3
    ),
    dict(
        tokens=torch.tensor([[1, 5, 7, 4, 9], [1, 6, 8, 2, 0], [0, 1, 6, 8, 2]]),
        new=1,
        pad_id=0,
    ),
)
HINTS = """
The new tokens are the last ones. At which positions are they?
queries = torch.arange(length)[length - new:]. A key is allowed if its position is not after the query's.
(positions <= queries[:, None]) & (tokens != pad_id)[:, None, :].
"""
DIFFERENTIABLE = False
