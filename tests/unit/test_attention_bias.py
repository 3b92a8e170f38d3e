"""A bias on the scores against an explicit loop and PyTorch's float mask."""

import pytest
import torch

from course_lib.attention import scaled_dot_product_attention
from tests.helpers.attention import (
    BATCH,
    HEADS,
    KEYS,
    MASKS,
    QUERIES,
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


def random_bias(kind, dtype=torch.float64):
    return (2 * torch.randn(BIASES[kind], dtype=dtype)).requires_grad_()


@pytest.mark.verifies(
    "course_lib.attention.scaled_dot_product_attention", against="an explicit double loop"
)
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("mask", ["none", "both", "a fully masked row", "all rows masked"])
@pytest.mark.parametrize("bias", ["(query, key)", "per head and key", "per sequence and head"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_bias_is_added_to_the_scaled_scores(ledger, dtype, bias, mask, need_weights):
    leaves, mask = [*triple(dtype), random_bias(bias, dtype)], MASKS[mask]()
    oracles = in_float64(*leaves)
    ours = scaled_dot_product_attention(
        *leaves[:3], mask, need_weights=need_weights, bias=leaves[3]
    )
    theirs = by_double_loop(*oracles[:3], mask, bias=oracles[3])
    check(ledger, ours, leaves, theirs, oracles, dtype)


@pytest.mark.verifies(
    "course_lib.attention.scaled_dot_product_attention",
    against="PyTorch `F.scaled_dot_product_attention`",
)
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("mask", ["none", "padding", "causal", "(query, 1)", "per head"])
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_bias_equals_the_float_mask_of_pytorch(ledger, dtype, bias, mask, need_weights):
    leaves, mask = [*triple(dtype), random_bias(bias, dtype)], MASKS[mask]()
    oracles = in_float64(*leaves)
    ours = scaled_dot_product_attention(
        *leaves[:3], mask, scale=0.3, need_weights=need_weights, bias=leaves[3]
    )
    theirs = with_bias_by_pytorch(*oracles[:3], mask, 0.3, oracles[3])
    check(ledger, ours, leaves, theirs, oracles, dtype)


@pytest.mark.parametrize("need_weights", [True, False])
def test_bias_constant_along_a_row_has_no_effect(need_weights):
    tensors, bias = triple(), random_bias("per head")
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
def test_fully_masked_row_with_bias_is_zero(dtype, need_weights):
    leaves = [*triple(dtype), random_bias("per head", dtype)]
    mask = without_second_query(all_true(QUERIES, KEYS))
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
@pytest.mark.parametrize("mask", ["none", "both", "a fully masked row"])
def test_bias_in_half_precision_with_and_without_weights(dtype, mask):
    tensors, bias, mask = triple(dtype), random_bias("per head", dtype), MASKS[mask]()
    ours = [
        scaled_dot_product_attention(*tensors, mask, need_weights=need_weights, bias=bias).output
        for need_weights in (True, False)
    ]
    theirs = by_double_loop(*in_float64(*tensors), mask, bias=bias.double()).output
    for output in ours:
        assert output.dtype == dtype
        torch.testing.assert_close(output.double(), theirs, rtol=0, atol=0.05)


@pytest.mark.parametrize("need_weights", [True, False])
def test_bias_is_not_changed(need_weights):
    tensors = [*triple(), random_mask(QUERIES, KEYS), random_bias("(query, key)")]
    before = [tensor.clone() for tensor in tensors]
    scaled_dot_product_attention(*tensors[:4], need_weights=need_weights, bias=tensors[4])
    assert all(torch.equal(*pair) for pair in zip(tensors, before, strict=True))


@pytest.mark.parametrize("need_weights", [True, False])
def test_dropout_of_weights_with_bias(need_weights):
    query, key, _ = (tensor[0, 0].detach() for tensor in triple())
    value, bias = torch.eye(KEYS, dtype=torch.float64), random_bias("(query, key)").detach()
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
