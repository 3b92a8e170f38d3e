"""What holds of multi-head attention whatever its weights, and which inputs it refuses."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.attention import SingleHeadAttention
from course_lib.convert import from_per_head, from_torch, to_torch
from course_lib.multihead import (
    FullWidthMultiHead,
    MultiHeadAttention,
    PerHeadMultiHead,
    merge_heads,
    split_heads,
)
from course_lib.positions import AlibiBias, make_positions
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


# --- invalid input ---------------------------------------------------------------------------

X, Y = torch.zeros(2, 4, 18), torch.zeros(2, 5, 18)
M = torch.ones(4, 5) > 0
LAYERED, LOOP = MultiHeadAttention(18, 3), PerHeadMultiHead(18, 3)
OTHERS = MultiHeadAttention(18, 3, kdim=7, vdim=8)
THREE, FOUR = (
    r"\(batch, query, key\) = \(2, 4, 5\): ",
    r"\(batch, heads, query, key\) = \(2, 3, 4, 5\): ",
)


@pytest.mark.usefixtures("without_annotations")
@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: split_heads([1.0], 1), r"x is a list; a tensor is needed"),
        (lambda: split_heads(X[0, 0], 3), r"x has shape \(18,\); it must be \(…, length, d_model\)"),
        (lambda: split_heads(X, 4), r"d_model=18 is not divisible by num_heads=4; try num_heads=3 or 6$"),
        (lambda: split_heads(X, 0), r"num_heads=0 is below 1"),
        (lambda: merge_heads("x"), r"heads is a str; a tensor is needed"),
        (lambda: merge_heads(X[0]), r"heads has shape \(4, 18\); it must be \(…, heads, length, d_head\)"),
        (lambda: PerHeadMultiHead(10, 3), r"d_model=10 is not divisible by num_heads=3; try num_heads=2 or 5$"),
        (lambda: PerHeadMultiHead(10, 11), r"d_model=10 is not divisible by num_heads=11; try num_heads=10$"),
        (lambda: FullWidthMultiHead(10, 0), r"num_heads=0 is below 1"),
        (lambda: FullWidthMultiHead(2.0, 1), r"d_model=2\.0 is a float; it must be a whole number"),
        (lambda: FullWidthMultiHead(8, True), r"num_heads=True is a bool"),
        (lambda: MultiHeadAttention(10, 3), r"d_model=10 is not divisible by num_heads=3; try num_heads=2 or 5$"),
        (lambda: MultiHeadAttention(0, 1), r"d_model=0 is below 1"),
        (lambda: MultiHeadAttention(12, 6, num_kv_heads=4), r"num_heads=6 is not divisible by num_kv_heads=4; try num_kv_heads=3 or 6$"),
        (lambda: MultiHeadAttention(12, 6, num_kv_heads=0), r"num_kv_heads=0 is below 1"),
        (lambda: MultiHeadAttention(12, 3, num_kv_heads=6), r"num_heads=3 is not divisible by num_kv_heads=6; try num_kv_heads=3$"),
        (lambda: MultiHeadAttention(12, 3, dropout=1.0), r"dropout=1\.0 must be a number from 0"),
        (lambda: MultiHeadAttention(12, 3, kdim=0), r"kdim=0 is below 1"),
        (lambda: MultiHeadAttention(12, 3, vdim=1.5), r"vdim=1\.5 is a float"),
        (lambda: MultiHeadAttention(12, 3, positions="alibi"), r"positions is a str; it must be an AttentionPositions, such as RotaryPositions"),
        (lambda: MultiHeadAttention(12, 3, positions=AlibiBias), r"positions is a type; it must be an AttentionPositions"),
        (lambda: MultiHeadAttention(12, 3, positions=make_positions("sinusoidal", 12, 3, max_length=4).embedding), r"positions is a SinusoidalPositions; .*go before the layer"),
        (lambda: MultiHeadAttention(18, 3, positions=AlibiBias(3))(X, X.clone()), r"AlibiBias counts positions along one sequence, .*leave key out"),
        (lambda: to_torch(MultiHeadAttention(18, 3, positions=AlibiBias(3))), r"has AlibiBias, for which nn\.MultiheadAttention has no counterpart"),
        (lambda: MultiHeadAttention(18, 3, positions=AlibiBias(2))(X), r"positions was made with num_heads=2, but the layer has num_heads=3"),
        (lambda: LAYERED(None), r"query is a NoneType; a tensor is needed"),
        (lambda: LAYERED(X.long()), r"query has dtype int64; .*query\.float\(\)"),
        (lambda: LAYERED(X[0]), r"query has shape \(4, 18\); it must be \(batch, length, dimension\), e\.g\. query\[None\]"),
        (lambda: LAYERED(X, Y[None]), r"key has shape \(1, 2, 5, 18\); it must be \(batch, length, dimension\)"),
        (lambda: LAYERED(X, Y, Y[0]), r"value has shape \(5, 18\); it must be \(batch, length, dimension\)"),
        (lambda: LAYERED(X[..., :7]), r"query has .* dimension 7; the layer was made for 18 in each query"),
        (lambda: LAYERED(X, Y[..., :7]), r"key has .* dimension 7; the layer was made for 18 in each key"),
        (lambda: OTHERS(X), r"key has .* dimension 18; the layer was made for 7 in each key"),
        (lambda: OTHERS(X, Y[..., :7]), r"value has .* dimension 7; the layer was made for 8 in each value"),
        (lambda: LAYERED(X, Y[:1]), r"query has .* but key has shape \(1, 5, 18\): batches of 2 and 1; they must be equal"),
        (lambda: LAYERED(X, Y, Y[:1]), r"query has .* but value has shape \(1, 5, 18\): batches of 2 and 1"),
        (lambda: LAYERED(X, Y, X), r"key has shape \(2, 5, 18\) but value has shape \(2, 4, 18\), that is 5 keys and 4 values"),
        (lambda: LAYERED(X.double()), r"query has dtype float64, but the parameters of the layer have float32"),
        (lambda: LAYERED(X, Y.half()), r"key has dtype float16, but the parameters of the layer have float32"),
        (lambda: LAYERED(X, Y, Y.to("meta")), r"value has device meta, but the parameters of the layer have cpu"),
        (lambda: LAYERED(X, Y, mask=M.float()), r"mask is float32; it must be a boolean tensor"),
        (lambda: LAYERED(X, Y, mask=M.expand(2, 3, 4, 5).int()), r"mask is int32; it must be a boolean tensor"),
        (lambda: LAYERED(X, Y, mask=[True]), r"mask is list; it must be a boolean tensor"),
        (lambda: LAYERED(X, Y, mask=M.mT), rf"mask has shape \(5, 4\); it must broadcast to {THREE}query is 5 and not 4 or 1, key is 4 and not 5 or 1$"),
        (lambda: LAYERED(X, Y, mask=M.expand(3, 4, 5)), rf"{THREE}batch is 3 and not 2 or 1$"),
        (lambda: LAYERED(X, Y, mask=M.expand(2, 2, 4, 5)), rf"{FOUR}heads is 2 and not 3 or 1$"),
        (lambda: LAYERED(X, Y, mask=M.expand(3, 3, 4, 5)), rf"{FOUR}batch is 3 and not 2 or 1$"),
        (lambda: LAYERED(X, Y, mask=M.expand(1, 1, 1, 4, 5)), rf"{THREE[:-2]}: it has 5 axes, at most 3 fit"),
        (lambda: LOOP(X, Y, mask=M.expand(2, 3, 4, 5)), rf"{THREE[:-2]}: it has 4 axes, at most 3 fit"),
        (lambda: LOOP(X, Y[:1]), r"query has .* but key has shape \(1, 5, 18\): batches of 2 and 1"),
        (lambda: from_per_head(LAYERED), r"layer is a MultiHeadAttention; it must be a PerHeadMultiHead"),
        (lambda: from_per_head(FullWidthMultiHead(6, 2)), r"layer is a FullWidthMultiHead; it must be"),
        (lambda: from_torch(LOOP), r"layer is a PerHeadMultiHead; it must be an nn\.MultiheadAttention"),
        (lambda: from_torch(SingleHeadAttention(6)), r"layer is a SingleHeadAttention; it must be an nn\."),
        (lambda: from_torch(nn.MultiheadAttention(6, 2, add_bias_kv=True)), r"layer was made with add_bias_kv or add_zero_attn"),
        (lambda: from_torch(nn.MultiheadAttention(6, 2, add_zero_attn=True)), r"layer was made with add_bias_kv or add_zero_attn"),
    ],
)  # fmt: skip
def test_invalid_input_raises_value_error(call, says):
    with pytest.raises(ValueError, match=says):
        call()
