"""Splitting and merging heads; one head after the other, in NumPy and with PyTorch's kernel."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.attention import AttentionOutput
from course_lib.multihead import (
    MultiHeadAttention,
    merge_heads,
    split_heads,
)
from tests.helpers.multihead import (
    BATCH,
    D_HEAD,
    D_MODEL,
    FULLY_MASKED,
    HEADS,
    KEYS,
    MASKS,
    QUERIES,
    HeadLoop,
    batched,
    compare_all,
    mixes_for,
    sequences,
)
from tests.helpers.tensors import DTYPES, ROUNDING, gradients, in_float64

# --- splitting and merging -------------------------------------------------------------------


@pytest.mark.verifies("course_lib.multihead.split_heads", against="an explicit loop over indices")
@pytest.mark.parametrize("batch", [(), (BATCH,), (BATCH, 7)])
@pytest.mark.parametrize("heads", [1, HEADS, D_MODEL])
def test_split_heads_takes_contiguous_slices(ledger, batch, heads):
    x = torch.randn(*batch, QUERIES, D_MODEL, dtype=torch.float64)
    width = D_MODEL // heads
    theirs = torch.empty(*batch, heads, QUERIES, width, dtype=torch.float64)
    for *where, head, place, number in np.ndindex(*theirs.shape):
        theirs[*where, head, place, number] = x[*where, place, head * width + number]
    ledger.compare(split_heads(x, heads), theirs, within=0)


@pytest.mark.verifies("course_lib.multihead.merge_heads", against="an explicit loop over indices")
@pytest.mark.parametrize("batch", [(), (BATCH,), (BATCH, 7)])
def test_merge_heads_concatenates_the_heads(ledger, batch):
    heads = torch.randn(*batch, HEADS, QUERIES, D_HEAD, dtype=torch.float64)
    theirs = torch.empty(*batch, QUERIES, D_MODEL, dtype=torch.float64)
    for *where, head, place, number in np.ndindex(*heads.shape):
        theirs[*where, place, head * D_HEAD + number] = heads[*where, head, place, number]
    ledger.compare(merge_heads(heads), theirs, within=0)


@given(
    batch=st.lists(st.integers(1, 3), max_size=2),
    length=st.integers(1, 5),
    heads=st.integers(1, 5),
    d_head=st.integers(1, 4),
)
@settings(deadline=None, max_examples=30)
def test_merge_heads_inverts_split_heads(batch, length, heads, d_head):
    x = torch.randn(*batch, length, heads * d_head)
    split = split_heads(x, heads)
    assert split.shape == (*batch, heads, length, d_head)
    assert torch.equal(merge_heads(split), x)


# --- head by head ----------------------------------------------------------------------------


def linear(p, name, tokens):
    return np.array([p[f"{name}.weight"] @ token + p[f"{name}.bias"] for token in tokens])


def by_numpy(layer, query, key, value, mask=None):
    """One sequence, one head, one query at a time; the heads' weights are those of `heads.i`."""
    p = {name: tensor.detach().double().numpy() for name, tensor in layer.state_dict().items()}
    query, key, value = (tensor.detach().double().numpy() for tensor in (query, key, value))
    heads = len(layer.heads)
    visible = np.ones((len(query), heads, QUERIES, KEYS), bool)
    if mask is not None:
        visible &= (mask if mask.dim() == 2 else mask[:, None]).numpy()
    outputs, weights = [], np.zeros(visible.shape)
    for b in range(len(query)):
        beside = []
        for h in range(heads):
            q = linear(p, f"heads.{h}.q_proj", query[b])
            k = linear(p, f"heads.{h}.k_proj", key[b])
            v = linear(p, f"heads.{h}.v_proj", value[b])
            for i in range(QUERIES):
                powers = visible[b, h, i] * np.exp(k @ q[i] / math.sqrt(q.shape[1]))
                weights[b, h, i] = powers / (powers.sum() or 1.0)
            beside.append(weights[b, h] @ v)
        outputs.append(linear(p, "out_proj", np.concatenate(beside, axis=1)))
    return AttentionOutput(torch.tensor(np.array(outputs)), torch.tensor(weights))


def by_pytorch_head_by_head(layer, query, key, value, mask):
    outputs = [
        F.scaled_dot_product_attention(
            head.q_proj(query), head.k_proj(key), head.v_proj(value), mask
        )
        for head in layer.heads
    ]
    return AttentionOutput(layer.out_proj(torch.cat(outputs, -1)), None)


OVER_ALL_HEADS = [
    "none",
    "padding",
    "causal",
    "(batch, query, key)",
    "a fully masked row",
    "all rows masked",
]


@pytest.mark.verifies("course_lib.multihead.MultiHeadAttention", against="its equations in NumPy")
@pytest.mark.parametrize("mask", OVER_ALL_HEADS)
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
def test_multihead_attention_equals_numpy(ledger, dtype, training, mask):
    loop, inputs = HeadLoop(D_MODEL, HEADS).to(dtype).train(training), sequences(dtype=dtype)
    layer, mask = batched(loop), (MASKS | FULLY_MASKED)[mask]()
    ours = layer(*inputs, mask, need_weights=True)
    assert ours.output.dtype == dtype and layer.num_kv_heads == HEADS
    theirs = by_numpy(loop, *inputs, mask)
    compare_all(ledger, ours, theirs, ROUNDING[dtype])
    ledger.compare(layer(*inputs, mask).output, theirs[0], within=ROUNDING[dtype])


@pytest.mark.verifies(
    "course_lib.multihead.MultiHeadAttention",
    against="PyTorch `F.scaled_dot_product_attention`, head by head",
)
@pytest.mark.parametrize("mask", OVER_ALL_HEADS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_multihead_gradients_equal_pytorch_head_by_head(ledger, dtype, mask):
    loop, inputs = HeadLoop(D_MODEL, HEADS).to(dtype), sequences(dtype=dtype)
    layer, mask = batched(loop), (MASKS | FULLY_MASKED)[mask]()
    oracle, copies = loop.double(), in_float64(*inputs)
    ours = AttentionOutput(layer(*inputs, mask).output, None)
    theirs = by_pytorch_head_by_head(oracle, *copies, mask)
    ledger.compare(ours.output, theirs.output, within=ROUNDING[dtype])
    mixes = mixes_for(theirs)
    names = ("q_proj", "k_proj", "v_proj")
    heads = [head.get_submodule(name).weight for name in names for head in oracle.heads]
    *slopes, out = gradients(theirs, [*copies, *heads, oracle.out_proj.weight], mixes)
    slopes[3:] = [torch.cat(slopes[at : at + HEADS]) for at in range(3, len(slopes), HEADS)]
    weights = [layer.get_submodule(name).weight for name in names]
    mine = gradients(ours, [*inputs, *weights, layer.out_proj.weight], mixes)
    compare_all(ledger, mine, [*slopes, out], ROUNDING[dtype], backward=True)


def test_key_defaults_to_query_and_value_to_key():
    layer, (x, memory, _) = MultiHeadAttention(D_MODEL, HEADS).double(), sequences()
    torch.testing.assert_close(layer(x), layer(x, x, x), rtol=0, atol=0)
    torch.testing.assert_close(layer(x, memory), layer(x, memory, memory), rtol=0, atol=0)
    torch.testing.assert_close(layer(x, value=2 * x), layer(x, x, 2 * x), rtol=0, atol=0)


def size(layer):
    return sum(p.numel() for name, p in layer.named_parameters() if name.endswith("weight"))


@pytest.mark.parametrize("heads", [1, 2, 3, 6])
def test_parameter_count_of_split_and_mqa_heads(heads):
    assert size(MultiHeadAttention(D_MODEL, heads)) == 4 * D_MODEL**2
    assert size(MultiHeadAttention(D_MODEL, heads, num_kv_heads=1)) == (2 + 2 / heads) * D_MODEL**2
