"""Exercise `with_temperature` of notebook 09."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.exercise import Case, Exercise, Mistake


def with_temperature(logits, t):
    return torch.softmax(logits / t[:, None], dim=-1)  # (batch, 1): one for each row


EXERCISE = Exercise(
    name="with_temperature",
    notebook="09_decoding_and_bleu",
    title="Probabilities at a temperature of one's own",
    reference=lambda logits, t: torch.stack(
        [
            (row / one).softmax(-1) for row, one in zip(logits, t, strict=True)
        ]  # a gradient for t too
    ),
    solution=with_temperature,
    cases=(
        # as many rows as tokens: nothing raises
        Case(logits=torch.tensor([[2.0, 0.5], [1.0, -1.0]]), t=torch.tensor([0.5, 2.0])),
        Case(logits=random_tensor(4, 4, seed=0), t=torch.tensor([0.2, 1.0, 3.0, 0.7])),
        Case(logits=random_tensor(3, 6, seed=1), t=torch.tensor([1.5, 0.4, 5.0])),
    ),
    mistakes=(
        Mistake(
            "multiplied",
            lambda z, t: torch.softmax(z * t[:, None], -1),
            "You multiply by t, so a high temperature makes the probable more probable. Divide.",
        ),
        Mistake(
            "along_the_vocabulary",
            lambda z, t: torch.softmax(z / t, -1),
            "Your t lies along the vocabulary: each token gets a temperature, not each row. Nothing raises where there "
            "are as many rows as tokens. t[:, None] is (batch, 1).",
        ),
        Mistake(
            "no_effect",
            lambda z, t: torch.softmax(z, -1),
            "Your probabilities are those of t = 1. Either t is never used, or it meets numbers that are made to sum "
            "to 1 afterwards, which undoes it. Divide the logits, then take the softmax.",
        ),
        Mistake(
            "after_the_softmax",
            lambda z, t: torch.softmax(z, -1) / t[:, None],
            "You divide probabilities, so they no longer sum to 1. Divide the logits, then take the softmax.",
        ),
        Mistake(
            "two_softmaxes",
            lambda z, t: torch.softmax(torch.softmax(z, -1) / t[:, None], -1),
            "You divide probabilities and take a second softmax of them. They all lie between 0 and 1, so even t = 1 "
            "makes them nearly alike. Divide the logits, and take one softmax.",
        ),
        Mistake(
            "softmax_again",
            lambda z, t: torch.softmax(torch.softmax(z / t[:, None], -1), -1),
            "One softmax is right, and you take a second of its result: all tokens become nearly alike.",
        ),
        Mistake(
            "over_the_batch",
            lambda z, t: torch.softmax(z / t[:, None], 0),
            "Your softmax runs over the batch. Each row must sum to 1: dim=-1.",
        ),
        Mistake(
            "no_softmax",
            lambda z, t: z / t[:, None],
            "These are logits at temperature t, and they are right. Probabilities are asked for: take the softmax.",
        ),
        Mistake(
            "logs",
            lambda z, t: torch.log_softmax(z / t[:, None], -1),
            "You return the logs of the probabilities: softmax, not log_softmax.",
        ),
        Mistake(
            "not_normalised",
            lambda z, t: torch.softmax(z, -1) ** (1 / t[:, None]),
            "Probabilities to the power of 1 / t have the right proportions, but they no longer sum to 1.",
        ),
        Mistake(
            "first_for_all",
            lambda z, t: torch.softmax(z / t[0], -1),
            "Every row gets the temperature of the first. Each has its own: t[:, None].",
        ),
        Mistake(
            "mean_for_all",
            lambda z, t: torch.softmax(z / t.mean(), -1),
            "Every row gets the mean temperature. Each has its own: t[:, None].",
        ),
        Mistake(
            "squared",
            lambda z, t: torch.softmax(z / t[:, None] ** 2, -1),
            "You divide by t squared. Divide by t.",
        ),
        Mistake(
            "root",
            lambda z, t: torch.softmax(z / t[:, None].sqrt(), -1),
            "You divide by the root of t. Divide by t.",
        ),
    ),
    hints=(
        "What comes first, the softmax or the temperature? And which shape must t have to meet (batch, vocabulary)?",
        "Divide the logits. t[:, None] is (batch, 1): one number for each row.",
        "torch.softmax(logits / t[:, None], dim=-1).",
    ),
)
