"""Bug hunt `hunt_effect` of notebook 04."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor, softmax_where_allowed
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.masks import masked_softmax


def effect_of(scores, mask):
    masked_scores = scores.masked_fill(~mask, -torch.inf)  # no underscore: a new tensor
    masked = torch.softmax(masked_scores, dim=-1)  # (query, key)
    unmasked = torch.softmax(scores, dim=-1)  # (query, key)
    return masked - unmasked


def _given(scores, mask):
    masked_scores = scores.masked_fill_(~mask, -torch.inf)
    masked = torch.softmax(masked_scores, dim=-1)
    unmasked = torch.softmax(scores, dim=-1)
    return masked - unmasked


def _effect(scores, mask, *, dim=-1):
    return masked_softmax(scores, mask, dim=dim) - torch.softmax(scores, dim=dim)


def _from_weights(masked):
    """The function with other masked weights, of the scores and the mask."""
    return lambda scores, mask: masked(scores, mask) - torch.softmax(scores, dim=-1)


EXERCISE = Exercise(
    name="hunt_effect",
    notebook="04_self_and_cross_attention",
    title="Bug hunt: always zero",
    reference=_effect,
    solution=effect_of,
    cases=(
        Case(
            scores=torch.tensor([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0]]),
            mask=torch.tensor([[True, False, True], [True, True, False]]),
        ),
        Case(
            scores=random_tensor(4, 5, seed=31),
            mask=torch.tensor([True, True, False, True, False]).expand(4, 5).clone(),
        ),
    ),
    mistakes=(
        Mistake(
            "reversed",
            lambda a, m: -_effect(a, m),
            "Your difference has the wrong sign: masked weights minus unmasked ones, so a masked key is negative.",
        ),
        Mistake(
            "upside_down",
            lambda a, m: _effect(a, ~m),
            "Your mask is inverted. True means 'may attend', so fill where ~mask is True.",
        ),
        Mistake(
            "scores_to_zero",
            lambda a, m: softmax_where_allowed(a, m, fill=0.0) - torch.softmax(a, dim=-1),
            "A score of 0 masks nothing: exp(0) is 1. Masked scores must be -inf.",
        ),
        Mistake(
            "after_the_softmax",
            lambda a, m: torch.softmax(a, dim=-1) * m - torch.softmax(a, dim=-1),
            "You mask after the softmax, so the remaining weights do not sum to 1. Mask before it.",
        ),
        Mistake(
            "masked",
            lambda a, m: masked_softmax(a, m),
            "These are the masked weights. Subtract the unmasked ones.",
        ),
        Mistake(
            "of_scores",
            lambda a, m: torch.softmax(a.masked_fill(~m, -torch.inf), dim=-1) - a,
            "You subtract the scores. Subtract their softmax, the weights without a mask.",
        ),
        Mistake(
            "over_queries",
            lambda a, m: (
                torch.softmax(a.masked_fill(~m, -torch.inf), dim=0) - torch.softmax(a, dim=0)
            ),
            "scores is left unchanged now, but your softmax runs over the queries. The weights of one query sum to 1 over "
            "the keys: dim=-1.",
        ),
        Mistake(
            "over_queries_and_zeros",
            lambda a, m: _effect(a, m, dim=0),
            "scores is left unchanged now, but your softmax runs over the queries. The weights of one query sum to 1 over "
            "the keys: dim=-1.",
        ),
        Mistake(
            "absolute",
            lambda a, m: _effect(a, m).abs(),
            "You return absolute values. The difference has a sign: a masked key loses weight.",
        ),
        Mistake(
            "difference_of_scores",
            lambda a, m: a.masked_fill(~m, -torch.inf) - a,
            "You subtract scores, or you set weights to -inf after the softmax. Set masked scores to -inf, take the softmax of "
            "both, and subtract the weights.",
        ),
        Mistake(
            "of_the_difference",
            lambda a, m: torch.softmax(a.masked_fill(~m, -torch.inf) - a, dim=-1),
            "You take the softmax of the difference. Take the softmax of each, then the difference.",
        ),
        Mistake(
            "unmasked",
            lambda a, m: torch.softmax(a, dim=-1),
            "These are the unmasked weights. Return the masked weights minus these.",
        ),
        Mistake(
            "large_positive",
            _from_weights(lambda a, m: torch.softmax(a.masked_fill(~m, torch.inf), dim=-1)),
            "You fill with +inf, which gives NaN. Masked scores must be -inf.",
        ),
        *(
            Mistake(
                f"upside_down_and_{name}",
                _from_weights(
                    lambda a, m, fill=fill: torch.softmax(a.masked_fill(m, fill), dim=-1)
                ),
                "Your mask is inverted. True means 'may attend', so fill where ~mask is True.",
            )
            for name, fill in {"zero": 0.0}.items()
        ),
        Mistake(
            "minus_one",
            _from_weights(lambda a, m: torch.softmax(a.masked_fill(~m, -1.0), dim=-1)),
            "A finite score of -1 masks nothing. Masked scores must be -inf.",
        ),
        Mistake(
            "relative",
            lambda a, m: _effect(a, m) / torch.softmax(a, dim=-1),
            "You divide by the unmasked weights. Return the difference itself.",
        ),
        Mistake(
            "of_logarithms",
            lambda a, m: (
                torch.log_softmax(a.masked_fill(~m, -torch.inf), -1) - torch.log_softmax(a, -1)
            ),
            "You subtract logarithms of the weights. Use softmax instead of log_softmax.",
        ),
        Mistake(
            "added",
            lambda a, m: masked_softmax(a, m) + torch.softmax(a, dim=-1),
            "You add the two. Return the masked weights minus the unmasked ones.",
        ),
    ),
    hints=(
        "Print scores before and after the call. Did the function change its argument?",
        "In PyTorch, a method whose name ends in an underscore works in place: it changes the tensor itself.",
        "masked_fill, without the underscore, returns a new tensor and leaves scores unchanged.",
    ),
    given=_given,
)
