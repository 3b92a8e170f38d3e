"""Exercise `warmup_rates` of notebook 08."""

from functools import partial

import torch

from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.training import noam_lr


def warmup_rates(steps, d_model, warmup):
    step = torch.arange(1, steps + 1)  # the first step is step 1
    rise, fall = step * warmup**-1.5, step**-0.5
    return d_model**-0.5 * torch.minimum(rise, fall)


def _rates(
    steps,
    d_model,
    warmup,
    *,
    start=1,
    pick=torch.minimum,
    scale=-0.5,
    decay_exponent=-0.5,
    warmup_exponent=-1.5,
):
    step = torch.arange(start, start + steps).float()
    return d_model**scale * pick(step**decay_exponent, step * warmup**warmup_exponent)


EXERCISE = Exercise(
    name="warmup_rates",
    notebook="08_transformer",
    title="The learning rates of the paper, step by step",
    reference=lambda steps, d_model, warmup: torch.tensor(
        [noam_lr(step, d_model, warmup) for step in range(1, steps + 1)]
    ),
    solution=warmup_rates,
    cases=(
        Case(steps=5, d_model=4, warmup=3),
        Case(steps=3, d_model=8, warmup=5),
        Case(steps=40, d_model=32, warmup=10),
    ),
    mistakes=(
        Mistake(
            "larger",
            partial(_rates, pick=torch.maximum),
            "You take the larger of the two: the rate is highest at the first step and then rises for ever. Take the "
            "smaller.",
        ),
        Mistake(
            "from_zero",
            partial(_rates, start=0),
            "You count from step 0, whose rate is 0 (in plain Python, a division by zero). The first step is step 1.",
        ),
        Mistake(
            "divides_by_zero",
            lambda steps, d_model, warmup: torch.tensor(
                [d_model**-0.5 * min(step**-0.5, step * warmup**-1.5) for step in range(steps)]
            ),
            "You count from step 0, and 0 ** -0.5 divides by zero. The first step is step 1: range(1, steps + 1).",
        ),
        Mistake(
            "from_two",
            partial(_rates, start=2),
            "Your first step is step 2. Add 1 once.",
        ),
        Mistake(
            "grows_with_size",
            partial(_rates, scale=0.5),
            "Your rate grows with the size of the model: d_model ** 0.5. Larger models need smaller rates, "
            "d_model ** -0.5.",
        ),
        Mistake(
            "no_size",
            partial(_rates, scale=0),
            "d_model is never used. The rate is divided by its root.",
        ),
        Mistake(
            "by_size",
            partial(_rates, scale=-1),
            "You divide by d_model. Divide by its root.",
        ),
        Mistake(
            "warmup_half",
            partial(_rates, warmup_exponent=-0.5),
            "The exponent of warmup is -1.5. With -0.5 the rise is so steep that it meets the fall long before step "
            "warmup.",
        ),
        Mistake(
            "warmup_one",
            partial(_rates, warmup_exponent=-1),
            "The exponent of warmup is -1.5. With -1 the rise meets the fall before step warmup.",
        ),
        Mistake(
            "by_step",
            partial(_rates, decay_exponent=-1),
            "Your rate falls with the step itself. It falls with its root: step ** -0.5.",
        ),
        Mistake(
            "rise_only",
            partial(_rates, pick=lambda fall, rise: rise),
            "Your rate rises for ever. After the warm-up it falls, with exponent -0.5 of the step: the smaller of the two.",
        ),
        Mistake(
            "fall_only",
            partial(_rates, pick=lambda fall, rise: fall),
            "There is no warm-up: your rate is highest at the first step. Take the smaller of rise and fall; the exponent "
            "of warmup in the rise is negative.",
        ),
    ),
    hints=(
        "Two curves, one that rises and one that falls. They meet at step warmup. Which of them counts before it?",
        "torch.arange(1, steps + 1) are the steps. The rise is step * warmup ** -1.5, the fall step ** -0.5.",
        "d_model ** -0.5 * torch.minimum(rise, fall).",
    ),
    differentiable=False,
)
