"""The mask of a decoder: causal and without padding."""

import torch

from course_lib.transformer.masks import causal_mask, combine_masks, padding_mask


def decoder_mask(lengths, max_length):
    positions = torch.arange(max_length)
    causal = positions[None, :] <= positions[:, None]  # (query, key): its own position and earlier
    real = positions[None, :] < lengths[:, None]  # (batch, key): not padding
    return causal & real[:, None, :]  # (batch, query, key)


def reference(lengths, n):
    return combine_masks(causal_mask(n), padding_mask(lengths, n))


BOTH = "causal & real[:, None, :]"
MISTAKES = rf"""
causal & -> causal |
    You allow what either mask allows. A key must be allowed by both: use &.
causal & -> causal ^
    ^ is True where exactly one of the two masks allows. A key must be allowed by both: use &.
causal & -> causal and
    `and`, `or` and `not` need one truth value. Combine tensors with &, | and ~.
<= -> <
    The diagonal is masked, but a query may attend to its own position. Here the first row is fully masked.
<= positions[:, None] -> <= positions[:, None] + 1
    Off by one: each query may attend to the next position. A model trained with it learns to copy its label.
<= -> >=
    The triangle is transposed: your queries attend to their own position and the future, and the past is masked.
<= -> >
    torch.triu(…, 1) marks what to mask, as nn.MultiheadAttention expects it. Here True means 'may attend'.
<= -> ==
    Each of your queries attends to its own position only. It may attend to the earlier ones too.
<= -> !=
    Your queries may attend to every position but their own. They may attend to their own and the earlier ones.
real[:, None, :] -> real[:, :, None]
real[:, None, :] -> real[:, None, :] & real[:, :, None]
    You mask the rows of queries at padding. Their outputs are ignored anyway; mask the keys at padding, and those
    only.
real[:, None, :] -> real
real[:, None, :] -> real[None, :, :]
    Your padding mask is (batch, key). Broadcast with (query, key), its batch axis is aligned with the queries. Insert
    a query axis: (batch, 1, key).
< lengths[:, None] -> <= lengths[:, None]
    Off by one: the first position of padding is allowed. The last real token is at position length - 1.
< lengths[:, None] -> < lengths[:, None] - 1
    Off by one: the last real token is masked too.
< lengths[:, None] -> > lengths[:, None]
    Your padding mask allows the positions after the length, which are padding. Position j is real if j < length.
< lengths[:, None] -> >= lengths[:, None]
    Your padding mask is inverted: it allows the padding. Position j is real if j < length.
positions[None, :] < lengths[:, None] -> positions[None, :] >= max_length - lengths[:, None]
    Your padding is on the left. The real tokens are at positions 0 to length - 1: positions < lengths[:, None].
< lengths[:, None] -> < lengths.max().expand_as(lengths)[:, None]
    All sequences get the length of the longest one. Each has its own: lengths[:, None].
< lengths[:, None] -> < lengths[:1].expand_as(lengths)[:, None]
    All sequences get the length of the first one. Each has its own: lengths[:, None].
{BOTH} -> causal
    You return the causal mask, without a batch axis. Combine it with a padding mask made from the lengths.
{BOTH} -> causal.expand(len(lengths), -1, -1)
    The mask is causal, but padding is allowed: the lengths are not used.
{BOTH} -> real[:, None, :]
    You return the padding mask, (batch, 1, key). Combine it with the causal mask.
{BOTH} -> real[:, None, :].expand(-1, max_length, -1)
    Padding is masked, but each query may attend to the future.
{BOTH} -> ~({BOTH})
    True and False are swapped. In this course True means 'may attend'.
(max_length) -> (lengths.max())
    Your mask ends at lengths.max(). It must have max_length rows and columns, whatever the lengths are:
    torch.arange(max_length).
(max_length) -> (1, max_length)
(max_length) -> (max_length - 1)
    Your mask has a row and a column too few. torch.arange(max_length) holds 0 to max_length - 1.
(max_length) -> (max_length + 1)
    Your mask has a row and a column too many. torch.arange(max_length) holds 0 to max_length - 1.
{BOTH} -> ({BOTH}).float()
{BOTH} -> ({BOTH}).int()
    Your mask holds numbers. It must be boolean: combine comparisons with &, or .bool() at the end.
{BOTH} -> torch.zeros(len(lengths), max_length, max_length).masked_fill(~({BOTH}), -torch.inf)
    This is an additive mask, 0 where a pair is allowed and -inf elsewhere. Return the boolean mask: True = may
    attend.
{BOTH} -> ({BOTH})[:, None]
    There is an axis too many. Return (batch, query, key).
{BOTH} -> ({BOTH}).mT
    The axes are exchanged: yours is (batch, key, query). Return (batch, query, key).
"""

CASES = (
    dict(lengths=torch.tensor([2]), max_length=3),
    dict(lengths=torch.tensor([1, 3]), max_length=4),
    dict(lengths=torch.tensor([5, 0, 2]), max_length=5),
)
HINTS = """
Combine two masks: a causal one, (query, key), and one that is True at real tokens, (batch, key).
positions = torch.arange(max_length). Compare positions with positions for the first mask, and with lengths[:, None]
    for the second.
causal & real[:, None, :]: (query, key) and (batch, 1, key) broadcast to (batch, query, key).
"""
DIFFERENTIABLE = False
