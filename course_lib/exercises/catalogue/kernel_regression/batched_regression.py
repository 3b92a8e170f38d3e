"""Exercise `batched_regression` of notebook 01."""

import torch

from course_lib.exercises.catalogue._shared import rounded_tensor
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
    ),
    hints=(
        "Write down the shape of each step: the differences need the shape (batch, query, key).",
        "queries[:, :, None] is (batch, query, 1). Which axis does keys need, and where?",
        "@ multiplies the last two axes and treats those before them as a batch: "
        "(batch, query, key) @ (batch, key, d) is (batch, query, d).",
    ),
)
