"""Bug hunt: generation with a learned table."""

import torch
from torch.func import functional_call

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.transformer.positions import LearnedPositions


def add_positions(new, past, table):
    rows = table[past : past + new.shape[1]]  # (new, d_model)
    return new + rows


def reference(new, past, table):
    """The library layer with this table."""
    return functional_call(LearnedPositions(*table.shape), {"table": table}, (new, past))


MISTAKES = r"""
past : past + new.shape[1] -> past
    All your new tokens get the position of the first, which is right for one new token only.
past : past + -> past + 1 : past + 1 +
    Off by one: with `past` tokens before it, a token is at position `past`, since positions count from 0.
past : past + -> past - 1 : past - 1 +
past : past + -> max(past - 1, 0) : max(past - 1, 0) +
    Off by one: with `past` tokens before it, a token is at position `past`. Yours repeats the position of the token
    before.
: past + -> :
    You moved the start of the slice and not its end, so it has too few rows, or none.
: past + new.shape[1] -> :
    Your slice has no end: it has all remaining rows. One row per new token is needed.
past : past + -> : past +
    Your slice also has the rows of the cached tokens. `new` holds only the new ones.
past + new.shape[1] -> past + new.shape[1] - 1
    Your slice has one row too few, or none: its end is excluded already.
past + new.shape[1] -> past + new.shape[1] + 1
    Your slice has one row too many: its end is excluded, so past + new.shape[1] is right.
past + new.shape[1] -> past + len(new)
    len(new) is the batch size. The number of new tokens is new.shape[1].
past + new.shape[1] -> past + new.shape[-1]
    new.shape[-1] is d_model. The number of new tokens is new.shape[1].
past : past + new.shape[1] -> -new.shape[1] :
    You take the last rows of the table. The table is longer than the text: count from `past`.
past : past + -> past +
    All your new tokens get one row, that of the token that comes after them.
past : past + new.shape[1] -> past + new.shape[1] - 1
    All your new tokens get one row, that of the last of them.
new + rows -> new + rows.mean(dim=0)
    All your new tokens get the mean of their rows. Each needs its own.
new + rows -> new.clone()
    Now the new tokens get no position at all.
new + rows -> rows.expand(new.shape)
new + rows -> rows
    You return the rows alone. Add them to new.
new + rows -> new - rows
    You subtract the rows. Add them to new.
new + rows -> new * rows
    You multiply by the rows. Add them to new.
new + rows -> new * new.shape[-1] ** 0.5 + rows
    You multiply the embeddings by √d_model. Only the rows were wrong: add the right ones to new.
past : past + -> max(past - new.shape[1], 0) : max(past - new.shape[1], 0) +
    You subtract the number of new tokens from `past`. It counts only the cached ones: the first new token is at
    position `past`.
new + rows -> new + rows if past == 0 else new.clone()
    With cached tokens the new ones get no position at all: only a prompt does.
new + rows -> new + rows.flip(0)
    Your rows are in reverse order. The first new token has position `past`.
past : past + new.shape[1]] -> : new.shape[1]] + table[past]
    You add two rows to each token, that of its index in `new` and that of `past`. Positions are added, not rows: one
    row, that of past + index.
past : past + -> 2 * past : 2 * past +
    You count `past` twice. The first new token is at position `past`.
"""

GIVEN = "past : past + -> :"
CASES = (
    dict(
        new=torch.tensor([[[1.0, -1.0]]]),
        past=2,
        table=torch.tensor([[1.0, 2.0], [3.0, 5.0], [4.0, 8.0], [6.0, 7.0], [9.0, 0.0]]),
    ),
    dict(new=random_tensor(3, 2, 4, seed=17), past=1, table=random_tensor(6, 4, seed=18)),
    # the first step
    dict(new=random_tensor(2, 3, 5, seed=19), past=0, table=random_tensor(8, 5, seed=20)),
    dict(new=random_tensor(2, 3, 5, seed=21), past=4, table=random_tensor(9, 5, seed=22)),
)
HINTS = """
Call it three times with one new token each, past = 0, 1, 2. Which row is added?
With `past` tokens in the cache, what is the position of the first new token? And of the last?
table[past : past + new.shape[1]].
"""
