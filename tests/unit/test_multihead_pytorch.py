"""Multi-head attention against PyTorch's layer, with weights converted either way."""

import pytest
import torch
from torch import nn

from course_lib.transformer.attention import AttentionOutput
from course_lib.transformer.convert import from_torch
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

KINDS = {
    "packed": {},
    "without bias": {"bias": False},
    "other sizes": {"kdim": KEY_SIZE, "vdim": VALUE_SIZE},
    "other keys without bias": {"kdim": KEY_SIZE, "bias": False},
}


def inputs_for(kind, dtype=torch.float64):
    sizes = {name: size for name, size in KINDS[kind].items() if name != "bias"}
    return sequences(**sizes, dtype=dtype)


def from_theirs(kind, dtype):
    """Their layer with random weights, and ours with the same."""
    theirs = randomized(nn.MultiheadAttention(D_MODEL, HEADS, batch_first=True, **KINDS[kind]))
    return from_torch(theirs.to(dtype)), theirs.double()


def under_our_names(layer, of):
    """PyTorch's parameters, or their gradients: `of` says which."""
    named = {f"out_proj.{name}": of(p) for name, p in layer.out_proj.named_parameters()}
    for place, name in enumerate("qkv"):
        third = slice(place * D_MODEL, (place + 1) * D_MODEL)
        apart = getattr(layer, f"{name}_proj_weight")
        weight = of(layer.in_proj_weight)[third] if apart is None else of(apart)
        named[f"{name}_proj.weight"] = weight
        if layer.in_proj_bias is not None:
            named[f"{name}_proj.bias"] = of(layer.in_proj_bias)[third]
    return named


def hidden(mask):
    """The mask as PyTorch's layer wants it: True hides, (batch · heads, query, key)."""
    if mask is None:
        return None
    mask = mask[:, None] if mask.dim() == 3 else mask
    return ~mask.expand(BATCH, HEADS, QUERIES, KEYS).reshape(-1, QUERIES, KEYS)


@pytest.mark.verifies(
    "course_lib.transformer.multihead.MultiHeadAttention", against="PyTorch `nn.MultiheadAttention`"
)
@pytest.mark.verifies(
    "course_lib.transformer.convert.from_torch",
    against="the outputs and gradients of PyTorch's layer",
)
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize(
    ("kind", "mask"), [*(("packed", mask) for mask in MASKS), *((kind, "both") for kind in KINDS)]
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_multi_head_attention_equals_pytorch(ledger, dtype, kind, mask, need_weights):
    (layer, oracle), inputs, mask = from_theirs(kind, dtype), inputs_for(kind, dtype), MASKS[mask]()
    copies = in_float64(*inputs)
    ours = layer(*inputs, mask, need_weights=need_weights)
    output, weights = oracle(*copies, attn_mask=hidden(mask), average_attn_weights=False)
    theirs = AttentionOutput(output, weights if need_weights else None)
    assert ours.output.dtype == dtype and (ours.weights is not None) == need_weights
    compare_all(ledger, ours, theirs, ROUNDING[dtype])
    mixes, named = mixes_for(theirs), dict(layer.named_parameters())
    mine = gradients(ours, [*inputs, *named.values()], mixes)
    parameters = list(oracle.parameters())
    slopes = gradients(theirs, [*copies, *parameters], mixes)
    found = {id(p): s for p, s in zip(parameters, slopes[3:], strict=True)}
    by_name = under_our_names(oracle, lambda parameter: found[id(parameter)])
    assert by_name.keys() == named.keys()
    slopes = [*slopes[:3], *(by_name[name] for name in named)]
    compare_all(ledger, mine, slopes, ROUNDING[dtype], backward=True)


@pytest.mark.verifies(
    "course_lib.transformer.multihead.MultiHeadAttention", against="PyTorch `nn.MultiheadAttention`"
)
def test_padding_mask_is_the_inverse_of_key_padding_mask(ledger):
    (layer, oracle), inputs = from_theirs("packed", torch.float64), inputs_for("packed")
    theirs, _ = oracle(*inputs, key_padding_mask=~padding()[:, 0])
    ledger.compare(layer(*inputs, padding()).output, theirs, within=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_a_conversion_copies_weights_and_settings(kind):
    theirs = nn.MultiheadAttention(D_MODEL, HEADS, dropout=0.2, batch_first=True, **KINDS[kind])
    theirs = randomized(theirs).eval()
    ours, wanted = from_torch(theirs), under_our_names(theirs, torch.clone)
    assert (ours.num_heads, ours.num_kv_heads) == (HEADS, HEADS)
    assert ours.dropout == 0.2 and not ours.training
    for parameter in theirs.parameters():
        parameter.data.zero_()  # copied, not shared
    state = ours.state_dict()
    assert state.keys() == wanted.keys()
    assert all(torch.equal(state[name], tensor) for name, tensor in wanted.items())
    assert all(p.requires_grad and p.dtype == torch.float64 for p in ours.parameters())
