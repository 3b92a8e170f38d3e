"""Bug hunt `hunt_weights` of notebook 00."""

import torch

from course_lib.exercises.catalogue.start_here._shared import SCORES
from course_lib.exercises.exercise import Case, Exercise, Mistake


def attention_weights(scores):
    exponentials = torch.exp(scores)  # (n,)
    return exponentials / exponentials.sum()  # (n,)


def _given(scores):
    exponentials = torch.exp(scores)
    return exponentials / exponentials.max()


EXERCISE = Exercise(
    name="hunt_weights",
    notebook="00_start_here",
    title="Bug hunt: from scores to weights",
    reference=lambda scores: torch.softmax(scores, dim=-1),
    solution=attention_weights,
    given=_given,
    cases=(
        Case(scores=SCORES),
        Case(scores=torch.tensor([0.1, 0.2, 0.3, 0.4])),
        Case(scores=torch.tensor([-3.0, 1.0, 1.0, 0.0, 2.5])),
    ),
    mistakes=(
        Mistake(
            "without_exponentials",
            lambda scores: scores / scores.sum(),
            "You divide the scores themselves by their sum. A score can be negative, and a weight cannot: take the "
            "exponential of each score first.",
        ),
        Mistake(
            "by_count",
            lambda scores: torch.exp(scores) / len(scores),
            "You divide by the number of keys. The weights sum to 1 only if you divide by the sum of the exponentials.",
        ),
        Mistake(
            "not_divided",
            torch.exp,
            "You return the exponentials themselves. Divide them by their sum, so that the weights sum to 1.",
        ),
        Mistake(
            "exponentials_twice",
            lambda scores: torch.softmax(torch.exp(scores), dim=-1),
            "You take exponentials twice: torch.softmax already takes those of its argument. Give it the scores, or "
            "divide your exponentials by their sum.",
        ),
        Mistake(
            "by_norm",
            lambda scores: torch.exp(scores) / torch.exp(scores).norm(),
            "You divide by the norm, so the squares of the weights sum to 1. The weights themselves must sum to 1: "
            "divide by the sum.",
        ),
        Mistake(
            "by_mean",
            lambda scores: torch.exp(scores) / torch.exp(scores).mean(),
            "You divide by the mean of the exponentials, so the weights sum to the number of keys. Divide by the sum.",
        ),
        Mistake(
            "by_sum_of_scores",
            lambda scores: torch.exp(scores) / scores.sum(),
            "You divide by the sum of the scores. The denominator is the sum of what stands in the numerator, the "
            "exponentials.",
        ),
        Mistake(
            "exponential_after_division",
            lambda scores: torch.exp(scores / scores.sum()),
            "You divide the scores first and take exponentials last, so the weights do not sum to 1. Take the "
            "exponentials first, then divide them by their sum.",
        ),
        Mistake(
            "log_softmax",
            lambda scores: torch.log_softmax(scores, dim=-1),
            "These are the logarithms of the weights. Weights are positive and sum to 1: use softmax instead of "
            "log_softmax.",
        ),
        Mistake(
            "sigmoid",
            torch.sigmoid,
            "A sigmoid maps each score to (0, 1) on its own, so the weights do not sum to 1. Divide the exponentials by "
            "their sum.",
        ),
        Mistake(
            "wrong_sign",
            lambda scores: torch.softmax(-scores, dim=-1),
            "The sign of the scores is reversed: the largest score gets the smallest weight.",
        ),
        Mistake(
            "sum_returned",
            lambda scores: torch.exp(scores).sum(),
            "You return the sum of the exponentials. Divide each exponential by it.",
        ),
        *(
            Mistake(
                f"shifted_scores_{name}",
                lambda scores, shifted=shifted: (s := shifted(scores)) / s.sum(),
                "You make the scores positive in another way. The softmax takes their exponentials, then divides by the sum "
                "of these.",
            )
            for name, shifted in {
                "by_minimum": lambda scores: scores - scores.min(),
                "squared": torch.square,
                "absolute": torch.abs,
                "relu": torch.relu,
            }.items()
        ),
        Mistake(
            "other_base",
            lambda scores: 2**scores / (2**scores).sum(),
            "You use powers of 2. The softmax uses powers of e: torch.exp.",
        ),
    ),
    hints=(
        "Which property of attention weights is missing? Print attention_weights(scores).sum().",
        "The numerator of the formula is right. Compare the denominator with the code.",
        "exponentials / exponentials.sum()",
    ),
)
