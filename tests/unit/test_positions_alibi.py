"""ALiBi against the code of its authors, BLOOM and MPT."""

import math

import pytest
import torch

from course_lib.masks import causal_mask
from course_lib.positions import AlibiBias, alibi_bias, alibi_slopes
from tests.helpers.positions import BATCH, D_HEAD, HEADS, biases, check, learned, of_the_authors
from tests.helpers.tensors import DTYPES, in_float64

HEAD_COUNTS = [*range(1, 41), 48, 63, 64, 65, 96, 112, 128]


def of_bloom(n):
    from transformers.models.bloom import modeling_bloom

    return modeling_bloom.build_alibi_tensor(torch.ones(1, 2), n, torch.float32)[:, 0, 1]


def of_mpt(n):
    from transformers.models.mpt import modeling_mpt

    return -modeling_mpt.build_mpt_alibi_tensor(n, 2)[:, 0, 0]


SLOPES = [
    pytest.param(of_the_authors, marks=pytest.mark.verifies("course_lib.positions.alibi_slopes", against="the code of its authors")),
    pytest.param(of_bloom, marks=pytest.mark.verifies("course_lib.positions.alibi_slopes", against="Hugging Face BLOOM `build_alibi_tensor`")),
    pytest.param(of_mpt, marks=pytest.mark.verifies("course_lib.positions.alibi_slopes", against="Hugging Face MPT `build_mpt_alibi_tensor`")),
]  # fmt: skip


def check_slopes(ledger, slopes, oracle, within=1e-7):
    """What all slopes are compared with; `slopes` is `alibi_slopes` or should be."""
    for count in HEAD_COUNTS:
        ledger.compare(
            slopes(count), torch.as_tensor(oracle(count), dtype=torch.float64), within=within
        )


@pytest.mark.parametrize("oracle", SLOPES)
def test_alibi_slopes_equal_other_implementations(ledger, oracle):
    check_slopes(ledger, alibi_slopes, oracle)
    assert alibi_slopes(3).dtype == torch.float32


def test_alibi_slopes_are_exact_powers_of_two():
    assert alibi_slopes(1).tolist() == [2**-8]
    assert alibi_slopes(8).tolist() == [2**-n for n in range(1, 9)]
    assert alibi_slopes(4).tolist() == [0.25, 0.0625, 2**-6, 2**-8]
    assert alibi_slopes(6).tolist() == [0.25, 0.0625, 2**-6, 2**-8, 0.5, 0.125]


def test_wrong_alibi_slopes_are_detected(ledger):
    wrong = {
        "straight": lambda n: torch.linspace(2 ** (-8 / n), 2**-8, n),
        "geometric for every number of heads": lambda n: 2 ** (-8 * torch.arange(1.0, n + 1) / n),
        "from one on": lambda n: 2 ** (-8 * torch.arange(n) / n),
        "the first of the next power": lambda n: torch.tensor(
            of_the_authors(2 ** math.ceil(math.log2(n)))[:n]
        ),
        "of the wrong sign": lambda n: -alibi_slopes(n),
    }
    for slopes in wrong.values():
        for oracle in (of_the_authors, of_bloom, of_mpt):
            with pytest.raises(AssertionError, match="differs from the oracle"):
                check_slopes(ledger, slopes, oracle)


@pytest.mark.verifies("course_lib.positions.alibi_bias", against="an explicit loop")
@pytest.mark.verifies("course_lib.positions.AlibiBias", against="an explicit loop")
@pytest.mark.parametrize("count", [1, 3, 6, 8, 12])
@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (5, 5), (3, 7), (1, 9)])
def test_alibi_bias_equals_a_loop(ledger, queries, keys, count):
    theirs = biases(count, queries, keys)
    ledger.compare(alibi_bias(count, queries, keys), theirs, within=1e-6)
    assert not alibi_bias(count, queries, keys)[theirs == 0].signbit().any()  # 0, and not -0
    if queries == keys:
        ledger.compare(alibi_bias(count, queries), theirs, within=1e-6)
    for dtype in DTYPES:
        query = torch.zeros(BATCH, count, queries, D_HEAD, dtype=dtype)
        ours = AlibiBias(count).bias(query, keys)
        assert ours.dtype == dtype
        ledger.compare(ours, theirs, within=1e-6)


def causal_weights(scores, bias):
    mask = causal_mask(*scores.shape[-2:])
    return (scores + bias).masked_fill(~mask, -torch.inf).softmax(-1)


def check_alibi(ledger, bias, count, dtype, within):
    """Under a causal mask it does not matter that BLOOM and MPT add the same number to a whole row."""
    from transformers.models.bloom import modeling_bloom
    from transformers.models.mpt import modeling_mpt

    length = 9
    scores = torch.randn(BATCH, count, length, length, dtype=dtype, requires_grad=True)
    (copied,) = in_float64(scores)
    ones = torch.ones(BATCH, length)
    for theirs in (
        modeling_bloom.build_alibi_tensor(ones, count, torch.float64).view(BATCH, count, 1, length),
        modeling_mpt.build_mpt_alibi_tensor(count, length)[None],
    ):
        ours = causal_weights(scores, bias.to(dtype))
        check(ledger, ours, [scores], causal_weights(copied, theirs), [copied], within)


@pytest.mark.verifies(
    "course_lib.positions.alibi_bias", against="Hugging Face BLOOM and MPT, after the softmax"
)
@pytest.mark.verifies(
    "course_lib.positions.AlibiBias", against="Hugging Face BLOOM and MPT, after the softmax"
)
@pytest.mark.parametrize("count", [1, 4, 6, 12])
@pytest.mark.parametrize("dtype", DTYPES)
def test_alibi_causal_weights_equal_bloom_and_mpt(ledger, dtype, count):
    query = torch.zeros(BATCH, count, 9, D_HEAD, dtype=dtype)
    check_alibi(ledger, alibi_bias(count, 9), count, dtype, 1e-6)
    check_alibi(ledger, AlibiBias(count).bias(query, 9), count, dtype, 1e-6)


def test_wrong_alibi_biases_are_detected(ledger):
    with pytest.raises(AssertionError, match="differs from the oracle"):
        check_alibi(ledger, -alibi_bias(6, 9), 6, torch.float64, 1e-6)
    with pytest.raises(AssertionError, match="differs from the oracle"):
        check_alibi(ledger, alibi_bias(6, 9).flip(0), 6, torch.float64, 1e-6)
    with pytest.raises(AssertionError, match="differs from the oracle"):
        check_alibi(ledger, alibi_bias(6, 9).flip(-1), 6, torch.float64, 1e-6)


def test_alibi_has_no_parameters_and_no_state():
    positions = AlibiBias(HEADS)
    assert not learned(positions) and not positions.state_dict()
