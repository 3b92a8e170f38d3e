"""Self- and cross-attention with one head against PyTorch's kernel on projections by hand."""

import pytest
import torch
import torch.nn.functional as F

from course_lib.transformer.attention import CrossAttention, SelfAttention, SingleHeadAttention
from tests.helpers.attention import BATCH, D_HEAD, D_MODEL, KEYS, QUERIES
from tests.helpers.tensors import DTYPES, ROUNDING, check, in_float64, random_mask

#: Which of three sequences each layer is called with, and which are its queries, keys and values.
LAYERS = {SingleHeadAttention: ([0, 1, 2], [0, 1, 2]), SelfAttention: ([0], [0, 0, 0]), CrossAttention: ([0, 1], [0, 1, 1])}  # fmt: skip


def sequences(dtype):
    lengths = (QUERIES, KEYS, KEYS)
    return [torch.randn(BATCH, n, D_MODEL, dtype=dtype, requires_grad=True) for n in lengths]


# fmt: off
@pytest.mark.verifies("course_lib.transformer.attention.SingleHeadAttention", "course_lib.transformer.attention.SelfAttention", "course_lib.transformer.attention.CrossAttention", against="PyTorch `F.scaled_dot_product_attention`")
# fmt: on
@pytest.mark.parametrize(("d_head", "masked"), [(None, False), (D_HEAD, True)])
@pytest.mark.parametrize("make", LAYERS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_single_head_attention_equals_pytorch(ledger, dtype, make, d_head, masked):
    layer, inputs, (given, parts) = make(D_MODEL, d_head).to(dtype), sequences(dtype), LAYERS[make]
    x = in_float64(*inputs)
    p = dict(zip(layer.state_dict(), in_float64(*layer.parameters()), strict=True))
    q, k, v = (
        x[part] @ p[f"{name}_proj.weight"].T + p[f"{name}_proj.bias"]
        for name, part in zip("qkv", parts, strict=True)
    )
    mask = random_mask(BATCH, q.shape[1], k.shape[1]) if masked else None
    ours = layer(*(inputs[i] for i in given), mask)
    identity = torch.eye(k.shape[1], dtype=torch.float64).expand(BATCH, -1, -1)  # for the weights
    output, weights = (F.scaled_dot_product_attention(q, k, each, mask) for each in (v, identity))
    leaves = [*(inputs[i] for i in given), *layer.parameters()]
    oracles = [*(x[i] for i in given), *p.values()]
    check(ledger, ours.output, leaves, output, oracles, ROUNDING[dtype])
    ledger.compare(ours.weights, weights, within=ROUNDING[dtype])


@pytest.mark.parametrize("make", LAYERS)
def test_single_head_under_autocast_and_in_half_precision(make):
    layer, given = make(D_MODEL), [sequences(torch.float32)[i] for i in LAYERS[make][0]]
    plain = layer(*given).output
    with torch.autocast("cpu", torch.bfloat16):
        mixed = [layer(*given), layer(*(tensor.bfloat16() for tensor in given))]
    for ours in (*mixed, layer.bfloat16()(*(tensor.bfloat16() for tensor in given))):
        assert ours.output.dtype == torch.bfloat16
        torch.testing.assert_close(ours.output.float(), plain, rtol=0, atol=0.05)
