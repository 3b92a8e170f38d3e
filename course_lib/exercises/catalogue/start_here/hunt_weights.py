"""Bug hunt: from scores to weights."""

import torch

from course_lib.exercises.catalogue.start_here._shared import SCORES


def attention_weights(scores):
    exponentials = torch.exp(scores)  # (n,)
    return exponentials / exponentials.sum()  # (n,)


def reference(scores):
    return torch.softmax(scores, dim=-1)


MISTAKES = r"""
torch.exp(scores) -> scores
    You divide the scores themselves by their sum. A score can be negative, and a weight cannot: take the exponential
    of each score first.
torch.exp(scores) -> scores
+ .sum() -> .max()
    You divide the scores themselves instead of their exponentials, and you divide by the maximum instead of the sum.
exponentials.sum() -> len(scores)
    You divide by the number of keys. The weights sum to 1 only if you divide by the sum of the exponentials.
/ exponentials.sum() ->
    You return the exponentials themselves. Divide them by their sum, so that the weights sum to 1.
torch.exp(scores) -> torch.exp(torch.exp(scores))
    You take exponentials twice: torch.softmax already takes those of its argument. Give it the scores, or divide your
    exponentials by their sum.
torch.exp(scores) -> torch.exp(torch.softmax(scores, dim=0))
    You apply the softmax twice, which makes the weights more equal. Once is enough.
.sum() -> .norm()
    You divide by the norm, so the squares of the weights sum to 1. The weights themselves must sum to 1: divide by
    the sum.
.sum() -> .mean()
    You divide by the mean of the exponentials, so the weights sum to the number of keys. Divide by the sum.
.sum() -> .min()
    You divide by the smallest exponential, so no weight is below 1. Divide by the sum.
.sum() -> .prod()
    You divide by the product of the exponentials, which is the exponential of the sum of the scores. Divide by the
    sum of the exponentials.
.sum() -> .cumsum(dim=0)
    You divide by cumulative sums, so each weight has another denominator. Divide all by one number, the sum.
exponentials.sum() -> (exponentials.sum() - exponentials)
    Your denominator leaves out the exponential that stands in the numerator. It is the sum over all keys.
exponentials.sum() -> scores.sum()
    You divide by the sum of the scores. The denominator is the sum of what stands in the numerator, the exponentials.
exponentials / exponentials.sum() -> exponentials.sum() / exponentials
    Your ratio is upside down: the largest score gets the smallest weight. Divide the exponentials by their sum.
torch.exp(scores) -> torch.exp(scores / scores.sum())
+ / exponentials.sum() ->
    You divide the scores first and take exponentials last, so the weights do not sum to 1. Take the exponentials
    first, then divide them by their sum.
torch.exp(scores) -> torch.exp(scores / scores.sum())
    You divide the scores by their sum before you take exponentials, which changes the weights. Take the exponentials
    of the scores as they are.
torch.exp(scores) -> torch.exp(scores / scores.max())
    You divide the scores by the largest of them, which changes the weights. Take the exponentials of the scores as
    they are.
torch.exp(scores) -> torch.exp(scores / len(scores) ** 0.5)
    You divide the scores by √n. Take the exponentials of the scores as they are.
exponentials / exponentials.sum() -> scores - exponentials.sum().log()
    These are the logarithms of the weights. Weights are positive and sum to 1: use softmax instead of log_softmax.
torch.exp(scores) -> torch.sigmoid(scores)
+ / exponentials.sum() ->
    A sigmoid maps each score to (0, 1) on its own, so the weights do not sum to 1. Divide the exponentials by their
    sum.
torch.exp(scores) -> torch.sigmoid(scores)
    You divide sigmoids of the scores by their sum. The softmax takes exponentials: torch.exp.
torch.exp(scores) -> torch.exp(-scores)
    The sign of the scores is reversed: the largest score gets the smallest weight.
exponentials / exponentials.sum() -> exponentials.sum()
    You return the sum of the exponentials. Divide each exponential by it.
exponentials / exponentials.sum() -> (scores == scores.max()).to(scores.dtype)
    The key with the largest score gets all the weight. A softmax gives every key a positive weight.
torch.exp(scores) -> scores - scores.min()
torch.exp(scores) -> scores**2
torch.exp(scores) -> scores.abs()
torch.exp(scores) -> scores.relu()
    You make the scores positive in another way. The softmax takes their exponentials, then divides by the sum of
    these.
torch.exp(scores) -> 2**scores
    You use powers of 2. The softmax uses powers of e: torch.exp.
torch.exp(scores) -> 10**scores
    You use powers of 10. The softmax uses powers of e: torch.exp.
"""

GIVEN = ".sum() -> .max()"
CASES = (
    dict(scores=SCORES),
    dict(scores=torch.tensor([0.1, 0.2, 0.3, 0.4])),
    dict(scores=torch.tensor([-3.0, 1.0, 1.0, 0.0, 2.5])),
)
HINTS = """
Which property of attention weights is missing? Print attention_weights(scores).sum().
The numerator of the formula is right. Compare the denominator with the code.
exponentials / exponentials.sum()
"""
