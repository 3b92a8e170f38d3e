"""The parts of a block and the two blocks, against PyTorch's layers and against these composed by hand."""

import copy
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.transformer.convert import from_torch
from course_lib.transformer.layers import (
    ACTIVATIONS,
    NORMS,
    DecoderLayer,
    Dropout,
    EncoderLayer,
    FeedForward,
)
from course_lib.transformer.norms import LayerNorm
from course_lib.transformer.positions import AlibiBias, RotaryPositions
from tests.helpers.layers import norms
from tests.helpers.tensors import DTYPES, HALVES, ROUNDING, check, in_float64, random_mask
from tests.helpers.transformer import randomized

# No two axes are equally long, so that none can be taken for another.
BATCH, HEADS, TARGET, SOURCE, D_FF, D_MODEL = 2, 3, 4, 5, 7, 12


def vectors(*shape, dtype=torch.float64):
    return torch.randn(shape, dtype=dtype, requires_grad=True)


# --- dropout ---------------------------------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.transformer.layers.Dropout", against="its definition, on a million numbers"
)
@pytest.mark.parametrize("p", [0.05, 0.5, 0.9])
def test_dropout_zeroes_a_fraction_and_scales_the_rest(ledger, p):
    count = 1_000_000
    x = vectors(count)
    out = Dropout(p)(x)
    dropped = out == 0
    bound = 5 * math.sqrt(count * p * (1 - p))
    assert abs(dropped.sum().item() - count * p) < bound
    assert abs((dropped[1:] & dropped[:-1]).sum().item() - count * p * p) < 2 * bound  # one by one
    ledger.compare(out[~dropped], x[~dropped] / (1 - p), within=5e-14)
    (slope,) = torch.autograd.grad(out.sum(), x)
    ledger.compare(slope, (~dropped).double() / (1 - p), within=5e-14, backward=True)


@pytest.mark.parametrize("dtype", HALVES)
def test_dropout_acts_only_in_training_and_keeps_the_dtype(dtype):
    x, layer = torch.ones(1000, dtype=dtype), Dropout(0.5)
    assert layer(x).dtype == dtype and set(layer(x).tolist()) == {0.0, 2.0}
    assert Dropout(0.0)(x) is x and layer.eval()(x) is x and (x == 1).all()


# --- layer norm ------------------------------------------------------------------------------


@pytest.mark.verifies("course_lib.transformer.norms.LayerNorm", against="PyTorch `nn.LayerNorm`")
@pytest.mark.parametrize(
    ("shape", "eps"),
    [((D_MODEL,), 1e-5), ((2, 3, D_MODEL), 1e-12), ((2, 1, 3, 64), 0.5), ((4, 1), 0.5)],
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_layer_norm_equals_pytorch(ledger, dtype, shape, eps):
    ours, theirs = LayerNorm(shape[-1], eps), nn.LayerNorm(shape[-1], eps).double()
    assert all(map(torch.equal, ours.parameters(), nn.LayerNorm(shape[-1]).parameters()))
    theirs.load_state_dict(randomized(ours, dtype).state_dict())
    x = (3 * torch.randn(shape) + 2).to(dtype).requires_grad_()
    (copied,) = in_float64(x)
    leaves, oracles = [x, *ours.parameters()], [copied, *theirs.parameters()]
    ledger.compare(ours(x), theirs(copied), within=1e-12 if dtype == torch.float64 else 1e-5)
    within = 1e-11 if dtype == torch.float64 else 10 * ROUNDING[dtype]
    check(ledger, ours(x), leaves, theirs(copied), oracles, within)


def test_layer_norm_of_a_constant_vector_is_the_bias():
    norm, x = randomized(LayerNorm(8)), torch.full((2, 8), -1e4).double().requires_grad_()
    torch.testing.assert_close(norm(x), norm.bias.expand(2, -1))
    norm(x).square().sum().backward()
    assert x.grad.isfinite().all() and norm.weight.grad.isfinite().all()


@pytest.mark.parametrize("dtype", HALVES)
def test_layer_norm_in_half_precision_equals_pytorch(dtype):
    """Of numbers whose squares do not fit: the sums run in float32, and one rounding is left."""
    ours, theirs = randomized(LayerNorm(300), dtype), nn.LayerNorm(300).to(dtype)
    theirs.load_state_dict(ours.state_dict())
    x = (3000 * torch.randn(40, 300)).to(dtype)
    assert ours(x).dtype == dtype
    torch.testing.assert_close(ours(x), theirs(x), rtol=0.02, atol=0.02)


# --- feed-forward network --------------------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.transformer.layers.FeedForward",
    against="PyTorch `nn.Sequential` of two `nn.Linear`",
)
@pytest.mark.parametrize(("activation", "phi"), [("relu", nn.ReLU()), ("gelu", nn.GELU())])
@pytest.mark.parametrize("dtype", DTYPES)
def test_feed_forward_equals_pytorch(ledger, dtype, activation, phi):
    ours = randomized(FeedForward(D_MODEL, D_FF, activation=activation), dtype)
    theirs = nn.Sequential(nn.Linear(D_MODEL, D_FF), phi, nn.Linear(D_FF, D_MODEL)).double()
    theirs[0].load_state_dict(ours.up_proj.state_dict())
    theirs[2].load_state_dict(ours.down_proj.state_dict())
    x = vectors(BATCH, TARGET, D_MODEL, dtype=dtype)
    (copied,) = in_float64(x)
    leaves = [x, *ours.up_proj.parameters(), *ours.down_proj.parameters()]
    oracles = [copied, *theirs.parameters()]
    check(ledger, ours(x), leaves, theirs(copied), oracles, ROUNDING[dtype])


@pytest.mark.verifies(
    "course_lib.transformer.layers.ACTIVATIONS", against="their formulas and `math.erf`"
)
def test_activations_equal_their_formulas(ledger):
    x = torch.linspace(-6, 6, 97, dtype=torch.float64)
    formulas = {
        "relu": lambda u: max(0.0, u),
        "gelu": lambda u: u * (1 + math.erf(u / math.sqrt(2))) / 2,
        "swiglu": lambda u: u / (1 + math.exp(-u)),
    }
    assert ACTIVATIONS.keys() == formulas.keys()
    for name, formula in formulas.items():
        wanted = torch.tensor([formula(u) for u in x.tolist()], dtype=x.dtype)
        ledger.compare(ACTIVATIONS[name](x), wanted, within=1e-14)


def test_feed_forward_dropout_acts_on_hidden_units_only():
    network = FeedForward(4, 5000, dropout=0.5).double()
    for part, value in ((network.up_proj, 0.0), (network.down_proj, 1 / 5000)):
        nn.init.constant_(part.weight, value)
        nn.init.constant_(part.bias, float(part is network.up_proj))  # all that stands between is 1
    x = torch.randn(6, 4).double()
    out = network(x)
    assert (out == out[:, :1]).all()  # what comes out is dropped from no more
    assert 0 < (out - 1).abs().max() < 0.1 and len(out[:, 0].unique()) == 6
    torch.testing.assert_close(network.eval()(x), torch.ones(6, 4).double())


# --- PyTorch's blocks ------------------------------------------------------------------------


def under_our_names(layer, of):
    """Our names of PyTorch's parameters, which packs queries, keys and values; `of` each is taken."""
    parts = {"feed_forward.up_proj": layer.linear1, "feed_forward.down_proj": layer.linear2}
    attentions = {"attention": layer.self_attn}
    if isinstance(layer, nn.TransformerDecoderLayer):
        attentions = {"self_attention": layer.self_attn, "cross_attention": layer.multihead_attn}
        parts["norm3"] = layer.norm3
    parts |= {"norm1": layer.norm1, "norm2": layer.norm2}
    parts |= {f"{name}.out_proj": attention.out_proj for name, attention in attentions.items()}
    named = {}
    for what in ("weight", "bias"):
        named |= {f"{name}.{what}": of(getattr(part, what)) for name, part in parts.items()}
        for name, attention in attentions.items():
            thirds = of(getattr(attention, f"in_proj_{what}")).chunk(3)
            named |= {f"{name}.{p}_proj.{what}": t for p, t in zip("qkv", thirds, strict=True)}
    return named


def padding(length, *real):
    return torch.tensor([[[place < some for place in range(length)]] for some in real])


def causal(length):
    return torch.ones(length, length, dtype=torch.bool).tril()


def hidden(mask, queries, keys):
    """As PyTorch's layers want it: True hides, (batch · heads, query, key)."""
    return None if mask is None else ~mask.expand(BATCH, queries, keys).repeat_interleave(HEADS, 0)


# PyTorch's two code paths disagree on fully masked rows: in these, every query sees the first key.
MASKS = {
    "none": lambda length, keys: None,
    "(batch, query, key)": lambda length, keys: random_mask(BATCH, length, keys),
    "padding": lambda length, keys: padding(keys, keys, keys - 2),
    "both": lambda length, keys: causal(length) & padding(length, length, length - 2),
}


def check_block(ledger, layer, dtype, lengths, *kinds):
    """Compare `from_torch` of PyTorch's layer with it: output, and gradients of inputs and weights."""
    block, layer = from_torch(layer), layer.double()
    inputs = [vectors(BATCH, length, D_MODEL, dtype=dtype) for length in lengths]
    copies = in_float64(*inputs)
    masks = [MASKS[kind](TARGET, keys) for kind, keys in zip(kinds, lengths, strict=True)]
    shown = [hidden(mask, TARGET, keys) for mask, keys in zip(masks, lengths, strict=True)]
    ours, theirs = block(*inputs, *masks), layer(*copies, *shown)
    mix, names = torch.randn(theirs.shape, dtype=torch.float64), dict(block.named_parameters())
    parameters = list(layer.parameters())
    slopes = torch.autograd.grad(theirs, [*copies, *parameters], mix)
    found = {id(p): slope for p, slope in zip([*copies, *parameters], slopes, strict=True)}
    by_name = under_our_names(layer, lambda parameter: found[id(parameter)])
    assert by_name.keys() == names.keys() and ours.dtype == dtype
    wanted = [*(found[id(copied)] for copied in copies), *(by_name[name] for name in names)]
    ledger.compare(ours, theirs, within=ROUNDING[dtype])
    mine = torch.autograd.grad(ours, [*inputs, *names.values()], mix.to(dtype))
    for number, (one, slope) in enumerate(zip(mine, wanted, strict=True)):
        within = ROUNDING[dtype] * (1 if number < len(inputs) else 5)
        ledger.compare(one, slope, within=within, backward=True)


def their_layer(kind, dtype, **choices):
    layer = kind(D_MODEL, HEADS, D_FF, batch_first=True, **choices)
    return randomized(layer).to(dtype).eval()


SETTINGS = [(False, "relu"), (True, "gelu")]


@pytest.mark.verifies(
    "course_lib.transformer.layers.EncoderLayer",
    "course_lib.transformer.layers.NORMS",
    "course_lib.transformer.convert.from_torch",
    against="PyTorch `nn.TransformerEncoderLayer`",
)
@pytest.mark.parametrize("mask", ["none", "both", "(batch, query, key)"])
@pytest.mark.parametrize(("first", "activation"), SETTINGS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_encoder_block_equals_pytorch(ledger, dtype, first, activation, mask):
    kind = nn.TransformerEncoderLayer
    layer = their_layer(kind, dtype, norm_first=first, activation=activation)
    layer.norm1.eps, layer.norm2.eps = 0.5, 0.25
    check_block(ledger, layer, dtype, [TARGET], mask)


@pytest.mark.verifies(
    "course_lib.transformer.layers.DecoderLayer",
    "course_lib.transformer.convert.from_torch",
    against="PyTorch `nn.TransformerDecoderLayer`",
)
@pytest.mark.parametrize(
    ("own", "cross"), [("none", "none"), ("both", "padding"), ("none", "(batch, query, key)")]
)
@pytest.mark.parametrize(("first", "activation"), SETTINGS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_decoder_block_equals_pytorch(ledger, dtype, first, activation, own, cross):
    kind = nn.TransformerDecoderLayer
    layer = their_layer(kind, dtype, norm_first=first, activation=activation)
    check_block(ledger, layer, dtype, [TARGET, SOURCE], own, cross)


KINDS = {
    "encoder": (nn.TransformerEncoderLayer, EncoderLayer),
    "decoder": (nn.TransformerDecoderLayer, DecoderLayer),
}


def attentions(block):
    return [part for name, part in block.named_children() if name.endswith("attention")]


def inputs_for(kind):
    return [torch.randn(BATCH, n, D_MODEL) for n in (TARGET, SOURCE)][: 1 + (kind == "decoder")]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("training", [True, False])
def test_from_torch_copies_every_setting(kind, training):
    options = {"dropout": 0.3, "norm_first": True, "layer_norm_eps": 0.25, "activation": "gelu"}
    layer = KINDS[kind][0](D_MODEL, HEADS, D_FF, **options)
    layer.self_attn.dropout = 0.125
    block = from_torch(randomized(layer).train(training))
    assert all(part.training == training for part in block.modules())
    assert {norm.eps for norm in norms(block)} == {0.25}
    assert block.norm_first and block.dropout.p == block.feed_forward.dropout.p == 0.3
    assert [a.dropout for a in attentions(block)] == [0.125, 0.3][: len(attentions(block))]
    before = under_our_names(layer, lambda parameter: parameter.detach().clone())
    for name, parameter in block.named_parameters():
        assert torch.equal(parameter, before[name]) and parameter.requires_grad
        parameter.data.zero_()  # copied, not shared
    after = under_our_names(layer, lambda parameter: parameter.detach())
    assert all(torch.equal(after[name], tensor) for name, tensor in before.items())


@pytest.mark.parametrize("activation", [nn.ReLU(), nn.GELU(), F.gelu, F.relu])
def test_from_torch_of_activation_layers_and_functions(activation):
    block = from_torch(nn.TransformerEncoderLayer(D_MODEL, HEADS, D_FF, activation=activation))
    assert block.feed_forward.activation in str(activation).lower()


# --- what blocks hand on ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_options_reach_every_part(kind):
    options = {"num_kv_heads": 2, "dropout": 0.25, "bias": False, "norm_eps": 0.5, "norm": "post"}
    block = KINDS[kind][1](D_MODEL, 6, D_FF, **options, norm_type="rms", activation="gelu")
    for attention in attentions(block):
        assert (attention.num_kv_heads, attention.dropout) == (2, 0.25)
    assert all(part.bias is None for part in block.modules() if isinstance(part, nn.Linear))
    assert [part.p for part in block.modules() if isinstance(part, Dropout)] == [0.25] * 2
    assert {(type(norm), norm.eps) for norm in norms(block)} == {(nn.RMSNorm, 0.5)}
    assert block.feed_forward.activation == "gelu" and not block.norm_first


def test_positions_act_in_self_attention_only():
    positions = AlibiBias(HEADS)
    assert EncoderLayer(D_MODEL, HEADS, D_FF, positions=positions).attention.positions is positions
    block = DecoderLayer(D_MODEL, HEADS, D_FF, positions=RotaryPositions(4)).double()
    memory, order = torch.randn(BATCH, SOURCE, D_MODEL).double(), torch.tensor([3, 0, 4, 2, 1])
    x, other = torch.randn(BATCH, TARGET, D_MODEL).double(), torch.tensor([1, 0, 2, 3])
    torch.testing.assert_close(block(x, memory), block(x, memory[:, order]))
    assert not torch.allclose(block(x, memory)[:, other], block(x[:, other], memory), atol=1e-4)


# --- dropout and invariants ------------------------------------------------------------------


@pytest.mark.parametrize("norm", NORMS)
def test_block_dropout_acts_on_what_the_sublayers_add(norm):
    block = EncoderLayer(6, 2, 7, norm=norm, dropout=0.5).double()
    block.norm1, block.norm2, x = nn.Identity(), nn.Identity(), torch.randn(500, 1, 6).double()
    block.attention.dropout = block.feed_forward.dropout.p = 0.0
    for sublayer in (block.attention.out_proj, block.feed_forward.down_proj):
        nn.init.zeros_(sublayer.weight)
        nn.init.constant_(sublayer.bias, 8.0)
    change = block(x) - x
    assert set(change.round().unique().tolist()) == {0.0, 16.0, 32.0}  # of one or the other or both
    assert abs((change > 8).double().mean() - 0.75) < 0.05
    torch.testing.assert_close(block.eval()(x), x + 16)


@pytest.mark.parametrize("kind", KINDS)
def test_block_dropout_acts_only_in_training(kind):
    block, inputs = KINDS[kind][1](D_MODEL, HEADS, D_FF, dropout=0.25), inputs_for(kind)
    plain = KINDS[kind][1](D_MODEL, HEADS, D_FF)
    plain.load_state_dict(block.state_dict())
    assert not torch.equal(block(*inputs), block(*inputs))
    torch.testing.assert_close(block.eval()(*inputs), plain(*inputs), rtol=0, atol=0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("norm", NORMS)
def test_blocks_in_half_precision_and_under_autocast(kind, norm):
    block = KINDS[kind][1](D_MODEL, HEADS, D_FF, norm=norm, activation="gelu")
    inputs = inputs_for(kind)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = block(*inputs)
    mixed.sum().backward()
    assert all(p.grad.isfinite().all() and p.grad.dtype == p.dtype for p in block.parameters())
    half = copy.deepcopy(block).bfloat16()(*(x.bfloat16() for x in inputs))
    assert mixed.dtype == torch.float32 and half.dtype == torch.bfloat16
    for output in (mixed, half):
        torch.testing.assert_close(output.float(), block(*inputs), rtol=0, atol=0.1)
