"""Temperature, top-k and top-p against the logits processors of Hugging Face, and by hand."""

from fractions import Fraction

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from course_lib.decoding import temperature, top_k, top_p

INF = float("inf")
PROCESSORS = {
    "temperature": lambda z: temperature(z, 0.7),
    "top_k": lambda z: top_k(z, 3),
    "top_p": lambda z: top_p(z, 0.8),
}
drawn = settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@st.composite
def scores(draw):
    """(batch, vocabulary), with ties and with tokens that were ruled out, but not all of a row."""
    batch, vocabulary = draw(st.integers(1, 4)), draw(st.integers(1, 12))
    torch.manual_seed(draw(st.integers(0, 10_000)))
    z = torch.randn(batch, vocabulary) * draw(st.sampled_from([0.1, 2.0, 30.0]))
    z = z.round() if draw(st.booleans()) else z
    ruled_out = torch.rand(batch, vocabulary) < draw(st.sampled_from([0.0, 0.5]))
    ruled_out[torch.arange(batch), torch.randint(vocabulary, (batch,))] = False
    return z.masked_fill(ruled_out, -INF).to(draw(st.sampled_from([torch.float32, torch.float64])))


def same(ledger, ours, theirs):
    assert ours.dtype == theirs.dtype and torch.equal(ours.isneginf(), theirs.isneginf())
    ledger.compare(ours.nan_to_num(neginf=0.0), theirs.nan_to_num(neginf=0.0), within=0.0)


def kept(z):
    return [row.isfinite().nonzero()[:, 0].tolist() for row in z]


@pytest.mark.verifies(
    "course_lib.decoding.temperature", against="Hugging Face `TemperatureLogitsWarper`"
)
@drawn
@given(z=scores(), t=st.floats(0.01, 100))
def test_temperature_equals_hugging_face(ledger, z, t):
    from transformers import TemperatureLogitsWarper

    same(ledger, temperature(z, t), TemperatureLogitsWarper(t)(None, z))


@pytest.mark.verifies("course_lib.decoding.top_k", against="Hugging Face `TopKLogitsWarper`")
@drawn
@given(z=scores(), k=st.integers(1, 20))
def test_top_k_equals_hugging_face(ledger, z, k):
    from transformers import TopKLogitsWarper

    same(ledger, top_k(z, k), TopKLogitsWarper(k)(None, z))


@pytest.mark.verifies("course_lib.decoding.top_p", against="Hugging Face `TopPLogitsWarper`")
@drawn
@given(z=scores(), p=st.one_of(st.floats(0.001, 1.0), st.sampled_from([0.25, 0.5, 0.75, 1.0])))
def test_top_p_equals_hugging_face(ledger, z, p):
    from transformers import TopPLogitsWarper

    same(ledger, top_p(z, p), TopPLogitsWarper(p)(None, z))


@pytest.mark.verifies("course_lib.decoding.top_p", against="the smallest set, by exact fractions")
@drawn
@given(z=scores(), p=st.floats(0.01, 0.99))
def test_top_p_keeps_the_smallest_nucleus(ledger, z, p):
    z = z.double()
    for row, left in zip(z.softmax(-1).tolist(), kept(top_p(z, p)), strict=True):
        largest = sorted(map(Fraction, row), reverse=True)
        together = [sum(largest[:n]) for n in range(1, len(row) + 1)]
        fewest = next((n for n, t in enumerate(together, 1) if t >= p), len(row))
        near = any(abs(t - Fraction(p)) < 1e-9 for t in together)
        assert near or len(left) == fewest
        assert near or sorted((Fraction(row[place]) for place in left), reverse=True) == largest[:fewest]  # fmt: skip
    ledger.holds()


@pytest.mark.verifies("course_lib.decoding.top_k", against="sorting by hand")
@drawn
@given(z=scores(), k=st.integers(1, 20))
def test_top_k_keeps_the_largest_and_ties(ledger, z, k):
    for row, left in zip(z.tolist(), top_k(z, k).tolist(), strict=True):
        bound = sorted(row, reverse=True)[min(k, len(row)) - 1]
        assert left == [one if one >= bound else -INF for one in row]
    ledger.holds()


@drawn
@given(z=scores(), k=st.integers(1, 20), p=st.floats(0.001, 1.0), t=st.floats(0.1, 10))
def test_top_k_and_top_p_keep_the_most_probable_token(z, k, p, t):
    before = z.clone()
    for left in (top_k(z, k), top_p(z, p), top_p(top_k(z, k), p), top_k(top_p(z, p), k)):
        alive = left.isfinite()
        assert alive.any(-1).all() and torch.equal(left[alive], z[alive])
        assert (left[~alive] == -INF).all()
        assert torch.equal(left.amax(-1), z.amax(-1))  # the most probable is among them
    assert torch.equal(temperature(z, t).isneginf(), z.isneginf())
    assert torch.equal(z, before)


def test_logits_processors_in_sequence_equal_hugging_face():
    from transformers import (
        LogitsProcessorList,
        TemperatureLogitsWarper,
        TopKLogitsWarper,
        TopPLogitsWarper,
    )

    z = torch.randn(50, 40, dtype=torch.float64) * 3
    theirs = LogitsProcessorList(
        [TemperatureLogitsWarper(1.7), TopKLogitsWarper(12), TopPLogitsWarper(0.85)]
    )
    ours = top_p(top_k(temperature(z, 1.7), 12), 0.85)
    assert torch.equal(ours, theirs(torch.zeros(50, 1, dtype=torch.int64), z))
    other = temperature(top_p(top_k(z, 12), 0.85), 1.7)  # the order counts
    assert not torch.equal(ours.isneginf(), other.isneginf())


def test_top_p_keeps_the_token_that_crosses_the_threshold():
    z = torch.tensor([[0.1, 0.4, 0.2, 0.3]], dtype=torch.float64).log()
    wanted = {0.05: [1], 0.39: [1], 0.41: [1, 3], 0.69: [1, 3], 0.71: [1, 2, 3], 0.91: [0, 1, 2, 3]}
    for p, left in wanted.items():
        assert kept(top_p(z, p)) == [left]
    halves = torch.tensor([[0.25, 0.5, 0.25]]).log()  # exact in binary: what reaches p is enough
    assert kept(top_p(halves, 0.5)) == [[1]] and kept(top_p(halves, 0.500001)) != [[1]]
    assert kept(top_p(halves, 1.0)) == [[0, 1, 2]]


def test_top_p_of_one_and_top_k_of_all_change_nothing():
    z = torch.randn(5, 9)
    z[2, :4] = -INF
    for same in (top_p(z, 1.0), top_p(z, 1), top_k(z, 9), top_k(z, 1000), temperature(z, 1)):
        assert torch.equal(same, z)


def test_top_k_and_top_p_down_to_one_token():
    z = torch.randn(5, 9)
    # 1 - 1e-30 is 1: the most probable would be dropped, were it not kept in any case.
    for alone in (top_k(z, 1), top_p(z, 1e-6), top_p(z, 1e-30), top_p(temperature(z, 1e-3), 0.5)):
        assert kept(alone) == [[place] for place in z.argmax(-1).tolist()]
    assert kept(top_k(torch.zeros(1, 5), 1)) == [[0, 1, 2, 3, 4]]  # all tie
    assert len(kept(top_p(torch.zeros(1, 5), 1e-6))[0]) == 1


def test_temperature_acts_on_logits():
    z = torch.tensor([[0.0, 1.0, 2.0]], dtype=torch.float64)
    for t in (0.5, 2.0):
        powers = z.softmax(-1) ** (1 / t)
        got = temperature(z, t).softmax(-1)
        torch.testing.assert_close(got, powers / powers.sum())
    assert temperature(z, 0.5).softmax(-1).max() > z.softmax(-1).max() > temperature(z, 2.0).softmax(-1).max()  # fmt: skip


@pytest.mark.parametrize("name", PROCESSORS)
@pytest.mark.parametrize("shape", [(6,), (2, 6), (2, 3, 6)])
def test_logits_processors_treat_rows_independently(name, shape):
    one, z = PROCESSORS[name], torch.randn(shape, dtype=torch.float64)
    rows = torch.stack([one(row) for row in z.reshape(-1, 6)]).reshape(shape)
    assert torch.equal(one(z), rows)


@pytest.mark.parametrize("name", PROCESSORS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_logits_processors_keep_dtype_and_gradients(name, dtype):
    z = torch.tensor([[2.0, -1.0, 0.5, 1.0, -3.0]], dtype=dtype, requires_grad=True)
    left = PROCESSORS[name](z)
    alive = left.isfinite()
    assert left.dtype == dtype and kept(left) == [[0, 1, 2, 3, 4] if name == "temperature" else [0, 2, 3] if name == "top_k" else [0, 3]]  # fmt: skip
    left[alive].sum().backward()
    slope = 1 / 0.7 if name == "temperature" else 1.0
    torch.testing.assert_close(z.grad, alive * torch.tensor(slope, dtype=dtype))


Z = torch.tensor([[0.0, 1.0, 2.0]])


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: temperature(Z, 0), r"t=0 is not a finite number above 0"),
        (lambda: temperature(Z, -1.0), r"t=-1 is not a finite number above 0"),
        (lambda: top_k(Z, 0), r"k=0 is below 1"),
        (lambda: top_p(Z, 0.0), r"p=0\.0 must be a probability, above 0 and at most 1"),
        (lambda: top_p(Z, 90), r"p=90 must be a probability"),
    ],
)
def test_invalid_input_raises_value_error(call, says):
    with pytest.raises(ValueError, match=says):
        call()
