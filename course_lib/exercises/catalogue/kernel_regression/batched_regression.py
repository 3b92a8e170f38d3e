"""Exercise `batched_regression` of notebook 01."""

import torch

from course_lib.exercises.catalogue._shared import rounded_tensor, two_mistakes
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.pooling import attention_pooling


def batched_regression(queries, keys, values, bandwidth):
    # (batch, query, 1) - (batch, 1, key) -> (batch, query, key)
    differences = queries[:, :, None] - keys[:, None, :]
    scores = -((differences / bandwidth) ** 2) / 2  # (batch, query, key)
    weights = torch.softmax(scores, dim=-1)  # over the keys
    return weights @ values  # (batch, query, key) @ (batch, key, d) -> (batch, query, d)


def _reference(queries, keys, values, bandwidth):
    """One entry of the batch at a time."""
    return torch.stack(
        [
            attention_pooling(q, k, v, bandwidth=bandwidth).output
            for q, k, v in zip(queries, keys, values, strict=True)
        ]
    )


def _pooled(queries, keys, values, bandwidth, *, half=0.5, dim=-1):
    differences = (queries[:, :, None] - keys[:, None, :]) / bandwidth
    return torch.softmax(-half * differences.square(), dim=dim) @ values


def _all_entries(queries, keys, values, bandwidth):
    keys, values = keys.reshape(1, -1), values.flatten(0, 1)[None]
    return _pooled(queries, keys, values, bandwidth)


def _first_entry(queries, keys, values, bandwidth):
    return _pooled(queries, keys[:1], values[:1], bandwidth)


def _keys_on_the_batch_axis(queries, keys, values, bandwidth):
    """Raises a RuntimeError unless the numbers of queries and keys happen to fit."""
    differences = (queries[:, None] - keys[None]) / bandwidth
    return torch.softmax(-differences.square() / 2, dim=-1) @ values


def _from_weights(weights):
    """The exercise with other weights, of the scaled differences (batch, query, key)."""
    return lambda q, k, v, h: weights((q[:, :, None] - k[:, None, :]) / h) @ v


def _ratio(u, epsilon=0.0):
    kernel = torch.exp(-(u**2) / 2)
    return kernel / (kernel.sum(dim=-1, keepdim=True) + epsilon)


def _batched(q, k, v, h, *, half=0.5, power=1.0, dim=-1):
    return _pooled(q, k, v, h**power, half=half, dim=dim)


EXERCISE = Exercise(
    name="batched_regression",
    notebook="01_kernel_regression",
    title="A batch of regressions without a loop",
    reference=_reference,
    solution=batched_regression,
    cases=(
        Case(
            queries=torch.tensor([[0.0], [1.0]]),
            keys=torch.tensor([[0.0, 1.0, 3.0], [2.0, 0.0, 1.0]]),
            values=torch.tensor([[[1.0], [2.0], [4.0]], [[3.0], [0.0], [5.0]]]),
            bandwidth=1.0,
        ),
        Case(
            queries=rounded_tensor(3, 4, seed=1),
            keys=rounded_tensor(3, 5, seed=2),
            values=rounded_tensor(3, 5, 2, seed=3),
            bandwidth=0.6,
        ),
        Case(  # queries so far away that exp of every score is 0
            queries=rounded_tensor(3, 4, seed=4) + torch.tensor([0.0, 0.0, 0.0, 20.0]),
            keys=rounded_tensor(3, 6, seed=5),
            values=rounded_tensor(3, 6, 2, seed=6),
            bandwidth=0.8,
        ),
    ),
    mistakes=(
        Mistake(
            "over_queries",
            lambda q, k, v, h: _pooled(q, k, v, h, dim=-2),
            "Your softmax runs over the queries. In (batch, query, key) the keys are the last axis.",
        ),
        Mistake(
            "over_batch",
            lambda q, k, v, h: _pooled(q, k, v, h, dim=0),
            "Your softmax runs over the batch, so the entries of the batch influence each other. "
            "It must run over the keys.",
        ),
        Mistake(
            "all_entries",
            _all_entries,
            "Your queries attend to the keys of all batch entries. Keep the batch axis of the keys in the difference: "
            "(batch, query, 1) - (batch, 1, key).",
        ),
        Mistake(
            "first_entry",
            _first_entry,
            "All your queries attend to the keys of the first batch entry. Each entry has its own keys and values.",
        ),
        Mistake(
            "wrong_axes",
            _keys_on_the_batch_axis,
            "[:, None] inserts an axis after the batch axis, and [None] one before it. You need "
            "(batch, query, 1) - (batch, 1, key).",
        ),
        Mistake(
            "no_half",
            lambda q, k, v, h: _pooled(q, k, v, h, half=1.0),
            "The factor 1/2 in the exponent is missing.",
        ),
        Mistake(
            "mean_of_values",
            lambda q, k, v, h: v.mean(1, keepdim=True).expand(-1, q.shape[1], -1),
            "Your output is the mean of the values: the weights do not depend on the query.",
        ),
        *(
            Mistake(
                name,
                _from_weights(weights),
                "For a query far from all keys every kernel value underflows to 0, and the ratio is 0/0. Use "
                "torch.softmax of the scores, which subtracts the largest score of each row before exp.",
            )
            for name, weights in {
                "underflow": _ratio,
                "underflow_and_epsilon": lambda u: _ratio(u, 1e-12),
            }.items()
        ),
        Mistake(
            "bandwidth_not_squared",
            lambda q, k, v, h: _pooled(q, k, v, h**0.5),
            "You square the difference before you divide by the bandwidth, so the bandwidth is not squared. The score is "
            "-(difference / bandwidth)² / 2.",
        ),
        Mistake(
            "bandwidth_ignored",
            lambda q, k, v, h: _pooled(q, k, v, 1.0),
            "The bandwidth is not used. The score is -(difference / bandwidth)² / 2.",
        ),
        Mistake(
            "keys_of_first_entry",
            lambda q, k, v, h: _pooled(q, k[:1], v, h),
            "All your queries are compared with the keys of the first batch entry. Each entry has its own keys.",
        ),
        Mistake(
            "values_of_first_entry",
            lambda q, k, v, h: _pooled(q, k, v[:1], h),
            "Every entry of the batch averages the values of the first one. Each entry has its own values.",
        ),
        Mistake(
            "wrong_sign",
            lambda q, k, v, h: _pooled(q, k, v, h, half=-0.5),
            "The sign is wrong: the farthest key gets the largest weight.",
        ),
        *(
            Mistake(
                f"absolute_{name}",
                _from_weights(lambda u, c=c: torch.softmax(-c * u.abs(), dim=-1)),
                "Your score is linear in the distance. The Gaussian kernel has the squared distance in its exponent.",
            )
            for name, c in {"halved": 0.5, "whole": 1.0}.items()
        ),
        Mistake(
            "not_normalised",
            _from_weights(lambda u: torch.exp(-(u**2) / 2)),
            "These are kernel values, not weights: the weights of each query must sum to 1. Use a softmax over the keys.",
        ),
        Mistake(
            "reshaped",
            lambda q, k, v, h: (
                torch.softmax(-(((k[:, :, None] - q[:, None, :]) / h) ** 2) / 2, dim=1).reshape(
                    len(q), q.shape[1], -1
                )
                @ v
            ),
            "A reshape does not exchange two axes; it changes which numbers belong together. Use .mT, or build the "
            "differences as (batch, query, key) from the start.",
        ),
        Mistake(
            "weights_returned",
            lambda q, k, v, h: _from_weights(lambda u: torch.softmax(-(u**2) / 2, dim=-1))(
                q, k, torch.eye(k.shape[1], dtype=k.dtype), h
            ),
            "You return the weights. The output is weights @ values.",
        ),
        Mistake(
            "output_transposed",
            lambda q, k, v, h: _pooled(q, k, v, h).mT,
            "The numbers are right, but the axes are (batch, d, query). Return (batch, query, d).",
        ),
        Mistake(
            "bandwidth_squared_twice",
            lambda q, k, v, h: _pooled(q, k, v, h**2),
            "You divide by the square of the bandwidth and square the ratio again. The score is "
            "-(difference / bandwidth)² / 2.",
        ),
        Mistake(
            "half_squared",
            lambda q, k, v, h: _pooled(q, k, v, h, half=0.25),
            "The factor is 1/4 in your exponent. Square the difference over the bandwidth, then divide by 2: the 2 is not "
            "squared.",
        ),
        *two_mistakes(
            _batched,
            {
                "softmax_over_queries": (
                    {"dim": -2},
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
            "no_softmax",
            _from_weights(lambda u: -(u**2) / 2),
            "You use the scores as weights. Take a softmax over the keys first.",
        ),
        Mistake(
            "not_squared",
            _from_weights(lambda u: torch.softmax(-u / 2, dim=-1)),
            "You do not square the differences, so keys on one side of the query get all the weight.",
        ),
        Mistake(
            "times_bandwidth",
            lambda q, k, v, h: _pooled(q, k, v, 1 / h),
            "You multiply by the bandwidth. Divide: a large bandwidth makes distances small.",
        ),
        Mistake(
            "times_two",
            lambda q, k, v, h: _pooled(q, k, v, h, half=2.0),
            "You multiply by 2. The score is -(difference / bandwidth)² / 2.",
        ),
    ),
    hints=(
        "Write down the shape of each step: the differences need the shape (batch, query, key).",
        "queries[:, :, None] is (batch, query, 1). Which axis does keys need, and where?",
        "@ multiplies the last two axes and treats those before them as a batch: "
        "(batch, query, key) @ (batch, key, d) is (batch, query, d).",
    ),
)
