"""The exercise and the bug hunt of notebook 00, each small enough for a minute."""

from functools import partial

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


def _on_columns(weights, values, added):
    return added(weights * values)  # raises for 3 weights and 2 columns, as theirs does


_ON_COLUMNS = (
    "weights * values weighs the columns, where it does not raise. The weights belong to the rows: make them a column, "
    "weights[:, None], and add up the rows of the product."
)

_MIX = Exercise(
    name="mix",
    notebook=_NOTEBOOK,
    title="The average of values, by weight",
    reference=lambda weights, values: (
        attend(weights.log()[None, None], values[None]).output[0, 0] * weights.sum()
    ),
    solution=mix,
    cases=(
        # as many weights as columns: nothing raises
        Case(weights=torch.tensor([0.75, 0.25]), values=torch.tensor([[4.0, 0.0], [2.0, 8.0]])),
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
        Mistake(
            "along_the_rows",
            lambda weights, values: (weights[:, None] * values).sum(dim=1),
            "You weigh each row and then add up along it. Add up the rows, dim=0: one number for each column is left.",
        ),
        Mistake(
            "all_added",
            lambda weights, values: (weights[:, None] * values).sum(),
            "You add up everything, and one number is left. Add up the rows alone, dim=0: one for each column.",
        ),
        Mistake(
            "all_averaged",
            lambda weights, values: (weights[:, None] * values).mean(),
            "You average everything, and one number is left. Add up the rows alone, dim=0: one for each column.",
        ),
        Mistake(
            "one_row",
            lambda weights, values: weights[None] @ values,
            "Your numbers are right, but they are a table of one row, (1, size). Return the row itself: (size,).",
        ),
        Mistake(
            "softmax",
            lambda weights, values: torch.softmax(weights, dim=0) @ values,
            "You take a softmax of the weights, which makes them more alike. They add up to 1 already: use them as they "
            "are.",
        ),
        Mistake(
            "other_way_round",
            lambda weights, values: values @ weights,
            "Your weights meet the columns of values, and there is one for each row. A product adds up what stands in "
            "the middle: (key,) @ (key, size).",
        ),
        *(
            Mistake(name, partial(_on_columns, added=added), _ON_COLUMNS)
            for name, added in {
                "columns_weighed": lambda products: products,
                "columns_weighed_rows_added": lambda products: products.sum(dim=0),
                "columns_weighed_added_along_rows": lambda products: products.sum(dim=1),
                "columns_weighed_all_added": lambda products: products.sum(),
                "columns_weighed_averaged": lambda products: products.mean(dim=0),
            }.items()
        ),
    ),
    hints=(
        "Three quarters of the first value and one quarter of the second.",
        "Multiply each row of values by its weight, and add up the rows.",
        "The product weights @ values does both at once.",
    ),
    differentiable=False,  # weights / weights.sum() is right as well
)

EXERCISES = (_SHARES, _MIX)
