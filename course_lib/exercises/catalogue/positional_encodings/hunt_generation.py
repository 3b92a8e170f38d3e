"""Bug hunt `hunt_generation` of notebook 06."""

import torch
from torch.func import functional_call

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.positions import (
    LearnedPositions,
)


def add_positions(new, past, table):
    rows = table[past : past + new.shape[1]]  # (new, d_model)
    return new + rows


def _given(new, past, table):
    return new + table[: new.shape[1]]


def _reference(new, past, table):
    """The library layer with this table."""
    return functional_call(LearnedPositions(*table.shape), {"table": table}, (new, past))


EXERCISE = Exercise(
    name="hunt_generation",
    notebook="06_positional_encodings",
    title="Bug hunt: generation with a learned table",
    reference=_reference,
    solution=add_positions,
    cases=(
        Case(
            new=torch.tensor([[[1.0, -1.0]]]),
            past=2,
            table=torch.tensor([[1.0, 2.0], [3.0, 5.0], [4.0, 8.0], [6.0, 7.0], [9.0, 0.0]]),
        ),
        Case(new=random_tensor(3, 2, 4, seed=17), past=1, table=random_tensor(6, 4, seed=18)),
        # the first step
        Case(new=random_tensor(2, 3, 5, seed=19), past=0, table=random_tensor(8, 5, seed=20)),
        Case(new=random_tensor(2, 3, 5, seed=21), past=4, table=random_tensor(9, 5, seed=22)),
    ),
    mistakes=(
        Mistake(
            "one_row",
            lambda new, past, table: new + table[past],
            "Right for one new token. With several at once, all of yours get the position of the first.",
        ),
        Mistake(
            "one_too_late",
            lambda new, past, table: new + table[past + 1 : past + 1 + new.shape[1]],
            "Off by one: with `past` tokens before it, a token is at position `past`, since positions count from 0.",
        ),
        Mistake(
            "one_too_early",
            lambda new, past, table: new + table[past - 1 : past - 1 + new.shape[1]],
            "Off by one: with `past` tokens before it, a token is at position `past`. Yours repeats the position "
            "of the token before.",
        ),
        Mistake(
            "end_not_moved",
            lambda new, past, table: new + table[past : new.shape[1]],
            "You moved the start of the slice and not its end, so it has too few rows, or none.",
        ),
        Mistake(
            "to_the_end",
            lambda new, past, table: new + table[past:],
            "Your slice has no end: it has all remaining rows. One row per new token is needed.",
        ),
        Mistake(
            "all_up_to_now",
            lambda new, past, table: new + table[: past + new.shape[1]],
            "Your slice also has the rows of the cached tokens. `new` holds only the new ones.",
        ),
        Mistake(
            "last_rows",
            lambda new, past, table: new + table[-new.shape[1] :],
            "You take the last rows of the table. The table is longer than the text: count from `past`.",
        ),
        Mistake(
            "row_after",
            lambda new, past, table: new + table[past + new.shape[1]],
            "All your new tokens get one row, that of the token that comes after them.",
        ),
        Mistake(
            "nothing_added",
            lambda new, past, table: new.clone(),
            "Now the new tokens get no position at all.",
        ),
        Mistake(
            "rows_alone",
            lambda new, past, table: table[past : past + new.shape[1]].expand(new.shape),
            "These are the right rows. Add them to new.",
        ),
        Mistake(
            "one_too_early_from_zero",
            lambda new, past, table: new + table[max(past - 1, 0) :][: new.shape[1]],
            "Off by one: with `past` tokens before it, a token is at position `past`. Yours repeats the position "
            "of the token before.",
        ),
        Mistake(
            "new_counted_in_past",
            lambda new, past, table: new + table[max(past - new.shape[1], 0) :][: new.shape[1]],
            "You subtract the number of new tokens from `past`. It counts only the cached ones: the first new token is at "
            "position `past`.",
        ),
        Mistake(
            "only_without_a_cache",
            lambda new, past, table: new + table[: new.shape[1]] if past == 0 else new.clone(),
            "Right for a prompt. But with cached tokens the new ones get no position at all.",
        ),
        Mistake(
            "last_row",
            lambda new, past, table: new + table[past + new.shape[1] - 1],
            "All your new tokens get one row, that of the last of them.",
        ),
        Mistake(
            "reversed",
            lambda new, past, table: new + table[past : past + new.shape[1]].flip(0),
            "The right rows in reverse order. The first new token has position `past`.",
        ),
        Mistake(
            "as_a_prompt_and_past",
            lambda new, past, table: new + table[: new.shape[1]] + table[past],
            "You add two rows to each token, that of its index in `new` and that of `past`. Positions are added, not rows: "
            "one row, that of past + index.",
        ),
        Mistake(
            "past_twice",
            lambda new, past, table: (
                new + table[(torch.arange(new.shape[1]) + 2 * past).clamp(max=len(table) - 1)]
            ),
            "You count `past` twice. The first new token is at position `past`.",
        ),
    ),
    hints=(
        "Call it three times with one new token each, past = 0, 1, 2. Which row is added?",
        "With `past` tokens in the cache, what is the position of the first new token? And of the last?",
        "table[past : past + new.shape[1]].",
    ),
    given=_given,
)
