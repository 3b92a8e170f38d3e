"""The exercise and the bug hunt of notebook 00, each small enough for a minute."""

import torch

from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.scoring import attend

_NOTEBOOK = "00_start_here"

_SCORES = torch.tensor([2.0, 0.5, -1.0])
_VALUES = torch.tensor([[1.0, 0.0], [0.0, 2.0], [4.0, 4.0]])


# --- hunt_shares -----------------------------------------------------------------------------


def shares_given(scores):
    powers = torch.exp(scores)
    return powers / powers.max()


def shares(scores):
    powers = torch.exp(scores)
    return powers / powers.sum()


_SHARES = Exercise(
    name="hunt_shares",
    notebook=_NOTEBOOK,
    title="Bug hunt: shares that are too large",
    reference=lambda scores: torch.softmax(scores, dim=-1),
    solution=shares,
    given=shares_given,
    cases=(
        Case(scores=_SCORES),
        Case(scores=torch.tensor([0.1, 0.2, 0.3, 0.4])),
        Case(scores=torch.tensor([-3.0, 1.0, 1.0, 0.0, 2.5])),
    ),
    mistakes=(
        Mistake(
            "without_powers",
            lambda scores: scores / scores.sum(),
            "You divide the scores themselves. They can be negative; their powers cannot.",
        ),
        Mistake(
            "by_count",
            lambda scores: torch.exp(scores) / len(scores),
            "You divide by how many there are. Shares add up to 1 if you divide by their sum.",
        ),
        Mistake(
            "not_divided",
            torch.exp,
            "You do not divide at all. Shares add up to 1 if you divide by their sum.",
        ),
        Mistake(
            "powers_twice",
            lambda scores: torch.softmax(torch.exp(scores), dim=-1),
            "You raise to powers twice: torch.softmax does it as well. Divide by the sum.",
        ),
    ),
    hints=(
        "What do shares of one cake add up to? Print shares(scores).sum().",
        "They are divided by the largest of them. Divide by something else.",
        "powers / powers.sum()",
    ),
)


# --- mix -------------------------------------------------------------------------------------


def mix(weights, values):
    return weights @ values  # (size,)


_MIX = Exercise(
    name="mix",
    notebook=_NOTEBOOK,
    title="The average of values, by weight",
    reference=lambda weights, values: (
        attend(weights.log()[None, None], values[None]).output[0, 0] * weights.sum()
    ),
    solution=mix,
    cases=(
        Case(weights=torch.tensor([0.75, 0.25]), values=torch.tensor([[4.0, 0.0], [0.0, 8.0]])),
        Case(
            weights=torch.tensor([0.125, 0.5, 0.25, 0.125]),
            values=torch.tensor([[1.0], [2.0], [-3.0], [0.5]]),
        ),
        Case(weights=torch.softmax(_SCORES, dim=-1), values=_VALUES),
    ),
    mistakes=(
        Mistake(
            "plain_mean",
            lambda weights, values: values.mean(dim=0),
            "You average all values alike. The weights say how much of each goes in.",
        ),
        Mistake(
            "mean_of_products",
            lambda weights, values: (weights[:, None] * values).mean(dim=0),
            "You divide once more: the weights add up to 1 already, so add the products and stop.",
        ),
        Mistake(
            "not_added",
            lambda weights, values: weights[:, None] * values,
            "You weigh each value and do not add them up. One vector should come out.",
        ),
        Mistake(
            "largest_alone",
            lambda weights, values: values[weights.argmax()],
            "You take the value with the largest weight alone. Attention takes some of each.",
        ),
        Mistake(
            "values_added",
            lambda weights, values: values.sum(dim=0),
            "You add up the values and leave the weights out.",
        ),
    ),
    hints=(
        "Three quarters of the first value and one quarter of the second.",
        "Multiply each row of values by its weight, and add up the rows.",
        "The product weights @ values does both at once.",
    ),
)

EXERCISES = (_SHARES, _MIX)
