"""Exercise `decoder_mask` of notebook 04."""

import torch

from course_lib.exercises.catalogue.self_and_cross_attention._shared import (
    length_mask,
    lower_triangle,
)
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.masks import causal_mask, combine_masks, padding_mask


def decoder_mask(lengths, max_length):
    positions = torch.arange(max_length)
    causal = positions[None, :] <= positions[:, None]  # (query, key): its own position and earlier
    real = positions[None, :] < lengths[:, None]  # (batch, key): not padding
    return causal & real[:, None, :]  # (batch, query, key)


EXERCISE = Exercise(
    name="decoder_mask",
    notebook="04_self_and_cross_attention",
    title="The mask of a decoder: causal and without padding",
    reference=lambda lengths, n: combine_masks(causal_mask(n), padding_mask(lengths, n)),
    solution=decoder_mask,
    cases=(
        Case(lengths=torch.tensor([2]), max_length=3),
        Case(lengths=torch.tensor([1, 3]), max_length=4),
        Case(lengths=torch.tensor([5, 0, 2]), max_length=5),
    ),
    mistakes=(
        Mistake(
            "either",
            lambda y, n: lower_triangle(n) | length_mask(y, n)[:, None, :],
            "You allow what either mask allows. A key must be allowed by both: use &.",
        ),
        Mistake(
            "without_diagonal",
            lambda y, n: lower_triangle(n, -1) & length_mask(y, n)[:, None, :],
            "The diagonal is masked, but a query may attend to its own position. Here the first row is fully masked.",
        ),
        Mistake(
            "one_ahead",
            lambda y, n: lower_triangle(n, 1) & length_mask(y, n)[:, None, :],
            "Off by one: each query may attend to the next position. A model trained with it learns to copy its label.",
        ),
        Mistake(
            "transposed",
            lambda y, n: lower_triangle(n).T & length_mask(y, n)[:, None, :],
            "The triangle is transposed: your queries attend to their own position and the future, and the past is masked.",
        ),
        Mistake(
            "future_only",
            lambda y, n: ~lower_triangle(n) & length_mask(y, n)[:, None, :],
            "torch.triu(…, 1) marks what to mask, as nn.MultiheadAttention expects it. Here True means 'may attend'.",
        ),
        Mistake(
            "padding_on_queries",
            lambda y, n: lower_triangle(n) & length_mask(y, n)[:, :, None],
            "You mask the rows of queries at padding. Their outputs are ignored anyway; mask the keys at padding, and those "
            "only: real[:, None, :].",
        ),
        Mistake(
            "no_query_axis",
            lambda y, n: lower_triangle(n) & length_mask(y, n),
            "Your padding mask is (batch, key). Broadcast with (query, key), its batch axis is aligned with the "
            "queries. Insert a query axis: real[:, None, :].",
        ),
        Mistake(
            "one_too_many",
            lambda y, n: lower_triangle(n) & length_mask(y + 1, n)[:, None, :],
            "Off by one: the first position of padding is allowed. The last real token is at position length - 1.",
        ),
        Mistake(
            "one_too_few",
            lambda y, n: lower_triangle(n) & length_mask(y - 1, n)[:, None, :],
            "Off by one: the last real token is masked too.",
        ),
        Mistake(
            "causal_alone",
            lambda y, n: lower_triangle(n),
            "This is the causal mask, without a batch axis. Combine it with a padding mask made from the lengths.",
        ),
        Mistake(
            "causal_only",
            lambda y, n: lower_triangle(n).expand(len(y), n, n),
            "The mask is causal, but padding is allowed: the lengths are not used.",
        ),
        Mistake(
            "padding_only",
            lambda y, n: length_mask(y, n)[:, None, :].expand(len(y), n, n),
            "Padding is masked, but each query may attend to the future.",
        ),
        Mistake(
            "inverted",
            lambda y, n: ~(lower_triangle(n) & length_mask(y, n)[:, None, :]),
            "Right, with True and False swapped. In this course True means 'may attend'.",
        ),
        Mistake(
            "cut_at_longest",
            lambda y, n: lower_triangle(int(y.max())) & length_mask(y, int(y.max()))[:, None, :],
            "Your mask ends at lengths.max(). It must have max_length rows and columns, whatever the lengths are: "
            "torch.arange(max_length).",
        ),
        *(
            Mistake(
                f"dtype_{name}",
                lambda y, n, dtype=dtype: (lower_triangle(n) & length_mask(y, n)[:, None, :]).to(
                    dtype
                ),
                "The pattern is right, but not the dtype. The mask must be boolean: combine comparisons with &, or .bool() "
                "at the end.",
            )
            for name, dtype in {"float": torch.float32, "int": torch.int64}.items()
        ),
        Mistake(
            "additive",
            lambda y, n: torch.zeros(len(y), n, n).masked_fill(
                ~(lower_triangle(n) & length_mask(y, n)[:, None, :]), -torch.inf
            ),
            "This is an additive mask, 0 where a pair is allowed and -inf elsewhere. Return the boolean mask: True = may "
            "attend.",
        ),
        Mistake(
            "head_axis",
            lambda y, n: (lower_triangle(n) & length_mask(y, n)[:, None, :])[:, None],
            "The pattern is right, but there is an axis too many. Return (batch, query, key): real[:, None, :].",
        ),
        Mistake(
            "padding_left",
            lambda y, n: lower_triangle(n) & (torch.arange(n) >= n - y[:, None])[:, None, :],
            "Your padding is on the left. The real tokens are at positions 0 to length - 1: positions < lengths[:, None].",
        ),
        Mistake(
            "padding_inverted",
            lambda y, n: lower_triangle(n) & ~length_mask(y, n)[:, None, :],
            "Your padding mask is inverted: it allows the padding. Position j is real if j < length.",
        ),
        Mistake(
            "longest",
            lambda y, n: lower_triangle(n) & length_mask(y.max().expand(len(y)), n)[:, None, :],
            "All sequences get the length of the longest one. Each has its own: lengths[:, None].",
        ),
        Mistake(
            "first_length",
            lambda y, n: lower_triangle(n) & length_mask(y[:1].expand(len(y)), n)[:, None, :],
            "All sequences get the length of the first one. Each has its own: lengths[:, None].",
        ),
        Mistake(
            "padding_without_query_axis",
            lambda y, n: length_mask(y, n)[:, None, :],
            "This is the padding mask, (batch, 1, key). Combine it with the causal mask.",
        ),
        Mistake(
            "exclusive_or",
            lambda y, n: lower_triangle(n) ^ length_mask(y, n)[:, None, :],
            "^ is True where exactly one of the two masks allows. A key must be allowed by both: use &.",
        ),
        Mistake(
            "causal_inverted_and_padding_inverted",
            lambda y, n: ~lower_triangle(n) & ~length_mask(y, n)[:, None, :],
            "Both masks are inverted. In this course True means 'may attend': positions up to the query's own, and before "
            "the length.",
        ),
        Mistake(
            "queries_in_columns",
            lambda y, n: (lower_triangle(n) & length_mask(y, n)[:, None, :]).mT,
            "The axes are exchanged: yours is (batch, key, query). Return (batch, query, key).",
        ),
    ),
    hints=(
        "Combine two masks: a causal one, (query, key), and one that is True at real tokens, (batch, key).",
        "positions = torch.arange(max_length). Compare positions with positions for the first mask, and with "
        "lengths[:, None] for the second.",
        "causal & real[:, None, :]: (query, key) and (batch, 1, key) broadcast to (batch, query, key).",
    ),
    differentiable=False,
)
