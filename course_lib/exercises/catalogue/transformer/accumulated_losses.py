"""Exercise `accumulated_losses` of notebook 08."""

import torch

from course_lib.exercises.exercise import Case, Exercise, Mistake


def accumulated_losses(losses, counts):
    return losses * counts / counts.sum()  # their sum is the mean over all tokens


EXERCISE = Exercise(
    name="accumulated_losses",
    notebook="08_transformer",
    title="Small batches that add up to the gradient of a large one",
    reference=lambda losses, counts: losses * counts / counts.sum(),
    solution=accumulated_losses,
    cases=(
        Case(losses=torch.tensor([2.0, 4.0]), counts=torch.tensor([30, 10])),
        Case(losses=torch.tensor([1.5, 0.25, 3.0]), counts=torch.tensor([7, 1, 5])),
        Case(
            losses=torch.tensor([0.5, 2.5, 1.0, 4.0, 3.0]), counts=torch.tensor([12, 3, 40, 8, 21])
        ),
    ),
    mistakes=(
        Mistake(
            "as_they_are",
            lambda losses, counts: losses * 1,
            "You leave the losses as they are, so the gradient is a sum over small batches: as many times too large "
            "as there are batches. Each gets its share.",
        ),
        Mistake(
            "equal_shares",
            lambda losses, counts: losses / len(losses),
            "You divide by the number of batches, a mean of means: a token of a small batch counts for more. The "
            "share of a batch is its tokens among all tokens.",
        ),
        Mistake(
            "not_divided",
            lambda losses, counts: losses * counts,
            "Times the tokens is right, for it makes of a mean a sum. But nothing is divided: over all batches, "
            "divide by all tokens.",
        ),
        Mistake(
            "divided_twice",
            lambda losses, counts: losses * counts / counts.sum() / len(losses),
            "You divide twice: by all tokens, and by the number of batches as well. The shares must sum to 1.",
        ),
        Mistake(
            "divided_by_batches",
            lambda losses, counts: losses * counts / len(losses),
            "You weight by tokens and divide by the number of batches. Divide by the number of tokens.",
        ),
        Mistake(
            "by_own_tokens",
            lambda losses, counts: losses / counts,
            "You divide each loss by its tokens. It is a mean over them already.",
        ),
        Mistake(
            "by_all_tokens",
            lambda losses, counts: losses / counts.sum(),
            "You divide by all tokens, but a loss is a mean over the tokens of its batch: multiply by them first.",
        ),
        Mistake(
            "by_largest",
            lambda losses, counts: losses * counts / counts.max(),
            "You divide by the tokens of the largest batch. Divide by all: the shares must sum to 1.",
        ),
        Mistake(
            "shares",
            lambda losses, counts: counts / counts.sum() * torch.ones_like(losses),
            "These are the shares, and they are right. Multiply the losses by them.",
        ),
        Mistake(
            "added_up",
            lambda losses, counts: (losses * counts).sum() / counts.sum(),
            "The sum is right. But whoever adds up first keeps the graphs of all small batches at once, and saves no "
            "memory. Return one loss per batch.",
        ),
        Mistake(
            "mean",
            lambda losses, counts: losses.mean(),
            "This is a mean of means, in one number. One loss per batch is asked for, and a token must count alike in "
            "each.",
        ),
        Mistake(
            "sum",
            lambda losses, counts: losses.sum(),
            "You add the losses up. One loss per batch is asked for, each with its share of the tokens.",
        ),
    ),
    hints=(
        "Gradients add up: after backward on each, there is the gradient of the sum. Which sum do you want?",
        "The mean over all tokens. A loss times its count is a sum over tokens.",
        "losses * counts / counts.sum().",
    ),
)
