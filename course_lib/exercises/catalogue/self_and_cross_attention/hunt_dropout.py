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
            "The kept weights of each row sum to 1: you divide by their sum, or a softmax over the kept scores does. Dropout "
            "divides by 1 - dropout: a row sums to 1 on average only.",
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
        *(
            Mistake(
                f"scores_rescaled{name}",
                lambda a, v, keep, p, after=after: (
                    after(torch.softmax(a / (1 - p), dim=-1), keep, p) @ v
                ),
                "Your scores are still divided by 1 - dropout, before the softmax. Leave the scores as they are, and divide "
                "the kept weights.",
            )
            for name, after in {
                "": lambda w, keep, p: w * keep,
                "_alone": lambda w, keep, p: w,
                "_twice": lambda w, keep, p: w * keep / (1 - p),
            }.items()
        ),
        Mistake(
            "both",
            lambda a, v, keep, p: (torch.softmax(a * keep / (1 - p), dim=-1) * keep / (1 - p)) @ v,
            "You drop weights now, but the scores are still multiplied by keep / (1 - dropout) as well. Remove the first.",
        ),
        Mistake(
            "both_without_rescaling_scores",
            lambda a, v, keep, p: (torch.softmax(a * keep, dim=-1) * keep / (1 - p)) @ v,
            "You drop weights now, but dropped scores are still set to 0 as well, which changes the softmax. Leave the "
            "scores as they are.",
        ),
        Mistake(
            "no_dropout",
            lambda a, v, keep, p: torch.softmax(a, dim=-1) @ v,
            "This is attention without dropout: keep and dropout are not used.",
        ),
        Mistake(
            "rescaled_alone",
            lambda a, v, keep, p: torch.softmax(a, dim=-1) / (1 - p) @ v,
            "You divide by 1 - dropout, but drop nothing: keep is not used.",
        ),
        Mistake(
            "over_queries",
            lambda a, v, keep, p: (torch.softmax(a, dim=0) * keep / (1 - p)) @ v,
            "Dropout is right now, but your softmax runs over the queries. The weights of one query sum to 1 over the keys: "
            "dim=-1.",
        ),
        *(
            Mistake(
                f"observed_share_{name}",
                lambda a, v, keep, p, dim=dim: (
                    (
                        torch.softmax(a, dim=-1)
                        * keep
                        / (
                            keep.to(a.dtype).mean()
                            if dim is None
                            else keep.to(a.dtype).mean(dim, keepdim=True)
                        )
                    )
                    @ v
                ),
                "You divide by the share of entries that this keep happens to keep. Dropout divides by the probability of "
                "keeping, 1 - dropout.",
            )
            for name, dim in {"all": None, "row": -1}.items()
        ),
        *(
            Mistake(
                f"minus_infinity_{name}",
                attempt,
                "Setting dropped scores to -inf is a mask: the softmax divides by the sum of the kept ones. Drop after the "
                "softmax, and divide by 1 - dropout only.",
            )
            for name, attempt in {
                "nan_to_zero_and_rescaled": lambda a, v, keep, p: (
                    masked_softmax(a, keep) / (1 - p) @ v
                ),
                "of_rescaled": lambda a, v, keep, p: masked_softmax(a / (1 - p), keep) @ v,
                "large_negative": lambda a, v, keep, p: (
                    torch.softmax(a.masked_fill(~keep, -1e9), dim=-1) @ v
                ),
                "large_negative_rescaled": lambda a, v, keep, p: (
                    torch.softmax(a.masked_fill(~keep, -1e9), dim=-1) / (1 - p) @ v
                ),
            }.items()
        ),
        Mistake(
            "divided_twice",
            lambda a, v, keep, p: (torch.softmax(a, dim=-1) * keep / (1 - p) ** 2) @ v,
            "You divide by 1 - dropout twice. Once keeps the mean of the output.",
        ),
        Mistake(
            "upside_down_without_rescaling",
            lambda a, v, keep, p: (torch.softmax(a, dim=-1) * ~keep) @ v,
            "Your pattern is inverted: True in keep means that the weight is kept. And the kept weights are divided by "
            "1 - dropout.",
        ),
        Mistake(
            "by_both",
            lambda a, v, keep, p: (torch.softmax(a, dim=-1) * keep / p / (1 - p)) @ v,
            "You divide by dropout as well. Divide by 1 - dropout only.",
        ),
        Mistake(
            "no_softmax",
            lambda a, v, keep, p: a * keep / (1 - p) @ v,
            "Dropout is in the right place now, but the softmax is gone: these are scores, not weights.",
        ),
    ),
    hints=(
        "Print the weights. Are the dropped ones zero?",
        "A score of 0 is a score like any other: exp(0) is 1. The weight should be 0.",
        "First the softmax, then weights * keep / (1 - dropout), then @ value.",
    ),
    given=_given,
)
