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
        Case(weights=_WEIGHTS, rows=[0, 2, 3], columns=[0, 1]),
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
            "You add up the rows. The share lies between 0 and 1: take the mean over rows.",
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
            lambda w, r, c: w[r, c].sum() if len(r) == len(c) else w[r][:, c].diagonal().sum(),
            "weights[rows, columns] pairs the first row with the first column, and so on. Take the rows first, then "
            "the columns: weights[rows][:, columns].",
        ),
    ),
    hints=(
        "weights[rows] are the given rows. What does [:, columns] select from them?",
        "Sum over the columns, then take the mean over the rows.",
        "weights[rows][:, columns].sum(dim=-1).mean().",
    ),
)
