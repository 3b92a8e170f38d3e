"""Bug hunt `hunt_width` of notebook 02."""

import math

import torch

from course_lib.attention import attend
from course_lib.exercises.catalogue._shared import random_tensor, two_mistakes
from course_lib.exercises.catalogue.scoring_functions._shared import KEY, QUERY
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.scoring import ScaledDotScore


def look_up(query, key, value):
    scores = query @ key.mT / math.sqrt(key.shape[-1])  # (…, query, key)
    weights = torch.softmax(scores, dim=-1)  # (…, query, key)
    return weights @ value  # (…, query, value_size)


_VALUE = torch.tensor([[3.0, 0.0, 0.0, 1.0], [0.0, 3.0, 0.0, 1.0], [0.0, 0.0, 3.0, 1.0]])  # (3, 4)


def _look_up(query, key, value, *, root, dim=-1):
    return torch.softmax(query @ key.mT / math.sqrt(root), dim=dim) @ value


def _given(query, key, value):
    scores = query @ key.mT / math.sqrt(value.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return weights @ value


EXERCISE = Exercise(
    name="hunt_width",
    notebook="02_scoring_functions",
    title="Bug hunt: zeros that should change nothing",
    reference=lambda q, k, v: attend(ScaledDotScore()(q, k), v).output,
    solution=look_up,
    cases=(
        Case(query=QUERY, key=KEY, value=_VALUE),
        Case(
            query=random_tensor(2, 4, 6, seed=19),
            key=random_tensor(2, 5, 6, seed=20),
            value=random_tensor(2, 5, 3, seed=21),
        ),
    ),
    mistakes=(
        Mistake(
            "no_scale",
            lambda q, k, v: _look_up(q, k, v, root=1),
            "The dimension of the values is gone, and the scale with it. The variance of the scores grows with the "
            "dimension of the keys.",
        ),
        Mistake(
            "number_of_keys",
            lambda q, k, v: _look_up(q, k, v, root=k.shape[-2]),
            "Now it is the number of keys. A score is a sum over the components of one key.",
        ),
        Mistake(
            "by_d",
            lambda q, k, v: _look_up(q, k, v, root=k.shape[-1] ** 2),
            "The right dimension, but without its square root: the variance of the scores is 1/d now.",
        ),
        Mistake(
            "after_the_softmax",
            lambda q, k, v: torch.softmax(q @ k.mT, dim=-1) / math.sqrt(k.shape[-1]) @ v,
            "You scale after the softmax: the weights sum to 1/√d. Scale the scores.",
        ),
        Mistake(
            "number_of_queries",
            lambda q, k, v: _look_up(q, k, v, root=q.shape[-2]),
            "Now it is the number of queries. A score is a sum over the components of one query and one key: use their "
            "dimension.",
        ),
        Mistake(
            "first_axis",
            lambda q, k, v: _look_up(q, k, v, root=k.shape[0]),
            "key.shape[0] is the number of keys, or the batch size where there are batch axes in front. A score is a sum "
            "over the components of one key: key.shape[-1].",
        ),
        Mistake(
            "multiplied",
            lambda q, k, v: torch.softmax(q @ k.mT * math.sqrt(k.shape[-1]), dim=-1) @ v,
            "The right dimension, but you multiply by √d. Divide, so that the variance of the scores stays 1.",
        ),
        *(
            Mistake(
                f"fixed_{number}",
                lambda q, k, v, number=number: _look_up(q, k, v, root=number**2),
                "You divide by a fixed number. The dimension of the keys differs from call to call: use "
                "math.sqrt(key.shape[-1]).",
            )
            for number in (2, 4)
        ),
        Mistake(
            "over_queries",
            lambda q, k, v: _look_up(q, k, v, root=k.shape[-1], dim=-2),
            "The scale is right now, but your softmax runs over the queries. The weights of one query sum to 1 over the "
            "keys: dim=-1.",
        ),
        *(
            Mistake(
                name,
                lambda q, k, v, root=root: _look_up(q, k, v, root=root(k.shape[-1], v.shape[-1])),
                "The dimension of the values is still in the scale. Only the dimension of queries and keys belongs there.",
            )
            for name, root in {
                "sum_of_dimensions": lambda d_key, d_value: d_key + d_value,
                "product_of_dimensions": lambda d_key, d_value: d_key * d_value,
                "by_d_value": lambda d_key, d_value: d_value**2,
            }.items()
        ),
        *(
            Mistake(
                name,
                lambda q, k, v, norm=norm: torch.softmax(q @ k.mT / norm(k), dim=-1) @ v,
                "You divide by a norm, which depends on the numbers in the keys. The scale depends on their dimension alone: "
                "√d.",
            )
            for name, norm in {
                "norm_of_all_keys": torch.linalg.vector_norm,
                "norm_of_each_key": lambda k: k.norm(dim=-1)[..., None, :],
            }.items()
        ),
        Mistake(
            "cosine",
            lambda q, k, v: (
                torch.softmax(
                    torch.cosine_similarity(q[..., :, None, :], k[..., None, :, :], dim=-1), dim=-1
                )
                @ v
            ),
            "You divide by the norms, so the scores are cosine similarities. Divide the dot products by √d.",
        ),
        *two_mistakes(
            lambda q, k, v, *, root, dim: _look_up(q, k, v, root=root(q, k, v), dim=dim),
            {
                "softmax_over_queries": (
                    {"dim": -2},
                    "Your softmax runs over the queries; it must run over the keys: dim=-1.",
                )
            },
            {
                "no_scale": ({"root": lambda q, k, v: 1}, "The scale 1/√d is missing."),
                "d_for_root": (
                    {"root": lambda q, k, v: k.shape[-1] ** 2},
                    "Divide by √d, not by d.",
                ),
                "as_given": (
                    {"root": lambda q, k, v: v.shape[-1]},
                    "The scale still depends on the values.",
                ),
            },
        ),
        Mistake(
            "no_softmax",
            lambda q, k, v: q @ k.mT / math.sqrt(k.shape[-1]) @ v,
            "The scale is right now, but the softmax is gone: these are scores, not weights.",
        ),
        Mistake(
            "softmax_over_axis_1",
            lambda q, k, v: _look_up(q, k, v, root=k.shape[-1], dim=1),
            "The scale is right now, but dim=1 is the axis of the keys only without a batch. Count from the end: dim=-1.",
        ),
        Mistake(
            "size_of_axis_1",
            lambda q, k, v: _look_up(q, k, v, root=k.shape[1]),
            "key.shape[1] is the dimension only without a batch. Count from the end: key.shape[-1].",
        ),
    ),
    hints=(
        "Print the weights for the narrow and for the wide values. Do they change? Should they?",
        "The scale keeps the variance of q·k at 1. Which dimension does that variance depend on?",
        "Divide by math.sqrt(key.shape[-1]).",
    ),
    given=_given,
)
