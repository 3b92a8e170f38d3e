"""Multi-head attention against PyTorch's layer, with weights converted either way."""

import pytest
import torch
from torch import nn

from course_lib.attention import AttentionOutput
from course_lib.convert import from_torch, to_torch
from course_lib.multihead import MultiHeadAttention
from tests.helpers.multihead import (
    BATCH,
    D_MODEL,
    HEADS,
    KEY_SIZE,
    KEYS,
    MASKS,
    QUERIES,
    VALUE_SIZE,
    compare_all,
    mixes_for,
    padding,
    randomized,
    sequences,
)
from tests.helpers.tensors import DTYPES, ROUNDING, gradients, in_float64

# --- PyTorch's layer -------------------------------------------------------------------------

KINDS = {
    "packed": {},
    "without bias": {"bias": False},
    "other sizes": {"kdim": KEY_SIZE, "vdim": VALUE_SIZE},
    "other sizes without bias": {"kdim": KEY_SIZE, "vdim": VALUE_SIZE, "bias": False},
    "other keys": {"kdim": KEY_SIZE},
}


def our_words(kind):
    words = {"kdim": "kdim", "vdim": "vdim", "bias": "bias"}
    return {words[name]: value for name, value in KINDS[kind].items()}


def inputs_for(kind, dtype=torch.float64):
    sizes = KINDS[kind]
    return sequences(sizes.get("kdim", D_MODEL), sizes.get("vdim", D_MODEL), dtype)


def from_theirs(kind, dtype):
    """Their layer with random weights, and ours with the same."""
    theirs = randomized(nn.MultiheadAttention(D_MODEL, HEADS, batch_first=True, **KINDS[kind]))
    return from_torch(theirs.to(dtype)), theirs.double()


def to_theirs(kind, dtype):
    """Our layer with random weights, and theirs with the same."""
    ours = randomized(MultiHeadAttention(D_MODEL, HEADS, **our_words(kind)), dtype)
    return ours, to_torch(ours).double()


def under_our_names(layer, of):
    """PyTorch's parameters, or their gradients: `of` says which."""
    rows, named = layer.embed_dim, {}
    for place, name in enumerate("qkv"):
        third = slice(place * rows, (place + 1) * rows)
        full = {"q": "q_proj", "k": "k_proj", "v": "v_proj"}[name]
        apart = getattr(layer, f"{name}_proj_weight")
        packed = layer.in_proj_weight
        named[f"{full}.weight"] = of(packed)[third] if apart is None else of(apart)
        if layer.in_proj_bias is not None:
            named[f"{full}.bias"] = of(layer.in_proj_bias)[third]
    named["out_proj.weight"] = of(layer.out_proj.weight)
    if layer.out_proj.bias is not None:
        named["out_proj.bias"] = of(layer.out_proj.bias)
    return named


def hidden(mask):
    """The mask as PyTorch's layer wants it: True hides, (batch · heads, query, key)."""
    if mask is None:
        return None
    mask = mask[:, None] if mask.dim() == 3 else mask
    return ~mask.expand(BATCH, HEADS, QUERIES, KEYS).reshape(-1, QUERIES, KEYS)


def check(ledger, layer, oracle, inputs, mask, need_weights, dtype):
    """Compare output, weights and every gradient with PyTorch's layer in float64."""
    copies = in_float64(*inputs)
    ours = layer(*inputs, mask, need_weights=need_weights)
    output, weights = oracle(*copies, attn_mask=hidden(mask), average_attn_weights=False)
    theirs = AttentionOutput(output, weights if need_weights else None)
    assert ours.output.dtype == dtype and (ours.weights is not None) == need_weights
    compare_all(ledger, ours, theirs, ROUNDING[dtype])
    mixes, named = mixes_for(theirs), dict(layer.named_parameters())
    mine = gradients(ours, [*inputs, *named.values()], mixes)
    parameters = dict(oracle.named_parameters())
    slopes = gradients(theirs, [*copies, *parameters.values()], mixes)
    found = {id(p): s for p, s in zip(parameters.values(), slopes[3:], strict=True)}
    by_name = under_our_names(oracle, lambda parameter: found[id(parameter)])
    assert by_name.keys() == named.keys()
    slopes = [*slopes[:3], *(by_name[name] for name in named)]
    compare_all(ledger, mine, slopes, ROUNDING[dtype], backward=True)


LAYER = pytest.mark.verifies(
    "course_lib.multihead.MultiHeadAttention", against="PyTorch `nn.MultiheadAttention`"
)


@LAYER
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_multi_head_attention_equals_pytorch_under_every_mask(ledger, dtype, mask, need_weights):
    layer, oracle = from_theirs("packed", dtype)
    inputs = inputs_for("packed", dtype)
    check(ledger, layer, oracle, inputs, MASKS[mask](), need_weights, dtype)


@LAYER
@pytest.mark.verifies(
    "course_lib.convert.from_torch", against="the outputs and gradients of PyTorch's layer"
)
@pytest.mark.verifies(
    "course_lib.convert.to_torch", against="the outputs and gradients of PyTorch's layer"
)
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("carry", [from_theirs, to_theirs])
@pytest.mark.parametrize("dtype", DTYPES)
def test_from_torch_and_to_torch_give_the_same_layer(ledger, dtype, carry, kind, need_weights):
    layer, oracle = carry(kind, dtype)
    mask = MASKS["both"]()
    check(ledger, layer, oracle, inputs_for(kind, dtype), mask, need_weights, dtype)


@LAYER
def test_padding_mask_is_the_inverse_of_key_padding_mask(ledger):
    layer, oracle = from_theirs("packed", torch.float64)
    inputs = inputs_for("packed")
    theirs, _ = oracle(*inputs, key_padding_mask=~padding()[:, 0])
    ledger.compare(layer(*inputs, padding()).output, theirs, within=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_from_torch_inverts_to_torch(kind):
    layer = randomized(MultiHeadAttention(D_MODEL, HEADS, dropout=0.2, **our_words(kind))).eval()
    theirs = to_torch(layer)
    again = from_torch(theirs)
    for carried in (theirs, again):
        assert carried.dropout == 0.2 and not carried.training
        assert {p.dtype for p in carried.parameters()} == {torch.float64}
    assert theirs.batch_first
    assert (again.num_heads, again.num_kv_heads) == (HEADS, HEADS)
    state = under_our_names(theirs, lambda parameter: parameter.detach())
    for name, parameter in layer.state_dict().items():
        assert torch.equal(state[name], parameter)
        assert torch.equal(again.state_dict()[name], parameter)


def test_conversions_copy_the_weights():
    theirs = randomized(nn.MultiheadAttention(D_MODEL, HEADS))
    ours = from_torch(theirs)
    for source, made in ((theirs, ours), (ours, to_torch(ours))):
        before = [parameter.detach().clone() for parameter in source.parameters()]
        for parameter in made.parameters():
            assert parameter.requires_grad and parameter.is_leaf
            parameter.data.zero_()
        after = list(source.parameters())
        assert all(torch.equal(*pair) for pair in zip(before, after, strict=True))
