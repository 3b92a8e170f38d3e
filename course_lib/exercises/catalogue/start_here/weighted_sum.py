"""The weighted sum of the values."""

import torch

from course_lib.exercises.catalogue.start_here._shared import SCORES
from course_lib.transformer.attention import attend


def weighted_sum(weights, values):
    return weights @ values  # (d_v,)


def reference(weights, values):
    return attend(weights.log()[None, None], values[None]).output[0, 0] * weights.sum()


MISTAKES = r"""
weights @ values -> values.mean(dim=0)
    You take the plain mean, in which all values have the same weight. Use the weights.
weights @ values -> weights @ values / len(values)
    You divide by the number of values as well. A weighted sum is the sum of the products: use sum instead of mean.
weights @ values -> weights[:, None] * values
    You multiply each value by its weight, but do not add the products. Sum over the keys, dim=0: the output is one
    vector.
weights @ values -> values[weights.argmax()]
    You return the value with the largest weight and ignore the others. Every value contributes in proportion to its
    weight.
weights @ values -> values.sum(dim=0)
    You sum the values without their weights. Multiply each value by its weight first.
weights @ values -> (weights[:, None] * values).sum(dim=1)
    You sum over the components of each value, dim=1. Sum over the keys, dim=0: the output has one component per
    column of values.
weights @ values -> (weights @ values).sum()
    You sum over both axes, which leaves a single number. Sum over the keys alone, dim=0: the output has one component
    per column of values.
weights @ values -> (weights[:, None] * values).mean()
    You average over both axes, which leaves a single number. Sum over the keys alone, dim=0: the output has one
    component per column of values.
weights @ values -> weights[None] @ values
    The numbers are right, but the shape is (1, d_v), a matrix of one row. Return a vector of shape (d_v,).
weights @ values -> (weights @ values)[:, None]
    The numbers are right, but the shape is (d_v, 1), a matrix of one column. Return a vector of shape (d_v,).
weights @ values -> torch.softmax(weights, dim=0) @ values
    You apply a softmax to the weights, which changes them. They are weights already: use them unchanged.
weights @ values -> values @ weights
    The product values @ weights sums over the columns of values. The sum must run over the keys, so the key axes must
    meet: (n,) @ (n, d_v).
weights @ values -> weights @ values.T
    You transpose values, so the product sums over the columns of values. The sum must run over the keys, so the key
    axes must meet: (n,) @ (n, d_v).
weights @ values -> weights[:, None] @ values
    weights[:, None] @ values multiplies (n, 1) by (n, d_v), and the inner sizes do not agree. In a matrix product
    leave weights as it is: (n,) @ (n, d_v).
weights @ values -> torch.dot(weights, values)
    torch.dot multiplies two vectors, but values is a matrix. Use the matrix product: @.
weights @ values -> weights * values
weights @ values -> values * weights
weights @ values -> (weights * values).sum(dim=0)
weights @ values -> (values * weights).sum(dim=0)
weights @ values -> (weights * values).sum(dim=1)
weights @ values -> (values * weights).sum(dim=1)
weights @ values -> (weights * values).sum()
weights @ values -> (values * weights).sum()
weights @ values -> (weights * values).mean(dim=0)
weights @ values -> (values * weights).mean(dim=0)
    weights * values broadcasts the weights over the columns, or raises an error. Each row of values has one weight:
    give the weights a second axis, weights[:, None], and sum the product over the rows, dim=0.
weights @ values -> weights @ values / weights.sum()
    You divide by the sum of the weights. The weighted sum uses the weights as they are, whether they sum to 1 or not.
weights @ values -> weights[:-1] @ values[:-1]
    The last value is left out. The sum runs over all n values: range(n) ends at n - 1 by itself.
weights @ values -> weights[1:] @ values[1:]
    The first value is left out. Indices begin at 0.
weights @ values -> weights[-1] * values[-1]
    Only the last product is left: each step of your loop overwrites the result. Add to it instead.
weights @ values -> weights[0] * values[0]
    You return the first product alone. Add the products of all keys; in a loop, return after the last step.
weights @ values -> weights.sum() * values.sum(dim=0)
    You sum weights and values separately. Multiply each value by its own weight first, then sum.
weights @ values -> weights**2 @ values
    Each value is multiplied by its weight twice. Once is enough.
weights @ values -> (weights[:, None] * values).cumsum(dim=0)
    You return all partial sums. The output is the last of them, one vector: sum(dim=0).
weights @ values -> (weights[:, None] * values).amax(dim=0)
    You take the largest product of each column. Add the products: sum(dim=0).
weights @ values -> (weights[:, None] * values).prod(dim=0)
    You multiply the products with each other. Add them: sum(dim=0).
weights @ values -> (weights[:, None] + values).sum(dim=0)
    You add each weight to its value. Multiply each value by its weight, then sum.
weights @ values -> (values / weights[:, None]).sum(dim=0)
    You divide each value by its weight. Multiply each value by its weight, then sum.
weights @ values -> weights.flip(0) @ values
    The first weight meets the last value: one of the two is in reversed order. Each value has the weight of the same
    index.
"""

_VALUES = torch.tensor([[1.0, 0.0], [0.0, 2.0], [4.0, 4.0]])
_FOUR_VALUES = torch.tensor([[1.0, 0.0], [0.0, 2.0], [4.0, 4.0], [-2.0, 3.0]])

CASES = (
    # as many weights as columns: nothing raises
    dict(weights=torch.tensor([0.75, 0.25]), values=torch.tensor([[4.0, 0.0], [2.0, 8.0]])),
    dict(
        weights=torch.tensor([0.125, 0.5, 0.25, 0.125]),
        values=torch.tensor([[1.0], [2.0], [-3.0], [0.5]]),
    ),
    dict(weights=torch.softmax(SCORES, dim=-1), values=_VALUES),
    dict(weights=torch.tensor([0.5, 2.0, 1.0, 0.25]), values=_FOUR_VALUES),  # sums to 3.75
)
HINTS = """
In the smallest example, add 0.75 times the first value to 0.25 times the second.
Multiply each row of values by its weight, and sum over the rows.
The matrix product weights @ values does both.
"""
