"""What holds of multi-head attention whatever its weights, and which inputs it refuses."""

import math

import pytest
import torch
import torch.nn.functional as F

from course_lib.multihead import (
    MultiHeadAttention,
)
from tests.helpers.multihead import BATCH, D_MODEL, HEADS, KEYS, QUERIES, randomized, sequences
from tests.helpers.tensors import HALVES, all_true, random_mask, without_second_query

# --- invariants ------------------------------------------------------------------------------


@pytest.mark.parametrize("need_weights", [True, False])
def test_attention_is_permutation_equivariant(need_weights):
    layer, (x, memory, other) = MultiHeadAttention(D_MODEL, HEADS).double(), sequences()
    order = torch.randperm(QUERIES)
    plain = layer(x, need_weights=need_weights).output
    torch.testing.assert_close(
        layer(x[:, order], need_weights=need_weights).output, plain[:, order]
    )
    order = torch.randperm(KEYS)
    crossed = layer(x, memory, other, need_weights=need_weights).output
    shuffled = layer(x, memory[:, order], other[:, order], need_weights=need_weights).output
    torch.testing.assert_close(shuffled, crossed)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("kv_heads", [1, HEADS], ids=["mqa", "mha"])
def test_causal_mask_hides_future_tokens(kv_heads, need_weights):
    layer = MultiHeadAttention(D_MODEL, HEADS, num_kv_heads=kv_heads).double()
    x, mask = (
        torch.randn(BATCH, KEYS, D_MODEL).double().requires_grad_(),
        all_true(KEYS, KEYS).tril(),
    )
    output = layer(x, mask=mask, need_weights=need_weights).output
    for now in range(KEYS):
        (reach,) = torch.autograd.grad(output[:, now].sum(), x, retain_graph=True)
        assert (reach[:, now + 1 :] == 0).all() and (reach[:, : now + 1] != 0).any(-1).all()
        prefix = layer(x[:, : now + 1], mask=mask[: now + 1, : now + 1], need_weights=need_weights)
        torch.testing.assert_close(prefix.output, output[:, : now + 1])


@pytest.mark.parametrize("need_weights", [True, False])
def test_length_of_padding_has_no_effect(need_weights):
    layer, (x, memory, other) = MultiHeadAttention(D_MODEL, HEADS).double(), sequences()
    plain = layer(x, memory, other).output
    for extra in (1, 6):
        longer = [F.pad(tensor, (0, 0, 0, extra), value=9.0) for tensor in (memory, other)]
        mask = (torch.arange(KEYS + extra) < KEYS).expand(BATCH, 1, -1)
        padded = layer(x, *longer, mask, need_weights=need_weights).output
        torch.testing.assert_close(padded, plain)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, *HALVES])
def test_fully_masked_row_is_the_output_bias(dtype, need_weights):
    layer = randomized(MultiHeadAttention(D_MODEL, HEADS, num_kv_heads=1, dropout=0.1), dtype)
    inputs = sequences(dtype=dtype)
    ours = layer(*inputs, without_second_query(all_true(QUERIES, KEYS)), need_weights=need_weights)
    with torch.autograd.set_detect_anomaly(True):  # no NaN on the way either
        ours.output.backward(torch.randn(ours.output.shape).to(dtype))
    assert torch.equal(ours.output[:, 1], layer.out_proj.bias.expand(BATCH, -1))
    assert (inputs[0].grad[:, 1] == 0).all() and (inputs[0].grad[:, 2] != 0).any()
    assert all(tensor.grad.isfinite().all() for tensor in [*inputs, *layer.parameters()])
    if need_weights:
        assert (ours.weights[:, :, 1] == 0).all()


def test_mask_of_one_axis_applies_to_all_queries():
    layer, inputs = MultiHeadAttention(D_MODEL, HEADS).double(), sequences()
    mask = torch.tensor([True, False, True, True, False])
    torch.testing.assert_close(
        layer(*inputs, mask).output, layer(*inputs, mask, need_weights=True).output
    )


@pytest.mark.parametrize("need_weights", [True, False])
def test_dropout_acts_only_in_training_and_preserves_the_mean(need_weights):
    layer, x = MultiHeadAttention(D_MODEL, HEADS, dropout=0.4), torch.randn(1, KEYS, D_MODEL)
    plain = layer.eval()(x, need_weights=need_weights)
    torch.testing.assert_close(layer(x, need_weights=need_weights), plain, rtol=0, atol=0)
    draws = layer.train()(x.expand(4000, -1, -1), need_weights=need_weights)
    spread = draws.output.std(0) / math.sqrt(4000)
    assert (spread > 0).all()
    assert ((draws.output.mean(0) - plain.output[0]).abs() < 5 * spread).all()
    if need_weights:
        torch.testing.assert_close(draws.weights[:1], plain.weights)  # as they were before


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("kv_heads", [1, HEADS], ids=["mqa", "mha"])
def test_layer_under_autocast_and_in_half_precision(kv_heads, need_weights):
    layer = MultiHeadAttention(D_MODEL, HEADS, num_kv_heads=kv_heads)
    inputs, mask = sequences(dtype=torch.float32), random_mask(BATCH, QUERIES, KEYS)
    plain = layer(*inputs, mask).output
    with torch.autocast("cpu", torch.bfloat16):
        mixed = layer(*inputs, mask, need_weights=need_weights).output
    with torch.no_grad():
        halves = [tensor.bfloat16() for tensor in inputs]
        half = layer.bfloat16()(*halves, mask, need_weights=need_weights).output
    assert not half.requires_grad
    for output in (mixed, half):
        assert output.dtype == torch.bfloat16
        torch.testing.assert_close(output.float(), plain, rtol=0, atol=0.05)


@pytest.mark.parametrize("bias", [True, False])
def test_parameters_are_four_projections(bias):
    layer = MultiHeadAttention(12, 6, num_kv_heads=2, bias=bias, kdim=7, vdim=5)
    weights = {"q_proj": (12, 12), "k_proj": (4, 7), "v_proj": (4, 5), "out_proj": (12, 12)}
    shapes = {f"{name}.weight": shape for name, shape in weights.items()}
    if bias:
        shapes |= {f"{name}.bias": shape[:1] for name, shape in weights.items()}
    assert {name: tuple(p.shape) for name, p in layer.named_parameters()} == shapes
