"""The share of the attention weight on some positions."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor


def attention_share(weights, rows, columns):
    return weights[rows][:, columns].sum(dim=-1).mean()  # per row the share, then the mean


MISTAKES = r"""
.sum(dim=-1).mean() -> .mean()
    You average over the columns too. The share of a row is the sum of its weights in these columns; the mean is taken
    over rows only.
.sum(dim=-1).mean() -> .sum()
    You add up the rows. The share lies between 0 and 1: divide by the number of rows.
.sum(dim=-1) -> .amax(dim=-1)
    You take the largest weight of each row. Sum the weights in all of these columns.
weights[rows] -> weights
    You average over all rows. Use the given rows only.
[rows][:, columns].sum(dim=-1).mean() -> [rows, columns].sum()
[rows][:, columns].sum(dim=-1).mean() -> [rows, columns].mean()
[rows][:, columns].sum(dim=-1).mean() -> [rows, columns].sum() / len(weights)
[rows][:, columns].sum(dim=-1).mean() -> [rows, columns]
    weights[rows, columns] pairs the first row with the first column, and so on. Take the rows first, then the
    columns: weights[rows][:, columns].
weights[rows][:, columns] -> weights[columns][:, rows]
    Rows and columns are exchanged: rows are target positions, the first axis of weights.
.sum(dim=-1) -> .sum(dim=0)
    You add the rows and divide by the number of columns. Sum over the columns, dim=-1, and take the mean over the
    rows.
[:, columns] ->
    You sum over all columns, so the share is 1. Use the given columns only.
weights[rows][:, columns] -> weights[rows][columns]
    [columns] without a colon selects rows once more. The columns are the second axis: [:, columns].
.sum(dim=-1).mean() -> .sum() / len(weights)
    You divide by the number of all rows. Divide by the number of the given rows.
.sum(dim=-1).mean() -> .sum() / weights.shape[1]
    You divide by the number of source positions. Divide by the number of the given rows.
.sum(dim=-1).mean() -> .sum() / weights.numel()
    You divide by the number of all weights. Divide by the number of the given rows.
.mean() ->
    These are the shares of the rows. Return their mean, one number.
.mean() -> .mean()[None]
    Your result has the shape (1,). Return one number, shape ().
.mean() -> .amax()
    This is the share of the row that has the largest one. Take the mean over the rows.
.mean() -> .amin()
    This is the share of the row that has the smallest one. Take the mean over the rows.
.mean() -> .median()
    This is the median of the shares. Take the mean over the rows.
.mean() -> .mean() * 100
    Your share is in percent. It lies between 0 and 1.
.sum(dim=-1).mean() -> .mean(dim=0)
    This is the mean weight of each column. Add the columns: one number.
.sum(dim=-1).mean() -> .sum(dim=0)
    These are the sums of the columns over the rows. Sum over the columns, dim=-1, and take the mean over the rows.
[:, columns].sum(dim=-1) -> .argmax(dim=-1, keepdim=True).eq(torch.tensor(columns)).sum(dim=-1).float()
    You count the rows whose largest weight is in these columns. The share is the sum of the weights in them.
.sum(dim=-1).mean() -> .sum() / weights[:, columns].sum()
    You divide by the weight of these columns in all rows. The weights of each row sum to 1: divide by the number of
    the given rows.
[:, columns] -> [:, min(columns) : max(columns) + 1]
    You take all columns from the first to the last. The list may leave out columns in between: index with the list
    itself.
[:, columns] -> [:, columns[0] : columns[-1]]
    You take the columns from the first to the one before the last: a slice leaves out its end. The list may also
    leave out columns in between: index with the list itself.
[rows][:, columns] -> [min(rows) : max(rows) + 1, min(columns) : max(columns) + 1]
    You take all rows and all columns from the first to the last. Both lists may leave out positions in between: index
    with the lists themselves.
[rows] -> [min(rows) : max(rows) + 1]
    You take all rows from the first to the last. The list may leave out rows in between: index with the list itself.
[rows] -> [rows[0] : rows[-1]]
    You take the rows from the first to the one before the last: a slice leaves out its end. The list may also leave
    out rows in between: index with the list itself.
[rows] -> [rows[:1]]
[rows] -> [rows[-1:]]
    You use only one of the given rows. Take the mean over all of them.
[:, columns] -> [:, columns[:1]]
[:, columns] -> [:, columns[-1:]]
    You use only one of the given columns. Sum over all of them.
weights[rows] -> torch.softmax(weights, dim=-1)[rows]
    You apply a softmax first. These are weights already: each row sums to 1.
return -> return 1 -
    This is the share of all other columns.
"""

_WEIGHTS = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6], [0.25, 0.5, 0.25], [0.0, 0.1, 0.9]])
_WIDER = torch.tensor(  # no row has its whole weight between the first and the last of columns
    [[0.6, 0.2, 0.1, 0.1], [0.3, 0.3, 0.1, 0.3], [0.2, 0.3, 0.2, 0.3], [0.0, 0.1, 0.7, 0.2]]
)

CASES = (
    dict(weights=_WEIGHTS, rows=[0, 1], columns=[1, 2]),
    dict(weights=_WIDER, rows=[0, 2, 3], columns=[0, 2]),
    dict(
        weights=torch.softmax(random_tensor(11, 20, seed=0), -1),
        rows=[0, 1, 2, 3],
        columns=[16, 17, 18, 19],
    ),
)
HINTS = """
weights[rows] are the given rows. What does [:, columns] select from them?
Sum over the columns, then take the mean over the rows.
weights[rows][:, columns].sum(dim=-1).mean().
"""
