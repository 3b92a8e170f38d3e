"""Masks and the masked softmax against plain loops, SciPy and PyTorch's own attention and masked softmax."""

import numpy as np
import pytest
import scipy.special
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from course_lib.transformer.masks import (
    causal_mask,
    combine_masks,
    from_additive,
    masked_softmax,
    padding_mask,
    padding_mask_from_tokens,
    to_additive,
)
from tests.helpers.tensors import DTYPES, all_true

ROUNDING = {torch.float64: 1e-12, torch.float32: 1e-5}


# --- masked_softmax --------------------------------------------------------------------------


def by_scipy(scores, mask, dim, upstream):
    """SciPy's softmax of the entries that are not masked, and the gradient w (g - Σ w g), row by row."""
    scores, upstream = (t.detach().double().movedim(dim, -1).numpy() for t in (scores, upstream))
    visible = np.moveaxis(
        np.broadcast_to(mask.numpy(), np.moveaxis(scores, -1, dim).shape), dim, -1
    )
    weights, gradient = np.zeros(scores.shape), np.zeros(scores.shape)
    for row in np.ndindex(scores.shape[:-1]):
        seen = visible[row]
        if seen.any():
            w, g = scipy.special.softmax(scores[row][seen]), upstream[row][seen]
            weights[row][seen], gradient[row][seen] = w, w * (g - (w * g).sum())
    return tuple(torch.from_numpy(array).movedim(-1, dim) for array in (weights, gradient))


@st.composite
def cases(draw):
    """Scores of one to four axes, a mask of as many or fewer, some of length 1, or none, and an axis."""
    shape = draw(st.lists(st.sampled_from([3, 5, 2, 4, 1]), min_size=1, max_size=4))
    mask_shape = [
        draw(st.sampled_from([length, length, 1]))
        for length in shape[draw(st.sampled_from([0, 0, 1, len(shape)])) :]
    ]
    seed = torch.Generator().manual_seed(draw(st.integers(0, 1000)))
    mask = torch.rand(mask_shape, generator=seed) < draw(st.sampled_from([0.6, 0.3, 0.9]))
    scores, upstream = torch.randn(2, *shape, generator=seed, dtype=torch.float64)
    mask = draw(st.sampled_from([mask, mask, None]))
    return scores, mask, draw(st.integers(-len(shape), len(shape) - 1)), upstream


@pytest.mark.verifies(
    "course_lib.transformer.masks.masked_softmax", against="SciPy `softmax` of the visible entries"
)
@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=60)
@given(case=cases(), offset=st.sampled_from([0.0, 1000.0, -1000.0]))
def test_masked_softmax_equals_scipy(ledger, dtype, case, offset):
    scores, mask, dim, upstream = case
    hidden = torch.zeros(()) > 0 if mask is None else ~mask
    scores = (scores + offset).to(dtype).requires_grad_()  # exp(1000) is infinity
    ours = masked_softmax(scores, mask, dim)
    (slope,) = torch.autograd.grad(ours, scores, upstream.to(dtype))
    weights, gradient = by_scipy(scores, ~hidden, dim, upstream)
    ledger.compare(ours, weights, within=ROUNDING[dtype])
    ledger.compare(slope, gradient, within=ROUNDING[dtype], backward=True)
    assert (ours[hidden.expand(ours.shape)] == 0).all()  # exactly


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("dim", [-1, 0])
def test_masked_softmax_of_a_fully_masked_row_is_zero(dtype, dim):
    scores = torch.randn(4, 6, dtype=dtype, requires_grad=True)
    mask = all_true(4, 6)
    rows = 1 + dim  # the axis that tells the rows apart: the one along which nothing is shared
    mask.select(rows, 2).fill_(False)
    weights = masked_softmax(scores, mask, dim)
    with torch.autograd.set_detect_anomaly(True):  # no NaN on the way either
        weights.backward(torch.randn(4, 6).to(dtype))
    assert weights.dtype == dtype
    for tensor in (weights, scores.grad):
        assert tensor.isfinite().all()
        assert (tensor.select(rows, 2) == 0).all()
        assert (tensor.select(rows, 1) != 0).any()


@pytest.mark.parametrize("masked", [False, True])
def test_a_row_of_minus_infinity_counts_as_fully_masked(masked):
    scores = torch.tensor([[-torch.inf, -torch.inf], [0.0, -torch.inf]], requires_grad=True)
    mask = torch.tensor([[True, False], [True, True]]) if masked else None
    weights = masked_softmax(scores, mask)
    assert weights.tolist() == [[0, 0], [1, 0]]
    weights.sum().backward()
    assert scores.grad.tolist() == [[0, 0], [0, 0]]


def test_masked_softmax_of_no_keys_and_of_one_masked_key():
    assert masked_softmax(torch.zeros(2, 3, 0)).shape == (2, 3, 0)
    assert masked_softmax(torch.zeros(1, 1), torch.tensor([[False]])).tolist() == [[0.0]]


@pytest.mark.parametrize("junk", [torch.nan, torch.inf, -torch.inf, 3e38])
@pytest.mark.parametrize("mask", [torch.arange(24).reshape(4, 6) % 3 > 0, ~all_true(4, 6)])
def test_masked_softmax_ignores_masked_scores(junk, mask):
    clean, upstream = torch.randn(2, 4, 6), torch.randn(2, 4, 6)
    junked = clean.masked_fill(~mask, junk).requires_grad_()
    weights = masked_softmax(junked, mask)
    weights.backward(upstream)
    assert torch.equal(weights, masked_softmax(clean, mask))
    assert junked.grad.isfinite().all() and (junked.grad[:, ~mask] == 0).all()


def test_masked_softmax_with_very_low_scores():
    scores = torch.tensor([-3e38, 0.0, -3e38, 3e38])  # below any "large negative number"
    mask = torch.tensor([True, False, True, False])
    assert masked_softmax(scores, mask).tolist() == [0.5, 0, 0.5, 0]


def test_masked_softmax_passes_on_nan():
    scores, mask = torch.tensor([[torch.nan, 1.0, 2.0], [0.0, 1.0, 2.0]]), all_true(2, 3).tril(1)
    for weights in (masked_softmax(scores), masked_softmax(scores, mask)):
        assert weights[0, :2].isnan().all() and weights[1].sum() == 1


# --- the masks -------------------------------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.transformer.masks.padding_mask", against="an explicit double loop"
)
@settings(max_examples=60)
@given(
    lengths=st.lists(st.integers(0, 6), min_size=1, max_size=5),
    extra=st.none() | st.integers(0, 3),
    dtype=st.sampled_from([torch.int64, torch.int32, torch.int8]),
)
def test_padding_mask_equals_a_double_loop(ledger, lengths, extra, dtype):
    width = max(lengths) + (extra or 0)
    theirs = [[[key < length for key in range(width)]] for length in lengths]
    ours = padding_mask(torch.tensor(lengths, dtype=dtype), None if extra is None else width)
    assert ours.dtype == torch.bool and ours.shape == (len(lengths), 1, width)
    assert ours.tolist() == theirs
    ledger.holds()


@pytest.mark.verifies(
    "course_lib.transformer.masks.padding_mask_from_tokens", against="an explicit double loop"
)
@pytest.mark.parametrize("pad_id", [0, 3, -100])
def test_padding_mask_from_tokens_equals_a_double_loop(ledger, pad_id):
    tokens = torch.tensor([[pad_id, 5, 0, 3], [7, pad_id, 1, pad_id], [4, 4, 4, 4]])
    ours = padding_mask_from_tokens(tokens, pad_id)
    assert ours.dtype == torch.bool
    assert ours.tolist() == [[[token != pad_id for token in row]] for row in tokens.tolist()]
    ledger.holds()


@pytest.mark.verifies("course_lib.transformer.masks.causal_mask", against="an explicit double loop")
@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (4, 4), (3, 7), (1, 5), (5, None)])
def test_causal_mask_equals_a_double_loop(ledger, queries, keys):
    ours = causal_mask(queries, keys)
    keys = queries if keys is None else keys
    positions = range(keys - queries, keys)  # of the queries: they are the last of the keys
    assert ours.dtype == torch.bool
    assert ours.tolist() == [[key <= position for key in range(keys)] for position in positions]
    ledger.holds()


@pytest.mark.verifies(
    "course_lib.transformer.masks.combine_masks", against="an explicit double loop"
)
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0)])
def test_combine_masks_equals_a_double_loop(ledger, order):
    padding, causal, drawn = padding_mask(torch.tensor([5, 3])), causal_mask(5), torch.rand(5) < 0.8
    ours = combine_masks(*((padding, None, causal, drawn)[i] for i in order))
    theirs = [
        [
            [key < length and key <= query and drawn[key].item() for key in range(5)]
            for query in range(5)
        ]
        for length in (5, 3)
    ]
    assert ours.dtype == torch.bool and ours.tolist() == theirs
    ledger.holds()


def test_combine_masks_of_none_is_none():
    assert combine_masks() is None and combine_masks(None, None) is None
    assert torch.equal(combine_masks(None, all_true(3)), all_true(3))


# --- additive masks --------------------------------------------------------------------------

ADDABLE = [torch.float32, torch.float16]


@pytest.mark.verifies(
    "course_lib.transformer.masks.to_additive",
    "course_lib.transformer.masks.from_additive",
    against="PyTorch `generate_square_subsequent_mask`",
)
@pytest.mark.parametrize("dtype", ADDABLE)
def test_additive_causal_mask_equals_pytorch(ledger, dtype):
    theirs = nn.Transformer.generate_square_subsequent_mask(6, dtype=dtype)
    assert torch.equal(to_additive(causal_mask(6), dtype), theirs)
    assert torch.equal(from_additive(theirs), causal_mask(6))
    ledger.holds()


@pytest.mark.verifies(
    "course_lib.transformer.masks.from_additive", against="the weights that adding leaves"
)
@pytest.mark.parametrize("low", [-np.inf, -1e9, -1e4, "lowest"])
@pytest.mark.parametrize("dtype", ADDABLE)
def test_from_additive_accepts_large_negative_numbers(ledger, dtype, low):
    low = torch.finfo(dtype).min if low == "lowest" else low
    added = torch.zeros(4, 5, dtype=dtype)
    added[1, 3], added[2, 0], added[3, 4] = low, low, -np.inf
    left = torch.softmax(torch.randn(4, 5).to(dtype) + added, -1)
    assert torch.equal(from_additive(added), left > 0)
    assert from_additive(torch.tensor([-0.0], dtype=dtype)).all()
    ledger.holds()


# --- compiled --------------------------------------------------------------------------------

SCORED, TOKENS = torch.randn(2, 3, 4, 5), torch.tensor([[4, 7, 0], [3, 0, 0]])
COMPILED = {
    "padding_mask": (padding_mask, torch.tensor([5, 3, 0]), 6),
    "padding_mask_from_tokens": (padding_mask_from_tokens, TOKENS, 0),
    "causal_mask": (causal_mask, 4, 6),
    "combine_masks": (combine_masks, causal_mask(5), None, padding_mask(torch.tensor([5, 3]))),
    "to_additive": (to_additive, causal_mask(5), torch.float16),
    "from_additive": (from_additive, to_additive(causal_mask(5))),
    "masked_softmax without a mask": (masked_softmax, SCORED),
    "masked_softmax, padding": (masked_softmax, SCORED, padding_mask(torch.tensor([4, 0]), 5)[:, None]),
    "masked_softmax along another axis": (masked_softmax, SCORED, padding_mask(torch.tensor([4]), 5), 1),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPILED)
def test_compile_masks_as_one_graph(as_one_graph, name):
    function, *arguments = COMPILED[name]
    assert torch.equal(as_one_graph(function)(*arguments), function(*arguments))


def test_compile_masked_softmax_with_its_gradient(as_one_graph):
    mask = padding_mask(torch.tensor([4, 0]), 5)[:, None]  # a fully masked sequence
    scores = SCORED.masked_fill(~mask, torch.nan).requires_grad_()
    upstream = torch.randn_like(SCORED)
    gradients = [
        torch.autograd.grad(function(scores, mask), scores, upstream)[0]
        for function in (as_one_graph(masked_softmax), masked_softmax)
    ]
    assert torch.equal(*gradients) and gradients[0].isfinite().all()
