"""Exercise `gaussian_scores` of notebook 02."""

import math

import torch

from course_lib.exercises.catalogue._shared import random_tensor, two_mistakes
from course_lib.exercises.catalogue.scoring_functions._shared import QUERY
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.scoring import GaussianScore


def gaussian_scores(query, key, h):
    query_norm = query.square().sum(dim=-1)[..., :, None]  # (…, query, 1)
    key_norm = key.square().sum(dim=-1)[..., None, :]  # (…, 1, key)
    squares = query_norm - 2 * query @ key.mT + key_norm  # (…, query, key)
    return -squares / (2 * h**2)  # (…, query, key)


def _scores(q, k, h, *, of_query=1.0, of_key=1.0, twice=2.0):
    norms = of_query * (q * q).sum(-1)[..., :, None] + of_key * (k * k).sum(-1)[..., None, :]
    return -(norms - twice * q @ k.mT) / (2 * h**2)


def _without_batch(q, k, h):
    """Right for two axes; with a batch axis the norms are added along the wrong ones."""
    q_norm, k_norm = q.square().sum(dim=-1)[:, None], k.square().sum(dim=-1)[None, :]
    return -(q_norm - 2 * q @ k.mT + k_norm) / (2 * h**2)


def _exchanged_norms(q, k, h):
    q_norm, k_norm = q.square().sum(dim=-1)[..., None, :], k.square().sum(dim=-1)[..., :, None]
    return -(q_norm - 2 * q @ k.mT + k_norm) / (2 * h**2)


def _norms_in_columns(q, k, h):
    """Raises unless there are as many keys as queries, as theirs does."""
    squares = q.square().sum(-1, keepdim=True) - 2 * q @ k.mT + k.square().sum(-1, keepdim=True)
    return -squares / (2 * h**2)


def _norms_in_rows(q, k, h):
    """Raises unless there are as many keys as queries, as theirs does."""
    q_norm, k_norm = q.square().sum(-1)[..., None, :], k.square().sum(-1)[..., None, :]
    return -(q_norm - 2 * q @ k.mT + k_norm) / (2 * h**2)


def _changed(q, k, h, *, sign=1.0, factor=1.0, power=2, finish=lambda scores: scores):
    return finish(sign * factor * _scores(q, k, 1.0) / h**power)


EXERCISE = Exercise(
    name="gaussian_scores",
    notebook="02_scoring_functions",
    title="Gaussian scores from dot products and norms",
    reference=lambda query, key, h: GaussianScore(h)(query, key),
    solution=gaussian_scores,
    cases=(
        Case(query=QUERY, key=QUERY + 1, h=0.5),  # as many queries as keys: no broadcast fails
        Case(query=random_tensor(2, 4, 6, seed=0), key=random_tensor(2, 5, 6, seed=1), h=0.8),
    ),
    mistakes=(
        Mistake(
            "positive",
            lambda q, k, h: -_scores(q, k, h),
            "The sign is wrong: this score grows with the distance, so the farthest key gets the largest weight.",
        ),
        Mistake(
            "no_key_norm",
            lambda q, k, h: _scores(q, k, h, of_key=0.0),
            "The term ‖k‖² is missing. It differs from key to key, so the softmax does not cancel it.",
        ),
        Mistake(
            "no_query_norm",
            lambda q, k, h: _scores(q, k, h, of_query=0.0),
            "The term ‖q‖² is missing. The softmax would cancel it, but here the scores themselves are compared.",
        ),
        Mistake(
            "cross_term_once",
            lambda q, k, h: _scores(q, k, h, twice=1.0),
            "The factor 2 of the dot product is missing: ‖q − k‖² = ‖q‖² − 2 q·k + ‖k‖².",
        ),
        Mistake(
            "cross_term_added",
            lambda q, k, h: _scores(q, k, h, twice=-2.0),
            "This is ‖q + k‖². The sign of the dot product is minus: ‖q − k‖² = ‖q‖² − 2 q·k + ‖k‖².",
        ),
        Mistake(
            "h_not_squared",
            lambda q, k, h: _scores(q, k, h) * h,
            "You divide by 2h. The formula has 2h².",
        ),
        Mistake(
            "no_half",
            lambda q, k, h: 2 * _scores(q, k, h),
            "You divide by h². The formula has 2h².",
        ),
        Mistake(
            "distance",
            lambda q, k, h: -(-_scores(q, k, h) * (2 * h**2)).clamp(min=0).sqrt() / (2 * h**2),
            "This uses the distance. The formula has the squared distance: no square root.",
        ),
        Mistake(
            "norms",
            lambda q, k, h: (
                -(q.norm(dim=-1)[..., :, None] - 2 * q @ k.mT + k.norm(dim=-1)[..., None, :])
                / (2 * h**2)
            ),
            "You use the norms ‖q‖ and ‖k‖. The formula has their squares.",
        ),
        Mistake(
            "kernel",
            lambda q, k, h: _scores(q, k, h).exp(),
            "You applied exp already: that is the Gaussian kernel. Return its exponent, the score.",
        ),
        Mistake(
            "scaled",
            lambda q, k, h: _scores(q, k, h) / math.sqrt(q.shape[-1]),
            "There is no √d in this score.",
        ),
        Mistake(
            "softmaxed",
            lambda q, k, h: torch.softmax(_scores(q, k, h), dim=-1),
            "You applied the softmax already. Return the scores.",
        ),
        Mistake(
            "times_h_squared",
            lambda q, k, h: _scores(q, k, h) * h**4,
            "… / 2 * h**2 divides by 2 and multiplies by h². Put the denominator in parentheses: … / (2 * h**2).",
        ),
        Mistake(
            "batch_axis",
            _without_batch,
            "Right for one sequence. With batch axes in front, [:, None] and [None, :] insert the new axis in the wrong "
            "place: use [..., :, None] and [..., None, :].",
        ),
        Mistake(
            "norms_on_exchanged_axes",
            _exchanged_norms,
            "The two norms are on each other's axes. ‖q‖² belongs to the rows, [..., :, None], ‖k‖² to the columns, "
            "[..., None, :].",
        ),
        Mistake(
            "norms_in_columns",
            _norms_in_columns,
            "Both norms are columns, so the two axes do not match. ‖q‖² belongs to the rows, [..., :, None], ‖k‖² to the "
            "columns, [..., None, :].",
        ),
        Mistake(
            "norms_in_rows",
            _norms_in_rows,
            "Both norms lie along the keys. ‖q‖² belongs to the rows, [..., :, None], ‖k‖² to the columns, [..., None, :].",
        ),
        *(
            Mistake(
                f"dot_product_{name}",
                lambda q, k, h, power=power: q @ k.mT / h**power,
                "This is the dot product over a constant. The two squared norms are missing: "
                "‖q − k‖² = ‖q‖² − 2 q·k + ‖k‖².",
            )
            for name, power in {"alone": 0, "over_h": 1, "over_h_squared": 2}.items()
        ),
        Mistake(
            "mean",
            lambda q, k, h: _scores(q, k, h) / q.shape[-1],
            "You average over the components. The squared distance is their sum.",
        ),
        Mistake(
            "h_ignored",
            lambda q, k, h: _scores(q, k, 1.0),
            "h is not used. The formula divides by 2h².",
        ),
        Mistake(
            "positive_squares",
            lambda q, k, h: -_scores(q, k, 0.5**0.5),
            "These are squared distances. The score is minus the squared distance over 2h².",
        ),
        Mistake(
            "cross_term_once_and_half_norms",
            lambda q, k, h: _scores(q, k, h, of_query=0.5, of_key=0.5),
            "The norms are halved, and the dot product is not. ‖q − k‖² = ‖q‖² − 2 q·k + ‖k‖², all of it over 2h².",
        ),
        Mistake(
            "no_norms",
            lambda q, k, h: -2 * q @ k.mT / (2 * h**2),
            "The squared norms are missing, and the sign is wrong: a large dot product means a small distance.",
        ),
        Mistake(
            "sign_of_key_norm",
            lambda q, k, h: _scores(q, k, h, of_key=-1.0),
            "The sign of ‖k‖² is wrong: ‖q − k‖² = ‖q‖² − 2 q·k + ‖k‖².",
        ),
        Mistake(
            "sign_of_query_norm",
            lambda q, k, h: _scores(q, k, h, of_query=-1.0),
            "The sign of ‖q‖² is wrong: ‖q − k‖² = ‖q‖² − 2 q·k + ‖k‖².",
        ),
        *two_mistakes(
            _changed,
            {"positive": ({"sign": -1.0}, "The minus sign is missing.")},
            {"no_half": ({"factor": 2.0}, "The factor 1/2 is missing.")},
            {
                "h_not_squared": ({"power": 1}, "h is not squared."),
                "h_ignored": ({"power": 0}, "h is not used."),
            },
            {
                "softmaxed": (
                    {"finish": lambda a: torch.softmax(a, dim=-1)},
                    "You applied the softmax already.",
                ),
                "kernel": ({"finish": torch.exp}, "You applied exp already."),
            },
        ),
    ),
    hints=(
        "Expand the square: ‖q − k‖² = ‖q‖² − 2 q·k + ‖k‖².",
        "query.square().sum(dim=-1) holds ‖q‖² of every query, (…, query). Which axis has to be added so that it "
        "broadcasts to (…, query, key)?",
        "squares = q2[..., :, None] - 2 * query @ key.mT + k2[..., None, :], with q2 and k2 the squared norms.",
    ),
)
