"""Exercise `keep_top_k` of notebook 09."""

import torch

from course_lib.decoding import top_k
from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.catalogue.decoding_and_bleu._shared import softmax_of_kept
from course_lib.exercises.exercise import Case, Exercise, Mistake


def keep_top_k(logits, k):
    last = logits.topk(k, dim=-1).values[:, -1:]  # (batch, 1): the k-th largest
    return torch.softmax(logits.masked_fill(logits < last, -torch.inf), dim=-1)


def _ranked(logits, *, first):
    """The rank of each token, 0 for the largest; `first` says whether the first or the last of a tie ranks higher."""
    flip = (lambda x: x) if first else (lambda x: x.flip(-1))
    order = flip(logits).argsort(dim=-1, descending=True, stable=True)
    return flip(order.argsort(dim=-1))


def _kth(logits, k, dim=-1, largest=True):
    return logits.topk(k, dim=dim, largest=largest).values.select(dim, -1).unsqueeze(dim)


EXERCISE = Exercise(
    name="keep_top_k",
    notebook="09_decoding_and_bleu",
    title="Keep the k most probable tokens",
    reference=lambda logits, k: top_k(logits, k).softmax(-1),
    solution=keep_top_k,
    cases=(
        Case(logits=torch.tensor([[1.0, 0.5, 2.0, 1.0]]), k=2),  # two share the second place
        Case(logits=random_tensor(4, 4, seed=2), k=2),
        Case(logits=random_tensor(3, 6, seed=3), k=3),
    ),
    mistakes=(
        *(
            Mistake(
                f"ties_dropped_{name}_stays",
                lambda logits, k, first=first: softmax_of_kept(
                    logits, _ranked(logits, first=first) < k
                ),
                "You keep exactly k. Where two tokens share the last place, chance decides which of them goes. Keep "
                "all that are at least as large as the k-th: drop logits < last.",
            )
            for name, first in (("first", True), ("last", False))
        ),
        Mistake(
            "last_dropped",
            lambda logits, k: softmax_of_kept(logits, logits > _kth(logits, k)),
            "You drop the k-th token as well: k - 1 are left, and none where k is 1. Drop logits < last, not <=.",
        ),
        Mistake(
            "one_too_many",
            lambda logits, k: softmax_of_kept(logits, logits >= _kth(logits, k + 1)),
            "You keep one token too many. The k-th largest has index k - 1.",
        ),
        Mistake(
            "zero",
            lambda logits, k: torch.softmax(
                logits.masked_fill(logits < _kth(logits, k), 0.0), dim=-1
            ),
            "You set what is dropped to a logit of 0. exp(0) is 1: these tokens can still be drawn, some more often "
            "than before. Set it to minus infinity.",
        ),
        Mistake(
            "not_normalised",
            lambda logits, k: torch.softmax(logits, -1) * (logits >= _kth(logits, k)),
            "The right tokens are left, but their probabilities no longer sum to 1. Drop before the softmax.",
        ),
        Mistake(
            "no_softmax",
            lambda logits, k: logits.masked_fill(logits < _kth(logits, k), -torch.inf),
            "The right logits are left. Probabilities are asked for: take the softmax.",
        ),
        Mistake(
            "only_k",
            lambda logits, k: torch.softmax(logits.topk(k, -1).values, -1),
            "You return k probabilities and no longer know of which tokens. Keep the shape of logits, with 0 for what "
            "is dropped.",
        ),
        Mistake(
            "smallest",
            lambda logits, k: softmax_of_kept(logits, logits <= _kth(logits, k, largest=False)),
            "You keep the k least probable tokens.",
        ),
        Mistake(
            "turned_around",
            lambda logits, k: softmax_of_kept(logits, logits < _kth(logits, k)),
            "You drop the k largest and keep the rest. The comparison is turned around.",
        ),
        Mistake(
            "one_for_all",
            lambda logits, k: softmax_of_kept(logits, logits >= _kth(logits.flatten(), k)),
            "You look for the k largest of the whole batch, so a row may be left with nothing. Each row has its own: "
            "dim=-1.",
        ),
        Mistake(
            "over_the_batch",
            lambda logits, k: softmax_of_kept(logits, logits >= _kth(logits, k, dim=0)),
            "You compare the rows of the batch with each other. Each row has its own k largest: dim=-1.",
        ),
        Mistake(
            "threshold_of_the_first_row",
            lambda logits, k: softmax_of_kept(logits, logits >= _kth(logits, k)[0]),
            "Every row of yours is compared with the k-th largest of the first row. Each has its own: [:, -1:], not "
            "[0, -1].",
        ),
        Mistake(
            "nothing_dropped",
            lambda logits, k: torch.softmax(logits, -1),
            "Nothing is dropped: these are the probabilities of all tokens.",
        ),
    ),
    hints=(
        "Which number must a logit reach to be kept? What about two tokens that are equal?",
        "logits.topk(k, dim=-1).values[:, -1:] is the k-th largest of each row, (batch, 1).",
        "torch.softmax(logits.masked_fill(logits < last, -torch.inf), dim=-1).",
    ),
)
