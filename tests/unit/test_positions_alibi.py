"""ALiBi against the code of its authors, BLOOM and MPT."""

import pytest
import torch

from course_lib.transformer.positions import AlibiBias, alibi_bias, alibi_slopes
from tests.helpers.positions import BATCH, D_HEAD, biases, of_the_authors
from tests.helpers.tensors import DTYPES

HEAD_COUNTS = [*range(1, 18), 31, 33, 64, 112]


def of_bloom(n):
    from transformers.models.bloom import modeling_bloom

    return modeling_bloom.build_alibi_tensor(torch.ones(1, 2), n, torch.float32)[:, 0, 1]


def of_mpt(n):
    from transformers.models.mpt import modeling_mpt

    return -modeling_mpt.build_mpt_alibi_tensor(n, 2)[:, 0, 0]


SLOPES = [
    pytest.param(of_the_authors, marks=pytest.mark.verifies("course_lib.transformer.positions.alibi_slopes", against="the code of its authors")),
    pytest.param(of_bloom, marks=pytest.mark.verifies("course_lib.transformer.positions.alibi_slopes", against="Hugging Face BLOOM `build_alibi_tensor`")),
    pytest.param(of_mpt, marks=pytest.mark.verifies("course_lib.transformer.positions.alibi_slopes", against="Hugging Face MPT `build_mpt_alibi_tensor`")),
]  # fmt: skip


@pytest.mark.parametrize("oracle", SLOPES)
def test_alibi_slopes_equal_other_implementations(ledger, oracle):
    for count in HEAD_COUNTS:
        theirs = torch.as_tensor(oracle(count), dtype=torch.float64)
        ledger.compare(alibi_slopes(count), theirs, within=1e-7)


@pytest.mark.verifies("course_lib.transformer.positions.alibi_bias", against="an explicit loop")
@pytest.mark.verifies("course_lib.transformer.positions.AlibiBias", against="an explicit loop")
@pytest.mark.parametrize("count", [1, 6, 8])
@pytest.mark.parametrize(("queries", "keys"), [(5, 5), (3, 7)])
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
