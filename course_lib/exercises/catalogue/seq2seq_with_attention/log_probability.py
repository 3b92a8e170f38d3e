"""The log probability of whole targets."""

import torch
import torch.nn.functional as F

from course_lib.exercises.catalogue._shared import random_tensor


def log_probability(logits, target):
    labels = target[:, 1:]  # the token after each input token
    log_p = torch.log_softmax(logits, dim=-1)  # (batch, length, vocabulary)
    chosen = log_p.gather(-1, labels[:, :, None])[:, :, 0]  # (batch, length)
    return (chosen * (labels != 0)).sum(dim=1)  # (batch,)


def reference(logits, target):
    return -F.cross_entropy(logits.mT, target[:, 1:], ignore_index=0, reduction="none").sum(dim=1)


SOFTMAX = "torch.softmax(logits, dim=-1)"
MASKED = "(chosen * (labels != 0))"
MISTAKES = rf"""
target[:, 1:] -> target[:, :-1]
    Your labels are the input tokens themselves. The logits after an input token are for the next one: target[:, 1:].
target[:, 1:] -> target[:, 2:]
+ log_softmax(logits -> log_softmax(logits[:, 1:]
target[:, 1:] -> target[:, 2:]
+ log_softmax(logits -> log_softmax(logits[:, :-1]
target[:, 1:] -> target[:, 2:]
    You shift once too often: the first label is lost. logits were made from target[:, :-1] and already line up with
    target[:, 1:].
target[:, 1:] -> target[:, 1:-1]
+ log_softmax(logits -> log_softmax(logits[:, :-1]
target[:, 1:] -> target[:, 1:-1]
    The last position is lost. logits were made from target[:, :-1] and have one position per label already.
target[:, 1:] -> target[:, 1:-1]
+ log_softmax(logits -> log_softmax(logits[:, 1:]
    You leave out the first position of the logits. logits were made from target[:, :-1]: position 0 predicts
    target[:, 1].
torch.log_softmax(logits, dim=-1) -> logits
    You add the logits themselves. They are no log probabilities yet: apply log_softmax over the vocabulary.
torch.log_softmax -> torch.softmax
    You add probabilities. The probability of a sequence is a product, so its logarithm is a sum of logarithms:
    log_softmax instead of softmax.
torch.log_softmax(logits, dim=-1) -> torch.log_softmax(logits, dim=1)
    Your softmax runs over the positions. The probabilities of one position sum to 1 over the vocabulary: dim=-1.
torch.log_softmax(logits, dim=-1) -> torch.log_softmax(logits, dim=0)
    Your softmax runs over the batch. The probabilities of one position sum to 1 over the vocabulary: dim=-1.
torch.log_softmax(logits, dim=-1) -> {SOFTMAX}.log()
    Your result is infinite where another logit is larger than that of the label by more than about 100: in float32
    exp underflows or overflows there. Use torch.log_softmax; it subtracts the largest logit and never takes the log
    of 0.
torch.log_softmax(logits, dim=-1) -> ({SOFTMAX} + 1e-6).log()
torch.log_softmax(logits, dim=-1) -> ({SOFTMAX} + 1e-7).log()
torch.log_softmax(logits, dim=-1) -> ({SOFTMAX} + 1e-8).log()
torch.log_softmax(logits, dim=-1) -> ({SOFTMAX} + 1e-9).log()
torch.log_softmax(logits, dim=-1) -> ({SOFTMAX} + 1e-10).log()
torch.log_softmax(logits, dim=-1) -> ({SOFTMAX} + 1e-12).log()
    You keep the probability away from 0 by a small number, and this limits how improbable a label can be. Use
    torch.log_softmax, which needs no such number.
torch.log_softmax(logits, dim=-1) -> torch.log_softmax(logits, dim=-1) / 0.6931471805599453
    Your logarithm has base 2. Use the natural logarithm, as log_softmax does.
log_p.gather(-1, labels[:, :, None])[:, :, 0] -> log_p.amax(dim=-1)
    You take the most probable token of each position. Take the label: log_p.gather(-1, labels[:, :, None]).
log_p.gather(-1, labels[:, :, None])[:, :, 0] -> log_p.mean(dim=-1)
    You average over the vocabulary. Take the log probability of the label: log_p.gather(-1, labels[:, :, None]).
log_p.gather(-1, labels[:, :, None])[:, :, 0] -> (log_p.argmax(dim=-1) == labels).float()
    You count the labels that have the largest logit. Take their log probabilities.
{MASKED} -> chosen
    Padding counts in your sum, so a target is less probable the longer the others of its batch are. Leave out the
    positions whose label is 0.
labels != 0 -> labels > 2
    You leave out the end token too. It is a label: the model must also predict that the target ends.
labels != 0 -> labels != 2
    You leave out token 2, the end token, and padding counts. Padding has id 0.
labels != 0 -> labels == 0
    Your mask is inverted: you add the positions of the padding. Keep the labels that are not 0.
labels != 0 -> target[:, :-1] != 0
    You leave out the positions whose input is padding. Where the input is <eos>, the label is padding: leave out the
    positions whose label is 0.
return {MASKED} -> return -{MASKED}
    Your sign is wrong. That is the loss; a log probability is never positive.
.sum(dim=1) -> .mean(dim=1)
    You divide by the length of the padded target. log p(y | x) is the sum over the tokens.
.sum(dim=1) -> .sum(dim=1) / (labels != 0).sum(dim=1)
    You divide by the number of labels. log p(y | x) is the sum over the tokens, not their mean.
.sum(dim=1) -> .sum(dim=0)
    You add over the batch. Add over the positions, dim=1: one number per target.
.sum(dim=1) -> .sum()
    You add over the whole batch. Return one number per target: .sum(dim=1).
.sum(dim=1) -> .amin(dim=1)
    You take the least probable token of each target. Add the logarithms of all of them.
.sum(dim=1) -> .prod(dim=1)
    You multiply the logarithms. The logarithm of a product is the sum of the logarithms.
.sum(dim=1) -> .sum(dim=1).exp()
    This is the probability. Return its logarithm: the probability of a long sequence underflows.
.sum(dim=1) -> .cumsum(dim=1)
    These are the log probabilities of all prefixes. Return those of the whole targets: one number per target.
.sum(dim=1) ->
    These are the log probabilities of the tokens. Add them over each target.
log_p.gather -> log_p.exp().gather
+ return (chosen * (labels != 0)).sum(dim=1) -> return (chosen * (labels != 0)).sum(dim=1).log()
    You add up the probabilities and take the logarithm of the sum. The probability of a target is a product: add up
    logarithms.
"""

CASES = (
    dict(logits=random_tensor(1, 2, 5, seed=13), target=torch.tensor([[1, 4, 2]])),
    dict(  # in float32 exp(200) is infinite, and the first label has the probability 0
        logits=torch.tensor([[[0.0, 1.0, 200.0, -1.0, 0.0], [1.0, 0.0, 3.0, 0.0, -1.0]]]),
        target=torch.tensor([[1, 4, 2]]),
    ),
    dict(
        logits=random_tensor(2, 3, 5, seed=14),
        target=torch.tensor([[1, 3, 4, 2], [1, 4, 2, 0]]),
    ),
    dict(
        logits=random_tensor(2, 4, 6, seed=15),
        target=torch.tensor([[1, 3, 5, 4, 2], [1, 2, 0, 0, 0]]),
    ),
)
HINTS = """
The input was target[:, :-1]. Which token is the label of each input token?
A log_softmax gives log p of every token; gather picks that of the label: (batch, length).
Multiply by labels != 0, and add over the positions: one number per target.
"""
