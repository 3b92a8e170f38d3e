"""Exercise `gaussian_weights` of notebook 01."""

import torch

from course_lib.exercises.catalogue._shared import rounded_tensor, two_mistakes
from course_lib.exercises.exercise import Case, Exercise, Mistake


def gaussian_weights(queries, keys, bandwidth):
    # (query, 1, d) - (1, key, d) -> (query, key, d); bandwidth (d,) broadcasts along the last axis
    differences = (queries[:, None, :] - keys[None, :, :]) / bandwidth
    scores = -(differences**2).sum(dim=-1) / 2  # (query, key)
    return torch.softmax(scores, dim=-1)  # each row sums to 1


def _reference(queries, keys, bandwidth):
    """Kernel values in float64 relative to the largest of the row, which is exact for a far query too."""
    u = (queries[:, None, :] - keys) / bandwidth  # (query, key, d)
    logarithms = -(u.double() ** 2).sum(dim=-1) / 2
    similarity = torch.exp(logarithms - logarithms.amax(dim=-1, keepdim=True))
    return (similarity / similarity.sum(dim=-1, keepdim=True)).to(queries.dtype)


def _scaled(q, k, h):
    return (q[:, None, :] - k) / h


def _squared(q, k, h):
    return _scaled(q, k, h).square().sum(-1)


def _ratio(q, k, h, *, epsilon=0.0):
    kernel = torch.exp(-_squared(q, k, h) / 2)
    return kernel / (kernel.sum(dim=-1, keepdim=True) + epsilon)


def _weights(q, k, h, *, half=0.5, power=1.0, dim=-1):
    return torch.softmax(-half * _squared(q, k, h**power), dim=dim)


EXERCISE = Exercise(
    name="gaussian_weights",
    notebook="01_kernel_regression",
    title="Gaussian weights with one bandwidth per dimension",
    reference=_reference,
    solution=gaussian_weights,
    cases=(
        Case(
            queries=torch.tensor([[0.0, 0.0], [1.0, 2.0]]),
            keys=torch.tensor([[0.0, 1.0], [2.0, 0.0], [1.0, 3.0]]),
            bandwidth=torch.tensor([1.0, 2.0]),
        ),
        Case(
            queries=rounded_tensor(4, 3, seed=1),
            keys=rounded_tensor(5, 3, seed=2),
            bandwidth=torch.tensor([0.5, 1.5, 3.0]),
        ),
        Case(  # one query so far away that exp of every score is 0
            queries=torch.cat([rounded_tensor(4, 3, seed=3), torch.full((1, 3), 40.0)]),
            keys=rounded_tensor(5, 3, seed=4),
            bandwidth=torch.tensor([1.0, 2.0, 0.5]),
        ),
    ),
    mistakes=(
        Mistake(
            "over_queries",
            lambda q, k, h: torch.softmax(-_squared(q, k, h) / 2, dim=0),
            "Your softmax runs over the queries: the columns sum to 1. Each query shares its attention "
            "among the keys, so each row must sum to 1.",
        ),
        Mistake(
            "no_half",
            lambda q, k, h: torch.softmax(-_squared(q, k, h), dim=-1),
            "The factor 1/2 in the exponent is missing. Your weights are those of bandwidths √2 times smaller.",
        ),
        Mistake(
            "norm_not_squared",
            lambda q, k, h: torch.softmax(-_squared(q, k, h).sqrt() / 2, dim=-1),
            "You take the norm of the scaled difference. The score needs the squared norm: leave the root out.",
        ),
        Mistake(
            "sum_before_square",
            lambda q, k, h: torch.softmax(-_scaled(q, k, h).sum(-1).square() / 2, dim=-1),
            "You add the components before you square them, so positive and negative differences cancel. "
            "Square first, then sum.",
        ),
        Mistake(
            "mean_over_components",
            lambda q, k, h: torch.softmax(-_scaled(q, k, h).square().mean(-1) / 2, dim=-1),
            "You average over the components. The score is a sum over them.",
        ),
        Mistake(
            "one_bandwidth",
            lambda q, k, h: torch.softmax(-_squared(q, k, h.mean()) / 2, dim=-1),
            "You use the mean bandwidth for all dimensions. Divide each component by its own bandwidth.",
        ),
        Mistake(
            "softmax_of_the_similarity",
            lambda q, k, h: torch.softmax(torch.exp(-_squared(q, k, h) / 2), dim=-1),
            "softmax computes exp itself. Give it the scores, not the kernel.",
        ),
        Mistake(
            "wrong_sign",
            lambda q, k, h: torch.softmax(_squared(q, k, h) / 2, dim=-1),
            "The sign is wrong: your weights are largest for the farthest key.",
        ),
        Mistake(
            "times_bandwidth",
            lambda q, k, h: torch.softmax(-_squared(q * h, k * h, 1) / 2, dim=-1),
            "You multiply the differences by the bandwidth. Divide: a large bandwidth makes distances small.",
        ),
        Mistake(
            "bandwidth_not_squared",
            lambda q, k, h: torch.softmax(-_squared(q, k, h.sqrt()) / 2, dim=-1),
            "You square the difference before you divide by the bandwidth, so the bandwidth is not squared. "
            "The exponent is the sum of -(d/h)²/2.",
        ),
        Mistake(
            "not_normalised",
            lambda q, k, h: torch.exp(-_squared(q, k, h) / 2),
            "These are kernel values, not weights yet. Divide each row by its sum.",
        ),
        Mistake(
            "underflow",
            _ratio,
            "For a query far from all keys every kernel value underflows to 0, and the ratio is 0/0. Use torch.softmax of "
            "the scores, or subtract the largest score of each row before exp.",
        ),
        Mistake(
            "underflow_and_epsilon",
            lambda q, k, h: _ratio(q, k, h, epsilon=1e-12),
            "For a query far from all keys every kernel value underflows to 0, so its weights are all 0. They must sum to "
            "1: use torch.softmax of the scores, or subtract the largest score of each row before exp.",
        ),
        *(
            Mistake(
                f"one_bandwidth_{name}",
                lambda q, k, h, one=one: torch.softmax(-_squared(q, k, one(h)) / 2, dim=-1),
                "All components are divided by the same number. Divide each component by its own bandwidth.",
            )
            for name, one in {
                "norm": torch.linalg.vector_norm,
                "sum": torch.sum,
                "product": torch.prod,
                "first": lambda h: h[0],
                "last": lambda h: h[-1],
            }.items()
        ),
        Mistake(
            "bandwidth_ignored",
            lambda q, k, h: torch.softmax(-_squared(q, k, 1) / 2, dim=-1),
            "The bandwidth is not used. Divide each component of the difference by its bandwidth.",
        ),
        *(
            Mistake(
                f"absolute_{name}",
                lambda q, k, h, c=c: torch.softmax(-_scaled(q, k, h).abs().sum(-1) * c, dim=-1),
                "You add absolute values. The score is a sum of squares.",
            )
            for name, c in {"halved": 0.5, "whole": 1.0}.items()
        ),
        Mistake(
            "scores",
            lambda q, k, h: -_squared(q, k, h) / 2,
            "These are the scores. Apply a softmax over the keys to get the weights.",
        ),
        Mistake(
            "norm_not_squared_whole",
            lambda q, k, h: torch.softmax(-_squared(q, k, h).sqrt(), dim=-1),
            "You take the norm of the scaled difference. The score is minus half the squared norm.",
        ),
        Mistake(
            "half_squared",
            lambda q, k, h: torch.softmax(-_squared(q, k, h) / 4, dim=-1),
            "The factor is 1/4 in your exponent. Square the difference over the bandwidth, then divide by 2: the 2 is not "
            "squared.",
        ),
        Mistake(
            "not_summed",
            lambda q, k, h: torch.softmax(-(_scaled(q, k, h) ** 2) / 2, dim=-1),
            "Your result has the shape (query, key, d), with a softmax over the components. Sum the squares over the "
            "components first, dim=-1, then take the softmax over the keys.",
        ),
        Mistake(
            "not_summed_over_keys",
            lambda q, k, h: torch.softmax(-(_scaled(q, k, h) ** 2) / 2, dim=1),
            "Your result has the shape (query, key, d), one weight per component. Sum the squares over the components, "
            "dim=-1, before the softmax.",
        ),
        Mistake(
            "component_by_component",
            lambda q, k, h: torch.softmax(-(_scaled(q, k, h) ** 2) / 2, dim=1).prod(dim=-1),
            "You normalise each component on its own, so the product does not sum to 1. Sum the squares over the components "
            "first, then take one softmax over the keys.",
        ),
        Mistake(
            "bandwidth_squared_twice",
            lambda q, k, h: torch.softmax(-_squared(q, k, h**2) / 2, dim=-1),
            "You divide by the square of the bandwidth and square the ratio again. The exponent is the sum of -(d/h)²/2.",
        ),
        *two_mistakes(
            _weights,
            {
                "softmax_over_queries": (
                    {"dim": 0},
                    "Your softmax runs over the queries; the weights of one query must sum to 1 over the keys: dim=-1.",
                ),
            },
            {
                "no_half": ({"half": 1.0}, "The factor 1/2 in the exponent is missing."),
                "positive": ({"half": -0.5}, "The minus sign of the exponent is missing."),
                "bandwidth_not_squared": (
                    {"power": 0.5},
                    "You square the difference before you divide by the bandwidth.",
                ),
                "bandwidth_ignored": ({"power": 0.0}, "The bandwidth is not used."),
            },
        ),
        Mistake(
            "not_squared",
            lambda q, k, h: torch.softmax(-_scaled(q, k, h).sum(-1) / 2, dim=-1),
            "You do not square the differences, so positive and negative ones cancel. Square each component, then sum.",
        ),
        Mistake(
            "times_two",
            lambda q, k, h: torch.softmax(-_squared(q, k, h) * 2, dim=-1),
            "You multiply by 2. The score is minus one half of the sum of the squares.",
        ),
    ),
    hints=(
        "queries[:, None, :] - keys[None, :, :] has shape (query, key, d). Which axis does the bandwidth belong to?",
        "A tensor of shape (d,) broadcasts along the last axis, so dividing by the bandwidth scales each component.",
        "Square, sum over the last axis, multiply by -1/2, then torch.softmax(scores, dim=-1).",
    ),
)
