"""From the two masks of nn.MultiheadAttention to one."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.transformer.masks import combine_masks, padding_mask


def from_torch_masks(attn_mask, key_padding_mask):
    masked = attn_mask | key_padding_mask[:, None, :]  # (batch, query, key): by one or the other
    return ~masked


def reference(a, p):
    return combine_masks(~a, ~p[:, None, :])


MASKED = "attn_mask | key_padding_mask[:, None, :]"
MISTAKES = rf"""
~masked -> masked
    In your result True still means 'masked'. Invert it with ~.
attn_mask | -> attn_mask &
    You mask only what both masks mask. One is enough: not (a or b) is (not a) and (not b).
attn_mask | -> attn_mask ^
    ^ is False where both masks mask, so those pairs are allowed. Combine the masks with |.
| key_padding_mask -> | ~key_padding_mask
    You invert attn_mask, but not key_padding_mask. In both of them True means masked.
attn_mask | -> ~attn_mask |
    You invert key_padding_mask, but not attn_mask. In both of them True means masked.
| key_padding_mask -> & ~key_padding_mask
    ~a | b means (~a) | b: only attn_mask is inverted. Put the combination in parentheses: ~(a | b).
attn_mask | -> ~attn_mask &
    You invert key_padding_mask, but not attn_mask. In both of them True means masked: ~(a | b).
attn_mask | -> attn_mask or
~masked -> not masked
    `and`, `or` and `not` need one truth value. Combine tensors with &, | and ~.
~masked -> 1 - masked
~masked -> -masked
    A minus does not invert a boolean tensor. Use ~.
[:, None, :] -> [:, :, None]
    Your padding mask is on the query axis. It belongs on the key axis: key_padding_mask[:, None, :].
[:, None, :] ->
[:, None, :] -> [None]
    (batch, key) is broadcast with (query, key): its batch axis is aligned with the queries. Insert a query axis:
    key_padding_mask[:, None, :].
[:, None, :] -> [:, None, :] | key_padding_mask[:, :, None]
    You mask queries at padding as well. key_padding_mask is about keys: key_padding_mask[:, None, :].
[:, None, :] -> [:, None, None, :]
    There is an axis too many. Return (batch, query, key): key_padding_mask[:, None, :].
key_padding_mask[:, None, :] -> key_padding_mask[0].expand(len(key_padding_mask), 1, -1)
    Every sequence gets the padding of the first one. key_padding_mask has one row per sequence: key_padding_mask[:,
    None, :].
key_padding_mask[:, None, :] -> key_padding_mask.any(dim=0).expand(len(key_padding_mask), 1, -1)
    You mask in every sequence what is padding in any of them. key_padding_mask has one row per sequence:
    key_padding_mask[:, None, :].
key_padding_mask[:, None, :] -> key_padding_mask.flip(-1)[:, None, :]
    Your padding is reversed: key_padding_mask holds one value per key, in the order of the keys.
{MASKED} -> attn_mask.expand(len(key_padding_mask), *attn_mask.shape)
    key_padding_mask is not used.
{MASKED} -> key_padding_mask[:, None, :].expand(-1, *attn_mask.shape)
    attn_mask is not used.
{MASKED} -> attn_mask
    You return attn_mask alone, without a batch axis. Combine it with key_padding_mask[:, None, :].
{MASKED} -> key_padding_mask[:, None, :]
    You return key_padding_mask alone, (batch, 1, key). Combine it with attn_mask.
attn_mask | -> attn_mask.T |
    attn_mask is transposed. It is (query, key), as the result is.
{MASKED} -> (attn_mask.any(dim=0) | key_padding_mask)[:, None, :]
{MASKED} -> (attn_mask.all(dim=0) | key_padding_mask)[:, None, :]
    You reduce attn_mask over the queries. Each query has a row of its own: the result is (batch, query, key).
~masked -> (~masked).float()
~masked -> (~masked).int()
    Your mask holds numbers. It must be boolean: leave out the conversion.
~masked -> torch.zeros(masked.shape).masked_fill(masked, -torch.inf)
    This is an additive mask, 0 where a pair is allowed and -inf elsewhere. Return the boolean mask: True = may
    attend.
{MASKED} -> attn_mask.int() + key_padding_mask[:, None, :].int()
+ ~masked -> masked
    You add the masks, which counts how many of them mask a pair. Combine them with |, and invert the result.
"""

_RING = torch.tensor([[False, True, False], [False, False, True], [True, False, False]])
_FUTURE = torch.tensor([[False, True, True], [False, False, True]])  # (query, key)

CASES = (
    dict(attn_mask=_FUTURE, key_padding_mask=torch.tensor([[True, False, False]])),
    dict(
        attn_mask=_RING,
        key_padding_mask=torch.tensor([[False, False, True], [False, True, True]]),
    ),
    dict(
        attn_mask=random_tensor(4, 5, seed=5) > 0.3,
        key_padding_mask=~padding_mask(torch.tensor([5, 2, 4]))[:, 0],
    ),
)
HINTS = """
Which keys are masked for a query? Those that one mask or the other masks.
key_padding_mask[:, None, :] is (batch, 1, key). With (query, key) it broadcasts to (batch, query, key).
Combine them with | while True still means masked, then invert the result with ~.
"""
DIFFERENTIABLE = False
