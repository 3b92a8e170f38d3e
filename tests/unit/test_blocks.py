"""The parts of a block and the two blocks, against PyTorch's layers and against these composed by hand."""

import copy
import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

from course_lib.blocks import (
    ACTIVATIONS,
    NORMS,
    DecoderBlock,
    Dropout,
    EncoderBlock,
    FeedForward,
    LayerNorm,
)
from course_lib.convert import from_torch
from course_lib.inspection import record_attention
from course_lib.positions import AlibiBias, RotaryPositions
from tests.helpers.blocks import norms
from tests.helpers.transformer import randomized

DTYPES = [torch.float64, torch.float32]
ROUNDING = {torch.float64: 1e-10, torch.float32: 1e-5}
# The ledger collects over all examples, and every example is quick.
COLLECTS = settings(
    deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

# No two axes are equally long, so that none can be taken for another.
BATCH, HEADS, TARGET, SOURCE, D_FF, D_MODEL = 2, 3, 4, 5, 7, 12


def vectors(*shape, dtype=torch.float64):
    return torch.randn(shape, dtype=dtype, requires_grad=True)


def exact(*tensors):
    return [tensor.detach().double().requires_grad_() for tensor in tensors]


def check(ledger, ours, theirs, leaves, oracle_leaves, within):
    """Compare a result, and the gradients of one random mixture of it, with an oracle in float64."""
    ledger.compare(ours, theirs, within=within)
    mix = torch.randn(theirs.shape, dtype=torch.float64)
    mine = torch.autograd.grad(ours, leaves, mix.to(ours))
    slopes = torch.autograd.grad(theirs, oracle_leaves, mix)
    for one, slope in zip(mine, slopes, strict=True):
        ledger.compare(one, slope, within=within, backward=True)


# --- dropout ---------------------------------------------------------------------------------


@pytest.mark.verifies("course_lib.blocks.Dropout", against="its definition, on a million numbers")
@pytest.mark.parametrize("p", [0.05, 0.3, 0.5, 0.9])
def test_dropout_zeroes_a_fraction_and_scales_the_rest(ledger, p):
    count = 1_000_000
    x = torch.randn(count, dtype=torch.float64)
    out = Dropout(p)(x)
    dropped = out == 0
    bound = 5 * math.sqrt(count * p * (1 - p))
    assert abs(dropped.sum().item() - count * p) < bound
    assert abs((dropped[1:] & dropped[:-1]).sum().item() - count * p * p) < 2 * bound  # one by one
    ledger.compare(out[~dropped], x[~dropped] / (1 - p), within=1e-15 * 50)
    assert abs(out.sum() - x.sum()) < 6 * math.sqrt(count * p / (1 - p))  # expected: the same


@pytest.mark.verifies(
    "course_lib.blocks.Dropout", against="PyTorch `F.dropout`, given what is dropped"
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_dropout_scale_and_gradient_equal_pytorch(ledger, dtype):
    """The two draw differently: ones tell what ours drops, and PyTorch how much larger the others get."""
    layer, x = Dropout(0.4), vectors(50, D_MODEL, dtype=dtype)
    torch.manual_seed(5)
    kept = layer(torch.ones(50, D_MODEL)) != 0
    torch.manual_seed(5)
    ours = layer(x)
    drawn = F.dropout(torch.ones(1000, dtype=torch.float64), 0.4)
    (factor,) = drawn[drawn != 0].unique()
    ledger.compare(ours, x.detach().double() * kept * factor, within=ROUNDING[dtype])
    (slope,) = torch.autograd.grad(ours.sum(), x)
    ledger.compare(slope, kept * factor, within=ROUNDING[dtype], backward=True)


def test_dropout_acts_only_in_training_and_repeats_with_a_seed():
    x, layer = torch.randn(40, 40), Dropout(0.5)
    torch.manual_seed(7)
    first = layer(x)
    torch.manual_seed(7)
    assert torch.equal(layer(x), first) and not torch.equal(layer(x), first)
    before = x.clone()
    assert layer.eval()(x) is x and torch.equal(x, before)
    assert layer.train()(x) is not x and torch.equal(x, before)
    assert Dropout(0.0)(x) is x
    assert not list(layer.parameters())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_dropout_keeps_dtype_and_treats_infinity_as_pytorch_does(dtype):
    assert set(Dropout(0.5)(torch.ones(1000, dtype=dtype)).tolist()) == {0.0, 2.0}
    x = torch.full((1000,), torch.inf, dtype=dtype)  # 0 · inf is NaN, in both
    for out in (Dropout(0.5)(x), F.dropout(x, 0.5)):
        assert out.dtype == dtype and set(map(str, out.tolist())) == {"nan", "inf"}


# --- layer norm ------------------------------------------------------------------------------


@pytest.mark.verifies("course_lib.blocks.LayerNorm", against="PyTorch `nn.LayerNorm`")
@pytest.mark.parametrize("eps", [1e-5, 1e-12, 0.5])
@pytest.mark.parametrize("shape", [(D_MODEL,), (2, 3, D_MODEL), (2, 1, 3, 64)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_layer_norm_equals_pytorch(ledger, dtype, shape, eps):
    check_norm(ledger, dtype, shape, eps)


@pytest.mark.verifies("course_lib.blocks.LayerNorm", against="PyTorch `nn.LayerNorm`")
@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("dtype", DTYPES)
def test_layer_norm_of_one_or_two_components_equals_pytorch(ledger, dtype, size):
    check_norm(
        ledger, dtype, (4, size), 0.5
    )  # with a small eps, nothing but rounding would be left


def check_norm(ledger, dtype, shape, eps):
    ours = randomized(LayerNorm(shape[-1], eps), dtype)
    theirs = nn.LayerNorm(shape[-1], eps).double()
    theirs.load_state_dict(ours.state_dict())
    x = (3 * torch.randn(shape) + 2).to(dtype).requires_grad_()
    (double,) = exact(x)
    wanted, within = theirs(double), 1e-12 if dtype == torch.float64 else 1e-5
    assert ours(x).dtype == dtype
    ledger.compare(ours(x), wanted, within=within)
    mix = torch.randn(shape, dtype=torch.float64)
    mine = torch.autograd.grad(ours(x), [x, *ours.parameters()], mix.to(dtype))
    slopes = torch.autograd.grad(wanted, [double, *theirs.parameters()], mix)
    for one, slope in zip(mine, slopes, strict=True):
        ledger.compare(one, slope, within=10 * within, backward=True)


@pytest.mark.verifies("course_lib.blocks.LayerNorm", against="PyTorch `nn.LayerNorm`")
@COLLECTS
@given(
    batch=st.lists(st.integers(1, 4), max_size=3),
    size=st.integers(3, 40),
    eps=st.sampled_from([1e-3, 1e-5, 1e-6]),
    offset=st.floats(-100, 100),
    seed=st.integers(0, 1000),
)
def test_layer_norm_of_any_shape_equals_pytorch(ledger, batch, size, eps, offset, seed):
    torch.manual_seed(seed)
    x = torch.randn(*batch, size, dtype=torch.float64) + offset
    ledger.compare(
        LayerNorm(size, eps).double()(x), F.layer_norm(x, (size,), eps=eps), within=1e-10
    )


@pytest.mark.verifies("course_lib.blocks.LayerNorm", against="the values of [1, 2, 3, 4] by hand")
def test_layer_norm_of_one_to_four(ledger):
    """Mean 2.5, variance 5/4; an unbiased one were 5/3. With eps 1, which would stand outside the root."""
    x = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64)
    wanted = torch.tensor([-1.0, -1 / 3, 1 / 3, 1.0], dtype=torch.float64)  # (x - 2.5) / 1.5
    ledger.compare(LayerNorm(4, eps=1.0).double()(x), wanted, within=1e-15 * 10)


def test_layer_norm_initialisation():
    norm = LayerNorm(3)
    assert (
        norm.weight.tolist() == [1, 1, 1] and norm.bias.tolist() == [0, 0, 0] and norm.eps == 1e-5
    )
    x = 5 * torch.randn(6, 3).double() + 3
    out = norm.double()(x)
    torch.testing.assert_close(out.mean(-1), torch.zeros(6).double())
    assert ((out.var(-1, unbiased=False) - 1).abs() < 1e-3).all()


@pytest.mark.parametrize("value", [0.0, 3.0, -1e4])
def test_layer_norm_of_a_constant_vector_is_the_bias(value):
    norm, x = randomized(LayerNorm(8)), torch.full((2, 8), value).double().requires_grad_()
    out = norm(x)
    torch.testing.assert_close(out, norm.bias.expand(2, -1))
    out.square().sum().backward()
    assert x.grad.isfinite().all() and norm.weight.grad.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_layer_norm_in_half_precision_equals_pytorch(dtype):
    """Of numbers whose squares do not fit: the sums run in float32, and one rounding is left."""
    ours, theirs = randomized(LayerNorm(300), dtype), nn.LayerNorm(300).to(dtype)
    theirs.load_state_dict(ours.state_dict())
    x = (3000 * torch.randn(40, 300)).to(dtype)
    out = ours(x)
    assert out.dtype == dtype and out.isfinite().all()
    torch.testing.assert_close(out, theirs(x), rtol=0.02, atol=0.02)


def test_layer_norm_of_each_token_is_independent():
    norm, x = randomized(LayerNorm(6)), torch.randn(2, 3, 6).double()
    whole = norm(x)
    for b in range(2):
        for place in range(3):
            torch.testing.assert_close(norm(x[b, place]), whole[b, place])


# --- feed-forward network --------------------------------------------------------------------

ACTIVATION_LAYERS = {"relu": nn.ReLU, "gelu": nn.GELU}


@pytest.mark.verifies(
    "course_lib.blocks.FeedForward", against="PyTorch `nn.Sequential` of two `nn.Linear`"
)
@pytest.mark.parametrize("activation", ACTIVATION_LAYERS)
@pytest.mark.parametrize("batch", [(), (3,), (BATCH, TARGET)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_feed_forward_equals_pytorch(ledger, dtype, batch, activation):
    ours = randomized(FeedForward(D_MODEL, D_FF, activation=activation), dtype)
    wider, back = nn.Linear(D_MODEL, D_FF), nn.Linear(D_FF, D_MODEL)
    theirs = nn.Sequential(wider, ACTIVATION_LAYERS[activation](), back).double()
    theirs[0].load_state_dict(ours.up_proj.state_dict())
    theirs[2].load_state_dict(ours.down_proj.state_dict())
    x = vectors(*batch, D_MODEL, dtype=dtype)
    (double,) = exact(x)
    leaves = [x, *ours.up_proj.parameters(), *ours.down_proj.parameters()]
    check(ledger, ours(x), theirs(double), leaves, [double, *theirs.parameters()], ROUNDING[dtype])


@pytest.mark.verifies("course_lib.blocks.ACTIVATIONS", against="their formulas and `math.erf`")
def test_activations_equal_their_formulas(ledger):
    x = torch.linspace(-6, 6, 97, dtype=torch.float64)
    gaussian = [u * (1 + math.erf(u / math.sqrt(2))) / 2 for u in x.tolist()]
    ramp = [max(0.0, u) for u in x.tolist()]
    gate = [u / (1 + math.exp(-u)) for u in x.tolist()]
    for name, wanted in (("gelu", gaussian), ("relu", ramp), ("swiglu", gate)):
        ledger.compare(ACTIVATIONS[name](x), torch.tensor(wanted, dtype=x.dtype), within=1e-14)
    assert set(ACTIVATIONS) == {"relu", "gelu", "swiglu"}


def test_feed_forward_dropout_acts_on_hidden_units_only():
    network = FeedForward(4, 5000, dropout=0.5).double()
    with torch.no_grad():
        network.up_proj.weight.zero_()
        network.up_proj.bias.fill_(1.0)  # all that stands between is 1
        network.down_proj.weight.fill_(1 / 5000)
        network.down_proj.bias.zero_()
    x = torch.randn(6, 4).double()
    out = network(x)
    assert (
        out.max(-1).values == out.min(-1).values
    ).all()  # what comes out is dropped from no more
    assert 0 < (out - 1).abs().max() < 0.1 and len(out[:, 0].unique()) == 6
    torch.testing.assert_close(network.eval()(x), torch.ones(6, 4).double())


def test_feed_forward_parameter_shapes():
    sizes = {name: tuple(p.shape) for name, p in FeedForward(4, 6).named_parameters()}
    assert sizes == {"up_proj.weight": (6, 4), "up_proj.bias": (6,), "down_proj.weight": (4, 6), "down_proj.bias": (4,)}  # fmt: skip


# --- residual connection ---------------------------------------------------------------------


@pytest.mark.parametrize("norm", NORMS)
def test_block_dropout_acts_on_what_the_sublayers_add(norm):
    block, x = (
        EncoderBlock(6, 2, 7, norm=norm, dropout=0.5).double(),
        torch.randn(500, 1, 6).double(),
    )
    block.norm1, block.norm2 = nn.Identity(), nn.Identity()
    block.attention.dropout = block.feed_forward.dropout.p = 0.0
    for sublayer in (block.attention.out_proj, block.feed_forward.down_proj):
        nn.init.zeros_(sublayer.weight)
        nn.init.constant_(sublayer.bias, 8.0)
    change = block(x) - x
    assert set(change.round().unique().tolist()) == {0.0, 16.0, 32.0}  # of one or the other or both
    assert abs((change > 8).double().mean() - 0.75) < 0.05
    torch.testing.assert_close(block.eval()(x), x + 16)


# --- PyTorch's blocks ------------------------------------------------------------------------


def of_attention(layer, prefix, of):
    """Our names of PyTorch's parameters, which packs queries, keys and values."""
    named = {}
    for name in ("weight", "bias"):
        thirds = of(getattr(layer, f"in_proj_{name}")).chunk(3)
        for part, third in zip(("q_proj", "k_proj", "v_proj"), thirds, strict=True):
            named[f"{prefix}.{part}.{name}"] = third
        named[f"{prefix}.out_proj.{name}"] = of(getattr(layer.out_proj, name))
    return named


def under_our_names(layer, of):
    decoder = isinstance(layer, nn.TransformerDecoderLayer)
    named = of_attention(layer.self_attn, "self_attention" if decoder else "attention", of)
    if decoder:
        named |= of_attention(layer.multihead_attn, "cross_attention", of)
    plain = {"feed_forward.up_proj": layer.linear1, "feed_forward.down_proj": layer.linear2}
    norms = [layer.norm1, layer.norm2, *([layer.norm3] if decoder else [])]
    plain |= {f"norm{number}": norm for number, norm in enumerate(norms, start=1)}
    return named | {
        f"{name}.{what}": of(getattr(part, what))
        for name, part in plain.items()
        for what in ("weight", "bias")
    }


def drawn(*shape):
    """A random mask in which every query sees the first key: PyTorch's two code
    paths disagree on fully masked rows."""
    mask = torch.rand(shape) < 0.6
    mask[..., 0] = True
    return mask


def padding(length, *real):
    return torch.tensor([[[place < some for place in range(length)]] for some in real])


def causal(length):
    return torch.tensor([[k <= q for k in range(length)] for q in range(length)])


def hidden(mask, queries, keys):
    """As PyTorch's layers want it: True hides, (batch · heads, query, key)."""
    if mask is None:
        return None
    return ~mask.expand(BATCH, queries, keys).repeat_interleave(HEADS, 0)


def masks(length, keys):
    made = {
        "none": lambda: None,
        "padding": lambda: padding(keys, keys, keys - 2),
        "(query, key)": lambda: drawn(length, keys),
        "(batch, query, key)": lambda: drawn(BATCH, length, keys),
    }
    if length == keys:
        made["causal"] = lambda: causal(length)
        made["both"] = lambda: causal(length) & padding(length, length, length - 2)
    return made


def check_block(ledger, block, layer, ours, theirs, inputs, doubles, dtype):
    assert ours.dtype == dtype
    names = dict(block.named_parameters())
    mix = torch.randn(theirs.shape, dtype=torch.float64)
    ledger.compare(ours, theirs, within=ROUNDING[dtype])
    mine = torch.autograd.grad(ours, [*inputs, *names.values()], mix.to(dtype))
    parameters = list(layer.parameters())
    slopes = torch.autograd.grad(theirs, [*doubles, *parameters], mix)
    for one, slope in zip(mine[: len(inputs)], slopes, strict=False):
        ledger.compare(one, slope, within=5 * ROUNDING[dtype], backward=True)
    found = {id(p): slope for p, slope in zip(parameters, slopes[len(doubles) :], strict=True)}
    by_name = under_our_names(layer, lambda parameter: found[id(parameter)])
    assert by_name.keys() == names.keys()
    for name, one in zip(names, mine[len(inputs) :], strict=True):
        ledger.compare(one, by_name[name], within=5 * ROUNDING[dtype], backward=True)


def their_layer(kind, dtype, **choices):
    layer = kind(D_MODEL, HEADS, D_FF, batch_first=True, **choices)
    return randomized(layer).to(dtype).eval()


SETTINGS = [(first, activation) for first in (False, True) for activation in ("relu", "gelu")]


@pytest.mark.verifies(
    "course_lib.blocks.EncoderBlock", against="PyTorch `nn.TransformerEncoderLayer`"
)
@pytest.mark.verifies("course_lib.blocks.NORMS", against="PyTorch `nn.TransformerEncoderLayer`")
@pytest.mark.verifies(
    "course_lib.convert.from_torch", against="PyTorch `nn.TransformerEncoderLayer`"
)
@pytest.mark.parametrize("mask", masks(SOURCE, SOURCE))
@pytest.mark.parametrize(("first", "activation"), SETTINGS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_encoder_block_equals_pytorch(ledger, dtype, first, activation, mask):
    layer = their_layer(nn.TransformerEncoderLayer, dtype, norm_first=first, activation=activation)
    block, layer = from_torch(layer), layer.double()
    x, mask = vectors(BATCH, SOURCE, D_MODEL, dtype=dtype), masks(SOURCE, SOURCE)[mask]()
    (double,) = exact(x)
    theirs = layer(double, src_mask=hidden(mask, SOURCE, SOURCE))
    check_block(ledger, block, layer, block(x, mask), theirs, [x], [double], dtype)


@pytest.mark.verifies(
    "course_lib.blocks.EncoderBlock", against="PyTorch `nn.TransformerEncoderLayer`"
)
@pytest.mark.parametrize("first", [True, False])
def test_encoder_block_padding_mask_is_the_inverse_of_pytorch(ledger, first):
    layer = their_layer(nn.TransformerEncoderLayer, torch.float64, norm_first=first)
    x, mask = vectors(BATCH, SOURCE, D_MODEL), padding(SOURCE, 3, 5)
    theirs = layer(x, src_mask=~causal(SOURCE), src_key_padding_mask=~mask[:, 0])
    ledger.compare(from_torch(layer)(x, mask & causal(SOURCE)), theirs, within=1e-10)


PAIRS = [
    *((own, "none") for own in masks(TARGET, TARGET)),
    *(("none", cross) for cross in masks(TARGET, SOURCE) if cross != "none"),
    ("both", "padding"),
    ("(batch, query, key)", "(batch, query, key)"),
]


@pytest.mark.verifies(
    "course_lib.blocks.DecoderBlock", against="PyTorch `nn.TransformerDecoderLayer`"
)
@pytest.mark.verifies(
    "course_lib.convert.from_torch", against="PyTorch `nn.TransformerDecoderLayer`"
)
@pytest.mark.parametrize(("own", "cross"), PAIRS)
@pytest.mark.parametrize(("first", "activation"), SETTINGS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_decoder_block_equals_pytorch(ledger, dtype, first, activation, own, cross):
    layer = their_layer(nn.TransformerDecoderLayer, dtype, norm_first=first, activation=activation)
    block, layer = from_torch(layer), layer.double()
    inputs = [vectors(BATCH, length, D_MODEL, dtype=dtype) for length in (TARGET, SOURCE)]
    doubles = exact(*inputs)
    own, cross = masks(TARGET, TARGET)[own](), masks(TARGET, SOURCE)[cross]()
    theirs = layer(
        *doubles,
        tgt_mask=hidden(own, TARGET, TARGET),
        memory_mask=hidden(cross, TARGET, SOURCE),
    )
    ours = block(*inputs, own, cross)
    check_block(ledger, block, layer, ours, theirs, inputs, doubles, dtype)


@pytest.mark.verifies(
    "course_lib.blocks.DecoderBlock", against="PyTorch `nn.TransformerDecoderLayer`"
)
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(("target", "source"), [(6, 1), (1, 6), (5, 5)])
def test_decoder_block_padding_masks_equal_pytorch(ledger, target, source, first):
    layer = their_layer(nn.TransformerDecoderLayer, torch.float64, norm_first=first)
    x, memory = vectors(BATCH, target, D_MODEL), vectors(BATCH, source, D_MODEL)
    own, cross = padding(target, target, max(1, target - 2)), padding(source, source, max(1, source - 2))  # fmt: skip
    theirs = layer(
        x,
        memory,
        tgt_mask=~causal(target),
        tgt_key_padding_mask=~own[:, 0],
        memory_key_padding_mask=~cross[:, 0],
    )
    ours = from_torch(layer)(x, memory, causal(target) & own, cross)
    ledger.compare(ours, theirs, within=1e-10)


KINDS = {
    "encoder": (nn.TransformerEncoderLayer, EncoderBlock),
    "decoder": (nn.TransformerDecoderLayer, DecoderBlock),
}


def attentions(block):
    return [p for name, p in block.named_children() if name.endswith("attention")]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("training", [True, False])
def test_from_torch_copies_every_setting(kind, training):
    theirs, _ = KINDS[kind]
    layer = theirs(
        D_MODEL, HEADS, D_FF, dropout=0.3, norm_first=True, layer_norm_eps=0.25, activation="gelu"
    )
    block = from_torch(randomized(layer).train(training))
    assert all(part.training == training for part in block.modules())
    assert {p.dtype for p in block.parameters()} == {torch.float64}
    assert {norm.eps for norm in norms(block)} == {0.25}
    assert block.norm_first and block.dropout.p == 0.3
    assert [a.dropout for a in attentions(block)] == [0.3] * len(attentions(block))
    assert block.feed_forward.dropout.p == 0.3 and block.feed_forward.activation == "gelu"
    assert {a.num_heads for a in attentions(block)} == {HEADS}
    named = under_our_names(layer, lambda parameter: parameter.detach().clone())
    for name, parameter in block.named_parameters():
        assert torch.equal(parameter, named[name]) and parameter.requires_grad and parameter.is_leaf
        parameter.data.zero_()  # copied, not shared
    after = under_our_names(layer, lambda parameter: parameter.detach())
    assert all(torch.equal(after[name], tensor) for name, tensor in named.items())


@pytest.mark.verifies(
    "course_lib.blocks.EncoderBlock", against="PyTorch `nn.TransformerEncoderLayer`"
)
@pytest.mark.parametrize("eps", [0.5, 1e-9])
def test_from_torch_copies_the_eps_of_each_layer_norm(ledger, eps):
    layer = their_layer(nn.TransformerEncoderLayer, torch.float64, layer_norm_eps=eps)
    layer.norm2.eps = 2 * eps
    x = vectors(BATCH, SOURCE, D_MODEL)
    ledger.compare(from_torch(layer)(x), layer(x), within=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_from_torch_copies_the_attention_dropout(kind):
    theirs, _ = KINDS[kind]
    layer = theirs(D_MODEL, HEADS, D_FF, dropout=0.3)
    layer.self_attn.dropout = 0.125
    assert [a.dropout for a in attentions(from_torch(layer))] == [0.125, 0.3][: 1 + (kind == "decoder")]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("activation", [nn.ReLU(), nn.GELU(), F.gelu, F.relu])
def test_from_torch_of_activation_layers_and_functions(kind, activation):
    theirs, _ = KINDS[kind]
    block = from_torch(theirs(D_MODEL, HEADS, D_FF, activation=activation))
    assert block.feed_forward.activation == (
        "gelu" if "gelu" in str(activation).lower() else "relu"
    )


# --- blocks composed by hand -----------------------------------------------------------------


def by_hand(block, x, memory=None, mask=None, memory_mask=None):
    """The figure of the paper, arrow by arrow, with what PyTorch offers for each box."""

    def attend(layer):
        def attended(query, key, mask):
            q, k, v = (
                part(x).unflatten(-1, (heads, -1)).transpose(1, 2)
                for part, x, heads in (
                    (layer.q_proj, query, layer.num_heads),
                    (layer.k_proj, key, layer.num_kv_heads),
                    (layer.v_proj, key, layer.num_kv_heads),
                )
            )
            mask = mask[:, None] if mask is not None and mask.dim() == 3 else mask
            out = F.scaled_dot_product_attention(q, k, v, mask, enable_gqa=True)
            return layer.out_proj(out.transpose(1, 2).flatten(-2))

        return attended

    def normal(norm, x):
        return F.layer_norm(x, x.shape[-1:], norm.weight, norm.bias)

    own = getattr(block, "self_attention", None) or block.attention
    steps = [lambda x: attend(own)(x, x, mask)]
    if memory is not None:
        steps.append(lambda x: attend(block.cross_attention)(x, memory, memory_mask))
    steps.append(lambda x: block.feed_forward.down_proj(block.feed_forward.up_proj(x).relu()))
    for norm, step in zip(norms(block), steps, strict=True):
        x = x + step(normal(norm, x)) if block.norm_first else normal(norm, x + step(x))
    return x


@pytest.mark.verifies(
    "course_lib.blocks.EncoderBlock", against="its figure, composed of PyTorch's functions"
)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kv_heads", [1, 2, 6], ids=["mqa", "gqa", "mha"])
def test_encoder_block_with_grouped_kv_heads_equals_pytorch(ledger, kv_heads, norm):
    block = randomized(EncoderBlock(D_MODEL, 6, D_FF, norm=norm, num_kv_heads=kv_heads))
    x, mask = vectors(BATCH, SOURCE, D_MODEL), drawn(BATCH, SOURCE, SOURCE)
    leaves = [x, *block.parameters()]
    check(ledger, block(x, mask), by_hand(block, x, mask=mask), leaves, leaves, 1e-10)


@pytest.mark.verifies(
    "course_lib.blocks.DecoderBlock", against="its figure, composed of PyTorch's functions"
)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kv_heads", [1, 2, 6], ids=["mqa", "gqa", "mha"])
def test_decoder_block_with_grouped_kv_heads_equals_pytorch(ledger, kv_heads, norm):
    block = randomized(DecoderBlock(D_MODEL, 6, D_FF, norm=norm, num_kv_heads=kv_heads))
    assert block.cross_attention.num_kv_heads == block.self_attention.num_kv_heads == kv_heads
    x, memory = vectors(BATCH, TARGET, D_MODEL), vectors(BATCH, SOURCE, D_MODEL)
    mask, across = causal(TARGET), drawn(BATCH, TARGET, SOURCE)
    leaves = [x, memory, *block.parameters()]
    theirs = by_hand(block, x, memory, mask, across)
    check(ledger, block(x, memory, mask, across), theirs, leaves, leaves, 1e-10)


def test_positions_act_in_self_attention_only():
    positions = AlibiBias(HEADS)
    assert EncoderBlock(D_MODEL, HEADS, D_FF, positions=positions).attention.positions is positions
    block = DecoderBlock(D_MODEL, HEADS, D_FF, positions=RotaryPositions(4)).double()
    assert isinstance(block.self_attention.positions, RotaryPositions)
    memory = torch.randn(BATCH, SOURCE, D_MODEL).double()
    x, order = torch.randn(BATCH, TARGET, D_MODEL).double(), torch.tensor([3, 0, 4, 2, 1])
    torch.testing.assert_close(
        block(x, memory), block(x, memory[:, order])
    )  # the memory has no order
    order = torch.tensor([1, 0, 2, 3])
    assert not torch.allclose(block(x, memory)[:, order], block(x[:, order], memory), atol=1e-4)


# --- dropout in blocks -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_block_dropout_acts_only_in_training(kind):
    _, made = KINDS[kind]
    block = made(D_MODEL, HEADS, D_FF, dropout=0.25).double()
    assert [p.p for p in block.modules() if isinstance(p, Dropout)] == [0.25] * 2
    assert [a.dropout for a in attentions(block)] == [0.25] * len(attentions(block))
    inputs = [torch.randn(BATCH, n, D_MODEL).double() for n in (TARGET, SOURCE)][: 1 + (kind == "decoder")]  # fmt: skip
    plain = made(D_MODEL, HEADS, D_FF).double()
    plain.load_state_dict(block.state_dict())
    assert not torch.equal(block(*inputs), block(*inputs))
    torch.testing.assert_close(block.eval()(*inputs), plain(*inputs), rtol=0, atol=0)


# --- invariants ------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("training", [True, False])
def test_causal_mask_hides_future_tokens(norm, training):
    encoder = EncoderBlock(D_MODEL, HEADS, D_FF, norm=norm).double().train(training)
    decoder = DecoderBlock(D_MODEL, HEADS, D_FF, norm=norm).double().train(training)
    memory = torch.randn(BATCH, SOURCE, D_MODEL).double()
    x = vectors(BATCH, TARGET, D_MODEL)
    for output in (encoder(x, causal(TARGET)), decoder(x, memory, causal(TARGET))):
        for now in range(TARGET):
            (reach,) = torch.autograd.grad(output[:, now, 0].sum(), x, retain_graph=True)
            assert (reach[:, now + 1 :] == 0).all() and (reach[:, : now + 1] != 0).any(-1).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("norm", NORMS)
def test_blocks_in_half_precision_and_under_autocast(kind, norm):
    _, made = KINDS[kind]
    block = made(D_MODEL, HEADS, D_FF, norm=norm, activation="gelu")
    inputs = [torch.randn(BATCH, n, D_MODEL) for n in (TARGET, SOURCE)][: 1 + (kind == "decoder")]
    plain = block(*inputs)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = block(*inputs)
    mixed.sum().backward()
    assert all(p.grad.isfinite().all() and p.grad.dtype == p.dtype for p in block.parameters())
    half = copy.deepcopy(block).bfloat16()(*(x.bfloat16() for x in inputs))
    assert mixed.dtype == torch.float32 and half.dtype == torch.bfloat16
    for output in (mixed, half):
        torch.testing.assert_close(output.float(), plain, rtol=0, atol=0.1)


@pytest.mark.usefixtures("without_annotations")
@pytest.mark.parametrize("kind", KINDS)
def test_compiled_block_equals_eager(kind):
    _, made = KINDS[kind]
    block = made(D_MODEL, HEADS, D_FF)
    inputs = [torch.randn(BATCH, n, D_MODEL) for n in (TARGET, SOURCE)][: 1 + (kind == "decoder")]
    torch.testing.assert_close(torch.compile(block, backend="eager")(*inputs), block(*inputs))


@pytest.mark.parametrize("kind", KINDS)
def test_deepcopy_and_state_dict_give_the_same_output(kind):
    _, made = KINDS[kind]
    block = randomized(made(D_MODEL, HEADS, D_FF, num_kv_heads=1))
    inputs = [torch.randn(BATCH, n, D_MODEL).double() for n in (TARGET, SOURCE)][: 1 + (kind == "decoder")]  # fmt: skip
    again = made(D_MODEL, HEADS, D_FF, num_kv_heads=1).double()
    again.load_state_dict(block.state_dict())
    twin, before = copy.deepcopy(block), block(*inputs)
    assert torch.equal(again(*inputs), before) and torch.equal(twin(*inputs), before)
    randomized(twin)
    assert torch.equal(block(*inputs), before)


def test_record_attention_of_a_block():
    block = DecoderBlock(D_MODEL, HEADS, D_FF)
    with record_attention(block) as maps:
        block(
            torch.randn(BATCH, TARGET, D_MODEL), torch.randn(BATCH, SOURCE, D_MODEL), causal(TARGET)
        )
    assert {name: tuple(one.shape) for name, (one,) in maps.items()} == {
        "self_attention": (BATCH, HEADS, TARGET, TARGET),
        "cross_attention": (BATCH, HEADS, TARGET, SOURCE),
    }
    assert (maps["self_attention"][0].triu(1) == 0).all()
