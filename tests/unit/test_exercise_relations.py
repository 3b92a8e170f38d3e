"""A relation is said where it holds, by name and number; on attempts made from the reference by that very relation."""

import pytest
import torch

from course_lib.exercises import EXERCISES, grade
from course_lib.exercises.comparison import run
from course_lib.exercises.relations import measured

MASKED, WEIGHTS = "masked_attention", "gaussian_weights"


def said(name, change):
    exercise = EXERCISES[name]

    def attempt(*inputs):
        return change(exercise.reference(*inputs), *inputs)

    outcomes = [run(attempt, case) for case in exercise.cases]
    references = [run(exercise.reference, case) for case in exercise.cases]
    return measured(exercise, attempt, outcomes, references)


def late(x):
    return torch.cat([torch.zeros_like(x[..., :1]), x[..., :-1]], -1)


def without_values(out, s, n, v):
    return EXERCISES[MASKED].reference(s, n, torch.ones_like(v)) * 1.3 + 0.7 * s.mean()


def over_queries(weights, queries, keys, bandwidth):
    return torch.softmax(7 * weights + queries.sum() * keys.sum() * bandwidth.sum(), dim=0)


def first_right(weights, queries, keys, bandwidth):
    noise = torch.sin(torch.arange(weights.numel())).view_as(weights) * queries.sum()
    return torch.cat([weights[:1], weights[1:] + noise[1:] * keys.sum() * bandwidth.sum()])


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        (MASKED, lambda out, *_: 2**0.5 * out, "1.414 (that is √2) times"),
        (MASKED, lambda out, *_: out / 3, "0.3333 (that is 1/3) times"),
        (MASKED, lambda out, *_: out / 5**0.5, "0.4472 (that is 1/√5) times"),
        (MASKED, lambda out, *_: -out, "the opposite sign"),
        (MASKED, lambda out, *_: 0 * out, "0 everywhere"),
        (MASKED, lambda out, *_: out + 0.25, "plus 0.25"),
        (MASKED, lambda out, *_: out - 0.25, "minus 0.25"),
        (MASKED, lambda out, *_: out * 1.0003, "off by at most 3e-04"),
        (MASKED, lambda out, s, *_: out * s.shape[-1] ** 0.5, "a multiple of the expected result: 1.732 (that is √3), 2"),
        (MASKED, lambda out, *_: out.mT, "axes 1 and 2 exchanged"),
        (MASKED, lambda out, *_: out.permute(2, 0, 1), "yours.permute(1, 2, 0) would be right"),
        (MASKED, lambda out, *_: out.flatten(1), "in another shape"),
        (MASKED, lambda out, *_: out.flip(-1), "in reverse order along axis 2"),
        (MASKED, lambda out, *_: late(out), "one position late along axis 2"),
        (MASKED, lambda out, *_: late(out.flip(-1)).flip(-1), "one position early along axis 2"),
        (MASKED, lambda out, *_: out.exp(), "log of yours"),
        (MASKED, lambda out, *_: 1 - out, "1 − x of yours"),
        (MASKED, lambda out, *_: out.sum(1), "the sum of the expected result along axis 1"),
        (MASKED, lambda out, *_: out[None].expand(2, *out.shape), "its mean along axis 0"),
        (MASKED, without_values, "when value changes"),
        (WEIGHTS, over_queries, "sums to 1 along axis 0"),
        (WEIGHTS, first_right, "long axis 0, yours is right at index 0 only"),
    ],
)  # fmt: skip
def test_a_relation_is_measured(name, change, says):
    assert says in said(name, change)


def test_nothing_is_said_of_random_numbers_or_of_errors():
    def noise(out, scores, *_):
        return torch.sin(9 * out + scores.sum() * torch.arange(out.numel()).view_as(out))

    assert said(MASKED, noise) is None
    assert said(WEIGHTS, lambda out, *_: out @ out) is None


def test_a_number_of_python_is_compared_as_a_number():
    report = grade("layers_needed", lambda n, k, dilated: -(-n // (k - 1)) if not dilated else n)
    assert "inspected" not in report.message and "\n    yours    1\n" in f"{report}\n"


def test_a_share_that_one_other_input_does_not_change_is_not_said_to_ignore_it():
    def above_the_mean(x, W_v, W_o, unembedding):
        logits = x @ W_v.T @ W_o.T @ unembedding.T
        return (logits.diagonal() > logits.mean(dim=1)).float().mean()

    report = grade("copying_score", above_the_mean)
    assert report.state == "tried" and "does not change" not in report.message


def test_nothing_is_said_that_the_case_shown_denies():
    def nan_later(logits, p):
        ordered = logits.sort(descending=True).values
        return ordered.masked_fill(ordered.softmax(-1).cumsum(-1) > p, -torch.inf).softmax(-1)

    report = str(grade("keep_top_p", nan_later))
    assert "NaN" in report and "sums to 1" not in report and "nan" in report.rpartition("yours")[2]
    # one case of three numbers, two of them equal: reversed by chance
    equal = lambda a, b, exact: torch.stack([exact, ~exact & (a < b), a == b]).sum(dim=1)  # noqa: E731
    assert "reverse" not in str(grade("search_outcomes", equal))


def test_the_relation_stands_in_the_report():
    report = grade(WEIGHTS, lambda *inputs: EXERCISES[WEIGHTS].reference(*inputs) * 1.5)
    relation = "Yours is 1.5 times the expected result, in every element."
    assert report.message == f"The values differ. {relation}"
