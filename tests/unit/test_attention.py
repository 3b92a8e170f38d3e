"""Scaled dot-product attention and single heads against explicit loops, NumPy, PyTorch's layers and SciPy."""

import math

import numpy as np
import pytest
import scipy.stats
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

from course_lib import pooling
from course_lib.attention import (
    Attended,
    CrossAttention,
    SelfAttention,
    SingleHeadAttention,
    entropy,
    mean_distance,
    record_attention,
    scaled_dot_product_attention,
)
from course_lib.multihead import MultiHeadAttention, PerHeadMultiHead
from course_lib.recurrent import BahdanauDecoder, GRUEncoder, Seq2Seq
from course_lib.scoring import Attention, DotScore

DTYPES = [torch.float64, torch.float32]
HALVES = [torch.float16, torch.bfloat16]
ROUNDING = {torch.float64: 1e-10, torch.float32: 1e-5}
# The ledger collects over all examples, and every example is quick.
COLLECTS = settings(
    deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

# No two axes are equally long, so that none can be taken for another.
BATCH, HEADS, QUERIES, KEYS, SIZE, VALUE_SIZE = 2, 3, 4, 5, 6, 7
D_MODEL, D_HEAD = 8, 9


def yes(*shape):
    return torch.ones(shape, dtype=torch.bool)


def drawn(*shape):
    """A random mask in which every query sees the first key."""
    mask = torch.rand(shape) < 0.6
    mask[..., 0] = True
    return mask


def without_second_query(mask):
    """The second query sees nothing."""
    mask[..., 1, :] = False
    return mask


def causal():
    return torch.tensor([[k <= q + KEYS - QUERIES for k in range(KEYS)] for q in range(QUERIES)])


def padding():
    return torch.tensor([[[[k < length for k in range(KEYS)]]] for length in (5, 3)])


MASKS = {
    "none": lambda: None,
    "padding": padding,
    "causal": causal,
    "both": lambda: padding() & causal(),
    "(query, key)": lambda: drawn(QUERIES, KEYS),
    "(query, 1)": lambda: without_second_query(yes(QUERIES, 1)),
    "per sequence": lambda: drawn(BATCH, 1, QUERIES, KEYS),
    "per head": lambda: drawn(BATCH, HEADS, QUERIES, KEYS),
    "a lonely query": lambda: without_second_query(drawn(HEADS, QUERIES, KEYS)),
    "nobody": lambda: ~yes(QUERIES, KEYS),
}


def triple(dtype=torch.float64):
    """Queries, keys and values of every head."""
    sizes = ((QUERIES, SIZE), (KEYS, SIZE), (KEYS, VALUE_SIZE))
    return [torch.randn(BATCH, HEADS, *size, dtype=dtype, requires_grad=True) for size in sizes]


def in_float64(*tensors):
    return [tensor.detach().double().requires_grad_() for tensor in tensors]


def gradients(attended, leaves, mixes):
    """Of one random mixture of the output and, where there are any, the weights."""
    given = [tensor for tensor in attended if tensor is not None]
    mixture = sum((tensor * mix.to(tensor)).sum() for tensor, mix in zip(given, mixes, strict=True))
    return torch.autograd.grad(mixture, leaves, materialize_grads=True)


def hold(ledger, ours, leaves, theirs, oracles, dtype):
    """Hold output, weights and every gradient against an oracle in float64."""
    theirs = Attended(theirs.output, None if ours.weights is None else theirs.weights)
    given = [tensor for tensor in theirs if tensor is not None]
    mixes = [torch.randn(tensor.shape, dtype=torch.float64) for tensor in given]
    for mine, oracle in zip(ours, theirs, strict=True):
        if oracle is not None:
            assert mine.dtype == dtype
            ledger.compare(mine, oracle, within=ROUNDING[dtype])
    pairs = zip(gradients(ours, leaves, mixes), gradients(theirs, oracles, mixes), strict=True)
    for mine, oracle in pairs:
        ledger.compare(mine, oracle, within=ROUNDING[dtype], backward=True)


# --- the function ----------------------------------------------------------------------------


def by_double_loop(query, key, value, mask=None, scale=None, bias=None):
    """Equation 1, one query and one key at a time."""
    batch = torch.broadcast_shapes(*(tensor.shape[:-2] for tensor in (query, key, value)))
    query, key, value = (t.expand(*batch, *t.shape[-2:]) for t in (query, key, value))
    queries, keys = query.shape[-2], key.shape[-2]
    mask = (yes() if mask is None else mask).expand(*batch, queries, keys)
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    bias = query.new_zeros(()) if bias is None else bias
    bias = bias.expand(*batch, queries, keys)
    rows, outputs = [], []
    for *where, i in np.ndindex(*batch, queries):
        powers = [
            torch.exp(scale * sum(query[*where, i] * key[*where, j]) + bias[*where, i, j])
            if mask[*where, i, j]
            else query.new_zeros(())
            for j in range(keys)
        ]
        total = sum(powers) if mask[*where, i].any() else 1
        row = [power / total for power in powers]
        rows.append(torch.stack(row))
        outputs.append(sum(row[j] * value[*where, j] for j in range(keys)))
    return Attended(
        torch.stack(outputs).reshape(*batch, queries, -1),
        torch.stack(rows).reshape(*batch, queries, keys),
    )


def by_pytorch(query, key, value, mask=None, scale=None):
    """PyTorch returns no weights: they are what it makes of the identity in place of the values."""
    identity = torch.eye(key.shape[-2], dtype=key.dtype).expand(*key.shape[:-1], -1)
    output, weights = (
        F.scaled_dot_product_attention(query, key, values, mask, scale=scale)
        for values in (value, identity)
    )
    return Attended(output, weights)


@pytest.mark.verifies(
    "course_lib.attention.scaled_dot_product_attention", against="an explicit double loop"
)
@pytest.mark.verifies("course_lib.attention.Attended", against="an explicit double loop")
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_attention_compares_and_averages_one_query_at_a_time(ledger, dtype, mask, need_weights):
    leaves, mask = triple(dtype), MASKS[mask]()
    oracles = in_float64(*leaves)
    ours = scaled_dot_product_attention(*leaves, mask, need_weights=need_weights)
    assert isinstance(ours, Attended) and (ours.weights is not None) == need_weights
    hold(ledger, ours, leaves, by_double_loop(*oracles, mask), oracles, dtype)


@pytest.mark.verifies(
    "course_lib.attention.scaled_dot_product_attention",
    against="PyTorch `F.scaled_dot_product_attention`",
)
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("scale", [None, 0.3, -1, 0])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_attention_is_that_of_pytorch(ledger, dtype, mask, scale, need_weights):
    leaves, mask = triple(dtype), MASKS[mask]()
    oracles = in_float64(*leaves)
    ours = scaled_dot_product_attention(*leaves, mask, scale=scale, need_weights=need_weights)
    hold(ledger, ours, leaves, by_pytorch(*oracles, mask, scale), oracles, dtype)


@st.composite
def cases(draw):
    """Queries, keys and values of up to two more axes, a mask and a bias that broadcast, and a scale."""
    batch = draw(st.lists(st.sampled_from([2, 3, 1]), max_size=2))
    queries, keys, size, value_size = (draw(st.integers(1, 4)) for _ in range(4))
    seed = torch.Generator().manual_seed(draw(st.integers(0, 1000)))

    def part(*shape, least):
        """Some of the axes in front left out, some of length 1."""
        left_out = draw(st.integers(0, len(shape) - least))
        short = st.sampled_from([False, False, True])
        return [
            1 if place < len(shape) - least and draw(short) else shape[place]
            for place in range(left_out, len(shape))
        ]

    tensors = [
        torch.randn(part(*batch, *shape, least=2), generator=seed, dtype=torch.float64)
        for shape in ((queries, size), (keys, size), (keys, value_size))
    ]
    full = torch.broadcast_shapes(*(tensor.shape[:-2] for tensor in tensors[:2]))
    mask_shape = part(*full, queries, keys, least=2)
    short = draw(st.sampled_from([(), (-1,), (-2,), (-1, -2)]))
    mask_shape = [1 if i - len(mask_shape) in short else n for i, n in enumerate(mask_shape)]
    mask = torch.rand(mask_shape, generator=seed) < draw(st.sampled_from([0.6, 0.3, 0.9]))
    bias_shape = part(*full, queries, keys, least=draw(st.integers(0, 2)))
    bias = torch.randn(bias_shape, generator=seed, dtype=torch.float64)
    mask, bias = (draw(st.sampled_from([None, tensor])) for tensor in (mask, bias))
    return tensors, mask, draw(st.sampled_from([None, 0.7, -2])), bias


@pytest.mark.verifies(
    "course_lib.attention.scaled_dot_product_attention", against="an explicit double loop"
)
@pytest.mark.parametrize("need_weights", [True, False])
@COLLECTS
@given(case=cases())
def test_whatever_broadcasts_is_attended_to(ledger, need_weights, case):
    tensors, mask, scale, bias = case
    ours = scaled_dot_product_attention(
        *tensors, mask, scale=scale, need_weights=need_weights, bias=bias
    )
    theirs = by_double_loop(*tensors, mask, scale, bias)
    ledger.compare(ours.output, theirs.output, within=1e-12)
    if need_weights:
        # Values alone may have an axis more; the weights are the same all along it.
        ledger.compare(ours.weights.expand(theirs.weights.shape), theirs.weights, within=1e-12)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("mask", [yes(), ~yes(), torch.tensor([True, False, True, True, False])])
def test_a_mask_of_few_axes_is_the_same_for_all_queries(mask, need_weights):
    tensors = triple()
    ours = scaled_dot_product_attention(*tensors, mask, need_weights=need_weights)
    theirs = by_double_loop(*tensors, mask.expand(QUERIES, KEYS))
    torch.testing.assert_close(ours.output, theirs.output)


@pytest.mark.usefixtures("without_annotations")
@pytest.mark.parametrize("need_weights", [True, False])
def test_no_mask_can_differ_along_an_axis_that_the_weights_do_not_have(need_weights):
    query, key, _ = (tensor[0, 0] for tensor in triple())
    value, mask = triple()[2], drawn(BATCH, HEADS, QUERIES, KEYS)  # only the values have heads
    with pytest.raises(ValueError, match=r"mask .* must broadcast to \(query, key\) = \(4, 5\)"):
        scaled_dot_product_attention(query, key, value, mask, need_weights=need_weights)


def test_inputs_are_left_as_they_were():
    tensors = [*triple(), drawn(QUERIES, KEYS)]
    before = [tensor.clone() for tensor in tensors]
    for need_weights in (True, False):
        scaled_dot_product_attention(*tensors, need_weights=need_weights)
    assert all(torch.equal(*pair) for pair in zip(tensors, before, strict=True))


# --- a bias ----------------------------------------------------------------------------------

BIASES = {
    "one number": (),
    "(key,)": (KEYS,),
    "(query, 1)": (QUERIES, 1),
    "(query, key)": (QUERIES, KEYS),
    "per head": (HEADS, QUERIES, KEYS),
    "per sequence": (BATCH, 1, QUERIES, KEYS),
    "per sequence and head": (BATCH, HEADS, QUERIES, KEYS),
    "per head and key": (1, HEADS, 1, KEYS),
}


def with_bias_by_pytorch(query, key, value, mask, scale, bias):
    """PyTorch adds a floating mask to the scores; what the boolean one hides has -inf there."""
    full = bias.expand(*query.shape[:-1], key.shape[-2])
    if mask is not None:
        full = full.masked_fill(~mask, -torch.inf)
    return by_pytorch(query, key, value, full, scale)


def drawn_bias(kind, dtype=torch.float64):
    return (2 * torch.randn(BIASES[kind], dtype=dtype)).requires_grad_()


@pytest.mark.verifies(
    "course_lib.attention.scaled_dot_product_attention", against="an explicit double loop"
)
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("mask", ["none", "both", "a lonely query", "nobody"])
@pytest.mark.parametrize("bias", ["(query, key)", "per head and key", "per sequence and head"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_bias_is_added_to_each_scaled_score(ledger, dtype, bias, mask, need_weights):
    leaves, mask = [*triple(dtype), drawn_bias(bias, dtype)], MASKS[mask]()
    oracles = in_float64(*leaves)
    ours = scaled_dot_product_attention(
        *leaves[:3], mask, need_weights=need_weights, bias=leaves[3]
    )
    theirs = by_double_loop(*oracles[:3], mask, bias=oracles[3])
    hold(ledger, ours, leaves, theirs, oracles, dtype)


@pytest.mark.verifies(
    "course_lib.attention.scaled_dot_product_attention",
    against="PyTorch `F.scaled_dot_product_attention`",
)
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("mask", ["none", "padding", "causal", "(query, 1)", "per head"])
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_bias_is_pytorchs_floating_mask(ledger, dtype, bias, mask, need_weights):
    leaves, mask = [*triple(dtype), drawn_bias(bias, dtype)], MASKS[mask]()
    oracles = in_float64(*leaves)
    ours = scaled_dot_product_attention(
        *leaves[:3], mask, scale=0.3, need_weights=need_weights, bias=leaves[3]
    )
    theirs = with_bias_by_pytorch(*oracles[:3], mask, 0.3, oracles[3])
    hold(ledger, ours, leaves, theirs, oracles, dtype)


@pytest.mark.parametrize("need_weights", [True, False])
def test_a_bias_counts_by_its_differences_within_a_row(need_weights):
    tensors, bias = triple(), drawn_bias("per head")
    plain = scaled_dot_product_attention(*tensors, need_weights=need_weights)
    even = scaled_dot_product_attention(
        *tensors, need_weights=need_weights, bias=torch.randn(HEADS, QUERIES, 1).double()
    )
    torch.testing.assert_close(even, plain)
    one, shifted = (
        scaled_dot_product_attention(*tensors, need_weights=need_weights, bias=b)
        for b in (bias, bias + 3.0)
    )
    torch.testing.assert_close(shifted, one)
    assert not torch.allclose(one.output, plain.output)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, *HALVES])
def test_a_query_that_may_attend_to_nothing_gets_zeros_whatever_the_bias(dtype, need_weights):
    leaves = [*triple(dtype), drawn_bias("per head", dtype)]
    mask = without_second_query(yes(QUERIES, KEYS))
    ours = scaled_dot_product_attention(
        *leaves[:3], mask, need_weights=need_weights, bias=leaves[3]
    )
    with torch.autograd.set_detect_anomaly(True):  # no NaN on the way either
        ours.output.backward(torch.randn(ours.output.shape).to(dtype))
    assert ours.output.dtype == dtype
    for tensor in (ours.output, leaves[0].grad, leaves[3].grad):
        assert tensor.isfinite().all()
        assert (tensor[..., 1, :] == 0).all()
        assert (tensor[..., 2, :] != 0).any()


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("mask", ["none", "both", "a lonely query"])
def test_in_half_precision_a_bias_acts_alike_with_and_without_weights(dtype, mask):
    tensors, bias, mask = triple(dtype), drawn_bias("per head", dtype), MASKS[mask]()
    ours = [
        scaled_dot_product_attention(*tensors, mask, need_weights=need_weights, bias=bias).output
        for need_weights in (True, False)
    ]
    theirs = by_double_loop(*in_float64(*tensors), mask, bias=bias.double()).output
    for output in ours:
        assert output.dtype == dtype
        torch.testing.assert_close(output.double(), theirs, rtol=0, atol=0.05)


@pytest.mark.parametrize("need_weights", [True, False])
def test_a_bias_is_left_as_it_was(need_weights):
    tensors = [*triple(), drawn(QUERIES, KEYS), drawn_bias("(query, key)")]
    before = [tensor.clone() for tensor in tensors]
    scaled_dot_product_attention(*tensors[:4], need_weights=need_weights, bias=tensors[4])
    assert all(torch.equal(*pair) for pair in zip(tensors, before, strict=True))


@pytest.mark.parametrize("need_weights", [True, False])
def test_dropout_drops_weights_that_have_a_bias(need_weights):
    query, key, _ = (tensor[0, 0].detach() for tensor in triple())
    value, bias = torch.eye(KEYS, dtype=torch.float64), drawn_bias("(query, key)").detach()
    weights = by_double_loop(query, key, value, bias=bias).weights
    kept = scaled_dot_product_attention(
        query.expand(50, -1, -1),
        key,
        value,
        dropout=0.5,
        training=True,
        need_weights=need_weights,
        bias=bias,
    ).output
    dropped = kept == 0
    assert 0.4 < dropped.double().mean() < 0.6
    torch.testing.assert_close(kept, (weights / 0.5).expand(kept.shape).masked_fill(dropped, 0))


# --- what is true of attention ---------------------------------------------------------------


@pytest.mark.parametrize("need_weights", [True, False])
def test_pairs_of_keys_and_values_have_no_order(need_weights):
    query, key, value = triple()
    mask, order = drawn(QUERIES, KEYS), torch.randperm(KEYS)
    plain = scaled_dot_product_attention(query, key, value, mask, need_weights=need_weights)
    shuffled = scaled_dot_product_attention(
        query, key[..., order, :], value[..., order, :], mask[:, order], need_weights=need_weights
    )
    torch.testing.assert_close(shuffled.output, plain.output)
    if need_weights:
        torch.testing.assert_close(shuffled.weights, plain.weights[..., order])


@pytest.mark.parametrize("need_weights", [True, False])
def test_queries_do_not_know_of_each_other(need_weights):
    query, key, value = triple()
    plain = scaled_dot_product_attention(query, key, value, need_weights=need_weights).output
    for i in range(QUERIES):
        alone = scaled_dot_product_attention(
            query[..., i : i + 1, :], key, value, need_weights=need_weights
        )
        torch.testing.assert_close(alone.output, plain[..., i : i + 1, :])


@pytest.mark.parametrize("need_weights", [True, False])
def test_longer_padding_and_what_stands_in_it_change_nothing(need_weights):
    query, key, value = triple()
    plain = scaled_dot_product_attention(query, key, value).output
    for room in (1, 4, 11):
        longer = [F.pad(tensor, (0, 0, 0, room), value=1e4) for tensor in (key, value)]
        mask = torch.arange(KEYS + room) < KEYS
        padded = scaled_dot_product_attention(query, *longer, mask[None], need_weights=need_weights)
        torch.testing.assert_close(padded.output, plain)
        if need_weights:
            assert (padded.weights[..., KEYS:] == 0).all()


@pytest.mark.parametrize("need_weights", [True, False])
def test_the_future_never_changes_the_past(need_weights):
    query, key, value = (torch.randn(BATCH, HEADS, KEYS, SIZE) for _ in range(3))
    mask = torch.arange(KEYS)[:, None] >= torch.arange(KEYS)

    def written(key, value):
        return scaled_dot_product_attention(
            query, key, value, mask, need_weights=need_weights
        ).output

    plain = written(key, value)
    for now in range(1, KEYS):
        future = torch.arange(KEYS)[:, None] >= now
        other = written(key.where(~future, 7.0), value.where(~future, -7.0))
        assert torch.equal(other[..., :now, :], plain[..., :now, :])
        assert not torch.allclose(other[..., now, :], plain[..., now, :])


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, *HALVES])
def test_a_query_that_may_attend_to_nothing_gets_zeros_and_no_gradient(
    dtype, need_weights, training
):
    leaves, mask = triple(dtype), without_second_query(yes(QUERIES, KEYS))
    ours = scaled_dot_product_attention(
        *leaves, mask, dropout=0.2, training=training, need_weights=need_weights
    )
    with torch.autograd.set_detect_anomaly(True):  # no NaN on the way either
        ours.output.backward(torch.randn(ours.output.shape).to(dtype))
    assert ours.output.dtype == dtype
    for tensor in (ours.output, leaves[0].grad):
        assert tensor.isfinite().all()
        assert (tensor[..., 1, :] == 0).all()
        assert (tensor[..., 2, :] != 0).any()
    if need_weights:
        assert (ours.weights[..., 1, :] == 0).all()


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, *HALVES])
def test_where_nobody_may_attend_everything_is_zero(dtype, need_weights):
    leaves = triple(dtype)
    ours = scaled_dot_product_attention(*leaves, ~yes(QUERIES, KEYS), need_weights=need_weights)
    mixture = ours.output.sum()
    assert (ours.output == 0).all()
    assert all((gradient == 0).all() for gradient in torch.autograd.grad(mixture, leaves))


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("dtype", [*DTYPES, *HALVES])
def test_with_and_without_weights_the_output_is_the_same(dtype, mask):
    tensors, mask = triple(dtype), MASKS[mask]()
    with_weights = scaled_dot_product_attention(*tensors, mask)
    without = scaled_dot_product_attention(*tensors, mask, need_weights=False)
    near = {} if dtype in DTYPES else {"rtol": 0, "atol": 0.05}
    torch.testing.assert_close(without.output, with_weights.output, **near)


def test_scores_that_fit_once_they_are_scaled_do_not_overflow():
    wide = torch.full((QUERIES, 64), 40.0, dtype=torch.float16)  # 102,400 before the scale
    assert (
        scaled_dot_product_attention(wide, wide, wide, need_weights=False).output.isfinite().all()
    )
    assert scaled_dot_product_attention(wide, wide, wide).output.isfinite().all()


# --- dropout ---------------------------------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.attention.scaled_dot_product_attention",
    against="moments of 20,000 draws of dropout",
)
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("p", [0.1, 0.5])
def test_dropout_keeps_the_mean_of_every_weight(ledger, p, need_weights):
    query, key, _ = (tensor[0, 0].detach() for tensor in triple())
    value = torch.eye(KEYS, dtype=torch.float64)  # returns what dropout keeps
    weights = by_double_loop(query, key, value).weights
    kept, returned = scaled_dot_product_attention(
        query.expand(20_000, -1, -1),
        key,
        value,
        dropout=p,
        training=True,
        need_weights=need_weights,
    )
    dropped = kept == 0
    torch.testing.assert_close(kept, (weights / (1 - p)).expand(kept.shape).masked_fill(dropped, 0))
    ledger.compare(kept.mean(0), weights, within=0.03)
    shares = dropped.double().mean(0)
    assert shares.sub(p).abs().max() < 5 * math.sqrt(p * (1 - p) / 20_000)
    if need_weights:
        torch.testing.assert_close(returned[0], weights)  # as they were before


@pytest.mark.parametrize("need_weights", [True, False])
def test_dropout_acts_only_in_training(need_weights):
    tensors = triple()
    plain = scaled_dot_product_attention(*tensors, need_weights=need_weights)
    for quiet in ({"dropout": 0.9}, {"training": True}):
        ours = scaled_dot_product_attention(*tensors, need_weights=need_weights, **quiet)
        torch.testing.assert_close(ours, plain, rtol=0, atol=0)
    loud = scaled_dot_product_attention(
        *tensors, dropout=0.5, training=True, need_weights=need_weights
    )
    assert not torch.allclose(loud.output, plain.output)


# --- one head with its projections -----------------------------------------------------------


def sequences(dtype=torch.float64):
    sizes = ((QUERIES, D_MODEL), (KEYS, D_MODEL), (KEYS, D_MODEL))
    return [torch.randn(BATCH, *size, dtype=dtype, requires_grad=True) for size in sizes]


def by_numpy(layer, query, key, value, mask=None):
    """Projections as sums, one sequence, one query and one key at a time."""
    p = {name: tensor.detach().double().numpy() for name, tensor in layer.state_dict().items()}
    outputs, weights = [], []
    for b in range(len(query)):
        q, k, v = (
            np.array([p[f"{name}.weight"] @ token + p[f"{name}.bias"] for token in tokens])
            for name, tokens in zip(
                ("query", "key", "value"),
                (t[b].detach().double().numpy() for t in (query, key, value)),
                strict=True,
            )
        )
        scores = np.array([[q_i @ k_j / math.sqrt(len(q_i)) for k_j in k] for q_i in q])
        visible = True if mask is None else mask[b].numpy()
        powers = np.where(visible, np.exp(scores), 0.0)
        weights.append(powers / powers.sum(1, keepdims=True))
        outputs.append([sum(w * v_j for w, v_j in zip(row, v, strict=True)) for row in weights[-1]])
    return Attended(torch.tensor(np.array(outputs)), torch.tensor(np.array(weights)))


def calls(layer, sequences):
    """The arguments of each layer, and the queries, keys and values that they stand for."""
    x, memory, other = sequences
    if isinstance(layer, SelfAttention):
        return (x,), (x, x, x)
    if isinstance(layer, CrossAttention):
        return (x, memory), (x, memory, memory)
    return (x, memory, other), (x, memory, other)


EVERY_LAYER = [
    pytest.param(SingleHeadAttention, marks=pytest.mark.verifies("course_lib.attention.SingleHeadAttention", against="its equation in NumPy")),
    pytest.param(SelfAttention, marks=pytest.mark.verifies("course_lib.attention.SelfAttention", against="its equation in NumPy")),
    pytest.param(CrossAttention, marks=pytest.mark.verifies("course_lib.attention.CrossAttention", against="its equation in NumPy")),
]  # fmt: skip


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("d_head", [None, D_HEAD])
@pytest.mark.parametrize("make", EVERY_LAYER)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_head_projects_and_then_attends(ledger, dtype, make, d_head, masked):
    layer = make(D_MODEL, d_head).to(dtype)
    given, (query, key, value) = calls(layer, sequences(dtype))
    mask = drawn(BATCH, query.shape[1], key.shape[1]) if masked else None
    ours, theirs = layer(*given, mask), by_numpy(layer, query, key, value, mask)
    assert ours.output.shape[-1] == (d_head or D_MODEL) and ours.output.dtype == dtype
    ledger.compare(ours.output, theirs.output, within=ROUNDING[dtype])
    ledger.compare(ours.weights, theirs.weights, within=ROUNDING[dtype])


ONE_HEAD = [
    pytest.param(SingleHeadAttention, marks=pytest.mark.verifies("course_lib.attention.SingleHeadAttention", against="PyTorch `nn.MultiheadAttention` with one head")),
    pytest.param(SelfAttention, marks=pytest.mark.verifies("course_lib.attention.SelfAttention", against="PyTorch `nn.MultiheadAttention` with one head")),
    pytest.param(CrossAttention, marks=pytest.mark.verifies("course_lib.attention.CrossAttention", against="PyTorch `nn.MultiheadAttention` with one head")),
]  # fmt: skip


def with_the_weights_of(layer):
    """PyTorch's layer with one head, whose last projection changes nothing."""
    theirs = nn.MultiheadAttention(D_MODEL, 1, batch_first=True).double()
    projections = layer.query, layer.key, layer.value
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([each.weight for each in projections]))
        theirs.in_proj_bias.copy_(torch.cat([each.bias for each in projections]))
        theirs.out_proj.weight.copy_(torch.eye(D_MODEL))
    return theirs


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("make", ONE_HEAD)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_head_is_that_of_pytorch_with_all_its_gradients(ledger, dtype, make, masked):
    layer, inputs = make(D_MODEL).to(dtype), sequences(dtype)
    oracle, copies = with_the_weights_of(layer), in_float64(*inputs)
    given, _ = calls(layer, inputs)
    _, (query, key, value) = calls(layer, copies)
    mask = drawn(query.shape[1], key.shape[1]) if masked else None
    hidden = None if mask is None else ~mask  # theirs is the other way round
    ours, theirs = layer(*given, mask), Attended(*oracle(query, key, value, attn_mask=hidden))
    mine = [*inputs, *layer.parameters()]
    packed = [oracle.in_proj_weight, oracle.in_proj_bias]
    mixes = [torch.randn(tensor.shape, dtype=torch.float64) for tensor in theirs]
    *for_inputs, weight, bias = gradients(theirs, [*copies, *packed], mixes)
    slopes = [each for pair in zip(weight.chunk(3), bias.chunk(3), strict=True) for each in pair]
    for one, two in zip(ours, theirs, strict=True):
        ledger.compare(one, two, within=ROUNDING[dtype])
    for one, two in zip(gradients(ours, mine, mixes), [*for_inputs, *slopes], strict=True):
        ledger.compare(one, two, within=ROUNDING[dtype], backward=True)


def test_the_parameters_of_a_head_are_three_projections():
    shapes = {name: tuple(p.shape) for name, p in SelfAttention(D_MODEL, D_HEAD).named_parameters()}
    weights = {f"{name}.weight": (D_HEAD, D_MODEL) for name in ("query", "key", "value")}
    assert shapes == weights | {f"{name}.bias": (D_HEAD,) for name in ("query", "key", "value")}


@pytest.mark.parametrize("make", [SingleHeadAttention, SelfAttention, CrossAttention])
def test_a_head_works_under_autocast_in_half_precision_and_without_gradients(make):
    layer = make(D_MODEL)
    given, _ = calls(layer, sequences(torch.float32))
    plain = layer(*given)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = layer(*given)
        again = layer(*(tensor.bfloat16() for tensor in given))
    half = layer.bfloat16()(*(tensor.bfloat16() for tensor in given))
    for ours in (mixed, again, half):
        assert ours.output.dtype == torch.bfloat16
        torch.testing.assert_close(ours.output.float(), plain.output, rtol=0, atol=0.05)
    with torch.no_grad():
        quiet = layer.float()(*given)
    assert not quiet.output.requires_grad and quiet.output.shape == plain.output.shape


def test_attended_is_that_of_pooling():
    assert Attended is pooling.Attended and Attended._fields == ("output", "weights")


# --- recording -------------------------------------------------------------------------------


class Model(nn.Module):
    """Layers of three kinds; the second is called twice, the third has heads that are layers too."""

    def __init__(self):
        super().__init__()
        self.fused = MultiHeadAttention(6, 3, dropout=0.3)
        self.blocks = nn.ModuleList([SelfAttention(6), PerHeadMultiHead(6, 2)])
        self.pooled = Attention(DotScore())

    def parts(self, x, need_weights=True):
        """What each layer returns, in the order of the calls."""
        yield "fused", self.fused(x, need_weights=need_weights)
        yield "blocks.0", self.blocks[0](x)
        yield "blocks.0", self.blocks[0](2 * x)
        yield "blocks.1", self.blocks[1](x, 3 * x)
        yield "pooled", self.pooled(x[0], x[1], x[2])

    def forward(self, x):
        return [attended.output for _, attended in self.parts(x, need_weights=False)]


def quiet_model():
    return Model().double().eval(), torch.randn(4, 5, 6, dtype=torch.float64)


def hooks(model):
    return sum(
        len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules()
    )


@pytest.mark.verifies(
    "course_lib.attention.record_attention", against="the weights that every layer returns"
)
def test_what_is_recorded_is_what_the_layers_return(ledger):
    model, x = quiet_model()
    with record_attention(model) as maps:
        model(x)
    wanted = {}
    for name, attended in model.parts(x):
        wanted.setdefault(name, []).append(attended.weights)
    assert list(maps) == ["fused", "blocks.0", "blocks.1", "pooled"]
    with_heads = {
        "fused": lambda weights: weights,
        "blocks.0": lambda weights: weights[:, None],
        "blocks.1": lambda weights: weights,
        "pooled": lambda weights: weights[None, None],
    }
    for name, weights in wanted.items():
        for mine, theirs in zip(maps[name], weights, strict=True):
            assert mine.dim() == 4 and not mine.requires_grad
            ledger.compare(mine, with_heads[name](theirs), within=0)


def test_recording_changes_nothing_and_ends_with_its_block():
    model, x = quiet_model()
    plain = model(x)
    with record_attention(model) as maps:
        recorded = model(x)
        assert hooks(model) > 0
    torch.testing.assert_close(recorded, plain)
    assert hooks(model) == 0
    before = {name: len(tensors) for name, tensors in maps.items()}
    model(x)
    assert {name: len(tensors) for name, tensors in maps.items()} == before
    assert model.fused(x).weights is None


def test_gradients_are_those_without_recording():
    model, x = quiet_model()
    plain = torch.autograd.grad(sum(part.sum() for part in model(x)), model.fused.out.weight)
    with record_attention(model):
        ours = torch.autograd.grad(sum(part.sum() for part in model(x)), model.fused.out.weight)
    torch.testing.assert_close(ours, plain)


def test_the_hooks_are_gone_after_an_error_too():
    model, x = quiet_model()
    with pytest.raises(ValueError, match="query has shape"), record_attention(model) as maps:
        model.fused(x)
        model(x[..., :2])
    assert hooks(model) == 0
    assert {name: len(tensors) for name, tensors in maps.items()} == {"fused": 1}


def test_every_call_adds_a_tensor():
    model, x = quiet_model()
    with record_attention(model) as maps:
        for length in (2, 3, 4):
            model(x[:, :length])
    assert [tuple(tensor.shape) for tensor in maps["blocks.1"]] == [
        (4, 2, length, length) for length in (2, 3, 4)
    ]
    assert len(maps["blocks.0"]) == 6 and len(maps["fused"]) == 3


@pytest.mark.parametrize("make", [MultiHeadAttention, PerHeadMultiHead])
def test_the_name_of_the_model_itself_is_empty(make):
    layer, x = make(6, 3), torch.randn(4, 5, 6)
    with record_attention(layer) as maps:
        attended = layer(x)
    assert list(maps) == [""]
    torch.testing.assert_close(maps[""], [attended.weights])


class Impatient(nn.Module):
    """Calls one head of its layer alone, and then the whole layer twice."""

    def __init__(self):
        super().__init__()
        self.attention = PerHeadMultiHead(6, 2)

    def forward(self, x):
        alone = self.attention.heads[1](x, x, x)
        return alone.weights, *(self.attention(x).weights for _ in range(2))


def test_a_layer_inside_another_counts_only_when_it_is_called_from_outside():
    model, x = nn.ModuleDict({"inner": Impatient()}), torch.randn(4, 5, 6)
    with record_attention(model) as maps:
        alone, *whole = model["inner"](x)
    assert list(maps) == ["inner.attention.heads.1", "inner.attention"]
    torch.testing.assert_close(maps["inner.attention.heads.1"], [alone[:, None]])
    torch.testing.assert_close(maps["inner.attention"], whole)


class Weightless(nn.Module):
    def forward(self, x):
        return Attended(x, None)


def test_what_returns_no_weights_leaves_no_trace():
    model = nn.Sequential(nn.Linear(6, 6), Weightless())
    with record_attention(model) as maps:
        assert model(torch.randn(4, 5, 6)).weights is None
    assert maps == {}


def test_a_recurrent_decoder_leaves_a_tensor_for_every_step():
    model = Seq2Seq(GRUEncoder(9, 8, 2), BahdanauDecoder(7, 3, 5, 4, 6, 2))
    source = torch.tensor([[3, 8, 1, 4], [5, 2, 0, 0], [7, 0, 0, 0]])
    target = torch.tensor([[1, 4, 6, 2, 3], [1, 1, 3, 4, 5], [1, 5, 2, 2, 2]])
    with record_attention(model) as maps:
        decoded = model.decoder(target, model.encoder(source))
    assert list(maps) == ["decoder.attention"] and len(maps["decoder.attention"]) == 5
    for step, weights in enumerate(maps["decoder.attention"]):
        assert torch.equal(weights, decoded.weights[:, None, step : step + 1].detach())


class Foreign(nn.Module):
    """PyTorch's own layer is none of ours; `need_weights` is its fifth argument."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(6, 3, batch_first=True)

    def forward(self, x, by_position):
        if by_position:
            return self.attention(x, x, x, None, False)
        return self.attention(x, x, x, need_weights=False)


@pytest.mark.parametrize("by_position", [True, False])
def test_layers_of_others_are_left_alone(by_position):
    model, x = Foreign(), torch.randn(4, 5, 6)
    with record_attention(model) as maps:
        output, weights = model(x, by_position)
    assert weights is None and maps == {}


# --- what weights say ------------------------------------------------------------------------


def some_weights(dtype, *shape):
    """Rows that sum to one; the first has a single key, the second is hidden whole."""
    weights = torch.rand(shape, dtype=torch.float64).softmax(-1)
    weights[..., 0, :] = F.one_hot(torch.tensor(shape[-1] - 1), shape[-1])
    weights[..., 1, :] = 0
    return weights.to(dtype)


@pytest.mark.verifies("course_lib.attention.entropy", against="SciPy `entropy`")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", [(), (BATCH, HEADS)])
def test_entropy_is_that_of_scipy_row_by_row(ledger, batch, dtype):
    weights = some_weights(dtype, *batch, QUERIES, KEYS)
    ours = entropy(weights)
    rows = weights.double().numpy()
    theirs = np.zeros(rows.shape[:-1])
    for row in np.ndindex(theirs.shape):
        theirs[row] = scipy.stats.entropy(rows[row]) if rows[row].any() else 0.0
    assert ours.dtype == dtype
    ledger.compare(ours, theirs, within=ROUNDING[dtype])
    assert (ours[..., :2] == 0).all()
    assert entropy(torch.full((KEYS,), 1 / KEYS)).item() == pytest.approx(math.log(KEYS))


@pytest.mark.verifies("course_lib.attention.mean_distance", against="an explicit double loop")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 4), (4, 6), (1, 5), (BATCH, HEADS, 4, 5)])
def test_mean_distance_is_from_where_a_query_stands_to_where_it_looks(ledger, shape, dtype):
    *batch, queries, keys = shape
    weights = torch.rand(shape, dtype=torch.float64).softmax(-1).to(dtype)
    theirs = np.zeros(batch)
    for *where, i, j in np.ndindex(*shape):
        place = i + keys - queries  # queries are the last of the keys
        theirs[*where] += weights[*where, i, j].item() * abs(place - j) / queries
    ours = mean_distance(weights)
    assert ours.dtype == dtype
    ledger.compare(ours, theirs, within=ROUNDING[dtype])


def test_who_looks_at_the_own_place_reaches_nowhere():
    assert mean_distance(torch.eye(5)) == 0
    assert mean_distance(torch.eye(5).roll(1, 1)[:-1]) == 0  # with one key more than queries
    assert mean_distance(torch.eye(5)[[0, 0, 0, 0, 0]]) == 2  # (0 + 1 + 2 + 3 + 4) / 5


# --- bad input -------------------------------------------------------------------------------

Q, K, V = torch.zeros(2, 3, 4, 6), torch.zeros(2, 3, 5, 6), torch.zeros(2, 3, 5, 7)
M = torch.ones(4, 5) > 0
X, Y = torch.zeros(2, 4, 8), torch.zeros(2, 5, 8)
HEAD, SELF, CROSS = SingleHeadAttention(8, 9), SelfAttention(8), CrossAttention(8)
attention = scaled_dot_product_attention
BROADCASTS = r"it must broadcast to \(batch, heads, query, key\) = \(2, 3, 4, 5\): "


@pytest.mark.usefixtures("without_annotations")
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda **k: attention([1.0], K, V, **k), r"query is a list; a tensor is needed"),
        (lambda **k: attention(Q.long(), K, V, **k), r"query has dtype int64; .*query\.float\(\)"),
        (lambda **k: attention(Q, K.bool(), V, **k), r"key has dtype bool; .*key\.float\(\)"),
        (lambda **k: attention(Q, K, V.int(), **k), r"value has dtype int32; .*value\.float\(\)"),
        (lambda **k: attention(Q[0, 0, 0], K, V, **k), r"query has shape \(6,\); it must be \(…, query, size\), e\.g\. query\[None, :\]"),
        (lambda **k: attention(Q, K[0, 0, 0], V, **k), r"key has shape \(6,\); it must be \(…, key, size\)"),
        (lambda **k: attention(Q, K, V[0, 0, 0], **k), r"value has shape \(7,\); it must be \(…, value, size\), e\.g\. value\[None, :\] for a single value"),
        (lambda **k: attention(Q, K.double(), V, **k), r"query has dtype float32 but key has dtype float64; .*key\.to\(query\.dtype\)"),
        (lambda **k: attention(Q, K, V.half(), **k), r"query has dtype float32 but value has dtype float16"),
        (lambda **k: attention(Q, K.to("meta"), V, **k), r"query has device cpu but key has device meta"),
        (lambda **k: attention(Q, K, V.to("meta"), **k), r"query has device cpu but value has device meta"),
        (lambda **k: attention(Q, K[..., :4], V, **k), r"key has shape \(2, 3, 5, 4\), .*4 numbers; each key is compared with queries of 6"),
        (lambda **k: attention(Q, K[..., :4, :], V, **k), r"key has shape .* but value has .*4 keys and 5 values; there must be one value per key"),
        (lambda **k: attention(Q, K[:1].expand(4, 3, 5, 6), V, **k), r"query has shape \(2, 3, 4, 6\) but key has shape \(4, 3, 5, 6\); all axes but the last two must be equal or 1"),
        (lambda **k: attention(Q, K, V[:, :2], **k), r"query has shape .* but value has shape \(2, 2, 5, 7\); all axes"),
        (lambda **k: attention(Q[..., :0], K[..., :0], V, **k), r"query has shape \(2, 3, 4, 0\); its vectors have no numbers"),
        (lambda **k: attention(Q, K, V, dropout=1, **k), r"dropout=1 must be a number from 0 up to but not including 1"),
        (lambda **k: attention(Q, K, V, dropout=-0.1, **k), r"dropout=-0\.1 must be"),
        (lambda **k: attention(Q, K, V, dropout="half", **k), r"dropout='half' must be"),
        (lambda **k: attention(Q, K, V, dropout=True, **k), r"dropout=True must be"),
        (lambda **k: attention(Q, K, V, dropout=False, **k), r"dropout=False must be"),
        (lambda **k: attention(Q, K, V, scale=math.nan, **k), r"scale=nan must be a finite number, or None for 1/√d"),
        (lambda **k: attention(Q, K, V, scale=-math.inf, **k), r"scale=-inf must be a finite"),
        (lambda **k: attention(Q, K, V, scale=True, **k), r"scale=True must be a finite number"),
        (lambda **k: attention(Q, K, V, scale="1", **k), r"scale='1' must be a finite number"),
        (lambda **k: attention(Q, K, V, bias=M.double(), **k), r"query has dtype float32 but bias has dtype float64; they must be the same, e\.g\. bias\.to\(query\.dtype\)"),
        (lambda **k: attention(Q, K, V, bias=M.long(), **k), r"bias has dtype int64; a floating-point tensor"),
        (lambda **k: attention(Q, K, V, bias=M, **k), r"bias has dtype bool; a floating-point tensor"),
        (lambda **k: attention(Q, K, V, bias=M.float().to("meta"), **k), r"query has device cpu but bias has device meta"),
        (lambda **k: attention(Q, K, V, bias=M.float().mT, **k), r"bias has shape \(5, 4\); it must broadcast to the scores = \(2, 3, 4, 5\)"),
        (lambda **k: attention(Q, K, V, bias=torch.zeros(2, 4, 5), **k), r"bias has shape \(2, 4, 5\); it must broadcast to the scores = \(2, 3, 4, 5\)"),
        (lambda **k: attention(Q, K, V, bias=torch.zeros(3, 3, 4, 5), **k), r"bias has shape \(3, 3, 4, 5\); it must broadcast"),
        (lambda **k: attention(Q, K, V, bias=torch.zeros(1, 1, 1, 4, 5), **k), r"bias has shape \(1, 1, 1, 4, 5\); it must broadcast"),
        (lambda **k: attention(Q[0, 0], K[0, 0], V, bias=torch.zeros(3, 4, 5), **k), r"bias has shape \(3, 4, 5\); it must broadcast to the scores = \(4, 5\)"),
        (lambda **k: attention(Q, K, V, M.float(), **k), r"mask is float32; it must be a boolean tensor where True means 'may attend'"),
        (lambda **k: attention(Q, K, V, M.int(), **k), r"mask is int32; it must be a boolean tensor"),
        (lambda **k: attention(Q, K, V, [True], **k), r"mask is list; it must be a boolean tensor"),
        (lambda **k: attention(Q, K, V, M.mT, **k), rf"mask has shape \(5, 4\); {BROADCASTS}query is 5 and not 4 or 1, key is 4 and not 5 or 1$"),
        (lambda **k: attention(Q, K, V, M[:, :2], **k), rf"{BROADCASTS}key is 2 and not 5 or 1$"),
        (lambda **k: attention(Q, K, V, M.expand(2, 4, 5), **k), rf"{BROADCASTS}heads is 2 and not 3 or 1$"),
        (lambda **k: attention(Q, K, V, M.expand(3, 1, 4, 5), **k), rf"{BROADCASTS}batch is 3 and not 2 or 1$"),
        (lambda **k: attention(Q, K, V, M.expand(2, 2, 3, 4, 5), **k), rf"{BROADCASTS[:-2]}: it has 5 axes, at most 4 fit"),
        (lambda **k: attention(Q[0], K[0], V[0], M.expand(4, 4, 5), **k), r"to \(batch, query, key\) = \(3, 4, 5\): batch is 4 and not 3 or 1$"),
        (lambda **k: attention(Q[0, 0], K[0, 0], V[0, 0], M.mT, **k), r"to \(query, key\) = \(4, 5\): query is 5 and not 4 or 1, key is"),
        (lambda **k: attention(Q[None], K, V, M.mT, **k), r"= \(1, 2, 3, 4, 5\): axis -2 is 5 and not 4 or 1, axis -1 is"),
    ],
)  # fmt: skip
def test_bad_input_to_attention_is_refused_by_name(call, says, need_weights):
    with pytest.raises(ValueError, match=says):
        call(need_weights=need_weights)


@pytest.mark.usefixtures("without_annotations")
def test_a_bias_that_is_no_tensor_is_refused():
    with pytest.raises(ValueError, match="bias is a list; a tensor is needed"):
        attention(Q, K, V, bias=[1.0])


@pytest.mark.usefixtures("without_annotations")
@pytest.mark.parametrize("need_weights", [True, False])
def test_a_mask_on_another_device_is_refused(need_weights):
    with pytest.raises(ValueError, match="mask.*device"):
        attention(Q, K, V, M.to("meta"), need_weights=need_weights)


@pytest.mark.usefixtures("without_annotations")
@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: SingleHeadAttention(0), r"d_model=0 is below 1"),
        (lambda: SelfAttention(8.0), r"d_model=8\.0 is a float; it must be a whole number"),
        (lambda: CrossAttention(8, 0), r"d_head=0 is below 1"),
        (lambda: SingleHeadAttention(8, True), r"d_head=True is a bool; it must be a whole number"),
        (lambda: HEAD(None, Y, Y), r"query is a NoneType; a tensor is needed"),
        (lambda: HEAD(X, Y.long(), Y), r"key has dtype int64; .*key\.float\(\)"),
        (lambda: SELF(X[0]), r"query has shape \(4, 8\); it must be \(batch, length, size\), e\.g\. query\[None\] for a single sequence"),
        (lambda: CROSS(X, Y[0]), r"key has shape \(5, 8\); it must be \(batch, length, size\), e\.g\. key\[None\]"),
        (lambda: HEAD(X, Y, Y[None]), r"value has shape \(1, 2, 5, 8\); it must be \(batch, length, size\)"),
        (lambda: SELF(X[..., :7]), r"query has shape \(2, 4, 7\), so its vectors have 7 numbers; the layer was made for 8 in each query"),
        (lambda: CROSS(X, Y[..., :7]), r"key has .* 7 numbers; the layer was made for 8 in each key"),
        (lambda: HEAD(X, Y, Y[..., :7]), r"value has .* 7 numbers; the layer was made for 8 in each value"),
        (lambda: CROSS(X, Y[:1]), r"query has shape \(2, 4, 8\) but key has shape \(1, 5, 8\): batches of 2 and 1; they must be equal"),
        (lambda: HEAD(X, Y, Y[:1]), r"query has shape .* but value has shape \(1, 5, 8\): batches of 2 and 1"),
        (lambda: HEAD(X, Y, X), r"key has shape \(2, 5, 8\) but value has shape \(2, 4, 8\), that is 5 keys and 4 values"),
        (lambda: SELF(X.double()), r"query has dtype float64, but the parameters of the layer have float32; .*layer\.to\(query\.dtype\)"),
        (lambda: CROSS(X, Y.half()), r"key has dtype float16, but the parameters of the layer have float32"),
        (lambda: HEAD(X, Y, Y.to("meta")), r"value has device meta, but the parameters of the layer have cpu; .*layer\.to\(value\.device\)"),
        (lambda: CROSS(X, Y, M.expand(3, 4, 5)), r"mask has .* to \(batch, query, key\) = \(2, 4, 5\): batch is 3 and not 2 or 1"),
        (lambda: SELF(X, M), r"mask has shape \(4, 5\); .* = \(2, 4, 4\): key is 5 and not 4 or 1"),
        (lambda: HEAD(X, Y, Y, M.float()), r"mask is float32; it must be a boolean tensor"),
        (lambda: entropy([0.5, 0.5]), r"weights is a list; a tensor is needed"),
        (lambda: entropy(M), r"weights has dtype bool; a floating-point tensor is needed"),
        (lambda: mean_distance(M.long()), r"weights has dtype int64; a floating-point tensor is needed"),
        (lambda: mean_distance(None), r"weights is a NoneType; a tensor is needed"),
        (lambda: record_attention("model").__enter__(), r"model is a str; it must be an nn\.Module"),
        (lambda: record_attention(SelfAttention).__enter__(), r"model is a type; it must be an nn\.Module"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_by_name(call, says):
    with pytest.raises(ValueError, match=says):
        call()
