"""Exercise `forced_loss` of notebook 03."""

import torch
import torch.nn.functional as F

from course_lib.exercises.catalogue._shared import random_tensor, token_losses, two_mistakes
from course_lib.exercises.exercise import Case, Exercise, Mistake


def forced_loss(logits, target):
    labels = target[:, 1:]  # the token after each input token
    losses = F.cross_entropy(logits.transpose(1, 2), labels, reduction="none")  # (batch, length)
    real = labels != 0
    return losses[real].mean()


def _forced(logits, target):
    return F.cross_entropy(logits.transpose(1, 2), target[:, 1:], ignore_index=0)


def _over_real(each, target, *, real=None):
    """The mean of `each`, (batch, length), over the labels that are not padding."""
    real = target[:, 1:] != 0 if real is None else real
    return (each * real).sum() / real.sum()


def _of_label(values, target):
    """The entry of `values`, (batch, length, vocabulary), that belongs to the label."""
    return values.gather(-1, target[:, 1:, None])[..., 0]


def _changed(a, y, *, labels=lambda y: y[:, 1:], divisor):
    each = token_losses(a, labels(y))
    return divisor(each, labels(y) != 0)


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
        *(
            Mistake(
                f"sum_{name}",
                lambda a, y, divisor=divisor: (
                    F.cross_entropy(a.transpose(1, 2), y[:, 1:], ignore_index=0, reduction="sum")
                    / divisor(y)
                ),
                message,
            )
            for name, divisor, message in (
                (
                    "by_batch",
                    lambda y: len(y),
                    "You divide the sum of the losses by the number of sequences. Divide by the number of labels that are "
                    "not padding, so that each token counts the same in every batch.",
                ),
                (
                    "by_real_inputs",
                    lambda y: (y != 0).sum(),
                    "You divide by the number of tokens in target, which includes <bos>. <bos> is no label: count "
                    "target[:, 1:].",
                ),
                (
                    "by_tokens_read",
                    lambda y: (y[:, :-1] != 0).sum(),
                    "You divide by the number of input tokens. Divide by the number of labels that are not padding.",
                ),
                (
                    "by_length",
                    lambda y: y.shape[1] - 1,
                    "You divide the sum of the losses by the length. Divide by the number of labels that are not padding, "
                    "over the whole batch.",
                ),
            )
        ),
        Mistake(
            "over_positions",
            lambda a, y: _over_real(-_of_label(torch.log_softmax(a, dim=1), y), y),
            "Your softmax runs over the positions. The probabilities of one position sum to 1 over the vocabulary: dim=-1.",
        ),
        Mistake(
            "shifted_twice",
            lambda a, y: F.cross_entropy(a[:, 1:].transpose(1, 2), y[:, 2:], ignore_index=0),
            "You shift once too often: the first label is lost. logits were made from target[:, :-1] and already line up "
            "with target[:, 1:].",
        ),
        Mistake(
            "last_lost",
            lambda a, y: F.cross_entropy(a[:, :-1].transpose(1, 2), y[:, 1:-1], ignore_index=0),
            "The last position is lost. logits were made from target[:, :-1] and have one position per label already.",
        ),
        Mistake(
            "shifted_the_other_way",
            lambda a, y: F.cross_entropy(a[:, 1:].transpose(1, 2), y[:, 1:-1], ignore_index=0),
            "You leave out the first position of the logits. logits were made from target[:, :-1]: position 0 predicts "
            "target[:, 1].",
        ),
        Mistake(
            "logits_as_log_probabilities",
            lambda a, y: _over_real(-_of_label(a, y), y),
            "You take minus the logits as losses. They are no log probabilities yet: apply log_softmax, or use "
            "F.cross_entropy.",
        ),
        Mistake(
            "probabilities",
            lambda a, y: _over_real(-_of_label(torch.softmax(a, dim=-1), y), y),
            "You average minus the probabilities. The loss is minus their logarithm: log_softmax instead of softmax.",
        ),
        Mistake(
            "inputs_masked",
            lambda a, y: _over_real(token_losses(a, y[:, 1:]), y, real=y[:, :-1] != 0),
            "You leave out the positions whose input is padding. Leave out those whose label is padding: after <eos> the "
            "input is a token, and the label is padding.",
        ),
        Mistake(
            "perplexity",
            lambda a, y: _forced(a, y).exp(),
            "This is the perplexity, exp of the loss. Return the loss.",
        ),
        Mistake(
            "per_token",
            lambda a, y: F.cross_entropy(
                a.transpose(1, 2), y[:, 1:], ignore_index=0, reduction="none"
            ),
            "These are the losses of all tokens. Return their mean over the labels that are not padding.",
        ),
        Mistake(
            "per_sequence",
            lambda a, y: (token_losses(a, y[:, 1:]) * (y[:, 1:] != 0)).sum(dim=1),
            "These are the losses of the sequences. Return the mean over all labels that are not padding, one number.",
        ),
        Mistake(
            "padding_only",
            lambda a, y: (
                (token_losses(a, y[:, 1:]) * (y[:, 1:] == 0)).sum() / (y[:, 1:] == 0).sum()
            ),
            "Your mask is inverted: you average over the padding. Keep the labels that are not 0.",
        ),
        Mistake(
            "counts_padding_not_shifted",
            lambda a, y: F.cross_entropy(a.transpose(1, 2), y[:, :-1]),
            "Your labels are the input tokens themselves: the label is the token after the input, target[:, 1:]. And padding "
            "counts in your loss: leave out the positions whose label is 0.",
        ),
        Mistake(
            "counts_padding_not_end",
            lambda a, y: F.cross_entropy(a.transpose(1, 2), y[:, 1:], ignore_index=2),
            "You leave out token 2, the end token, and padding counts. Padding has id 0: ignore_index=0.",
        ),
        *two_mistakes(
            _changed,
            {
                "labels_not_shifted": (
                    {"labels": lambda y: y[:, :-1]},
                    "The label of each position is the token after its input: target[:, 1:].",
                )
            },
            {
                "sum": (
                    {"divisor": lambda each, real: (each * real).sum()},
                    "Take the mean over the labels that are not padding, not the sum.",
                ),
                "divided_by_batch": (
                    {"divisor": lambda each, real: (each * real).sum() / len(each)},
                    "Divide by the number of labels that are not padding, not by that of sequences.",
                ),
            },
        ),
        *(
            Mistake(
                f"padding_in_the_sum_{name}",
                lambda a, y, divisor=divisor: token_losses(a, y[:, 1:]).sum() / divisor(y),
                "The losses of padding are in your sum. Leave out the positions whose label is 0, and divide by the number "
                "of the others.",
            )
            for name, divisor in {
                "by_real": lambda y: (y[:, 1:] != 0).sum(),
                "by_batch": len,
                "alone": lambda y: 1,
            }.items()
        ),
    ),
    hints=(
        "The input was target[:, :-1]. Which token is the label of each input token?",
        "F.cross_entropy expects the classes in axis 1: logits.transpose(1, 2) is (batch, vocabulary, length).",
        "F.cross_entropy(…, target[:, 1:], ignore_index=0) leaves padding out and averages over the rest.",
    ),
)
