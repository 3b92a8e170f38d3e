"""Exercise `forced_loss` of notebook 03."""

import torch
import torch.nn.functional as F

from course_lib.exercises.catalogue._shared import random_tensor, token_losses
from course_lib.exercises.exercise import Case, Exercise, Mistake


def forced_loss(logits, target):
    labels = target[:, 1:]  # the token after each input token
    losses = F.cross_entropy(logits.transpose(1, 2), labels, reduction="none")  # (batch, length)
    real = labels != 0
    return losses[real].mean()


def _forced(logits, target):
    return F.cross_entropy(logits.transpose(1, 2), target[:, 1:], ignore_index=0)


EXERCISE = Exercise(
    name="forced_loss",
    notebook="03_seq2seq_with_attention",
    title="The loss of teacher forcing, without the padding",
    reference=_forced,
    solution=forced_loss,
    cases=(
        Case(logits=random_tensor(1, 2, 5, seed=13), target=torch.tensor([[1, 4, 2]])),
        Case(
            logits=random_tensor(2, 3, 5, seed=14),
            target=torch.tensor([[1, 3, 4, 2], [1, 4, 2, 0]]),
        ),
        Case(
            logits=random_tensor(2, 4, 6, seed=15),
            target=torch.tensor([[1, 3, 5, 4, 2], [1, 2, 0, 0, 0]]),
        ),
    ),
    mistakes=(
        Mistake(
            "not_shifted",
            lambda a, y: F.cross_entropy(a.transpose(1, 2), y[:, :-1], ignore_index=0),
            "Your labels are the input tokens themselves, so the model would learn to repeat its input. The label is the "
            "token after the input: target[:, 1:].",
        ),
        Mistake(
            "counts_padding",
            lambda a, y: F.cross_entropy(a.transpose(1, 2), y[:, 1:]),
            "Padding counts in your loss, so the model is trained to generate padding. Leave out the positions whose "
            "label is 0.",
        ),
        Mistake(
            "divides_by_all",
            lambda a, y: (token_losses(a, y[:, 1:]) * (y[:, 1:] != 0)).mean(),
            "The losses of padding are 0 now, but your mean still divides by all positions. Divide by the number of "
            "labels that are not padding.",
        ),
        Mistake(
            "mean_of_means",
            lambda a, y: (
                (token_losses(a, y[:, 1:]) * (y[:, 1:] != 0)).sum(1) / (y[:, 1:] != 0).sum(1)
            ).mean(),
            "You average within each sequence and then over sequences, so a token of a short sequence counts more. "
            "Average over all tokens at once.",
        ),
        Mistake(
            "softmax_first",
            lambda a, y: F.cross_entropy(
                torch.softmax(a, -1).transpose(1, 2), y[:, 1:], ignore_index=0
            ),
            "You apply a softmax first. F.cross_entropy takes logits; it applies the softmax itself.",
        ),
        Mistake(
            "view",
            lambda a, y: F.cross_entropy(
                a.reshape(a.shape[0], a.shape[2], a.shape[1]), y[:, 1:], ignore_index=0
            ),
            "A view or reshape does not exchange two axes; it changes which numbers belong together. Use logits.transpose(1, 2).",
        ),
        Mistake(
            "minus",
            lambda a, y: -F.cross_entropy(a.transpose(1, 2), y[:, 1:], ignore_index=0),
            "Your sign is wrong. The loss is minus the log of a probability, so it is never negative.",
        ),
        Mistake(
            "sum",
            lambda a, y: F.cross_entropy(
                a.transpose(1, 2), y[:, 1:], ignore_index=0, reduction="sum"
            ),
            "You sum the losses. Take their mean, or the loss grows with the batch.",
        ),
        Mistake(
            "no_end",
            lambda a, y: F.cross_entropy(
                a.transpose(1, 2), y[:, 1:].masked_fill(y[:, 1:] == 2, 0), ignore_index=0
            ),
            "You leave out the end token too. It is a label: without it the model never learns to end its output.",
        ),
    ),
    hints=(
        "The input was target[:, :-1]. Which token is the label of each input token?",
        "F.cross_entropy expects the classes in axis 1: logits.transpose(1, 2) is (batch, vocabulary, length).",
        "F.cross_entropy(…, target[:, 1:], ignore_index=0) leaves padding out and averages over the rest.",
    ),
)
