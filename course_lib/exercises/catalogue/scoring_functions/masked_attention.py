"""Exercise `masked_attention` of notebook 02."""

import torch

from course_lib.attention import attend
from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.masks import masked_softmax, padding_mask


def masked_attention(scores, lengths, value):
    positions = torch.arange(scores.shape[-1])  # (key,)
    mask = positions < lengths[:, None, None]  # (batch, 1, key)
    scores = scores.masked_fill(~mask, -torch.inf)
    empty = (lengths == 0)[:, None, None]  # (batch, 1, 1)
    scores = scores.masked_fill(empty, 0.0)  # a row of -inf would give 0/0
    weights = torch.softmax(scores, dim=-1).masked_fill(empty, 0.0)  # (batch, query, key)
    return weights @ value  # (batch, query, value_size)


def _mask(scores, lengths):
    return torch.arange(scores.shape[-1]) < lengths[:, None, None]


_SCORES = torch.tensor([[[1.0, 2.0, 3.0], [0.0, 1.0, -1.0]]])  # (1, 2, 3)
_VALUE = torch.tensor([[[1.0, 0.0], [0.0, 2.0], [3.0, 3.0]]])  # (1, 3, 2)
_CASES = (
    Case(scores=_SCORES, lengths=torch.tensor([2]), value=_VALUE),
    Case(
        scores=torch.cat([_SCORES, _SCORES]),
        lengths=torch.tensor([3, 0]),
        value=torch.cat([_VALUE, 2 * _VALUE]),
    ),
    Case(  # exp of these is 0, or too large
        scores=torch.tensor([[[-140.0, -141.0, 0.0], [120.0, 121.0, 0.0]]]).expand(2, 2, 3).clone(),
        lengths=torch.tensor([2, 3]),
        value=torch.cat([_VALUE, 2 * _VALUE]),
    ),
    Case(
        scores=random_tensor(3, 2, 4, seed=10),
        lengths=torch.tensor([3, 1, 4]),
        value=random_tensor(3, 4, 5, seed=11),
    ),
)


def _zero_where_empty(weights, lengths):
    return weights.masked_fill((lengths == 0)[:, None, None], 0.0)


def _filled(a, n, mask, fill=-1e9):
    """The weights where masked scores become `fill`; length 0 gives zeros if the mask is right."""
    return torch.softmax(a.masked_fill(~mask, fill), dim=-1)


def _as_solved(a, n, mask, dim=-1):
    """The weights with sequences of length 0 treated apart, as in the solution."""
    empty = (n == 0)[:, None, None]
    scores = a.masked_fill(~mask, -torch.inf).masked_fill(empty, 0.0)
    return torch.softmax(scores, dim=dim).masked_fill(empty, 0.0)


_EMPTY = " And a sequence of length 0 needs weights of 0."


EXERCISE = Exercise(
    name="masked_attention",
    notebook="02_scoring_functions",
    title="Attention over padded sequences, from scores to output",
    reference=lambda scores, lengths, value: (
        attend(scores, value, padding_mask(lengths, scores.shape[-1])).output
    ),
    solution=masked_attention,
    cases=_CASES,
    mistakes=(
        Mistake(
            "scores_to_zero",
            lambda a, n, v: torch.softmax(a.masked_fill(~_mask(a, n), 0.0), dim=-1) @ v,
            "You set masked scores to 0. exp(0) is 1, so a masked key still gets weight. Its score must be -inf.",
        ),
        Mistake(
            "times_mask",
            lambda a, n, v: (torch.softmax(a, dim=-1) * _mask(a, n)) @ v,
            "You mask after the softmax, so padding still takes part in it and the weights that remain no longer sum to 1. "
            "Mask the scores instead.",
        ),
        Mistake(
            "minus_infinity",
            lambda a, n, v: torch.softmax(a.masked_fill(~_mask(a, n), -torch.inf), dim=-1) @ v,
            "A sequence of length 0 gives NaN here: its rows are fully masked, and the softmax is 0/0. Their weights "
            "must all be 0.",
        ),
        Mistake(
            "large_negative",
            lambda a, n, v: torch.softmax(a.masked_fill(~_mask(a, n), -1e9), dim=-1) @ v,
            "A sequence of length 0 gets equal weights for its padding, because all its masked scores are equal (-1e9, or 0 "
            "where you filled the whole row). Its weights must all be 0: set them to 0 after the softmax.",
        ),
        Mistake(
            "no_maximum",
            lambda a, n, v: (
                (e := a.exp() * _mask(a, n)) / e.sum(-1, keepdim=True).clamp(min=1e-12) @ v
            ),
            "You apply exp to the scores as they are. It is 0 for -140 and infinite for 120. torch.softmax subtracts "
            "the largest score of the row first.",
        ),
        Mistake(
            "renormalised",
            lambda a, n, v: (
                (w := torch.softmax(a, -1) * _mask(a, n))
                / w.sum(-1, keepdim=True).clamp(min=1e-12)
                @ v
            ),
            "You mask after the softmax and normalise again. If a masked score is much larger than the others, all "
            "remaining weights are 0 after rounding. Mask the scores instead.",
        ),
        Mistake(
            "inverted",
            lambda a, n, v: masked_softmax(a, ~_mask(a, n)) @ v,
            "Your mask is inverted: the padding gets the weights. masked_fill fills where its argument is True.",
        ),
        Mistake(
            "one_too_many",
            lambda a, n, v: masked_softmax(a, _mask(a, n + 1)) @ v,
            "Off by one: each sequence attends to one key of its padding. Positions begin at 0, so key j is allowed "
            "if j < length.",
        ),
        Mistake(
            "masks_queries",
            lambda a, n, v: (
                masked_softmax(a, torch.arange(a.shape[-2])[:, None] < n[:, None, None]) @ v
            ),
            "Your mask is over the queries. The lengths are those of the keys: the mask is (batch, 1, key).",
        ),
        Mistake(
            "mask_over_batch",
            lambda a, n, v: masked_softmax(a, torch.arange(a.shape[-1]) < n[:, None]) @ v,
            "Your mask is (batch, key). Against (batch, query, key) its first axis lines up with the queries. Add an "
            "axis: lengths[:, None, None].",
        ),
        Mistake(
            "over_queries",
            lambda a, n, v: masked_softmax(a, _mask(a, n), dim=-2) @ v,
            "Your softmax is over the queries. The weights of one query sum to 1 over the keys: dim=-1.",
        ),
        Mistake(
            "ignored",
            lambda a, n, v: torch.softmax(a, dim=-1) @ v,
            "The lengths are not used, so padding gets weight. Mask the keys at positions >= length.",
        ),
        *(
            Mistake(
                f"{name}{suffix}",
                lambda a, n, v, mask=mask, weights=weights: weights(a, n, mask(a, n)) @ v,
                message + extra,
            )
            for suffix, weights, extra in (
                ("_zeros", lambda a, n, m: _zero_where_empty(masked_softmax(a, m), n), ""),
                ("_uniform", lambda a, n, m: _filled(a, n, m), _EMPTY),
                ("_nan", lambda a, n, m: _filled(a, n, m, -torch.inf), _EMPTY),
            )
            for name, mask, message in (
                (
                    "inverted",
                    lambda a, n: ~_mask(a, n),
                    "Your mask is inverted: the padding gets the weights. masked_fill fills where its argument is True.",
                ),
                (
                    "one_too_many",
                    lambda a, n: _mask(a, n + 1),
                    "Off by one: each sequence attends to one key of its padding. Positions begin at 0, so key j is "
                    "allowed if j < length.",
                ),
                (
                    "one_too_few",
                    lambda a, n: _mask(a, n - 1),
                    "Off by one: the last real key of each sequence is masked. Key j is allowed if j < length.",
                ),
                (
                    "longest",
                    lambda a, n: _mask(a, n.max().expand(len(n))),
                    "All sequences get the mask of the longest one. Each sequence has its own length: "
                    "lengths[:, None, None].",
                ),
            )
            # of length 1, too: a mask that is one too long leaves no row without a key
            if f"{name}{suffix}" not in ("one_too_many_nan", "one_too_many_uniform", "longest_nan")
        ),
        *(
            Mistake(
                f"cut_at_longest_{name}",
                lambda a, n, v, weights=weights: (
                    weights(a, n, torch.arange(int(n.max())) < n[:, None, None]) @ v
                ),
                "Your mask ends at lengths.max(). The scores may have more keys than that: make the positions with "
                "torch.arange(scores.shape[-1]).",
            )
            for name, weights in {
                "zeros": lambda a, n, m: torch.softmax(a.masked_fill(~m, -1e9), dim=-1) * m,
                "uniform": lambda a, n, m: torch.softmax(a.masked_fill(~m, -1e9), dim=-1),
                "nan": lambda a, n, m: torch.softmax(a.masked_fill(~m, -torch.inf), dim=-1),
            }.items()
        ),
        Mistake(
            "scaled",
            lambda a, n, v: masked_softmax(a / v.shape[-1] ** 0.5, _mask(a, n)) @ v,
            "You divide the scores by √d. They are given; only mask, softmax and weighted sum are left.",
        ),
        Mistake(
            "epsilon",
            lambda a, n, v: (e := a.exp() * _mask(a, n)) / (e.sum(-1, keepdim=True) + 1e-3) @ v,
            "You add a constant to the denominator, so the weights of a row sum to less than 1. And exp of the scores as "
            "they are is 0 for -140 and infinite for 120: torch.softmax subtracts the largest score of the row first.",
        ),
        Mistake(
            "no_maximum_and_nan",
            lambda a, n, v: (e := a.exp() * _mask(a, n)) / e.sum(-1, keepdim=True) @ v,
            "You apply exp to the scores as they are. It is 0 for -140 and infinite for 120. torch.softmax subtracts "
            "the largest score of the row first. And a sequence of length 0 gives 0/0 here.",
        ),
        Mistake(
            "weights_returned",
            lambda a, n, v: masked_softmax(a, _mask(a, n)),
            "These are the weights, and they are right. Return the output: weights @ value.",
        ),
        *(
            Mistake(
                f"added_{name}",
                lambda a, n, v, change=change: torch.softmax(change(a, _mask(a, n)), dim=-1) @ v,
                message,
            )
            for name, change, message in (
                (
                    "minus_at_real",
                    lambda a, m: a + m * -1e9,
                    "You add a large negative number where the mask is True, which are the real keys. Add it where the mask "
                    "is False. And a sequence of length 0 needs weights of 0.",
                ),
                (
                    "mask_as_number",
                    lambda a, m: a + m,
                    "You add the mask to the scores, so a real key gets 1 more than padding. Masked scores must become -inf.",
                ),
            )
        ),
        Mistake(
            "divided_by_lengths",
            lambda a, n, v: (
                (torch.softmax(a, dim=-1) * _mask(a, n)) @ v / n[:, None, None].clamp(min=1)
            ),
            "You divide by the length of the sequence. The weights of a row must sum to 1: mask the scores before the "
            "softmax, which normalises.",
        ),
        *(
            Mistake(
                f"over_queries_{name}",
                lambda a, n, v, fill=fill: (
                    torch.softmax(a.masked_fill(~_mask(a, n), fill), dim=-2) @ v
                ),
                "Your softmax is over the queries. The weights of one query sum to 1 over the keys: dim=-1. And the weights "
                "of masked keys must be 0.",
            )
            for name, fill in {"nan": -torch.inf, "uniform": -1e9}.items()
        ),
        Mistake(
            "no_softmax",
            lambda a, n, v: (a * _mask(a, n)) @ v,
            "You use the scores as weights. Take a softmax over the real keys first.",
        ),
        *(
            Mistake(
                f"nan_if_full_{name}",
                lambda a, n, v, mask=mask: _as_solved(a, n, mask(a, n)) @ v,
                message,
            )
            for name, mask, message in (
                (
                    "inverted",
                    lambda a, n: ~_mask(a, n),
                    "Your mask is inverted: the padding gets the weights. masked_fill fills where its argument is True.",
                ),
                (
                    "one_too_few",
                    lambda a, n: _mask(a, n - 1),
                    "Off by one: the last real key of each sequence is masked. Key j is allowed if j < length.",
                ),
            )
        ),
        Mistake(
            "over_queries_empty_zero",
            lambda a, n, v: _as_solved(a, n, _mask(a, n), dim=-2) @ v,
            "Your softmax is over the queries. The weights of one query sum to 1 over the keys: dim=-1.",
        ),
    ),
    hints=(
        "torch.arange(scores.shape[-1]) < lengths[:, None, None] is the mask, (batch, 1, key).",
        "scores.masked_fill(~mask, -torch.inf) is right for every sequence with at least one key.",
        "A sequence of length 0 needs finite scores before the softmax, and weights of 0 after it.",
    ),
)
