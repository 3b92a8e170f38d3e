"""Self- and cross-attention with one head against NumPy and `nn.MultiheadAttention`."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from course_lib.attention import AttentionOutput, CrossAttention, SelfAttention, SingleHeadAttention
from tests.helpers.attention import BATCH, D_HEAD, D_MODEL, KEYS, QUERIES
from tests.helpers.tensors import DTYPES, ROUNDING, gradients, in_float64, random_mask


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
                ("q_proj", "k_proj", "v_proj"),
                (t[b].detach().double().numpy() for t in (query, key, value)),
                strict=True,
            )
        )
        scores = np.array([[q_i @ k_j / math.sqrt(len(q_i)) for k_j in k] for q_i in q])
        visible = True if mask is None else mask[b].numpy()
        powers = np.where(visible, np.exp(scores), 0.0)
        weights.append(powers / powers.sum(1, keepdims=True))
        outputs.append([sum(w * v_j for w, v_j in zip(row, v, strict=True)) for row in weights[-1]])
    return AttentionOutput(torch.tensor(np.array(outputs)), torch.tensor(np.array(weights)))


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


@pytest.mark.parametrize(("d_head", "masked"), [(None, False), (D_HEAD, True)])
@pytest.mark.parametrize("make", EVERY_LAYER)
def test_single_head_attention_equals_numpy(ledger, make, d_head, masked):
    layer = make(D_MODEL, d_head).double()
    given, (query, key, value) = calls(layer, sequences())
    mask = random_mask(BATCH, query.shape[1], key.shape[1]) if masked else None
    ours, theirs = layer(*given, mask), by_numpy(layer, query, key, value, mask)
    ledger.compare(ours.output, theirs.output, within=1e-10)
    ledger.compare(ours.weights, theirs.weights, within=1e-10)


ONE_HEAD = [
    pytest.param(SingleHeadAttention, marks=pytest.mark.verifies("course_lib.attention.SingleHeadAttention", against="PyTorch `nn.MultiheadAttention` with one head")),
    pytest.param(SelfAttention, marks=pytest.mark.verifies("course_lib.attention.SelfAttention", against="PyTorch `nn.MultiheadAttention` with one head")),
    pytest.param(CrossAttention, marks=pytest.mark.verifies("course_lib.attention.CrossAttention", against="PyTorch `nn.MultiheadAttention` with one head")),
]  # fmt: skip


def with_the_weights_of(layer):
    """PyTorch's layer with one head, whose last projection changes nothing."""
    theirs = nn.MultiheadAttention(D_MODEL, 1, batch_first=True).double()
    projections = layer.q_proj, layer.k_proj, layer.v_proj
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([each.weight for each in projections]))
        theirs.in_proj_bias.copy_(torch.cat([each.bias for each in projections]))
        theirs.out_proj.weight.copy_(torch.eye(D_MODEL))
    return theirs


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("make", ONE_HEAD)
@pytest.mark.parametrize("dtype", DTYPES)
def test_single_head_attention_and_gradients_equal_pytorch(ledger, dtype, make, masked):
    layer, inputs = make(D_MODEL).to(dtype), sequences(dtype)
    oracle, copies = with_the_weights_of(layer), in_float64(*inputs)
    given, _ = calls(layer, inputs)
    _, (query, key, value) = calls(layer, copies)
    mask = random_mask(query.shape[1], key.shape[1]) if masked else None
    hidden = None if mask is None else ~mask  # theirs is the other way round
    ours, theirs = (
        layer(*given, mask),
        AttentionOutput(*oracle(query, key, value, attn_mask=hidden)),
    )
    mine = [*inputs, *layer.parameters()]
    packed = [oracle.in_proj_weight, oracle.in_proj_bias]
    mixes = [torch.randn(tensor.shape, dtype=torch.float64) for tensor in theirs]
    *for_inputs, weight, bias = gradients(theirs, [*copies, *packed], mixes)
    slopes = [each for pair in zip(weight.chunk(3), bias.chunk(3), strict=True) for each in pair]
    for one, two in zip(ours, theirs, strict=True):
        ledger.compare(one, two, within=ROUNDING[dtype])
    for one, two in zip(gradients(ours, mine, mixes), [*for_inputs, *slopes], strict=True):
        ledger.compare(one, two, within=ROUNDING[dtype], backward=True)


@pytest.mark.parametrize("make", [SingleHeadAttention, SelfAttention, CrossAttention])
def test_single_head_under_autocast_and_in_half_precision(make):
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
