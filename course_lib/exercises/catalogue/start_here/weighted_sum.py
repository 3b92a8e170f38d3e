"""Exercise `weighted_sum` of notebook 00."""

from functools import partial

import torch

from course_lib.attention import attend
from course_lib.exercises.catalogue.start_here._shared import SCORES
from course_lib.exercises.exercise import Case, Exercise, Mistake


def weighted_sum(weights, values):
    return weights @ values  # (d_v,)


_VALUES = torch.tensor([[1.0, 0.0], [0.0, 2.0], [4.0, 4.0]])
_FOUR_VALUES = torch.tensor([[1.0, 0.0], [0.0, 2.0], [4.0, 4.0], [-2.0, 3.0]])


def _weighted_columns(weights, values, added):
    return added(weights * values)  # raises for 3 weights and 2 columns, as theirs does


_COLUMNS_WEIGHTED = (
    "weights * values broadcasts the weights over the columns, or raises an error. Each row of values has one weight: "
    "give the weights a second axis, weights[:, None], and sum the product over the rows, dim=0."
)

EXERCISE = Exercise(
    name="weighted_sum",
    notebook="00_start_here",
    title="The weighted sum of the values",
    reference=lambda weights, values: (
        attend(weights.log()[None, None], values[None]).output[0, 0] * weights.sum()
    ),
    solution=weighted_sum,
    cases=(
        # as many weights as columns: nothing raises
        Case(weights=torch.tensor([0.75, 0.25]), values=torch.tensor([[4.0, 0.0], [2.0, 8.0]])),
        Case(
            weights=torch.tensor([0.125, 0.5, 0.25, 0.125]),
            values=torch.tensor([[1.0], [2.0], [-3.0], [0.5]]),
        ),
        Case(weights=torch.softmax(SCORES, dim=-1), values=_VALUES),
        Case(weights=torch.tensor([0.5, 2.0, 1.0, 0.25]), values=_FOUR_VALUES),  # sums to 3.75
    ),
    mistakes=(
        Mistake(
            "plain_mean",
            lambda weights, values: values.mean(dim=0),
            "You take the plain mean, in which all values have the same weight. Use the weights.",
        ),
        Mistake(
            "mean_of_products",
            lambda weights, values: (weights[:, None] * values).mean(dim=0),
            "You divide by the number of values as well. A weighted sum is the sum of the products: use sum instead of "
            "mean.",
        ),
        Mistake(
            "not_added",
            lambda weights, values: weights[:, None] * values,
            "You multiply each value by its weight, but do not add the products. Sum over the keys, dim=0: the output is "
            "one vector.",
        ),
        Mistake(
            "largest_alone",
            lambda weights, values: values[weights.argmax()],
            "You return the value with the largest weight and ignore the others. Every value contributes in proportion to "
            "its weight.",
        ),
        Mistake(
            "values_added",
            lambda weights, values: values.sum(dim=0),
            "You sum the values without their weights. Multiply each value by its weight first.",
        ),
        Mistake(
            "along_the_rows",
            lambda weights, values: (weights[:, None] * values).sum(dim=1),
            "You sum over the components of each value, dim=1. Sum over the keys, dim=0: the output has one component per "
            "column of values.",
        ),
        Mistake(
            "all_added",
            lambda weights, values: (weights[:, None] * values).sum(),
            "You sum over both axes, which leaves a single number. Sum over the keys alone, dim=0: the output has one "
            "component per column of values.",
        ),
        Mistake(
            "all_averaged",
            lambda weights, values: (weights[:, None] * values).mean(),
            "You average over both axes, which leaves a single number. Sum over the keys alone, dim=0: the output has one "
            "component per column of values.",
        ),
        Mistake(
            "one_row",
            lambda weights, values: weights[None] @ values,
            "The numbers are right, but the shape is (1, d_v), a matrix of one row. Return a vector of shape (d_v,).",
        ),
        Mistake(
            "softmax",
            lambda weights, values: torch.softmax(weights, dim=0) @ values,
            "You apply a softmax to the weights, which changes them. They are weights already: use them unchanged.",
        ),
        Mistake(
            "other_way_round",
            lambda weights, values: values @ weights,
            "The product values @ weights sums over the columns of values. The sum must run over the keys, so the key axes "
            "must meet: (n,) @ (n, d_v).",
        ),
        *(
            Mistake(name, partial(_weighted_columns, added=added), _COLUMNS_WEIGHTED)
            for name, added in {
                "columns_weighted": lambda products: products,
                "columns_weighted_rows_added": lambda products: products.sum(dim=0),
                "columns_weighted_added_along_rows": lambda products: products.sum(dim=1),
                "columns_weighted_all_added": lambda products: products.sum(),
                "columns_weighted_averaged": lambda products: products.mean(dim=0),
            }.items()
        ),
        Mistake(
            "normalised_again",
            lambda weights, values: weights @ values / weights.sum(),
            "You divide by the sum of the weights. The weighted sum uses the weights as they are, whether they sum to 1 or "
            "not.",
        ),
        Mistake(
            "last_left_out",
            lambda weights, values: weights[:-1] @ values[:-1],
            "The last value is left out. The sum runs over all n values: range(n) ends at n - 1 by itself.",
        ),
        Mistake(
            "first_left_out",
            lambda weights, values: weights[1:] @ values[1:],
            "The first value is left out. Indices begin at 0.",
        ),
        Mistake(
            "last_alone",
            lambda weights, values: weights[-1] * values[-1],
            "Only the last product is left: each step of your loop overwrites the result. Add to it instead.",
        ),
        Mistake(
            "weights_unused_in_the_sum",
            lambda weights, values: weights.sum() * values.sum(dim=0),
            "You sum weights and values separately. Multiply each value by its own weight first, then sum.",
        ),
        Mistake(
            "weights_twice",
            lambda weights, values: (weights * weights) @ values,
            "Each value is multiplied by its weight twice. Once is enough.",
        ),
        Mistake(
            "partial_sums",
            lambda weights, values: (weights[:, None] * values).cumsum(dim=0),
            "You return all partial sums. The output is the last of them, one vector: sum(dim=0).",
        ),
    ),
    hints=(
        "In the smallest example, add 0.75 times the first value to 0.25 times the second.",
        "Multiply each row of values by its weight, and sum over the rows.",
        "The matrix product weights @ values does both.",
    ),
)
