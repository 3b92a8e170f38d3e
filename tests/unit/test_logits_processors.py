"""Temperature, top-k and top-p against the logits processors of Hugging Face, and by hand."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.transformer.decoding import temperature, top_k, top_p

INF = float("inf")
PROCESSORS = {
    "temperature": lambda z: temperature(z, 0.7),
    "top_k": lambda z: top_k(z, 3),
    "top_p": lambda z: top_p(z, 0.8),
}
drawn = settings(max_examples=60)


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
    "course_lib.transformer.decoding.temperature", against="Hugging Face `TemperatureLogitsWarper`"
)
@drawn
@given(z=scores(), t=st.floats(0.01, 100))
def test_temperature_equals_hugging_face(ledger, z, t):
    from transformers import TemperatureLogitsWarper

    same(ledger, temperature(z, t), TemperatureLogitsWarper(t)(None, z))


@pytest.mark.verifies(
    "course_lib.transformer.decoding.top_k", against="Hugging Face `TopKLogitsWarper`"
)
@drawn
@given(z=scores(), k=st.integers(1, 20))
def test_top_k_equals_hugging_face(ledger, z, k):
    from transformers import TopKLogitsWarper

    same(ledger, top_k(z, k), TopKLogitsWarper(k)(None, z))


@pytest.mark.verifies(
    "course_lib.transformer.decoding.top_p", against="Hugging Face `TopPLogitsWarper`"
)
@drawn
@given(z=scores(), p=st.one_of(st.floats(0.001, 1.0), st.sampled_from([0.25, 0.5, 0.75, 1.0])))
def test_top_p_equals_hugging_face(ledger, z, p):
    from transformers import TopPLogitsWarper

    same(ledger, top_p(z, p), TopPLogitsWarper(p)(None, z))


def test_top_p_keeps_the_token_that_crosses_the_threshold():
    z = torch.tensor([[0.1, 0.4, 0.2, 0.3]], dtype=torch.float64).log()
    wanted = {0.05: [1], 0.39: [1], 0.41: [1, 3], 0.69: [1, 3], 0.71: [1, 2, 3], 0.91: [0, 1, 2, 3]}
    for p, left in wanted.items():
        assert kept(top_p(z, p)) == [left]
    halves = torch.tensor([[0.25, 0.5, 0.25]]).log()  # exact in binary: what reaches p is enough
    assert kept(top_p(halves, 0.5)) == [[1]] and kept(top_p(halves, 0.500001)) != [[1]]
    # 1 - 1e-30 is 1: the most probable would be dropped, were it not kept in any case.
    assert kept(top_p(z, 1e-30)) == [[1]] and len(kept(top_p(torch.zeros(1, 5), 1e-6))[0]) == 1


@pytest.mark.parametrize("name", PROCESSORS)
@pytest.mark.parametrize("shape", [(6,), (2, 3, 6)])
def test_logits_processors_treat_rows_independently(name, shape):
    one, z = PROCESSORS[name], torch.randn(shape, dtype=torch.float64)
    before = z.clone()
    rows = torch.stack([one(row) for row in z.reshape(-1, 6)]).reshape(shape)
    assert torch.equal(one(z), rows) and torch.equal(z, before)


@pytest.mark.parametrize(
    ("name", "left"), [("temperature", [0, 1, 2, 3, 4]), ("top_k", [0, 2, 3]), ("top_p", [0, 3])]
)
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_logits_processors_keep_dtype_and_gradients(name, left, dtype):
    z = torch.tensor([[2.0, -1.0, 0.5, 1.0, -3.0]], dtype=dtype, requires_grad=True)
    found = PROCESSORS[name](z)
    assert found.dtype == dtype and kept(found) == [left]
    found[found.isfinite()].sum().backward()
    slope = torch.tensor(1 / 0.7 if name == "temperature" else 1.0, dtype=dtype)
    torch.testing.assert_close(z.grad, found.isfinite() * slope)


Z = torch.tensor([[0.0, 1.0, 2.0]])


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: temperature(Z, 0), r"t=0 is not a finite number above 0; .*use greedy decoding"),
        (lambda: temperature(Z, -1), r"t=-1 is not a finite number above 0$"),
        (lambda: top_k(Z, 0), r"k=0 is below 1"),
        (lambda: top_p(Z, 0.0), r"p=0\.0 must be a probability, above 0 and at most 1"),
        (lambda: top_p(Z, 90), r"p=90 must be a probability"),
    ],
)
def test_invalid_input_raises_value_error(call, says):
    with pytest.raises(ValueError, match=says):
        call()
