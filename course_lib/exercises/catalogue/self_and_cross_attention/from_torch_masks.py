"""Exercise `from_torch_masks` of notebook 04."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.catalogue.self_and_cross_attention._shared import length_mask
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.masks import combine_masks


def from_torch_masks(attn_mask, key_padding_mask):
    masked = attn_mask | key_padding_mask[:, None, :]  # (batch, query, key): by one or the other
    return ~masked


_RING = torch.tensor([[False, True, False], [False, False, True], [True, False, False]])
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
            attn_mask=_RING,
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
        Mistake(
            "exclusive_or",
            lambda a, p: ~(a ^ p[:, None, :]),
            "^ is False where both masks mask, so those pairs are allowed. Combine the masks with |.",
        ),
        Mistake(
            "precedence",
            lambda a, p: ~a | p[:, None, :],
            "~a | b means (~a) | b: only attn_mask is inverted. Put the combination in parentheses: ~(a | b).",
        ),
        Mistake(
            "only_padding_inverted_or",
            lambda a, p: a | ~p[:, None, :],
            "You invert key_padding_mask, but not attn_mask. In both of them True means masked: ~(a | b).",
        ),
        *(
            Mistake(
                f"dtype_{name}",
                lambda a, p, dtype=dtype: (~(a | p[:, None, :])).to(dtype),
                "The pattern is right, but not the dtype. The mask must be boolean.",
            )
            for name, dtype in {"float": torch.float32, "int": torch.int64}.items()
        ),
        Mistake(
            "additive",
            lambda a, p: torch.zeros(len(p), *a.shape).masked_fill(a | p[:, None, :], -torch.inf),
            "This is an additive mask, 0 where a pair is allowed and -inf elsewhere. Return the boolean mask: True = may "
            "attend.",
        ),
        Mistake(
            "attn_transposed",
            lambda a, p: ~(a.T | p[:, None, :]),
            "attn_mask is transposed. It is (query, key), as the result is.",
        ),
        Mistake(
            "first_padding",
            lambda a, p: ~(a | p[0]).expand(len(p), *a.shape),
            "Every sequence gets the padding of the first one. key_padding_mask has one row per sequence: "
            "key_padding_mask[:, None, :].",
        ),
        Mistake(
            "no_query_rows",
            lambda a, p: ~(a.any(dim=0) | p)[:, None, :],
            "You reduce attn_mask over the queries. Each query has a row of its own: the result is (batch, query, key).",
        ),
        Mistake(
            "padding_on_both",
            lambda a, p: ~(a | p[:, None, :] | p[:, :, None]),
            "You mask queries at padding as well. key_padding_mask is about keys: key_padding_mask[:, None, :].",
        ),
        Mistake(
            "head_axis",
            lambda a, p: ~(a | p[:, None, None, :]),
            "The pattern is right, but there is an axis too many. Return (batch, query, key): key_padding_mask[:, None, :].",
        ),
        Mistake(
            "summed",
            lambda a, p: a.int() + p[:, None, :].int(),
            "You add the masks, which counts how many of them mask a pair. Combine them with |, and invert the result.",
        ),
        Mistake(
            "attn_alone",
            lambda a, p: ~a,
            "This is attn_mask inverted, without a batch axis. Combine it with key_padding_mask[:, None, :].",
        ),
        Mistake(
            "padding_alone",
            lambda a, p: ~p[:, None, :],
            "This is key_padding_mask inverted, (batch, 1, key). Combine it with attn_mask.",
        ),
    ),
    hints=(
        "Which keys are masked for a query? Those that one mask or the other masks.",
        "key_padding_mask[:, None, :] is (batch, 1, key). With (query, key) it broadcasts to (batch, query, key).",
        "Combine them with | while True still means masked, then invert the result with ~.",
    ),
    differentiable=False,
)
