"""Exercise `token_loss` of notebook 08."""

from functools import partial

import torch
import torch.nn.functional as F

from course_lib.exercises.catalogue._shared import random_tensor, rounded_tensor, token_losses
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.training import LabelSmoothingLoss


def token_loss(logits, expected, pad_id):
    log_p = torch.log_softmax(logits, dim=-1)  # (batch, length, vocabulary)
    losses = -log_p.gather(-1, expected[..., None])[..., 0]  # (batch, length)
    return losses[expected != pad_id].mean()  # over all real tokens at once


def _mean_over(logits, expected, pad_id, *, count):
    """The sum over tokens that are not padding, divided by `count(real)`."""
    real = expected != pad_id
    return (token_losses(logits, expected) * real).sum() / count(real)


def _mean_of_means(logits, expected, pad_id):
    real = expected != pad_id
    return ((token_losses(logits, expected) * real).sum(1) / real.sum(1)).mean()


EXERCISE = Exercise(
    name="token_loss",
    notebook="08_transformer",
    title="The mean loss over real tokens",
    reference=lambda logits, expected, pad_id: LabelSmoothingLoss(0.0, pad_id)(logits, expected),
    solution=token_loss,
    cases=(
        Case(logits=rounded_tensor(1, 3, 4, seed=6), expected=torch.tensor([[3, 2, 0]]), pad_id=0),
        Case(  # padding is not always 0
            logits=random_tensor(2, 4, 5, seed=7),
            expected=torch.tensor([[3, 0, 4, 2], [0, 2, 1, 1]]),
            pad_id=1,
        ),
        Case(
            logits=random_tensor(3, 4, 6, seed=8),
            expected=torch.tensor([[3, 5, 4, 2], [5, 2, 0, 0], [2, 0, 0, 0]]),
            pad_id=0,
        ),
    ),
    mistakes=(
        Mistake(
            "counts_padding",
            lambda logits, expected, pad_id: token_losses(logits, expected).mean(),
            "Padding counts in your loss: the model is rewarded for saying padding behind the end, which is easy, "
            "and the loss looks better than it is.",
        ),
        Mistake(
            "sum",
            partial(_mean_over, count=lambda real: 1),
            "You add the losses up. Take their mean, or the loss grows with the batch.",
        ),
        Mistake(
            "mean_of_means",
            _mean_of_means,
            "You average within each sequence and then over sequences, so a token of a short sequence counts more. "
            "Average over all real tokens at once.",
        ),
        Mistake(
            "divides_by_all",
            partial(_mean_over, count=lambda real: real.numel()),
            "Padding adds nothing to your sum, but you divide by all places, padding included. Divide by the number "
            "of real tokens.",
        ),
        Mistake(
            "divides_by_sequences",
            partial(_mean_over, count=len),
            "You divide by the number of sequences. Divide by the number of real tokens.",
        ),
        Mistake(
            "zero_is_padding",
            lambda logits, expected, pad_id: F.cross_entropy(
                logits.transpose(1, 2), expected, ignore_index=0
            ),
            "You take token 0 for padding. pad_id says which it is.",
        ),
        Mistake(
            "only_padding",
            lambda logits, expected, pad_id: token_losses(logits, expected)[
                expected == pad_id
            ].mean(),
            "You average over padding alone. expected != pad_id is True at real tokens.",
        ),
        Mistake(
            "shifted_again",
            lambda logits, expected, pad_id: F.cross_entropy(
                logits[:, :-1].transpose(1, 2), expected[:, 1:], ignore_index=pad_id
            ),
            "You shift once more. expected is shifted already: its place i is what the logits of place i must say.",
        ),
        Mistake(
            "softmax_first",
            lambda logits, expected, pad_id: F.cross_entropy(
                torch.softmax(logits, -1).transpose(1, 2), expected, ignore_index=pad_id
            ),
            "You take a softmax first. F.cross_entropy takes the logits and does it itself.",
        ),
        Mistake(
            "reshaped",
            lambda logits, expected, pad_id: F.cross_entropy(
                logits.reshape(len(logits), logits.shape[2], -1), expected, ignore_index=pad_id
            ),
            "A view or reshape does not swap axes, it deals the numbers out anew. Use logits.transpose(1, 2).",
        ),
        Mistake(
            "minus",
            lambda logits, expected, pad_id: (
                -F.cross_entropy(logits.transpose(1, 2), expected, ignore_index=pad_id)
            ),
            "The sign is turned around. The loss is minus the log of a probability, so it is never negative.",
        ),
        Mistake(
            "end_left_out",
            lambda logits, expected, pad_id: token_losses(logits, expected)[
                (expected != pad_id) & (expected != 2)
            ].mean(),
            "The end token is left out as well. A model that never learns to end never stops writing.",
        ),
    ),
    hints=(
        "Which places count, and how many are they?",
        "F.cross_entropy wants the classes in the second place: logits.transpose(1, 2). It can leave one class out.",
        "F.cross_entropy(logits.transpose(1, 2), expected, ignore_index=pad_id) takes the mean over the rest.",
    ),
)
