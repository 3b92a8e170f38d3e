"""Exercise `from_torch_masks` of notebook 04."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.catalogue.self_and_cross_attention._shared import (
    length_mask,
    lower_triangle,
)
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.masks import combine_masks


def from_torch_masks(attn_mask, key_padding_mask):
    masked = attn_mask | key_padding_mask[:, None, :]  # (batch, query, key): by one or the other
    return ~masked


_FUTURE = torch.tensor([[False, True, True], [False, False, True]])  # (query, key)

EXERCISE = Exercise(
    name="from_torch_masks",
    notebook="04_self_and_cross_attention",
    title="From the two masks of nn.MultiheadAttention to one",
    reference=lambda a, p: combine_masks(~a, ~p[:, None, :]),
    solution=from_torch_masks,
    cases=(
        Case(attn_mask=_FUTURE, key_padding_mask=torch.tensor([[True, False, False]])),
        Case(
            attn_mask=~lower_triangle(3),
            key_padding_mask=torch.tensor([[False, False, True], [False, True, True]]),
        ),
        Case(
            attn_mask=random_tensor(4, 5, seed=5) > 0.3,
            key_padding_mask=~length_mask(torch.tensor([5, 2, 4]), 5),
        ),
    ),
    mistakes=(
        Mistake(
            "not_inverted",
            lambda a, p: a | p[:, None, :],
            "You combine the two as they are: True still means 'masked'. Invert the result with ~.",
        ),
        Mistake(
            "not_inverted_and_both",
            lambda a, p: a & p[:, None, :],
            "True still means 'masked' in your result, and only where both masks are True. One of them is enough.",
        ),
        Mistake(
            "only_attn_inverted",
            lambda a, p: ~a & p[:, None, :],
            "You invert attn_mask, but not key_padding_mask. In both of them True means masked.",
        ),
        Mistake(
            "only_padding_inverted",
            lambda a, p: a & ~p[:, None, :],
            "You invert key_padding_mask, but not attn_mask. In both of them True means masked.",
        ),
        Mistake(
            "both_must_mask",
            lambda a, p: ~(a & p[:, None, :]),
            "You mask only what both masks mask. One is enough: not (a or b) is (not a) and (not b).",
        ),
        Mistake(
            "padding_on_queries",
            lambda a, p: ~(a | p[:, :, None]),
            "Your padding mask is on the query axis. It belongs on the key axis: key_padding_mask[:, None, :].",
        ),
        Mistake(
            "no_query_axis",
            lambda a, p: ~(a | p),
            "(batch, key) is broadcast with (query, key): its batch axis is aligned with the queries. Insert a query "
            "axis: key_padding_mask[:, None, :].",
        ),
        Mistake(
            "no_padding",
            lambda a, p: (~a).expand(len(p), *a.shape),
            "key_padding_mask is not used.",
        ),
        Mistake(
            "no_attn",
            lambda a, p: (~p)[:, None, :].expand(len(p), *a.shape),
            "attn_mask is not used.",
        ),
    ),
    hints=(
        "Which keys are masked for a query? Those that one mask or the other masks.",
        "key_padding_mask[:, None, :] is (batch, 1, key). With (query, key) it broadcasts to (batch, query, key).",
        "Combine them with | while True still means masked, then invert the result with ~.",
    ),
    differentiable=False,
)
