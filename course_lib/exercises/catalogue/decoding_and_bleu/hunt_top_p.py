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
    before = ordered.cumsum(dim=0) - ordered  # the probability of all that are more probable
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
    title="Bug hunt: nucleus sampling",
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
            "Now at least one token is kept, and nothing is NaN. But the kept probabilities can still sum to less than p.",
        ),
        Mistake(
            "one_too_many",
            partial(_nucleus, keep=keep_one_more),
            "They reach p now, but you keep one token too many.",
        ),
        Mistake(
            "unsorted",
            lambda probabilities, p: _renormalised(probabilities, keep_crossing(probabilities, p)),
            "You add up unsorted probabilities, so a token is kept because its id is small. The sort was right.",
        ),
        Mistake(
            "unsorted_and_too_small",
            lambda probabilities, p: _renormalised(probabilities, keep_up_to_p(probabilities, p)),
            "You add up unsorted probabilities, and still drop the token that crosses p. The sort was right.",
        ),
        Mistake(
            "ascending",
            partial(_nucleus, descending=False),
            "The token that crosses p is kept now, but you sort in ascending order and keep the tail.",
        ),
        Mistake(
            "ascending_and_too_small",
            partial(_nucleus, descending=False, keep=keep_up_to_p),
            "You sort in ascending order and keep the tail. The sort was right: which token is dropped that should be "
            "kept?",
        ),
        Mistake(
            "turned_around",
            partial(_nucleus, keep=lambda ordered, p: ordered.cumsum(-1) > p),
            "The comparison is the wrong way round: now the probable tokens are dropped and the tail is kept.",
        ),
        Mistake(
            "order_lost",
            partial(_nucleus, back=lambda kept, order: kept),
            "The mask is in sorted order and the probabilities are not, so it keeps other tokens. order maps one to the "
            "other.",
        ),
        Mistake(
            "not_normalised",
            lambda probabilities, p: torch.where(
                kept_tokens(probabilities, p, probabilities=lambda given: given), probabilities, 0.0
            ),
            "The right tokens are kept, but their probabilities no longer sum to 1.",
        ),
        Mistake(
            "nothing_dropped",
            lambda probabilities, p: probabilities * 1,
            "Nothing is dropped any more.",
        ),
    ),
    hints=(
        "For p = 0.8, add up the original probabilities of the kept tokens. Nucleus sampling promises at least p.",
        "Which token brings the sum to p or above? Is it kept? What if the first one does?",
        "A token is kept if those before it sum to less than p: order[ordered.cumsum(dim=0) - ordered < p].",
    ),
    given=_given,
)
