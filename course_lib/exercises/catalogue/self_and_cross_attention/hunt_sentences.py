"""Bug hunt `hunt_sentences` of notebook 04."""

import math

import torch

from course_lib.attention import scaled_dot_product_attention
from course_lib.exercises.catalogue._shared import attention_scores, random_tensor
from course_lib.exercises.catalogue.self_and_cross_attention._shared import (
    length_mask,
    masked_attention,
)
from course_lib.exercises.exercise import Case, Exercise, Mistake


def attend(query, key, value, key_padding_mask):
    scores = query @ key.mT / math.sqrt(key.shape[-1])  # (batch, query, key)
    mask = ~key_padding_mask[:, None, :]  # (batch, 1, key), True = may attend
    fully_masked = ~mask.any(dim=-1, keepdim=True)  # (batch, 1, 1): nothing but padding
    scores = scores.masked_fill(~mask, -torch.inf)
    scores = scores.masked_fill(fully_masked, 0.0)
    weights = torch.softmax(scores, dim=-1)  # (batch, query, key)
    return weights.masked_fill(fully_masked, 0.0) @ value


def _given(query, key, value, key_padding_mask):
    scores = query @ key.mT / math.sqrt(key.shape[-1])
    mask = key_padding_mask[:, None, :]
    fully_masked = ~mask.any(dim=-1, keepdim=True)
    scores = scores.masked_fill(~mask, -torch.inf).masked_fill(fully_masked, 0.0)
    return torch.softmax(scores, dim=-1).masked_fill(fully_masked, 0.0) @ value


def _mask_half_inverted(query, key, value, key_padding_mask):
    padding = key_padding_mask[:, None, :]
    fully_masked = ~padding.any(dim=-1, keepdim=True)
    scores = attention_scores(query, key).masked_fill(padding, -torch.inf)
    scores = scores.masked_fill(fully_masked, 0.0)
    return torch.softmax(scores, dim=-1).masked_fill(fully_masked, 0.0) @ value


def _weighted(q, k, v, p, weights):
    """The output for weights that are a function of the scores and of the mask (batch, 1, key)."""
    return weights(attention_scores(q, k), ~p[:, None, :]).to(v.dtype) @ v


def _filled(scores, mask, fill):
    return torch.softmax(scores.masked_fill(~mask, fill), dim=-1)


def _zero_scores(scores, mask):
    return _filled(scores, mask, 0.0) * mask


def _empty_if_any_padding(scores, mask):
    """Treats every sentence with padding as one that is nothing but padding."""
    padded = ~mask.all(dim=-1, keepdim=True)
    scores = scores.masked_fill(~mask, -torch.inf).masked_fill(padded, 0.0)
    return torch.softmax(scores, dim=-1).masked_fill(padded, 0.0)


EXERCISE = Exercise(
    name="hunt_sentences",
    notebook="04_self_and_cross_attention",
    title="Bug hunt: sentences with padding",
    reference=lambda q, k, v, p: scaled_dot_product_attention(q, k, v, ~p[:, None, :]).output,
    solution=attend,
    cases=(
        Case(  # as many queries as sequences
            query=torch.tensor([[[1.0, 0.0], [0.0, 2.0]], [[1.0, 1.0], [2.0, 0.0]]]),
            key=torch.tensor(
                [[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [[2.0, 0.0], [0.0, 1.0], [1.0, 0.0]]]
            ),
            value=torch.tensor([[[1.0], [2.0], [4.0]], [[3.0], [5.0], [9.0]]]),
            key_padding_mask=torch.tensor([[False, False, True], [True, True, True]]),
        ),
        Case(  # as many queries as keys, and no padding in one sequence
            query=random_tensor(2, 3, 4, seed=25),
            key=random_tensor(2, 3, 4, seed=26),
            value=random_tensor(2, 3, 5, seed=27),
            key_padding_mask=torch.tensor([[False, True, True], [False, False, False]]),
        ),
        Case(  # here -1e9 does not exist
            query=random_tensor(3, 2, 4, seed=28).half(),
            key=random_tensor(3, 5, 4, seed=29).half(),
            value=random_tensor(3, 5, 6, seed=30).half(),
            key_padding_mask=~length_mask(torch.tensor([5, 0, 2]), 5),
        ),
    ),
    mistakes=(
        Mistake(
            "half_inverted",
            _mask_half_inverted,
            "The right scores are masked now, but `fully_masked` is True for sentences without padding. Invert the mask "
            "once, in the line that makes it.",
        ),
        Mistake(
            "minus_infinity",
            lambda q, k, v, p: masked_attention(q, k, v, ~p[:, None, :], fill=-torch.inf),
            "The mask is right now. But a sentence of nothing but padding gives NaN; it must give zeros.",
        ),
        Mistake(
            "large_negative",
            lambda q, k, v, p: masked_attention(q, k, v, ~p[:, None, :], fill=-1e9),
            "-1e9 is not minus infinity: a sentence of nothing but padding gets the mean of its padding. And in "
            "float16, whose largest number is 65504, it raises an error.",
        ),
        Mistake(
            "lowest",
            lambda q, k, v, p: masked_attention(
                q, k, v, ~p[:, None, :], fill=torch.finfo(q.dtype).min
            ),
            "A sentence of nothing but padding gets the mean of its padding, because all its scores are equal (a very low "
            "number, or 0 where you filled the whole row). It must give zeros: set its weights to 0 after the softmax.",
        ),
        Mistake(
            "scores_to_zero",
            lambda q, k, v, p: masked_attention(q, k, v, ~p[:, None, :], fill=0.0),
            "A score of 0 masks nothing: exp(0) is 1, and padding still gets weight. Masked scores must be -inf.",
        ),
        Mistake(
            "after_the_softmax",
            lambda q, k, v, p: (torch.softmax(attention_scores(q, k), dim=-1) * ~p[:, None, :]) @ v,
            "Padding contributes nothing now, but the remaining weights no longer sum to 1. Mask before the softmax.",
        ),
        Mistake(
            "ignored",
            lambda q, k, v, p: torch.softmax(attention_scores(q, k), dim=-1) @ v,
            "Padding gets weight like any token: key_padding_mask is not used.",
        ),
        Mistake(
            "along_the_queries",
            lambda q, k, v, p: masked_attention(q, k, v, ~p[:, :, None]),
            "You mask queries instead of keys. key_padding_mask is (batch, key): insert the query axis in the middle, "
            "key_padding_mask[:, None, :].",
        ),
        Mistake(
            "along_the_batch",
            lambda q, k, v, p: masked_attention(q, k, v, ~p[None, :, :]),
            "key_padding_mask is (batch, key), and you align its batch axis with the queries. Insert the query axis in "
            "the middle, key_padding_mask[:, None, :].",
        ),
        Mistake(
            "overflow_in_half",
            lambda q, k, v, p: _weighted(q, k, v, p, lambda a, m: _filled(a, m, -1e9) * m),
            "Right in float32. float16 has no -1e9, its largest number is 65504, so masked_fill raises an error. Use "
            "-torch.inf, or torch.finfo(scores.dtype).min.",
        ),
        *(
            Mistake(
                f"float32_{name}",
                lambda q, k, v, p, fill=fill: (
                    (
                        torch.softmax(
                            attention_scores(q.float(), k.float()).masked_fill(p[:, None, :], fill),
                            -1,
                        ).nan_to_num()
                        * ~p[:, None, :]
                    )
                    @ v.float()
                ),
                "The numbers are right, but the result must have the dtype of value. Convert it back: .to(value.dtype).",
            )
            for name, fill in {"nan_to_zero": -torch.inf}.items()
        ),
        Mistake(
            "any_padding",
            lambda q, k, v, p: _weighted(q, k, v, p, _empty_if_any_padding),
            "The right scores are masked now, but `fully_masked` is True for every sentence with some padding. It must be "
            "True only where no key is allowed: ~mask.any(dim=-1, keepdim=True).",
        ),
        Mistake(
            "scores_and_weights_to_zero",
            lambda q, k, v, p: _weighted(q, k, v, p, _zero_scores),
            "You set masked scores to 0 and their weights to 0 afterwards, so the weights that remain do not sum to 1. "
            "Masked scores must be -inf before the softmax.",
        ),
        Mistake(
            "over_queries",
            lambda q, k, v, p: masked_attention(q, k, v, ~p[:, None, :], dim=-2),
            "The mask is right now, but your softmax runs over the queries. The weights of one query sum to 1 over the "
            "keys: dim=-1.",
        ),
        Mistake(
            "no_scale",
            lambda q, k, v, p: masked_attention(q, k, v, ~p[:, None, :], root=1),
            "The mask is right now, but the scale 1/√d is gone.",
        ),
        Mistake(
            "empty_uniform_inverted",
            lambda q, k, v, p: masked_attention(q, k, v, p[:, None, :], fill=-torch.inf),
            "The mask is still inverted: only padding gets weight. And a sentence without padding gives NaN now.",
        ),
        Mistake(
            "still_inverted_and_lowest",
            lambda q, k, v, p: masked_attention(
                q, k, v, p[:, None, :], fill=torch.finfo(q.dtype).min
            ),
            "The mask is still inverted: only padding gets weight.",
        ),
        Mistake(
            "renormalised",
            lambda q, k, v, p: _weighted(
                q,
                k,
                v,
                p,
                lambda a, m: (w := torch.softmax(a, dim=-1) * m) / (w.sum(-1, keepdim=True) + 1e-3),
            ),
            "You add a constant to the denominator, so the weights of a row sum to less than 1. Mask before the softmax.",
        ),
    ),
    hints=(
        "Change the value of a key that is padding. Does the output change? And the value of one that is not?",
        "What does True mean in key_padding_mask, and what does the comment beside the mask say?",
        "In this course True means 'may attend': mask = ~key_padding_mask[:, None, :].",
    ),
    given=_given,
)
