"""Bug hunt `hunt_top_p` of notebook 09."""

from functools import partial

import torch

from course_lib.decoding import top_p
from course_lib.exercises.catalogue.decoding_and_bleu._shared import (
    keep_crossing,
    keep_one_more,
    keep_up_to_p,
    keep_up_to_p_and_first,
    kept_tokens,
)
from course_lib.exercises.exercise import Case, Exercise, Mistake


def nucleus(probabilities, p):
    ordered, order = probabilities.sort(descending=True)
    before = ordered.cumsum(dim=0) - ordered  # what the more probable ones have together
    kept = order[before < p]
    left = torch.zeros_like(probabilities)
    left[kept] = probabilities[kept]
    return left / left.sum()


def _given(probabilities, p):
    ordered, order = probabilities.sort(descending=True)
    kept = order[ordered.cumsum(dim=0) <= p]
    left = torch.zeros_like(probabilities)
    left[kept] = probabilities[kept]
    return left / left.sum()


def _renormalised(probabilities, kept):
    left = torch.where(kept, probabilities, 0.0)
    return left / left.sum()


def _nucleus(probabilities, p, **wrong):
    return _renormalised(
        probabilities, kept_tokens(probabilities, p, probabilities=lambda given: given, **wrong)
    )


def _normalised(*parts):
    return torch.tensor(parts) / sum(parts)


EXERCISE = Exercise(
    name="hunt_top_p",
    notebook="09_decoding_and_bleu",
    title="Bug hunt: a nucleus that is too small",
    reference=lambda probabilities, p: _renormalised(
        probabilities, top_p(probabilities.log(), p).isfinite()
    ),
    solution=nucleus,
    cases=(
        Case(probabilities=torch.tensor([0.1, 0.2, 0.5, 0.15, 0.05]), p=0.75),
        Case(probabilities=torch.tensor([0.1, 0.05, 0.65, 0.15, 0.05]), p=0.6),
        Case(probabilities=_normalised(4.0, 1.0, 9.0, 5.0, 2.0, 12.0, 3.0, 7.0), p=0.6),
    ),
    mistakes=(
        Mistake(
            "one_always",
            partial(_nucleus, keep=keep_up_to_p_and_first),
            "Now one token always stays, and nothing is NaN. But the tokens that stay still have less than p together.",
        ),
        Mistake(
            "one_too_many",
            partial(_nucleus, keep=keep_one_more),
            "They reach p now. But you keep one token more than it takes.",
        ),
        Mistake(
            "unsorted",
            lambda probabilities, p: _renormalised(probabilities, keep_crossing(probabilities, p)),
            "You add up unsorted probabilities: a token is kept because its number is small. Sort, as it was.",
        ),
        Mistake(
            "unsorted_and_too_small",
            lambda probabilities, p: _renormalised(probabilities, keep_up_to_p(probabilities, p)),
            "You add up unsorted probabilities, and still drop the token that crosses p. Sort, as it was.",
        ),
        Mistake(
            "ascending",
            partial(_nucleus, descending=False),
            "The token that crosses p stays now. But you sort from the least probable on, and keep the tail.",
        ),
        Mistake(
            "ascending_and_too_small",
            partial(_nucleus, descending=False, keep=keep_up_to_p),
            "You sort from the least probable on, and keep the tail. The sorting was right: which token is dropped "
            "that should stay?",
        ),
        Mistake(
            "turned_around",
            partial(_nucleus, keep=lambda ordered, p: ordered.cumsum(-1) > p),
            "The comparison is turned around: now the probable tokens are dropped and the tail stays.",
        ),
        Mistake(
            "order_lost",
            partial(_nucleus, back=lambda kept, order: kept),
            "The mask is in sorted order, and the probabilities are not: it keeps other tokens than it was made for. "
            "order says which they are.",
        ),
        Mistake(
            "not_normalised",
            lambda probabilities, p: torch.where(
                kept_tokens(probabilities, p, probabilities=lambda given: given), probabilities, 0.0
            ),
            "The right tokens stay. But their probabilities no longer sum to 1.",
        ),
        Mistake(
            "nothing_dropped",
            lambda probabilities, p: probabilities * 1,
            "Nothing is dropped any more.",
        ),
    ),
    hints=(
        "Ask for p = 0.75. How much do the tokens that stay have together? At least p is what was promised.",
        "Which token lifts the sum over p? Does it stay? What if the very first one does so?",
        "A token stays if those before it have less than p: order[ordered.cumsum(dim=0) - ordered < p].",
    ),
    given=_given,
    # < for <= makes no difference: no sum here is p exactly
    given_message="The bug is still there: what stays has less than p together, with < as with <=.",
)
