"""Scores and attention against an explicit double loop, PyTorch's layers, SciPy, statsmodels."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from statsmodels.nonparametric.kernel_regression import KernelReg
from torch import Tensor, nn

from course_lib.transformer.attention import Attention, attend
from course_lib.transformer.scoring import (
    AdditiveScore,
    ConcatScore,
    DotScore,
    GaussianScore,
    GeneralScore,
    ScaledDotScore,
)
from tests.helpers.tensors import DTYPES, HALVES, in_float64, random_mask, without_second_query

ROUNDING = {torch.float64: 1e-12, torch.float32: 1e-5}

# No two axes are equally long, so that none can be taken for another.
QUERIES, KEYS, QUERY_SIZE, KEY_SIZE, HIDDEN, VALUE_SIZE = 4, 5, 6, 7, 8, 9
BATCHES = [((), ()), ((2, 1), (1, 3)), ((3,), (2, 3))]


class Row(NamedTuple):
    """A score: how the tests make it, and what its paper writes for one query and one key.

    Attributes:
        make: () → the score, for queries of QUERY_SIZE and keys of `key_size` components.
        formula: (q, k, its parameters in their order) → the score of one pair.
        verifies: what the loop over pairs is an oracle of.
        key_size: QUERY_SIZE where both must be equal.
    """

    make: Callable[[], nn.Module]
    formula: Callable[..., Tensor]
    verifies: pytest.MarkDecorator
    key_size: int = KEY_SIZE


def gaussian(q, k, log_h):
    return -((q - k) ** 2).sum() / (2 * torch.exp(log_h) ** 2)


#: Every test of this file takes the scores from here; a new score needs one row.
SCORES = {
    "dot": Row(
        DotScore,
        lambda q, k: (q * k).sum(),
        pytest.mark.verifies("course_lib.transformer.scoring.DotScore", against="an explicit double loop"),
        key_size=QUERY_SIZE,
    ),
    "scaled": Row(
        ScaledDotScore,
        lambda q, k: (q * k).sum() / math.sqrt(len(q)),
        pytest.mark.verifies("course_lib.transformer.scoring.ScaledDotScore", against="an explicit double loop"),
        key_size=QUERY_SIZE,
    ),
    "general": Row(
        lambda: GeneralScore(QUERY_SIZE, KEY_SIZE),
        lambda q, k, W: q @ (W @ k),
        pytest.mark.verifies("course_lib.transformer.scoring.GeneralScore", against="an explicit double loop"),
    ),
    "concat": Row(
        lambda: ConcatScore(QUERY_SIZE, KEY_SIZE, HIDDEN),
        lambda q, k, W, v: v[0] @ torch.tanh(W @ torch.cat([q, k])),
        pytest.mark.verifies("course_lib.transformer.scoring.ConcatScore", against="an explicit double loop"),
    ),
    "additive": Row(
        lambda: AdditiveScore(QUERY_SIZE, KEY_SIZE, HIDDEN),
        lambda q, k, W, U, v: v[0] @ torch.tanh(W @ q + U @ k),
        pytest.mark.verifies("course_lib.transformer.scoring.AdditiveScore", against="an explicit double loop"),
    ),
    "gaussian": Row(
        lambda: GaussianScore(1.7),
        gaussian,
        pytest.mark.verifies("course_lib.transformer.scoring.GaussianScore", against="an explicit double loop"),
        key_size=QUERY_SIZE,
    ),
}  # fmt: skip


def pair_for(name, query_batch=(), key_batch=(), dtype=torch.float64):
    key_size = SCORES[name].key_size
    query = torch.randn(*query_batch, QUERIES, QUERY_SIZE, dtype=dtype, requires_grad=True)
    key = torch.randn(*key_batch, KEYS, key_size, dtype=dtype, requires_grad=True)
    return query, key


def compare_gradients(ledger, ours, leaves, theirs, oracles, within):
    """Hold the gradient of one random mixture of the outputs against the oracle's, leaf by leaf."""
    mix = torch.randn(ours.shape, dtype=torch.float64)
    mine = torch.autograd.grad(ours, leaves, mix.to(ours.dtype))
    for gradient, oracle in zip(mine, torch.autograd.grad(theirs, oracles, mix, True), strict=True):
        ledger.compare(gradient, oracle, within=within, backward=True)


# --- every score, one pair at a time ---------------------------------------------------------


def by_double_loop(name, query, key, parameters):
    batch = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2])
    query, key = (t.expand(*batch, *t.shape[-2:]) for t in (query, key))
    scores = [
        SCORES[name].formula(q, k, *parameters)
        for place in np.ndindex(*batch)
        for q in query[place]
        for k in key[place]
    ]
    return torch.stack(scores).reshape(*batch, QUERIES, KEYS)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("query_batch", "key_batch"), BATCHES)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=row.verifies) for name, row in SCORES.items()]
)
def test_every_score_is_its_formula_one_pair_at_a_time(ledger, name, query_batch, key_batch, dtype):
    score = SCORES[name].make().to(dtype)
    query, key = pair_for(name, query_batch, key_batch, dtype)
    leaves = [query, key, *score.parameters()]
    oracles = in_float64(*leaves)
    ours, theirs = score(query, key), by_double_loop(name, *oracles[:2], oracles[2:])
    assert ours.dtype == dtype
    ledger.compare(ours, theirs, within=ROUNDING[dtype])
    compare_gradients(ledger, ours, leaves, theirs, oracles, 10 * ROUNDING[dtype])


# --- attend and Attention --------------------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.transformer.attention.attend",
    "course_lib.transformer.attention.Attention",
    "course_lib.transformer.scoring.ScaledDotScore",
    against="PyTorch `F.scaled_dot_product_attention`",
)
@pytest.mark.parametrize("mask_axes", [None, (QUERIES, KEYS), (2, 1, QUERIES, KEYS)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_attention_with_the_scaled_dot_score_is_that_of_pytorch(ledger, dtype, mask_axes):
    query, key = pair_for("scaled", (2, 3), (1, 3), dtype)
    value = torch.randn(2, 1, KEYS, VALUE_SIZE, dtype=dtype, requires_grad=True)
    mask = without_second_query(random_mask(*mask_axes)) if mask_axes else None
    leaves = [query, key, value]
    oracles = in_float64(*leaves)
    expanded = (tensor.expand(2, 3, -1, -1) for tensor in oracles)
    theirs = F.scaled_dot_product_attention(*expanded, mask)
    by_hand = attend(ScaledDotScore()(query, key), value, mask)
    for ours in (Attention(ScaledDotScore())(*leaves, mask), by_hand):
        ledger.compare(ours.output, theirs, within=ROUNDING[dtype])
        compare_gradients(ledger, ours.output, leaves, theirs, oracles, ROUNDING[dtype])


@pytest.mark.verifies(
    "course_lib.transformer.attention.Attention", against="statsmodels `KernelReg`"
)
@pytest.mark.parametrize("size", [1, 2])
def test_attention_with_the_gaussian_score_is_kernel_regression(ledger, size):
    attention = Attention(GaussianScore(0.6)).double()
    h = attention.score.log_bandwidth.exp().item()
    assert h == pytest.approx(0.6, rel=1e-6)  # the parameter was made in float32
    query, key, value = (torch.randn(n, m).double() for n, m in ((4, size), (30, size), (30, 1)))
    oracle = KernelReg(
        value.numpy()[:, 0], key.numpy(), "c" * size, reg_type="lc", bw=[h] * size, rng=0
    )
    ours = attention(query, key, value).output[:, 0]
    ledger.compare(ours, oracle.fit(query.numpy())[0], within=1e-12)


# --- dropout ---------------------------------------------------------------------------------


def test_dropout_acts_only_in_training():
    scores, value = torch.randn(QUERIES, KEYS), torch.randn(KEYS, VALUE_SIZE)
    plain = attend(scores, value)
    torch.testing.assert_close(attend(scores, value, dropout=0.9), plain, rtol=0, atol=0)
    torch.testing.assert_close(attend(scores, value, training=True), plain, rtol=0, atol=0)
    attention, pair = Attention(DotScore(), dropout=0.5), pair_for("dot", dtype=torch.float32)
    undropped = Attention(DotScore())(*pair, value)
    torch.testing.assert_close(attention.eval()(*pair, value), undropped, rtol=0, atol=0)
    training = attention.train()(*pair, value)
    assert not torch.equal(training.output, undropped.output)
    assert torch.equal(training.weights, undropped.weights)


# --- as modules ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCORES)
def test_compile_attention_as_one_graph(as_one_graph, name):
    attention, mask = (
        Attention(SCORES[name].make()),
        without_second_query(random_mask(QUERIES, KEYS)),
    )
    given = *pair_for(name, (2, 1), (3,), torch.float32), torch.randn(KEYS, VALUE_SIZE), mask
    ours, eager = as_one_graph(attention)(*given).output, attention(*given).output
    torch.testing.assert_close(ours, eager)
    gradients = [torch.autograd.grad(output.sum(), given[:2]) for output in (ours, eager)]
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", SCORES)
def test_half_precision_works(name, dtype):
    attention = Attention(SCORES[name].make().to(dtype))
    tensors = *pair_for(name, (2,), (2,), dtype), torch.randn(2, KEYS, VALUE_SIZE, dtype=dtype)
    mask = without_second_query(random_mask(QUERIES, KEYS))
    half = attention(*tensors, mask)
    with torch.autocast("cpu", dtype):  # which may mix the dtypes
        assert Attention(SCORES[name].make())(*tensors).output.isfinite().all()
    exact = attention.double()(*(tensor.double() for tensor in tensors), mask)
    assert half.output.dtype == half.weights.dtype == dtype
    torch.testing.assert_close(half.output.double(), exact.output, rtol=0, atol=0.1)
