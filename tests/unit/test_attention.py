"""Scaled dot-product attention, with and without a bias, against an explicit loop and PyTorch's kernel."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from course_lib.topics.profiling import peak_memory
from course_lib.transformer.attention import AttentionOutput, scaled_dot_product_attention
from tests.helpers.attention import (
    BATCH,
    D_HEAD,
    FUSED,
    HEADS,
    KEYS,
    MASKS,
    QUERIES,
    Operators,
    by_double_loop,
    by_pytorch,
    check,
    triple,
)
from tests.helpers.tensors import (
    DTYPES,
    HALVES,
    all_true,
    in_float64,
    random_mask,
    without_second_query,
)

BOTH_PATHS = pytest.mark.parametrize("need_weights", [True, False])
BIASES = {
    "one number": (),
    "(key,)": (KEYS,),
    "per head": (HEADS, QUERIES, KEYS),
    "per sequence": (BATCH, 1, QUERIES, KEYS),
    "per head and key": (1, HEADS, 1, KEYS),
}


def random_bias(kind, dtype=torch.float64):
    return (2 * torch.randn(BIASES[kind], dtype=dtype)).requires_grad_()


@pytest.mark.verifies(
    "course_lib.transformer.attention.scaled_dot_product_attention",
    "course_lib.transformer.attention.AttentionOutput",
    against="an explicit double loop",
)
@BOTH_PATHS
@pytest.mark.parametrize(
    ("mask", "bias"),
    [*((mask, None) for mask in MASKS), *(("both", bias) for bias in BIASES)],
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_attention_equals_a_double_loop(ledger, dtype, mask, bias, need_weights):
    leaves, mask = triple(dtype), MASKS[mask]()
    leaves += [random_bias(bias, dtype)] if bias else []
    oracles = in_float64(*leaves)
    options = {"need_weights": need_weights, "bias": leaves[3] if bias else None}
    ours = scaled_dot_product_attention(*leaves[:3], mask, **options)
    assert isinstance(ours, AttentionOutput) and (ours.weights is not None) == need_weights
    theirs = by_double_loop(*oracles[:3], mask, bias=oracles[3] if bias else None)
    check(ledger, ours, leaves, theirs, oracles, dtype)


@pytest.mark.verifies(
    "course_lib.transformer.attention.scaled_dot_product_attention",
    against="PyTorch `F.scaled_dot_product_attention`",
)
@BOTH_PATHS
@pytest.mark.parametrize("scale", [None, 0.3, -1, 0])
@pytest.mark.parametrize("mask", ["none", "both"])
def test_attention_equals_pytorch(ledger, mask, scale, need_weights):
    leaves, mask = triple(), MASKS[mask]()
    ours = scaled_dot_product_attention(*leaves, mask, scale=scale, need_weights=need_weights)
    check(ledger, ours, leaves, by_pytorch(*leaves, mask, scale), leaves, torch.float64)


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
    "course_lib.transformer.attention.scaled_dot_product_attention",
    against="an explicit double loop",
)
@BOTH_PATHS
@given(case=cases())
def test_attention_broadcasts_like_a_double_loop(ledger, need_weights, case):
    tensors, mask, scale, bias = case
    options = {"scale": scale, "need_weights": need_weights, "bias": bias}
    ours = scaled_dot_product_attention(*tensors, mask, **options)
    theirs = by_double_loop(*tensors, mask, scale, bias)
    ledger.compare(ours.output, theirs.output, within=1e-12)
    if need_weights:
        # Values alone may have an axis more; the weights are the same all along it.
        ledger.compare(ours.weights.expand(theirs.weights.shape), theirs.weights, within=1e-12)


@BOTH_PATHS
@pytest.mark.parametrize("mask", [~all_true(), torch.tensor([True, False, True, True, False])])
def test_mask_of_few_axes_applies_to_all_queries(mask, need_weights):
    tensors = triple()
    ours = scaled_dot_product_attention(*tensors, mask, need_weights=need_weights)
    theirs = by_double_loop(*tensors, mask.expand(QUERIES, KEYS))
    torch.testing.assert_close(ours.output, theirs.output)


@pytest.mark.parametrize("shape", [(), (1,), (KEYS,)])
@pytest.mark.parametrize("axes", [3, 4])
def test_bias_of_few_axes_is_added_to_all_queries(axes, shape):
    query, key, value = (torch.randn([2, 1, KEYS, 3][4 - axes :]) for _ in range(3))
    bias = torch.randn(shape)
    ours = scaled_dot_product_attention(query, key, value, bias=bias, need_weights=False)
    theirs = by_double_loop(query, key, value, torch.ones(KEYS, KEYS).bool(), bias=bias)
    torch.testing.assert_close(ours.output, theirs.output)


# --- invariants ------------------------------------------------------------------------------


@pytest.mark.parametrize("bias", [None, "per head"])
@BOTH_PATHS
@pytest.mark.parametrize("dtype", [torch.float32, *HALVES])
def test_fully_masked_row_is_zero_with_zero_gradient(dtype, need_weights, bias):
    leaves, mask = triple(dtype), without_second_query(all_true(QUERIES, KEYS))
    leaves += [random_bias(bias, dtype)] if bias else []
    options = {"dropout": 0.2, "training": True, "need_weights": need_weights}
    ours = scaled_dot_product_attention(*leaves[:3], mask, bias=[*leaves, None][3], **options)
    with torch.autograd.set_detect_anomaly(True):  # no NaN on the way either
        ours.output.backward(torch.randn(ours.output.shape).to(dtype))
    assert ours.output.dtype == dtype
    for tensor in (ours.output, leaves[0].grad, *(leaf.grad for leaf in leaves[3:])):
        assert tensor.isfinite().all() and (tensor[..., 1, :] == 0).all()
        assert (tensor[..., 2, :] != 0).any()


@BOTH_PATHS
def test_a_bias_of_minus_infinity_gives_the_zero_vector(need_weights):
    bias = torch.zeros(QUERIES, 1).masked_fill(torch.arange(QUERIES)[:, None] == 1, -torch.inf)
    options = {"bias": bias.expand(-1, KEYS), "need_weights": need_weights}
    output = scaled_dot_product_attention(*triple(torch.float32), **options).output
    assert (output[..., 1, :] == 0).all() and output.isfinite().all()


@pytest.mark.parametrize("mask", ["none", "both", "a fully masked row", "all rows masked"])
@pytest.mark.parametrize("dtype", HALVES)
def test_attention_with_bias_in_half_precision(dtype, mask):
    tensors, bias, mask = triple(dtype), random_bias("per head", dtype), MASKS[mask]()
    theirs = by_double_loop(*in_float64(*tensors), mask, bias=bias.double()).output
    for options in ({"need_weights": True}, {"need_weights": False}):
        output = scaled_dot_product_attention(*tensors, mask, bias=bias, **options).output
        assert output.dtype == dtype
        torch.testing.assert_close(output.double(), theirs, rtol=0, atol=0.05)


@BOTH_PATHS
def test_large_scores_in_float16_do_not_overflow(need_weights):
    wide = torch.full((QUERIES, 64), 40.0, dtype=torch.float16)  # 102,400 before the scale
    attended = scaled_dot_product_attention(wide, wide, wide, need_weights=need_weights)
    assert attended.output.isfinite().all()


# --- dropout ---------------------------------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.transformer.attention.scaled_dot_product_attention",
    against="moments of 20,000 draws of dropout",
)
@BOTH_PATHS
@pytest.mark.parametrize("p", [0.1, 0.5])
def test_dropout_preserves_the_mean_of_every_weight(ledger, p, need_weights):
    query, key, _ = (tensor[0, 0].detach() for tensor in triple())
    value, bias = torch.eye(KEYS, dtype=torch.float64), torch.randn(QUERIES, KEYS).double()
    weights = by_double_loop(query, key, value, bias=bias).weights
    options = {"dropout": p, "training": True, "need_weights": need_weights, "bias": bias}
    many = query.expand(20_000, -1, -1)
    kept, returned = scaled_dot_product_attention(many, key, value, **options)
    dropped = kept == 0  # with these values, what dropout keeps is returned
    torch.testing.assert_close(kept, (weights / (1 - p)).expand(kept.shape).masked_fill(dropped, 0))
    ledger.compare(kept.mean(0), weights, within=0.03)
    shares = dropped.double().mean(0)
    assert shares.sub(p).abs().max() < 5 * math.sqrt(p * (1 - p) / 20_000)
    if need_weights:
        torch.testing.assert_close(returned[0], weights)  # as they were before


@BOTH_PATHS
def test_dropout_acts_only_in_training(need_weights):
    tensors = triple()
    plain = scaled_dot_product_attention(*tensors, need_weights=need_weights)
    for quiet in ({"dropout": 0.9}, {"training": True}):
        ours = scaled_dot_product_attention(*tensors, need_weights=need_weights, **quiet)
        torch.testing.assert_close(ours, plain, rtol=0, atol=0)


@pytest.mark.parametrize("heads", [(), (HEADS,)], ids=["one head", "heads"])
@pytest.mark.parametrize(
    ("mask", "bias"),
    [
        (None, None),
        ((1,), None),
        ((QUERIES, 1), None),
        ((BATCH, 1, 1), None),
        ((BATCH, 1, 1), (QUERIES, 1)),
    ],
)
def test_without_weights_the_fused_kernel_runs(mask, bias, heads):
    tensors = [torch.randn(BATCH, *heads, n, D_HEAD) for n in (QUERIES, KEYS, KEYS)]
    if mask is not None:
        mask = random_mask(*mask[:1], *(1 for _ in heads if len(mask) == 3), *mask[1:-1], KEYS)
    bias = None if bias is None else torch.randn(QUERIES, KEYS)
    with Operators() as operators:
        ours = scaled_dot_product_attention(*tensors, mask, bias=bias, need_weights=False)
    assert FUSED in operators.names
    stored = scaled_dot_product_attention(*tensors, mask, bias=bias)
    torch.testing.assert_close(ours.output, stored.output)


@pytest.mark.parametrize("heads", [(), (1,)], ids=["one head", "heads"])
def test_without_weights_no_matrix_of_queries_and_keys_is_held(heads):
    tensors = [torch.randn(1, *heads, 1024, 8) for _ in range(3)]
    matrix = 1024 * 1024 * 4  # bytes
    least, most = (
        peak_memory(lambda n=n: scaled_dot_product_attention(*tensors, need_weights=n))
        for n in (False, True)
    )
    assert least < matrix / 4 and most >= matrix
