"""Exercise `attention_from_scratch` of notebook 04."""

import math

import torch

from course_lib.attention import scaled_dot_product_attention
from course_lib.exercises.catalogue._shared import (
    attention_scores,
    random_tensor,
    rounded_tensor,
    softmax_where_allowed,
    two_mistakes,
)
from course_lib.exercises.catalogue.self_and_cross_attention._shared import masked_attention
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.masks import masked_softmax


def attention_from_scratch(query, key, value, mask):
    scores = query @ key.mT / math.sqrt(query.shape[-1])  # (batch, query, key)
    fully_masked = ~mask.any(dim=-1, keepdim=True)  # (batch, query, 1): may attend to nothing
    scores = scores.masked_fill(~mask, -torch.inf)  # exp(-inf) = 0
    scores = scores.masked_fill(fully_masked, 0.0)  # a row of -inf would give 0/0
    weights = torch.softmax(scores, dim=-1).masked_fill(fully_masked, 0.0)
    return weights @ value  # (batch, query, d_value)


_SQUARE = {  # no mistake raises an error
    "query": rounded_tensor(1, 3, 3, seed=21),
    "key": rounded_tensor(1, 3, 3, seed=22),
    "value": rounded_tensor(1, 3, 3, seed=23),
    "mask": torch.tensor([[[True, True, False], [True, True, True], [False, False, True]]]),
}


def _ratio(query, key, value, mask, *, epsilon=0.0):
    kernel = torch.exp(attention_scores(query, key)) * mask
    return kernel / (kernel.sum(dim=-1, keepdim=True) + epsilon) @ value


def _over_queries(q, k, v, m):
    return (torch.softmax(attention_scores(q, k).masked_fill(~m, -1e9), dim=-2) * m) @ v


def _changed(q, k, v, m, *, root=None, dim=-1, fill=None, result=lambda w, v: w @ v):
    scores = attention_scores(q, k, None if root is None else root(q, k, v))
    return result(softmax_where_allowed(scores, m, dim=dim, fill=fill), v)


EXERCISE = Exercise(
    name="attention_from_scratch",
    notebook="04_self_and_cross_attention",
    title="Scaled dot-product attention with a mask",
    reference=lambda q, k, v, m: scaled_dot_product_attention(q, k, v, m).output,
    solution=attention_from_scratch,
    cases=(
        Case(
            query=rounded_tensor(1, 2, 2, seed=0),
            key=rounded_tensor(1, 3, 2, seed=1),
            value=torch.tensor([[[1.0], [2.0], [4.0]]]),
            mask=torch.tensor([[[True, True, False], [False, False, False]]]),
        ),
        Case(**_SQUARE),
        Case(**_SQUARE | {"query": 100 * _SQUARE["query"]}),  # exp of these scores overflows
        Case(
            query=random_tensor(2, 3, 4, seed=2),
            key=random_tensor(2, 5, 4, seed=3),
            value=random_tensor(2, 5, 6, seed=4),
            mask=torch.tensor(
                [
                    [[True] * 5, [True, False, True, False, True], [False] * 5],
                    [[True, True, False, False, False]] * 3,
                ]
            ),
        ),
    ),
    mistakes=(
        Mistake(
            "minus_infinity",
            lambda *a: masked_attention(*a, fill=-torch.inf),
            "A fully masked query gets 0/0 = NaN here. Its output must be all zeros.",
        ),
        Mistake(
            "large_negative",
            lambda *a: masked_attention(*a, fill=-1e9),
            "A fully masked query gets equal weights, and so the mean of masked values, because all its scores are equal "
            "(-1e9, or 0 where you filled the whole row). Set its weights to 0 after the softmax.",
        ),
        Mistake(
            "scores_to_zero",
            lambda *a: masked_attention(*a, fill=0.0),
            "You set masked scores to 0. exp(0) is 1, so a masked key still gets weight. Its score must be -inf.",
        ),
        Mistake(
            "times_mask",
            lambda q, k, v, m: (torch.softmax(attention_scores(q, k), dim=-1) * m) @ v,
            "You mask after the softmax, so the weights of a row no longer sum to 1. Mask before the softmax.",
        ),
        Mistake(
            "ignored",
            lambda q, k, v, m: torch.softmax(attention_scores(q, k), dim=-1) @ v,
            "The mask is an argument, but it is not used.",
        ),
        Mistake(
            "upside_down",
            lambda q, k, v, m: masked_attention(q, k, v, ~m),
            "Your mask is inverted. In this course True means 'may attend'.",
        ),
        Mistake(
            "upside_down_and_nan",
            lambda q, k, v, m: masked_attention(q, k, v, ~m, fill=-torch.inf),
            "Your mask is inverted: True means 'may attend'. And a fully masked query must get zeros, not NaN.",
        ),
        Mistake(
            "over_queries",
            lambda *a: masked_attention(*a, dim=-2),
            "Your softmax runs over the queries. The weights of one query sum to 1 over the keys: dim=-1.",
        ),
        Mistake(
            "over_queries_and_nan",
            lambda *a: masked_attention(*a, dim=-2, fill=-torch.inf),
            "Your softmax runs over the queries. The weights of one query sum to 1 over the keys: dim=-1. After that, "
            "check the fully masked queries.",
        ),
        Mistake(
            "no_scale",
            lambda *a: masked_attention(*a, root=1),
            "The scale is missing: the variance of the scores grows with the dimension d. Divide by √d.",
        ),
        Mistake(
            "no_scale_and_nan",
            lambda *a: masked_attention(*a, root=1, fill=-torch.inf),
            "The scale is missing: divide the scores by √d. And a fully masked query must get zeros, not NaN.",
        ),
        Mistake(
            "by_d",
            lambda *a: masked_attention(*a, root=a[0].shape[-1] ** 2),
            "You divide by d. The variance of the scores is then 1/d instead of 1. Divide by √d.",
        ),
        Mistake(
            "by_d_value",
            lambda *a: masked_attention(*a, root=a[2].shape[-1]),
            "You divide by the root of the dimension of the values. A score is a sum over the components of a query "
            "and a key: use their dimension.",
        ),
        Mistake(
            "by_number_of_keys",
            lambda *a: masked_attention(*a, root=a[1].shape[-2]),
            "You divide by the root of the number of keys. A score is a sum over the components of one key: use "
            "key.shape[-1].",
        ),
        Mistake(
            "after_the_softmax",
            lambda q, k, v, m: masked_attention(q, k, v, m, root=1) / math.sqrt(k.shape[-1]),
            "You scale after the softmax: the weights of a row sum to 1/√d. Scale the scores.",
        ),
        Mistake(
            "weights",
            lambda q, k, v, m: softmax_where_allowed(attention_scores(q, k), m),
            "These are the weights, and they are right. Return the output: weights @ value.",
        ),
        *(
            Mistake(
                name,
                attempt,
                "You apply exp to the scores as they are, which overflows or underflows for large scores. torch.softmax "
                "subtracts the largest score of the row first.",
            )
            for name, attempt in {
                "overflow": lambda *a: _ratio(*a, epsilon=1e-9),
                "overflow_and_nan": _ratio,
            }.items()
        ),
        Mistake(
            "masked_over_queries",
            _over_queries,
            "Your softmax runs over the queries. The weights of one query sum to 1 over the keys: dim=-1.",
        ),
        Mistake(
            "scores_transposed",
            lambda q, k, v, m: softmax_where_allowed(attention_scores(k, q), m) @ v,
            "Your scores are key @ query.mT, (key, query). Each row belongs to a query: query @ key.mT.",
        ),
        Mistake(
            "scores_transposed_refused",
            lambda q, k, v, m: masked_softmax(attention_scores(k, q), m) @ v,
            "Your scores are key @ query.mT, (key, query), which the mask does not fit. Each row belongs to a query: "
            "query @ key.mT.",
        ),
        Mistake(
            "keys_for_values",
            lambda q, k, v, m: masked_attention(q, k, k, m),
            "You average the keys. The output is the weighted sum of the values.",
        ),
        Mistake(
            "values_for_keys",
            lambda q, k, v, m: masked_attention(q, v, v, m),
            "You compare the query with the values. The scores are dot products of queries and keys.",
        ),
        Mistake(
            "keys_and_values_exchanged",
            lambda q, k, v, m: masked_attention(q, v, k, m),
            "Keys and values are exchanged. The query is compared with the keys, and the output is the weighted sum of the "
            "values.",
        ),
        Mistake(
            "queries_and_keys_exchanged",
            lambda q, k, v, m: softmax_where_allowed(attention_scores(q, k), m.mT).mT @ v,
            "The mask and the weights are transposed. The mask is (query, key), as the scores are.",
        ),
        Mistake(
            "mask_transposed",
            lambda q, k, v, m: masked_attention(q, k, v, m.mT),
            "Your mask is transposed. It is (batch, query, key), as the scores are.",
        ),
        Mistake(
            "no_softmax",
            lambda q, k, v, m: (attention_scores(q, k) * m) @ v,
            "You use the scores as weights. Apply a softmax over the allowed keys, so that the weights are positive and sum "
            "to 1.",
        ),
        Mistake(
            "multiplied",
            lambda q, k, v, m: softmax_where_allowed(q @ k.mT * math.sqrt(k.shape[-1]), m) @ v,
            "You multiply the scores by √d. Divide, so that their variance does not grow with the dimension.",
        ),
        *(
            Mistake(
                f"upside_down_{name}",
                lambda *a, fill=fill: masked_attention(*a[:3], ~a[3], fill=fill),
                "Your mask is inverted: True means 'may attend', and masked_fill fills where its argument is True. And a "
                "fully masked query must get zeros.",
            )
            for name, fill in {"uniform": -1e9, "zero": 0.0}.items()
        ),
        *(
            Mistake(
                f"{name}_uniform",
                lambda *a, root=root: masked_attention(*a, root=root(*a), fill=-1e9),
                message + " And a fully masked query must get zeros, not the mean of the values.",
            )
            for name, root, message in (
                (
                    "no_scale",
                    lambda q, k, v, m: 1,
                    "The scale is missing: divide the scores by √d.",
                ),
                (
                    "by_d",
                    lambda q, k, v, m: k.shape[-1] ** 2,
                    "You divide by d. Divide by √d.",
                ),
                (
                    "by_d_value",
                    lambda q, k, v, m: v.shape[-1],
                    "You divide by the root of the dimension of the values. Use that of the keys.",
                ),
            )
        ),
        *(
            Mistake(
                f"{name}_nan",
                lambda *a, root=root: masked_attention(*a, root=root(*a), fill=-torch.inf),
                message + " And a fully masked query must get zeros, not NaN.",
            )
            for name, root, message in (
                (
                    "by_d",
                    lambda q, k, v, m: k.shape[-1] ** 2,
                    "You divide by d. Divide by √d.",
                ),
                (
                    "by_d_value",
                    lambda q, k, v, m: v.shape[-1],
                    "You divide by the root of the dimension of the values. Use that of the keys.",
                ),
            )
        ),
        Mistake(
            "zero_scores_and_weights",
            lambda q, k, v, m: (torch.softmax(attention_scores(q, k) * m, dim=-1) * m) @ v,
            "You set masked scores to 0 and their weights to 0 afterwards, so the weights that remain do not sum to 1. "
            "Masked scores must be -inf before the softmax.",
        ),
        Mistake(
            "after_the_softmax_of_unscaled",
            lambda q, k, v, m: (torch.softmax(q @ k.mT, dim=-1) * m) @ v,
            "You mask after the softmax, so the weights of a row no longer sum to 1. Mask before the softmax. And the scale "
            "1/√d is missing.",
        ),
        Mistake(
            "mask_as_number",
            lambda q, k, v, m: torch.softmax(attention_scores(q, k) + m, dim=-1) @ v,
            "You add the mask to the scores, so an allowed key gets 1 more than a masked one. Masked scores must become "
            "-inf.",
        ),
        Mistake(
            "large_negative_at_allowed",
            lambda q, k, v, m: torch.softmax(attention_scores(q, k) + m * -1e9, dim=-1) @ v,
            "You add a large negative number where the mask is True, which are the allowed keys. Add it where the mask is "
            "False, and give fully masked queries zeros.",
        ),
        *two_mistakes(
            _changed,
            {
                "softmax_over_queries": (
                    {"dim": -2},
                    "Your softmax runs over the queries; it must run over the keys: dim=-1.",
                )
            },
            {
                "unscaled": ({"root": lambda q, k, v: 1}, "The scale 1/√d is missing."),
                "d_for_root": (
                    {"root": lambda q, k, v: k.shape[-1] ** 2},
                    "Divide by √d, not by d.",
                ),
            },
            {"zero_scores": ({"fill": 0.0}, "Masked scores must be -inf, not 0.")},
        ),
    ),
    hints=(
        "Five steps: scores, scale, mask, softmax, weighted sum. Write the shape behind each line.",
        "scores.masked_fill(~mask, -torch.inf) masks. Which rows are now entirely -inf? ~mask.any(dim=-1, keepdim=True).",
        "Set those rows to 0 before the softmax, so that it stays finite, and their weights to 0 after it.",
    ),
)
