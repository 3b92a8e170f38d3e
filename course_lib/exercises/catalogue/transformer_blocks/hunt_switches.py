"""Bug hunt `hunt_switches` of notebook 07."""

from functools import partial

import torch
from torch import nn

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.exercise import Case, Exercise, Mistake


def through_two(x, keep, p, training):
    class Drop(nn.Module):
        def __init__(self, keep, p):
            super().__init__()
            self.keep, self.p = keep, p

        def forward(self, x):
            if self.training:  # the switch that train() and eval() turn
                x = x * self.keep / (1 - self.p)
            return x

    model = nn.Sequential(Drop(keep, p), nn.Tanh(), Drop(keep, p))
    return model.train(training)(x)


def _given(x, keep, p, training):
    class Drop(nn.Module):
        def __init__(self, keep, p):
            super().__init__()
            self.keep, self.p = keep, p

        def forward(self, x, apply_dropout=True):
            if apply_dropout:
                x = x * self.keep / (1 - self.p)
            return x

    model = nn.Sequential(Drop(keep, p), nn.Tanh(), Drop(keep, p))
    return model.train(training)(x)


def _through_two(x, keep, p, training, *, on=None, off=None):
    """Apply `on` (training) or `off` (inference) before and after a tanh."""
    on = on or (lambda x, keep, p: x * keep / (1 - p))
    off = off or (lambda x, keep, p: x)
    drop = on if training else off
    return drop(torch.tanh(drop(x, keep, p)), keep, p)


_KEEP = torch.tensor([[True, False, True], [True, True, False]])

EXERCISE = Exercise(
    name="hunt_switches",
    notebook="07_transformer_blocks",
    title="Bug hunt: two switches for one light",
    reference=_through_two,
    solution=through_two,
    cases=(
        Case(
            x=torch.tensor([[1.0, 2.0, -0.5], [0.5, -1.0, 0.2]]), keep=_KEEP, p=0.25, training=False
        ),
        Case(
            x=torch.tensor([[1.0, 2.0, -0.5], [0.5, -1.0, 0.2]]), keep=_KEEP, p=0.25, training=True
        ),
        Case(
            x=random_tensor(2, 3, 4, seed=75),
            keep=random_tensor(2, 3, 4, seed=76) > -0.8,
            p=0.2,
            training=True,
        ),
        Case(
            x=random_tensor(2, 4, 5, seed=77),
            keep=random_tensor(2, 4, 5, seed=78) > -0.8,
            p=0.4,
            training=False,
        ),
    ),
    mistakes=(
        Mistake(
            "always_off",
            partial(_through_two, on=lambda x, keep, p: x),
            "Now nothing is dropped in training either. A default of False is the same flag the other way round: "
            "ask self.training.",
        ),
        Mistake(
            "upside_down",
            lambda x, keep, p, training: _through_two(x, keep, p, not training),
            "The switch is turned around: you drop in evaluation, and not in training.",
        ),
        Mistake(
            "no_rescale",
            partial(_through_two, on=lambda x, keep, p: x * keep),
            "The switch is right now. But what is kept must grow by 1 / (1 - p), as it did.",
        ),
        Mistake(
            "times",
            partial(_through_two, on=lambda x, keep, p: x * keep * (1 - p)),
            "The switch is right now. But you multiply by 1 - p; divide.",
        ),
        Mistake(
            "scaled_in_evaluation",
            partial(
                _through_two, on=lambda x, keep, p: x * keep, off=lambda x, keep, p: x * (1 - p)
            ),
            "You drop without rescaling and shrink in evaluation. Dropout began like that, and on average it is the "
            "same. Here what is kept grows in training, and evaluation changes nothing.",
        ),
        Mistake(
            "scaled_in_both",
            partial(_through_two, off=lambda x, keep, p: x * (1 - p)),
            "You rescale in training and shrink in evaluation. One of them is enough: evaluation changes nothing.",
        ),
        Mistake(
            "grown_in_evaluation",
            partial(_through_two, off=lambda x, keep, p: x / (1 - p)),
            "In evaluation nothing is dropped now, but everything still grows by 1 / (1 - p).",
        ),
        Mistake(
            "shrunk_after_dropping",
            partial(_through_two, off=lambda x, keep, p: x * keep),
            "In evaluation you no longer rescale, but you still drop.",
        ),
    ),
    hints=(
        "Print the output with training=True and with training=False.",
        "Who sets apply_dropout? nn.Sequential calls its layers with x alone. And what do train() and eval() set?",
        "Every nn.Module has self.training. Ask that, and take the second switch away.",
    ),
    given=_given,
)
