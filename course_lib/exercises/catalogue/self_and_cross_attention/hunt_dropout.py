"""Bug hunt `hunt_dropout` of notebook 04."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.masks import masked_softmax


def dropped(scores, value, keep, dropout):
    weights = torch.softmax(scores, dim=-1)  # (query, key)
    weights = weights * keep / (1 - dropout)  # the mean stays the same
    return weights @ value  # (query, d_value)


def _given(scores, value, keep, dropout):
    scores = scores * keep / (1 - dropout)
    weights = torch.softmax(scores, dim=-1)
    return weights @ value


EXERCISE = Exercise(
    name="hunt_dropout",
    notebook="04_self_and_cross_attention",
    title="Bug hunt: attention with dropout",
    reference=lambda a, v, keep, p: masked_softmax(a) * keep / (1 - p) @ v,
    solution=dropped,
    cases=(
        Case(
            scores=torch.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, -1.0]]),
            value=torch.tensor([[1.0], [2.0], [4.0]]),
            keep=torch.tensor([[False, True, True], [True, True, False]]),
            dropout=0.5,
        ),
        Case(
            scores=random_tensor(4, 5, seed=21),
            value=random_tensor(5, 3, seed=22),
            keep=torch.tensor(
                [
                    [True, True, False, True, False],
                    [True, True, True, True, True],
                    [False, False, False, False, False],
                    [False, True, False, True, True],
                ]
            ),
            dropout=0.4,
        ),
    ),
    mistakes=(
        Mistake(
            "scores_to_zero",
            lambda a, v, keep, p: torch.softmax(a * keep, dim=-1) @ v,
            "The scores are no longer rescaled, but dropout is still applied to scores. A score of 0 has exp(0) = 1, "
            "and so a weight. Drop weights.",
        ),
        Mistake(
            "scores_to_zero_and_rescaled",
            lambda a, v, keep, p: torch.softmax(a * keep, dim=-1) / (1 - p) @ v,
            "You rescale weights now, but you still drop scores. A score of 0 has exp(0) = 1, and so a weight.",
        ),
        Mistake(
            "minus_infinity",
            lambda a, v, keep, p: torch.softmax(a.masked_fill(~keep, -torch.inf), dim=-1) @ v,
            "The kept weights of a row sum to 1 again: that is a mask, not dropout, and a row that keeps nothing is "
            "NaN. Drop after the softmax, and divide by 1 - dropout only.",
        ),
        Mistake(
            "minus_infinity_and_rescaled",
            lambda a, v, keep, p: (
                torch.softmax(a.masked_fill(~keep, -torch.inf), dim=-1) / (1 - p) @ v
            ),
            "You set dropped scores to -inf: the softmax then redistributes their weight, and you rescale in "
            "addition. Drop after the softmax.",
        ),
        Mistake(
            "renormalised",
            lambda a, v, keep, p: (
                (w := torch.softmax(a, -1) * keep) / w.sum(-1, keepdim=True).clamp(min=1e-12) @ v
            ),
            "You divide the kept weights by their sum. Dropout divides by 1 - dropout: a row sums to 1 on average only.",
        ),
        Mistake(
            "no_rescale",
            lambda a, v, keep, p: torch.softmax(a, dim=-1) * keep @ v,
            "You drop weights now. But on average the output is too small: divide the kept weights by "
            "1 - dropout.",
        ),
        Mistake(
            "times",
            lambda a, v, keep, p: torch.softmax(a, dim=-1) * keep * (1 - p) @ v,
            "You multiply by 1 - dropout. Divide, so that the mean stays the same.",
        ),
        Mistake(
            "by_dropout",
            lambda a, v, keep, p: torch.softmax(a, dim=-1) * keep / p @ v,
            "You divide by the probability of dropping. Divide by that of keeping, 1 - dropout.",
        ),
        Mistake(
            "upside_down",
            lambda a, v, keep, p: torch.softmax(a, dim=-1) * ~keep / (1 - p) @ v,
            "Your pattern is inverted: True in keep means that the weight is kept.",
        ),
        Mistake(
            "rows_of_values",
            lambda a, v, keep, p: torch.softmax(a, dim=-1) @ (v * keep[0][:, None] / (1 - p)),
            "You drop values, so all queries lose the same ones. Each weight is dropped independently.",
        ),
    ),
    hints=(
        "Print the weights. Are the dropped ones zero?",
        "A score of 0 is a score like any other: exp(0) is 1. The weight should be 0.",
        "First the softmax, then weights * keep / (1 - dropout), then @ value.",
    ),
    given=_given,
)
