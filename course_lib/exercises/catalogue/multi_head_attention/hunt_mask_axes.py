"""Bug hunt `hunt_mask_axes` of notebook 05."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor, softmax_where_allowed
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.masks import masked_softmax


def padded_weights(scores, allowed):
    mask = allowed[:, None, None, :]  # (batch, 1, 1, key): the same for all heads and queries
    fully_masked = ~mask.any(dim=-1, keepdim=True)  # (batch, 1, 1, 1): nothing but padding
    scores = scores.masked_fill(~mask, -torch.inf).masked_fill(fully_masked, 0.0)
    return torch.softmax(scores, dim=-1).masked_fill(fully_masked, 0.0)


def _given(scores, allowed):
    mask = allowed.unsqueeze(1)
    fully_masked = ~mask.any(dim=-1, keepdim=True)
    scores = scores.masked_fill(~mask, -torch.inf).masked_fill(fully_masked, 0.0)
    return torch.softmax(scores, dim=-1).masked_fill(fully_masked, 0.0)


def _padded_softmax(scores, allowed, **softmax):
    return softmax_where_allowed(scores, allowed[:, None, None, :], **softmax)


EXERCISE = Exercise(
    name="hunt_mask_axes",
    notebook="05_multi_head_attention",
    title="Bug hunt: padding in multi-head attention",
    reference=lambda scores, allowed: masked_softmax(scores, allowed[:, None, None, :]),
    solution=padded_weights,
    cases=(
        Case(  # as many heads as sequences
            scores=torch.tensor([[[[1.0, 2.0, 0.0]], [[0.0, 1.0, 2.0]]]]).repeat(2, 1, 1, 1),
            allowed=torch.tensor([[True, True, False], [True, False, False]]),
        ),
        Case(  # as many queries as sequences
            scores=random_tensor(2, 3, 2, 4, seed=33),
            allowed=torch.tensor([[True, False, True, True], [True, True, False, False]]),
        ),
        Case(
            scores=random_tensor(3, 2, 4, 5, seed=34),
            allowed=torch.arange(5) < torch.tensor([5, 0, 2])[:, None],
        ),
    ),
    mistakes=(
        Mistake(
            "minus_infinity",
            lambda *a: _padded_softmax(*a, fill=-torch.inf),
            "The axes line up now. But a sequence of nothing but padding gives NaN; it must give zeros.",
        ),
        Mistake(
            "large_negative",
            lambda *a: _padded_softmax(*a, fill=-1e9),
            "The axes line up now. But -1e9 is not minus infinity: a sequence of nothing but padding gets uniform "
            "weights. It must give zeros.",
        ),
        Mistake(
            "scores_to_zero",
            lambda *a: _padded_softmax(*a, fill=0.0),
            "A score of 0 masks nothing: exp(0) is 1, and padding still gets weight. Masked scores must be -inf.",
        ),
        Mistake(
            "along_the_queries",
            lambda scores, allowed: softmax_where_allowed(scores, allowed[:, None, :, None]),
            "Your padding mask is along the queries: (batch, 1, key, 1). It belongs to the last axis.",
        ),
        Mistake(
            "batch_along_the_queries",
            lambda scores, allowed: softmax_where_allowed(scores, allowed[None, None, :, :]),
            "Now the batch lines up with the queries. Broadcasting counts axes from the right: (batch, key) needs "
            "two new ones in between.",
        ),
        Mistake(
            "inverted",
            lambda scores, allowed: _padded_softmax(scores, ~allowed),
            "Your mask is inverted: the queries attend to padding only. True means 'may attend'.",
        ),
        Mistake(
            "after_the_softmax",
            lambda scores, allowed: torch.softmax(scores, dim=-1) * allowed[:, None, None, :],
            "Padding gets no weight now, but the remaining weights no longer sum to 1. Mask before the softmax.",
        ),
        Mistake(
            "ignored",
            lambda scores, allowed: torch.softmax(scores, dim=-1),
            "The mask is not used: padding gets weight like every other key.",
        ),
        Mistake(
            "over_heads",
            lambda *a: _padded_softmax(*a, dim=1),
            "Your softmax runs over the heads. Each query has a distribution over the keys: dim=-1.",
        ),
        Mistake(
            "over_queries",
            lambda *a: _padded_softmax(*a, dim=-2),
            "The axes line up now. But your softmax runs over the queries. Each query has a distribution over the keys: "
            "dim=-1.",
        ),
        Mistake(
            "over_queries_without_nan",
            lambda *a: _padded_softmax(*a, dim=-2).nan_to_num(),
            "The axes line up now. But your softmax runs over the queries. Each query has a distribution over the keys: "
            "dim=-1.",
        ),
        Mistake(
            "mask_of_the_first",
            lambda scores, allowed: _padded_softmax(
                scores, allowed[:1].expand_as(allowed), fill=-torch.inf
            ),
            "Every sequence gets the mask of the first one. The batch axis stays: allowed[:, None, None, :].",
        ),
        Mistake(
            "fully_masked_for_each_key",
            lambda scores, allowed: (
                _padded_softmax(scores, allowed, fill=0.0) * allowed[:, None, None, :]
            ),
            "The axes line up now. But fully_masked is True wherever a key is padding: those scores become 0, take part in the "
            "softmax, and the remaining weights no longer sum to 1. A row is fully masked if no key is left: any(dim=-1).",
        ),
        Mistake(
            "masks_of_all_in_turn",
            lambda scores, allowed: softmax_where_allowed(
                scores, allowed.repeat(scores.shape[1], 1).view(*scores.shape[:2], 1, -1)
            ),
            "repeat copies the whole batch in turn, so the heads of one sequence get the masks of several. Each row belongs to "
            "all heads of its sequence: allowed[:, None, None, :] broadcasts it.",
        ),
    ),
    hints=(
        "Use 3 sequences and 2 heads. Which error do you get?",
        "Broadcasting aligns axes from the right: (batch, 1, key) against (batch, heads, query, key). Which axis is "
        "the batch of the mask aligned with?",
        "Two new axes: allowed[:, None, None, :] is (batch, 1, 1, key).",
    ),
    given=_given,
)
