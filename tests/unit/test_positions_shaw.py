"""Relative positions of Shaw and others (2018) against their equations and Wav2Vec2-BERT."""

import math
from types import SimpleNamespace

import pytest
import torch

from course_lib.topics.profiling import peak_memory
from course_lib.transformer.masks import causal_mask
from course_lib.transformer.positions import ShawRelativePositions, relative_positions
from tests.helpers.positions import D_HEAD, HEADS, LENGTH, heads, learned
from tests.helpers.tensors import DTYPES, ROUNDING, check, in_float64


def row(j, i, m):
    return max(-m, min(m, j - i)) + m


def vectors(table, queries, keys, m):
    """The (query, key, d_head) tensor that the paper says need not be built."""
    first = keys - queries
    return torch.stack(
        [torch.stack([table[row(j, first + i, m)] for j in range(keys)]) for i in range(queries)]
    )


def by_equations(q, k, v, key_table, value_table, m, mask=None):
    """Equations 3 to 5, with all vectors written out."""
    shape = q.shape[-2], k.shape[-2]
    for_keys, for_values = (vectors(table, *shape, m) for table in (key_table, value_table))
    scores = (q[..., :, None, :] * (k[..., None, :, :] + for_keys)).sum(-1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    weights = scores.softmax(-1)
    return (weights[..., None] * (v[..., None, :, :] + for_values)).sum(-2), weights


@pytest.mark.verifies(
    "course_lib.transformer.positions.ShawRelativePositions",
    against="a direct evaluation of equations 3 to 5",
)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (LENGTH, LENGTH), (3, 7)])
@pytest.mark.parametrize("m", [1, 16])
@pytest.mark.parametrize("dtype", DTYPES)
def test_shaw_attention_equals_its_equations(ledger, dtype, m, queries, keys, causal):
    positions = ShawRelativePositions(D_HEAD, m).to(dtype)
    lengths = (queries, keys, keys)
    leaves = [heads(HEADS, n, D_HEAD, dtype=dtype) for n in lengths]
    leaves += [positions.key, positions.value]
    oracles, mask = in_float64(*leaves), causal_mask(queries, keys) if causal else None
    ours = positions.attend(*leaves[:3], mask, need_weights=True)
    assert positions.attend(*leaves[:3], mask).weights is None
    theirs = by_equations(*oracles, m, mask)
    ledger.compare(ours[1], theirs[1], within=ROUNDING[dtype])
    check(ledger, ours[0], leaves, theirs[0], oracles, ROUNDING[dtype])


def test_shaw_attention_never_builds_a_vector_per_pair():
    positions, length = ShawRelativePositions(64), 256
    q, k, v = (torch.randn(1, 1, length, 64) for _ in range(3))
    which = relative_positions(length, length).clamp(-16, 16) + 16

    def direct():
        for_keys, for_values = positions.key[which], positions.value[which]  # (query, key, d_head)
        scores = q @ k.mT / 8 + torch.einsum("bhqd,qkd->bhqk", q, for_keys) / 8
        weights = scores.softmax(-1)
        return weights @ v + torch.einsum("bhqk,qkd->bhqd", weights, for_values)

    def ours():
        return positions.attend(q, k, v).output

    with torch.no_grad():
        assert peak_memory(ours) < peak_memory(direct) / 8
    assert peak_memory(lambda: ours().sum().backward()) < peak_memory(direct) / 4


def test_shaw_parameters():
    positions = ShawRelativePositions(200, 50)
    assert learned(positions) == {"key": (101, 200), "value": (101, 200)}
    for table in (positions.key, positions.value):
        assert table.std().item() == pytest.approx(1 / math.sqrt(200), rel=0.05)
    assert not torch.equal(positions.key, positions.value)


@pytest.mark.verifies(
    "course_lib.transformer.positions.ShawRelativePositions",
    against="Hugging Face Wav2Vec2-BERT, relative keys",
)
@pytest.mark.parametrize("m", [1, 9])
@pytest.mark.parametrize("dtype", DTYPES)
def test_shaw_key_bias_equals_wav2vec2_bert(ledger, dtype, m):
    from transformers.models.wav2vec2_bert import modeling_wav2vec2_bert as wav2vec2_bert

    positions = ShawRelativePositions(D_HEAD, m).to(dtype)
    query = heads(HEADS, 7, D_HEAD, dtype=dtype)
    oracles = in_float64(query, positions.key)
    like = SimpleNamespace(
        left_max_position_embeddings=m,
        right_max_position_embeddings=m,
        distance_embedding=lambda which: oracles[1][which],
        scaling=D_HEAD**-0.5,
    )
    _, theirs = wav2vec2_bert._apply_relative_key_position_encoding(like, oracles[0], oracles[0])
    ours = positions.bias(query, 7)
    check(ledger, ours, [query, positions.key], theirs, oracles, ROUNDING[dtype])
