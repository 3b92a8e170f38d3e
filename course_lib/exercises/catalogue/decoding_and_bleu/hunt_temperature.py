"""Bug hunt `hunt_temperature` of notebook 09."""

import torch

from course_lib.decoding import temperature
from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.exercise import Case, Exercise, Mistake


def heated(logits, t):
    return torch.softmax(logits / t, dim=-1)  # the logits are divided


def _given(logits, t):
    probabilities = torch.softmax(logits, dim=-1)
    hotter = probabilities / t
    return torch.softmax(hotter, dim=-1)


EXERCISE = Exercise(
    name="hunt_temperature",
    notebook="09_decoding_and_bleu",
    title="Bug hunt: too hot at every temperature",
    reference=lambda logits, t: temperature(logits, t).softmax(-1),
    solution=heated,
    cases=(
        Case(logits=torch.tensor([[2.0, 1.0, -1.0]]), t=1.0),
        Case(logits=random_tensor(2, 5, seed=16), t=0.5),
        Case(logits=random_tensor(4, 4, seed=17), t=3.0),
    ),
    mistakes=(
        Mistake(
            "undone",
            lambda z, t: torch.softmax(z, -1),
            "Now t changes nothing: what is divided by t and then by its sum is what it was. Where must the division "
            "stand?",
        ),
        Mistake(
            "not_normalised",
            lambda z, t: torch.softmax(z, -1) / t,
            "The second softmax is gone, and with it the sum of 1. Probabilities are the wrong thing to divide.",
        ),
        Mistake(
            "twice",
            lambda z, t: torch.softmax(torch.softmax(z / t, -1), -1),
            "The logits are divided now. But the second softmax is still there, and makes all tokens nearly alike.",
        ),
        Mistake(
            "divided_twice",
            lambda z, t: torch.softmax(torch.softmax(z / t, -1) / t, -1),
            "The logits are divided now. But the old division and the second softmax are still there.",
        ),
        Mistake(
            "multiplied",
            lambda z, t: torch.softmax(z * t, -1),
            "One softmax, of logits: right. But you multiply by t, so a high temperature makes the probable more "
            "probable.",
        ),
        Mistake(
            "probabilities_multiplied",
            lambda z, t: torch.softmax(torch.softmax(z, -1) * t, -1),
            "Whether probabilities are divided or multiplied: a second softmax of them makes all tokens nearly alike.",
        ),
        Mistake(
            "powers",
            lambda z, t: torch.softmax(z, -1) ** (1 / t),
            "Probabilities to the power of 1 / t have the right proportions. They no longer sum to 1.",
        ),
        Mistake(
            "logits",
            lambda z, t: z / t,
            "These are logits. One softmax is needed.",
        ),
        Mistake(
            "over_the_batch",
            lambda z, t: torch.softmax(z / t, 0),
            "The logits are divided now. But your softmax runs over the batch: dim=-1.",
        ),
    ),
    hints=(
        "At t = 1 a temperature changes nothing. What does this one do at t = 1?",
        "How large can the difference of two probabilities get, and what does a softmax make of it?",
        "Divide the logits by t and take one softmax.",
    ),
    given=_given,
)
