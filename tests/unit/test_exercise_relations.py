"""A relation is said where it holds, by name and number; on attempts made from the reference by that very relation."""

import pytest
import torch

from course_lib.exercises import EXERCISES, grade
from course_lib.exercises.comparison import run
from course_lib.exercises.relations import measured


def said(name, change):
    exercise = EXERCISES[name]

    def attempt(*inputs):
        return change(exercise.reference(*inputs), *inputs)

    outcomes = [run(attempt, case) for case in exercise.cases]
    references = [run(exercise.reference, case) for case in exercise.cases]
    return measured(exercise, attempt, outcomes, references)


def attention(*inputs):
    return EXERCISES["masked_attention"].reference(*inputs)


def late(x, axis=-1):
    return torch.cat(
        [torch.zeros_like(x.narrow(axis, 0, 1)), x.narrow(axis, 0, x.shape[axis] - 1)], axis
    )


RELATIONS = [
    (lambda out, *_: 2**0.5 * out, "1.414 (that is √2) times"),
    (lambda out, *_: out / 3, "0.3333 (that is 1/3) times"),
    (lambda out, *_: -out, "the opposite sign"),
    (lambda out, *_: 0 * out, "0 everywhere"),
    (lambda out, *_: out + 0.25, "plus 0.25"),
    (
        lambda out, s, *_: out * s.shape[-1] ** 0.5,
        "a multiple of the expected result: 1.732 (that is √3), 2 times",
    ),
    (lambda out, *_: out.mT, "axes 1 and 2 exchanged"),
    (lambda out, *_: out.permute(2, 0, 1), "yours.permute(1, 2, 0) would be right"),
    (lambda out, *_: out.flatten(1), "in another shape"),
    (lambda out, *_: out.flip(-1), "in reverse order along axis 2"),
    (lambda out, *_: late(out), "one position late along axis 2"),
    (lambda out, *_: late(out.flip(-1)).flip(-1), "one position early along axis 2"),
    (lambda out, *_: out.exp(), "log of yours"),
    (lambda out, *_: 1 - out, "1 − x of yours"),
    (lambda out, *_: out.sum(1), "the sum of the expected result along axis 1"),
    (lambda out, *_: out[None].expand(2, *out.shape), "its mean along axis 0"),
    (
        lambda out, s, n, v: attention(s, n, torch.ones_like(v)) * 1.3 + 0.7 * s.mean(),
        "when value changes",
    ),
]


@pytest.mark.parametrize(("change", "says"), RELATIONS)
def test_a_relation_is_measured(change, says):
    assert says in said("masked_attention", change)


def test_the_axis_that_sums_to_one_and_the_part_that_is_right_are_measured():
    def over_queries(weights, queries, keys, bandwidth):
        return torch.softmax(7 * weights + queries.sum() * keys.sum() * bandwidth.sum(), dim=0)

    assert "sums to 1 along axis 0" in said("gaussian_weights", over_queries)

    def first(weights, queries, keys, bandwidth):
        noise = torch.sin(torch.arange(weights.numel())).view_as(weights) * queries.sum()
        scale = keys.sum() * bandwidth.sum()
        return torch.cat([weights[:1], weights[1:] + noise[1:] * scale])

    assert "along axis 0, yours is right at index 0 only" in said("gaussian_weights", first).lower()


def test_nothing_is_said_of_random_numbers_or_of_errors():
    def noise(out, scores, *_):
        return torch.sin(9 * out + scores.sum() * torch.arange(out.numel()).view_as(out))

    assert said("masked_attention", noise) is None
    assert said("gaussian_weights", lambda out, *_: out @ out) is None


def test_the_relation_stands_in_the_report():
    right = EXERCISES["gaussian_weights"].reference
    report = grade("gaussian_weights", lambda *inputs: right(*inputs) * 1.5)
    assert (
        report.message
        == "The values differ. Yours is 1.5 times the expected result, in every element."
    )
