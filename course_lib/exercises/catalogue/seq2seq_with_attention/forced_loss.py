"""Exercise `forced_loss` of notebook 03."""

import torch
import torch.nn.functional as F

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.edits import mistakes
from course_lib.exercises.exercise import Case, Exercise


def forced_loss(logits, target):
    labels = target[:, 1:]  # the token after each input token
    losses = F.cross_entropy(logits.transpose(1, 2), labels, reduction="none")  # (batch, length)
    real = labels != 0
    return losses[real].mean()


def _reference(logits, target):
    return F.cross_entropy(logits.transpose(1, 2), target[:, 1:], ignore_index=0)


LOSSES = 'F.cross_entropy(logits.transpose(1, 2), labels, reduction="none")'
LABEL = "gather(-1, labels[:, :, None])[:, :, 0]"
SOFTMAX = "torch.softmax(logits, dim=-1)"
MISTAKES = rf"""
target[:, 1:] -> target[:, :-1]
    Your labels are the input tokens themselves, so the model would learn to repeat its input. The label is the token
    after the input: target[:, 1:].
target[:, 1:] -> target
    Your labels are the whole target, one more than there are positions. The first token, <bos>, is no label:
    target[:, 1:].
losses[real].mean() -> losses.mean()
    Padding counts in your loss, so the model is trained to generate padding. Leave out the positions whose label is
    0.
losses[real].mean() -> (losses * real).mean()
    The losses of padding are 0 now, but your mean still divides by all positions. Divide by the number of labels that
    are not padding.
losses[real].mean() -> ((losses * real).sum(dim=1) / real.sum(dim=1)).mean()
    You average within each sequence and then over sequences, so a token of a short sequence counts more. Average over
    all tokens at once.
(logits.transpose(1, 2) -> ({SOFTMAX}.transpose(1, 2)
(logits.transpose(1, 2) -> (torch.softmax(logits, dim=1).transpose(1, 2)
    You apply a softmax first. F.cross_entropy takes logits; it applies the softmax itself.
logits.transpose(1, 2) -> logits.reshape(len(logits), logits.shape[2], -1)
    A view or reshape does not exchange two axes; it changes which numbers belong together. Use logits.transpose(1,
    2).
logits.transpose(1, 2) -> logits
    F.cross_entropy expects the classes in axis 1, and in logits they are in axis 2: logits.transpose(1, 2).
return losses -> return -losses
    Your sign is wrong. The loss is minus the log of a probability, so it is never negative.
.mean() -> .sum()
    You sum the losses. Take their mean, or the loss grows with the batch.
.mean() -> .median()
    You take the median of the losses. Take their mean.
.mean() -> .amax()
    You take the largest of the losses. Take their mean.
labels != 0 -> labels > 2
    You leave out the end token too. It is a label: without it the model never learns to end its output.
labels != 0 -> labels != 2
    You leave out token 2, the end token, and padding counts. Padding has id 0: ignore_index=0.
.mean() -> .sum() / len(target)
    You divide the sum of the losses by the number of sequences. Divide by the number of labels that are not padding,
    so that each token counts the same in every batch.
.mean() -> .sum() / (target != 0).sum()
    You divide by the number of tokens in target, which includes <bos>. <bos> is no label: count target[:, 1:].
.mean() -> .sum() / target.numel()
    You divide by the size of target, which includes <bos> and padding. Divide by the number of labels that are not
    padding.
.mean() -> .sum() / (target[:, :-1] != 0).sum()
    You divide by the number of input tokens. Divide by the number of labels that are not padding.
.mean() -> .sum() / labels.shape[1]
    You divide the sum of the losses by the length. Divide by the number of labels that are not padding, over the
    whole batch.
{LOSSES} -> -torch.log_softmax(logits, dim=1).{LABEL}
    Your softmax runs over the positions. The probabilities of one position sum to 1 over the vocabulary: dim=-1.
{LOSSES} -> -torch.log_softmax(logits, dim=0).{LABEL}
    Your softmax runs over the batch. The probabilities of one position sum to 1 over the vocabulary: dim=-1.
{LOSSES} -> -{SOFTMAX}.log().{LABEL}
    Your loss is infinite where another logit is larger than that of the label by more than about 100: in float32 exp
    underflows or overflows there. Use torch.log_softmax or F.cross_entropy; they subtract the largest logit and never
    take the log of 0.
{LOSSES} -> -({SOFTMAX} + 1e-6).log().{LABEL}
{LOSSES} -> -({SOFTMAX} + 1e-7).log().{LABEL}
{LOSSES} -> -({SOFTMAX} + 1e-8).log().{LABEL}
{LOSSES} -> -({SOFTMAX} + 1e-9).log().{LABEL}
{LOSSES} -> -({SOFTMAX} + 1e-10).log().{LABEL}
{LOSSES} -> -({SOFTMAX} + 1e-12).log().{LABEL}
    You keep the probability away from 0 by a small number, and this limits the loss of an improbable label. Use
    torch.log_softmax or F.cross_entropy, which need no such number.
target[:, 1:] -> target[:, 2:]
+ logits.transpose -> logits[:, 1:].transpose
target[:, 1:] -> target[:, 2:]
+ logits.transpose -> logits[:, :-1].transpose
target[:, 1:] -> target[:, 2:]
    You shift once too often: the first label is lost. logits were made from target[:, :-1] and already line up with
    target[:, 1:].
target[:, 1:] -> target[:, 1:-1]
+ logits.transpose -> logits[:, :-1].transpose
logits.transpose -> logits[:, :-1].transpose
    The last position is lost. logits were made from target[:, :-1] and have one position per label already.
target[:, 1:] -> target[:, 1:-1]
+ logits.transpose -> logits[:, 1:].transpose
    You leave out the first position of the logits. logits were made from target[:, :-1]: position 0 predicts
    target[:, 1].
{LOSSES} -> -logits.{LABEL}
    You take minus the logits as losses. They are no log probabilities yet: apply log_softmax, or use F.cross_entropy.
{LOSSES} -> -{SOFTMAX}.{LABEL}
    You average minus the probabilities. The loss is minus their logarithm: log_softmax instead of softmax.
{LOSSES} -> 1 - {SOFTMAX}.{LABEL}
    You average 1 minus the probabilities. The loss is minus their logarithm: log_softmax instead of softmax.
{LOSSES} -> (logits.argmax(dim=-1) == labels).float()
    This is the accuracy: the share of labels that have the largest logit. Return the loss.
labels != 0 -> target[:, :-1] != 0
    You leave out the positions whose input is padding. Where the input is <eos>, the label is padding: leave out the
    positions whose label is 0.
.mean() -> .mean().exp()
    This is the perplexity, exp of the loss. Return the loss.
losses[real].mean() -> losses
losses[real].mean() -> losses * real
losses[real].mean() -> losses[real]
    These are the losses of the tokens. Return their mean over the labels that are not padding.
losses[real].mean() -> (losses * real).sum(dim=1)
losses[real].mean() -> (losses * real).sum(dim=1) / real.sum(dim=1)
    These are the losses of the sequences. Return the mean over all labels that are not padding, one number.
labels != 0 -> labels == 0
    Your mask is inverted: you average over the padding. Keep the labels that are not 0.
losses[real].mean() -> losses.sum() / real.sum()
losses[real].mean() -> losses.sum() / len(target)
losses[real].mean() -> losses.sum()
    The losses of padding are in your sum. Leave out the positions whose label is 0, and divide by the number of the
    others.
"""

EXERCISE = Exercise(
    title="The loss of teacher forcing, without the padding",
    reference=_reference,
    solution=forced_loss,
    cases=(
        Case(logits=random_tensor(1, 2, 5, seed=13), target=torch.tensor([[1, 4, 2]])),
        Case(  # in float32 exp(200) is infinite, and the first label has the probability 0
            logits=torch.tensor([[[0.0, 1.0, 200.0, -1.0, 0.0], [1.0, 0.0, 3.0, 0.0, -1.0]]]),
            target=torch.tensor([[1, 4, 2]]),
        ),
        Case(
            logits=random_tensor(2, 3, 5, seed=14),
            target=torch.tensor([[1, 3, 4, 2], [1, 4, 2, 0]]),
        ),
        Case(
            logits=random_tensor(2, 4, 6, seed=15),
            target=torch.tensor([[1, 3, 5, 4, 2], [1, 2, 0, 0, 0]]),
        ),
    ),
    mistakes=mistakes(forced_loss, MISTAKES),
    hints=(
        "The input was target[:, :-1]. Which token is the label of each input token?",
        "F.cross_entropy expects the classes in axis 1: logits.transpose(1, 2) is (batch, vocabulary, length).",
        "F.cross_entropy(…, target[:, 1:], ignore_index=0) leaves padding out and averages over the rest.",
    ),
)
