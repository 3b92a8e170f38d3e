"""Exercise `attention_share` of notebook 03."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.exercise import Case, Exercise, Mistake


def attention_share(weights, rows, columns):
    return weights[rows][:, columns].sum(dim=-1).mean()  # per row the share, then the mean


_WEIGHTS = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6], [0.25, 0.5, 0.25], [0.0, 0.1, 0.9]])

EXERCISE = Exercise(
    name="attention_share",
    notebook="03_seq2seq_with_attention",
    title="The share of the attention weight on some positions",
    reference=lambda weights, rows, columns: weights[rows][:, columns].sum(-1).mean(),
    solution=attention_share,
    cases=(
        Case(weights=_WEIGHTS, rows=[0, 1], columns=[1, 2]),
        Case(weights=_WEIGHTS, rows=[0, 2, 3], columns=[0, 2]),
        Case(
            weights=torch.softmax(random_tensor(11, 20, seed=0), -1),
            rows=[0, 1, 2, 3],
            columns=[16, 17, 18, 19],
        ),
    ),
    mistakes=(
        Mistake(
            "mean_of_cells",
            lambda w, r, c: w[r][:, c].mean(),
            "You average over the columns too. The share of a row is the sum of its weights in these columns; the mean "
            "is taken over rows only.",
        ),
        Mistake(
            "sum_of_rows",
            lambda w, r, c: w[r][:, c].sum(),
            "You add up the rows. The share lies between 0 and 1: divide by the number of rows.",
        ),
        Mistake(
            "largest",
            lambda w, r, c: w[r][:, c].amax(-1).mean(),
            "You take the largest weight of each row. Sum the weights in all of these columns.",
        ),
        Mistake(
            "every_row",
            lambda w, r, c: w[:, c].sum(-1).mean(),
            "You average over all rows. Use the given rows only.",
        ),
        Mistake(
            "pairs",
            lambda w, r, c: w[r, c].sum(),
            "weights[rows, columns] pairs the first row with the first column, and so on. Take the rows first, then "
            "the columns: weights[rows][:, columns].",
        ),
        *(
            Mistake(
                f"pairs_{name}",
                lambda w, r, c, reduce=reduce: reduce(w[r, c], w, r),
                "weights[rows, columns] pairs the first row with the first column, and so on. Take the rows first, then "
                "the columns: weights[rows][:, columns].",
            )
            for name, reduce in {
                "averaged": lambda x, w, r: x.mean(),
                "last_axis": lambda x, w, r: x.sum() / w.shape[0],
            }.items()
        ),
        Mistake(
            "exchanged",
            lambda w, r, c: w[c][:, r].sum(dim=-1).mean(),
            "Rows and columns are exchanged: rows are target positions, the first axis of weights.",
        ),
        Mistake(
            "over_the_rows",
            lambda w, r, c: w[r][:, c].sum(dim=0).mean(),
            "You add the rows and divide by the number of columns. Sum over the columns, dim=-1, and take the mean over "
            "the rows.",
        ),
        Mistake(
            "every_column",
            lambda w, r, c: w[r].sum(dim=-1).mean(),
            "You sum over all columns, so the share is 1. Use the given columns only.",
        ),
        Mistake(
            "by_all_rows",
            lambda w, r, c: w[r][:, c].sum() / len(w),
            "You divide by the number of all rows. Divide by the number of the given rows.",
        ),
        Mistake(
            "per_row",
            lambda w, r, c: w[r][:, c].sum(dim=-1),
            "These are the shares of the rows. Return their mean, one number.",
        ),
        Mistake(
            "per_column",
            lambda w, r, c: w[r][:, c].mean(dim=0),
            "This is the mean weight of each column. Add the columns: one number.",
        ),
        Mistake(
            "argmax",
            lambda w, r, c: torch.isin(w[r].argmax(dim=-1), torch.tensor(c)).to(w.dtype).mean(),
            "You count the rows whose largest weight is in these columns. The share is the sum of the weights in them.",
        ),
        Mistake(
            "by_the_columns_weight",
            lambda w, r, c: w[r][:, c].sum() / w[:, c].sum(),
            "You divide by the weight of these columns in all rows. The weights of each row sum to 1: divide by the number "
            "of the given rows.",
        ),
        Mistake(
            "slice_of_columns",
            lambda w, r, c: w[r][:, min(c) : max(c) + 1].sum(dim=-1).mean(),
            "You take all columns from the first to the last. The list may leave out columns in between: index with the "
            "list itself.",
        ),
        Mistake(
            "slice_of_rows",
            lambda w, r, c: w[min(r) : max(r) + 1][:, c].sum(dim=-1).mean(),
            "You take all rows from the first to the last. The list may leave out rows in between: index with the list "
            "itself.",
        ),
        Mistake(
            "other_columns",
            lambda w, r, c: 1 - w[r][:, c].sum(dim=-1).mean(),
            "This is the share of all other columns.",
        ),
    ),
    hints=(
        "weights[rows] are the given rows. What does [:, columns] select from them?",
        "Sum over the columns, then take the mean over the rows.",
        "weights[rows][:, columns].sum(dim=-1).mean().",
    ),
)
