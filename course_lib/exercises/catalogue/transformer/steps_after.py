"""Exercise `steps_after` of notebook 08."""

from functools import partial

import torch

from course_lib.exercises.exercise import Case, Exercise, Mistake


def steps_after(batches, every):
    i = torch.arange(batches)  # counted from 0
    return ((i + 1) % every == 0) | (i == batches - 1)


def _steps(batches, every, *, start=1, last=True):
    i = torch.arange(batches)
    full = (i + start) % every == 0
    return full | (i == batches - 1) if last else full


EXERCISE = Exercise(
    name="steps_after",
    notebook="08_transformer",
    title="After which small batches the optimizer steps",
    reference=lambda batches, every: torch.tensor(
        [number % every == 0 or number == batches for number in range(1, batches + 1)]
    ),
    solution=steps_after,
    cases=(
        Case(batches=5, every=2),
        Case(batches=3, every=1),
        Case(batches=6, every=3),
        Case(batches=11, every=4),
    ),
    mistakes=(
        Mistake(
            "on_the_first",
            partial(_steps, start=0, last=False),
            "i % every == 0 holds for i = 0: you step after the very first batch, with a gradient that is not yet "
            "full, and the last batches are lost. Count from 1: (i + 1) % every.",
        ),
        Mistake(
            "on_the_first_and_last",
            partial(_steps, start=0),
            "i % every == 0 holds for i = 0: you step after the very first batch, with a gradient that is not yet "
            "full. Count from 1: (i + 1) % every.",
        ),
        Mistake(
            "one_late",
            lambda batches, every: (
                _steps(batches, every, start=0, last=False) & (torch.arange(batches) > 0)
            ),
            "The first step comes one batch late, after every + 1 of them, and the last batches are lost. Count from "
            "1: (i + 1) % every.",
        ),
        Mistake(
            "one_late_and_last",
            lambda batches, every: _steps(batches, every, start=0) & (torch.arange(batches) > 0),
            "The first step comes one batch late, after every + 1 of them. Count from 1: (i + 1) % every.",
        ),
        Mistake(
            "rest_lost",
            partial(_steps, last=False),
            "Where the batches do not come out even, the last ones are never used: their gradients wait for a step "
            "that does not come. Step after the last batch too.",
        ),
        Mistake(
            "always",
            lambda batches, every: torch.ones(batches, dtype=torch.bool),
            "You step after each batch: nothing accumulates.",
        ),
        Mistake(
            "only_last",
            lambda batches, every: torch.arange(batches) == batches - 1,
            "You step once, after the last batch. Step after each full group as well.",
        ),
        Mistake(
            "turned_around",
            lambda batches, every: ~_steps(batches, every),
            "Right, with True and False swapped: True means that the optimizer steps.",
        ),
    ),
    hints=(
        "With every = 2, gradients of batches 0 and 1 are added up. After which of them does the optimizer step?",
        "i % every == 0 is True at i = 0. How many batches are done after batch i?",
        "(i + 1) % every == 0, or i == batches - 1, so that the last ones are not lost.",
    ),
    differentiable=False,
)
