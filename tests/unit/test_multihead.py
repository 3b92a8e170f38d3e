"""Multi-head attention against PyTorch's layer, NumPy, F.scaled_dot_product_attention, and others' layers."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

from course_lib.attention import Attended, SingleHeadAttention, record_attention
from course_lib.cache import KeyValueCache
from course_lib.multihead import (
    FullWidthMultiHead,
    MultiHeadAttention,
    PerHeadMultiHead,
    merge_heads,
    split_heads,
)
from course_lib.positions import (
    ENCODINGS,
    AlibiBias,
    AttentionPositions,
    RotaryPositions,
    ShawRelativePositions,
    T5RelativeBias,
    make_positions,
    rotary,
)

DTYPES = [torch.float64, torch.float32]
HALVES = [torch.float16, torch.bfloat16]
ROUNDING = {torch.float64: 1e-10, torch.float32: 1e-5}
# The ledger collects over all examples, and every example is quick.
COLLECTS = settings(
    deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

# No two axes are equally long, so that none can be taken for another.
BATCH, HEADS, QUERIES, KEYS, D_HEAD, KEY_SIZE, VALUE_SIZE = 2, 3, 4, 5, 6, 7, 8
D_MODEL = HEADS * D_HEAD
SHARING = 12  # heads where several share their keys: in groups of 12, 6, 4, 3, 2 and 1


def yes(*shape):
    return torch.ones(shape, dtype=torch.bool)


def drawn(*shape):
    """A random mask in which every query sees the first key."""
    mask = torch.rand(shape) < 0.6
    mask[..., 0] = True
    return mask


def without_second_query(mask):
    """The second query sees nothing."""
    mask[..., 1, :] = False
    return mask


def causal():
    return torch.tensor([[k <= q + KEYS - QUERIES for k in range(KEYS)] for q in range(QUERIES)])


def padding():
    return torch.tensor([[[k < length for k in range(KEYS)]] for length in (5, 3)])


MASKS = {
    "none": lambda: None,
    "padding": padding,
    "causal": causal,
    "both": lambda: padding() & causal(),
    "(query, key)": lambda: drawn(QUERIES, KEYS),
    "(batch, query, key)": lambda: drawn(BATCH, QUERIES, KEYS),
    "per head": lambda: drawn(BATCH, HEADS, QUERIES, KEYS),
    "per head of any sequence": lambda: drawn(1, HEADS, QUERIES, KEYS),
}
LONELY = {
    "a lonely query": lambda: without_second_query(drawn(BATCH, QUERIES, KEYS)),
    "nobody": lambda: ~yes(QUERIES, KEYS),
}


def wild(layer, dtype=torch.float64):
    """Weights and biases large enough that no attention is even."""
    for parameter in layer.parameters():
        parameter.data = 0.25 * torch.randn(parameter.shape).to(dtype)
    return layer


def sequences(key_size=D_MODEL, value_size=D_MODEL, dtype=torch.float64, d_model=D_MODEL):
    sizes = ((QUERIES, d_model), (KEYS, key_size), (KEYS, value_size))
    return [torch.randn(BATCH, *size, dtype=dtype, requires_grad=True) for size in sizes]


def in_float64(*tensors):
    return [tensor.detach().double().requires_grad_() for tensor in tensors]


def gradients(attended, leaves, mixes):
    """Of one random mixture of the output and, where there are any, the weights."""
    given = [tensor for tensor in attended if tensor is not None]
    mixture = sum((tensor * mix.to(tensor)).sum() for tensor, mix in zip(given, mixes, strict=True))
    return torch.autograd.grad(mixture, leaves, materialize_grads=True)


def mixes_for(attended):
    return [torch.randn(t.shape, dtype=torch.float64) for t in attended if t is not None]


def agree(ledger, ours, theirs, within, backward=False):
    for mine, oracle in zip(ours, theirs, strict=True):
        if oracle is not None:
            ledger.compare(mine, oracle, within=within, backward=backward)


# --- splitting and merging -------------------------------------------------------------------


@pytest.mark.verifies("course_lib.multihead.split_heads", against="an explicit loop over indices")
@pytest.mark.parametrize("batch", [(), (BATCH,), (BATCH, 7)])
@pytest.mark.parametrize("heads", [1, HEADS, D_MODEL])
def test_every_head_gets_the_numbers_beside_each_other(ledger, batch, heads):
    x = torch.randn(*batch, QUERIES, D_MODEL, dtype=torch.float64)
    width = D_MODEL // heads
    theirs = torch.empty(*batch, heads, QUERIES, width, dtype=torch.float64)
    for *where, head, place, number in np.ndindex(*theirs.shape):
        theirs[*where, head, place, number] = x[*where, place, head * width + number]
    ledger.compare(split_heads(x, heads), theirs, within=0)


@pytest.mark.verifies("course_lib.multihead.merge_heads", against="an explicit loop over indices")
@pytest.mark.parametrize("batch", [(), (BATCH,), (BATCH, 7)])
def test_merging_puts_the_heads_side_by_side(ledger, batch):
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
def test_merging_undoes_splitting(batch, length, heads, d_head):
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
            q = linear(p, f"heads.{h}.query", query[b])
            k = linear(p, f"heads.{h}.key", key[b])
            v = linear(p, f"heads.{h}.value", value[b])
            for i in range(QUERIES):
                powers = visible[b, h, i] * np.exp(k @ q[i] / math.sqrt(q.shape[1]))
                weights[b, h, i] = powers / (powers.sum() or 1.0)
            beside.append(weights[b, h] @ v)
        outputs.append(linear(p, "out", np.concatenate(beside, axis=1)))
    return Attended(torch.tensor(np.array(outputs)), torch.tensor(weights))


def by_pytorch_head_by_head(layer, query, key, value, mask):
    outputs = [
        F.scaled_dot_product_attention(head.query(query), head.key(key), head.value(value), mask)
        for head in layer.heads
    ]
    return Attended(layer.out(torch.cat(outputs, -1)), None)


def copy_of(layer, make, *sizes):
    copy = make(*sizes).double()
    copy.load_state_dict(layer.state_dict())
    return copy


BY_NUMPY = [
    pytest.param(PerHeadMultiHead, marks=pytest.mark.verifies("course_lib.multihead.PerHeadMultiHead", against="its equations in NumPy")),
    pytest.param(FullWidthMultiHead, marks=pytest.mark.verifies("course_lib.multihead.FullWidthMultiHead", against="its equations in NumPy")),
]  # fmt: skip
BY_PYTORCH = [
    pytest.param(PerHeadMultiHead, marks=pytest.mark.verifies("course_lib.multihead.PerHeadMultiHead", against="PyTorch `F.scaled_dot_product_attention`, head by head")),
    pytest.param(FullWidthMultiHead, marks=pytest.mark.verifies("course_lib.multihead.FullWidthMultiHead", against="PyTorch `F.scaled_dot_product_attention`, head by head")),
]  # fmt: skip
OVER_ALL_HEADS = ["none", "padding", "causal", "(batch, query, key)", "a lonely query", "nobody"]


@pytest.mark.parametrize("mask", OVER_ALL_HEADS)
@pytest.mark.parametrize("make", BY_NUMPY)
@pytest.mark.parametrize("dtype", DTYPES)
def test_heads_attend_one_after_the_other(ledger, dtype, make, mask):
    layer, inputs = make(D_MODEL, HEADS).to(dtype), sequences(dtype=dtype)
    mask = (MASKS | LONELY)[mask]()
    ours = layer(*inputs, mask)
    assert ours.output.dtype == dtype
    agree(ledger, ours, by_numpy(layer, *inputs, mask), ROUNDING[dtype])


@pytest.mark.parametrize("mask", OVER_ALL_HEADS)
@pytest.mark.parametrize("make", BY_PYTORCH)
@pytest.mark.parametrize("dtype", DTYPES)
def test_heads_learn_as_pytorch_would_have_them(ledger, dtype, make, mask):
    layer, inputs = make(D_MODEL, HEADS).to(dtype), sequences(dtype=dtype)
    oracle, copies = copy_of(layer, make, D_MODEL, HEADS), in_float64(*inputs)
    mask = (MASKS | LONELY)[mask]()
    ours = Attended(layer(*inputs, mask).output, None)
    theirs = by_pytorch_head_by_head(oracle, *copies, mask)
    ledger.compare(ours.output, theirs.output, within=ROUNDING[dtype])
    mixes = mixes_for(theirs)
    slopes = gradients(theirs, [*copies, *oracle.parameters()], mixes)
    mine = gradients(ours, [*inputs, *layer.parameters()], mixes)
    agree(ledger, mine, slopes, ROUNDING[dtype], backward=True)


@pytest.mark.parametrize("make", [PerHeadMultiHead, FullWidthMultiHead, MultiHeadAttention])
def test_keys_left_out_are_the_queries_and_values_left_out_are_the_keys(make):
    layer, (x, memory, _) = make(D_MODEL, HEADS).double(), sequences()
    torch.testing.assert_close(layer(x), layer(x, x, x), rtol=0, atol=0)
    torch.testing.assert_close(layer(x, memory), layer(x, memory, memory), rtol=0, atol=0)
    torch.testing.assert_close(layer(x, value=2 * x), layer(x, x, 2 * x), rtol=0, atol=0)


def size(layer):
    return sum(p.numel() for name, p in layer.named_parameters() if name.endswith("weight"))


@pytest.mark.parametrize("heads", [1, 2, 3, 6])
def test_full_width_heads_grow_the_layer_and_split_heads_do_not(heads):
    assert size(FullWidthMultiHead(D_MODEL, heads)) == 4 * heads * D_MODEL**2
    assert size(PerHeadMultiHead(D_MODEL, heads)) == 4 * D_MODEL**2
    assert size(MultiHeadAttention(D_MODEL, heads)) == 4 * D_MODEL**2
    assert size(MultiHeadAttention(D_MODEL, heads, num_kv_heads=1)) == (2 + 2 / heads) * D_MODEL**2
    assert FullWidthMultiHead(D_MODEL, heads).heads[0].query.weight.shape == (D_MODEL, D_MODEL)
    assert PerHeadMultiHead(D_MODEL, heads).heads[0].value.weight.shape[0] == D_MODEL // heads


# --- PyTorch's layer -------------------------------------------------------------------------

KINDS = {
    "packed": {},
    "without bias": {"bias": False},
    "other sizes": {"kdim": KEY_SIZE, "vdim": VALUE_SIZE},
    "other sizes without bias": {"kdim": KEY_SIZE, "vdim": VALUE_SIZE, "bias": False},
    "other keys": {"kdim": KEY_SIZE},
}


def our_words(kind):
    words = {"kdim": "key_size", "vdim": "value_size", "bias": "bias"}
    return {words[name]: value for name, value in KINDS[kind].items()}


def inputs_for(kind, dtype=torch.float64):
    sizes = KINDS[kind]
    return sequences(sizes.get("kdim", D_MODEL), sizes.get("vdim", D_MODEL), dtype)


def from_theirs(kind, dtype):
    """Their layer with random weights, and ours with the same."""
    theirs = wild(nn.MultiheadAttention(D_MODEL, HEADS, batch_first=True, **KINDS[kind]))
    return MultiHeadAttention.from_torch(theirs.to(dtype)), theirs.double()


def to_theirs(kind, dtype):
    """Our layer with random weights, and theirs with the same."""
    ours = wild(MultiHeadAttention(D_MODEL, HEADS, **our_words(kind)), dtype)
    return ours, ours.to_torch().double()


def under_our_names(layer, of):
    """PyTorch's parameters, or their gradients: `of` says which."""
    rows, named = layer.embed_dim, {}
    for place, name in enumerate("qkv"):
        third = slice(place * rows, (place + 1) * rows)
        full = {"q": "query", "k": "key", "v": "value"}[name]
        apart = getattr(layer, f"{name}_proj_weight")
        packed = layer.in_proj_weight
        named[f"{full}.weight"] = of(packed)[third] if apart is None else of(apart)
        if layer.in_proj_bias is not None:
            named[f"{full}.bias"] = of(layer.in_proj_bias)[third]
    named["out.weight"] = of(layer.out_proj.weight)
    if layer.out_proj.bias is not None:
        named["out.bias"] = of(layer.out_proj.bias)
    return named


def hidden(mask):
    """The mask as PyTorch's layer wants it: True hides, (batch · heads, query, key)."""
    if mask is None:
        return None
    mask = mask[:, None] if mask.dim() == 3 else mask
    return ~mask.expand(BATCH, HEADS, QUERIES, KEYS).reshape(-1, QUERIES, KEYS)


def hold(ledger, layer, oracle, inputs, mask, need_weights, dtype):
    """Hold output, weights and every gradient against PyTorch's layer in float64."""
    copies = in_float64(*inputs)
    ours = layer(*inputs, mask, need_weights=need_weights)
    output, weights = oracle(*copies, attn_mask=hidden(mask), average_attn_weights=False)
    theirs = Attended(output, weights if need_weights else None)
    assert ours.output.dtype == dtype and (ours.weights is not None) == need_weights
    agree(ledger, ours, theirs, ROUNDING[dtype])
    mixes, named = mixes_for(theirs), dict(layer.named_parameters())
    mine = gradients(ours, [*inputs, *named.values()], mixes)
    parameters = dict(oracle.named_parameters())
    slopes = gradients(theirs, [*copies, *parameters.values()], mixes)
    found = {id(p): s for p, s in zip(parameters.values(), slopes[3:], strict=True)}
    by_name = under_our_names(oracle, lambda parameter: found[id(parameter)])
    assert by_name.keys() == named.keys()
    slopes = [*slopes[:3], *(by_name[name] for name in named)]
    agree(ledger, mine, slopes, ROUNDING[dtype], backward=True)


LAYER = pytest.mark.verifies(
    "course_lib.multihead.MultiHeadAttention", against="PyTorch `nn.MultiheadAttention`"
)


@LAYER
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_multi_head_attention_is_that_of_pytorch_under_every_mask(
    ledger, dtype, mask, need_weights
):
    layer, oracle = from_theirs("packed", dtype)
    inputs = inputs_for("packed", dtype)
    hold(ledger, layer, oracle, inputs, MASKS[mask](), need_weights, dtype)


@LAYER
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("carry", [from_theirs, to_theirs])
@pytest.mark.parametrize("dtype", DTYPES)
def test_weights_carried_over_either_way_give_the_same_layer(
    ledger, dtype, carry, kind, need_weights
):
    layer, oracle = carry(kind, dtype)
    mask = MASKS["both"]()
    hold(ledger, layer, oracle, inputs_for(kind, dtype), mask, need_weights, dtype)


@LAYER
def test_padding_is_their_key_padding_mask_turned_around(ledger):
    layer, oracle = from_theirs("packed", torch.float64)
    inputs = inputs_for("packed")
    theirs, _ = oracle(*inputs, key_padding_mask=~padding()[:, 0])
    ledger.compare(layer(*inputs, padding()).output, theirs, within=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_there_and_back_nothing_is_lost(kind):
    layer = wild(MultiHeadAttention(D_MODEL, HEADS, dropout=0.2, **our_words(kind))).eval()
    theirs = layer.to_torch()
    again = MultiHeadAttention.from_torch(theirs)
    for carried in (theirs, again):
        assert carried.dropout == 0.2 and not carried.training
        assert {p.dtype for p in carried.parameters()} == {torch.float64}
    assert theirs.batch_first
    assert (again.num_heads, again.num_kv_heads) == (HEADS, HEADS)
    state = under_our_names(theirs, lambda parameter: parameter.detach())
    for name, parameter in layer.state_dict().items():
        assert torch.equal(state[name], parameter)
        assert torch.equal(again.state_dict()[name], parameter)


def test_weights_are_copied_not_shared():
    theirs = wild(nn.MultiheadAttention(D_MODEL, HEADS))
    ours = MultiHeadAttention.from_torch(theirs)
    per_head = wild(PerHeadMultiHead(D_MODEL, HEADS))
    for source, made in (
        (theirs, ours),
        (ours, ours.to_torch()),
        (per_head, MultiHeadAttention.from_per_head(per_head)),
    ):
        before = [parameter.detach().clone() for parameter in source.parameters()]
        for parameter in made.parameters():
            assert parameter.requires_grad and parameter.is_leaf
            parameter.data.zero_()
        after = list(source.parameters())
        assert all(torch.equal(*pair) for pair in zip(before, after, strict=True))


# --- the same function three times -----------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.multihead.PerHeadMultiHead", against="PyTorch `nn.MultiheadAttention`"
)
@pytest.mark.parametrize("mask", ["none", "both"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_loop_over_heads_is_pytorchs_layer(ledger, dtype, mask):
    loop, inputs, mask = PerHeadMultiHead(D_MODEL, HEADS), sequences(dtype=dtype), MASKS[mask]()
    layer = MultiHeadAttention.from_per_head(wild(loop, dtype))
    output, weights = layer.to_torch().double()(
        *in_float64(*inputs), attn_mask=hidden(mask), average_attn_weights=False
    )
    agree(ledger, loop(*inputs, mask), (output, weights), ROUNDING[dtype])


@pytest.mark.parametrize("mask", OVER_ALL_HEADS)
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
def test_all_heads_at_once_are_the_heads_one_after_the_other(dtype, training, mask):
    loop = wild(PerHeadMultiHead(D_MODEL, HEADS), dtype).train(training)
    layer, inputs = MultiHeadAttention.from_per_head(loop), sequences(dtype=dtype)
    assert layer.training == training and layer.num_kv_heads == HEADS
    mask = (MASKS | LONELY)[mask]()
    ours, theirs = layer(*inputs, mask, need_weights=True), loop(*inputs, mask)
    near = {"rtol": 0, "atol": 10 * ROUNDING[dtype]}
    torch.testing.assert_close(ours, theirs, **near)
    torch.testing.assert_close(layer(*inputs, mask).output, theirs.output, **near)


# --- heads that share keys and values --------------------------------------------------------


def shared(kv_heads, dtype=torch.float64):
    """A layer in which heads share keys, and inputs for it."""
    sizes = {"d_model": 2 * SHARING, "key_size": KEY_SIZE, "value_size": VALUE_SIZE}
    layer = MultiHeadAttention(num_heads=SHARING, num_kv_heads=kv_heads, **sizes)
    return layer.to(dtype), sequences(**sizes, dtype=dtype)


def cut(tensor, heads):
    """Vectors cut by slices, and the pieces stacked."""
    return torch.stack(tensor.chunk(heads, dim=-1), dim=1)


def by_pytorch(layer, query, key, value, mask, heads, kv_heads, repeat=False):
    """The kernel of PyTorch that knows of groups, or the keys repeated by hand."""
    q, k, v = (
        cut(layer.query(query), heads),
        *(cut(project(x), kv_heads) for project, x in ((layer.key, key), (layer.value, value))),
    )
    if repeat:
        served = [head * kv_heads // heads for head in range(heads)]
        k, v = k[:, served], v[:, served]
    if mask is not None and mask.dim() == 3:
        mask = mask[:, None]
    attended = F.scaled_dot_product_attention(q, k, v, mask, enable_gqa=not repeat)
    return Attended(layer.out(torch.cat(attended.unbind(1), -1)), None)


def a_lonely_query_in_one_head():
    mask = drawn(BATCH, SHARING, QUERIES, KEYS)
    mask[:, 1] = without_second_query(mask[:, 1])
    return mask


SHARED_MASKS = {
    **{kind: MASKS[kind] for kind in ("none", "padding", "(batch, query, key)")},
    **{kind: LONELY[kind] for kind in ("a lonely query", "nobody")},
    "per head": lambda: drawn(BATCH, SHARING, QUERIES, KEYS),
    "a lonely query in one head": a_lonely_query_in_one_head,
}


@pytest.mark.verifies(
    "course_lib.multihead.MultiHeadAttention",
    against="PyTorch `F.scaled_dot_product_attention(enable_gqa=True)`",
)
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("mask", SHARED_MASKS)
@pytest.mark.parametrize("kv_heads", [1, 3, 4, SHARING])
@pytest.mark.parametrize("dtype", DTYPES)
def test_groups_of_heads_share_their_keys(ledger, dtype, kv_heads, mask, need_weights):
    layer, inputs = shared(kv_heads, dtype)
    oracle, _ = shared(kv_heads)
    oracle.load_state_dict(layer.state_dict())
    copies, mask = in_float64(*inputs), SHARED_MASKS[mask]()
    ours = Attended(layer(*inputs, mask, need_weights=need_weights).output, None)
    for repeat in (False, True):
        theirs = by_pytorch(oracle, *copies, mask, SHARING, kv_heads, repeat)
        ledger.compare(ours.output, theirs.output, within=ROUNDING[dtype])
    mixes = mixes_for(theirs)
    slopes = gradients(theirs, [*copies, *oracle.parameters()], mixes)
    mine = gradients(ours, [*inputs, *layer.parameters()], mixes)
    agree(ledger, mine, slopes, ROUNDING[dtype], backward=True)


@LAYER
@pytest.mark.parametrize("kv_heads", [1, 3, 4])
def test_in_pytorchs_layer_heads_that_share_keys_have_copies(ledger, kv_heads):
    layer, inputs = shared(kv_heads)
    output, weights = layer.to_torch()(*inputs, average_attn_weights=False)
    agree(ledger, layer(*inputs, need_weights=True), (output, weights), 1e-10)


@st.composite
def layers(draw):
    """A layer of any sizes, inputs of any lengths, and a mask of any shape that fits."""
    heads, d_head = draw(st.sampled_from([1, 2, 3, 4, 6])), draw(st.integers(1, 3))
    kv_heads = draw(st.sampled_from([n for n in range(1, heads + 1) if heads % n == 0]))
    batch, queries, keys = (draw(st.integers(1, 4)) for _ in range(3))
    key_size, value_size = (draw(st.integers(1, 4)) for _ in range(2))
    bias = draw(st.booleans())
    torch.manual_seed(draw(st.integers(0, 1000)))
    sizes = {"key_size": key_size, "value_size": value_size, "bias": bias}
    layer = wild(MultiHeadAttention(heads * d_head, heads, num_kv_heads=kv_heads, **sizes))
    shapes = (queries, heads * d_head), (keys, key_size), (keys, value_size)
    inputs = [torch.randn(batch, *shape, dtype=torch.float64) for shape in shapes]
    full = draw(st.sampled_from([(batch, heads), (batch,), ()]))
    wanted = [draw(st.sampled_from([n, n, 1])) for n in (*full, queries, keys)]
    mask = torch.rand(wanted) < draw(st.sampled_from([0.3, 0.6, 0.9]))
    return layer, inputs, draw(st.sampled_from([None, mask])), heads, kv_heads


@pytest.mark.verifies(
    "course_lib.multihead.MultiHeadAttention",
    against="PyTorch `F.scaled_dot_product_attention(enable_gqa=True)`",
)
@pytest.mark.parametrize("need_weights", [True, False])
@COLLECTS
@given(case=layers())
def test_layers_of_any_size_attend_as_pytorch_does(ledger, need_weights, case):
    layer, inputs, mask, heads, kv_heads = case
    theirs = by_pytorch(layer, *inputs, mask, heads, kv_heads)
    ours = layer(*inputs, mask, need_weights=need_weights)
    ledger.compare(ours.output, theirs.output, within=1e-10)
    if need_weights:
        totals = ours.weights.sum(-1)
        assert ((totals - 1).abs() < 1e-10).logical_or(totals == 0).all()


# --- layers of other libraries ---------------------------------------------------------------


def added_to_scores(mask):
    return torch.zeros(mask.shape, dtype=torch.float64).masked_fill(~mask, -torch.inf)


@pytest.mark.verifies(
    "course_lib.multihead.MultiHeadAttention", against="Hugging Face `BertSelfAttention`"
)
@pytest.mark.parametrize("mask", [None, padding])
def test_multi_head_attention_is_that_of_bert(ledger, mask):
    from transformers.models.bert import modeling_bert

    config = modeling_bert.BertConfig(
        hidden_size=D_MODEL, num_attention_heads=HEADS, attn_implementation="eager"
    )
    bert = wild(modeling_bert.BertSelfAttention(config)).eval()
    layer = MultiHeadAttention(D_MODEL, HEADS).double().eval()
    layer.load_state_dict(bert.state_dict(), strict=False)
    layer.out = nn.Identity()  # BERT has its last projection in another layer
    x = torch.randn(BATCH, KEYS, D_MODEL, dtype=torch.float64)
    mask = None if mask is None else mask()
    theirs = bert(x, None if mask is None else added_to_scores(mask[:, None]))
    agree(ledger, layer(x, mask=mask, need_weights=True), theirs, 1e-10)


@pytest.mark.verifies(
    "course_lib.multihead.MultiHeadAttention", against="Hugging Face `LlamaAttention`"
)
@pytest.mark.parametrize("kv_heads", [1, 3, SHARING])
def test_grouped_heads_are_those_of_llama_without_its_rotation(ledger, kv_heads):
    from transformers.models.llama import modeling_llama

    d_model = 2 * SHARING
    config = modeling_llama.LlamaConfig(
        hidden_size=d_model,
        num_attention_heads=SHARING,
        num_key_value_heads=kv_heads,
        attn_implementation="sdpa",  # its "eager" rounds the weights to float32
    )
    llama = wild(modeling_llama.LlamaAttention(config, layer_idx=0)).eval()
    layer = MultiHeadAttention(d_model, SHARING, num_kv_heads=kv_heads, bias=False).double()
    names = {"q_proj": "query", "k_proj": "key", "v_proj": "value", "o_proj": "out"}
    state = {f"{ours}.weight": getattr(llama, hers).weight for hers, ours in names.items()}
    layer.load_state_dict(state)
    x = torch.randn(BATCH, KEYS, d_model, dtype=torch.float64, requires_grad=True)
    still = torch.ones(1, KEYS, 2).double(), torch.zeros(1, KEYS, 2).double()  # cosine 1, sine 0
    mask = yes(KEYS, KEYS).tril()
    theirs = Attended(*llama(x, still, added_to_scores(mask)[None, None]))
    ours = layer(x, mask=mask)
    agree(ledger, ours, theirs, 1e-10)
    mixes = mixes_for(theirs)
    mine = gradients(ours, [x, *(layer.get_parameter(name) for name in state)], mixes)
    agree(ledger, mine, gradients(theirs, [x, *state.values()], mixes), 1e-10, backward=True)


# --- positions -------------------------------------------------------------------------------

FAR = 3  # distances above are alike for Shaw and T5, so that short sequences have far tokens
INSIDE = {
    "none": lambda count: None,
    "shaw": lambda count: ShawRelativePositions(D_HEAD, FAR),
    "t5": lambda count: T5RelativeBias(count, num_buckets=8, max_distance=4),
    "t5, causal": lambda count: T5RelativeBias(
        count, bidirectional=False, num_buckets=4, max_distance=5
    ),
    "rotary": lambda count: RotaryPositions(D_HEAD, 50.0),
    "rotary, half": lambda count: RotaryPositions(D_HEAD, layout="half"),
    "alibi": AlibiBias,
}
AS_THEY_COME = ("sinusoidal", "learned")
WITH_KERNEL = [name for name in INSIDE if name != "shaw"]  # the others never hold the weights
TOKENS = 7


def placed(name, dtype=torch.float64, count=HEADS, kv_heads=None):
    """A layer with an encoding inside, and all that it learns so large that it matters."""
    layer = MultiHeadAttention(
        count * D_HEAD, count, num_kv_heads=kv_heads, positions=INSIDE[name](count)
    )
    return wild(layer, dtype)


def whole(name, dtype=torch.float64, count=HEADS, kv_heads=None):
    """x, offset, … → what a layer makes of it, with any encoding, inside or added before."""
    if name not in AS_THEY_COME:
        layer = placed(name, dtype, count, kv_heads)
        return lambda x, offset=0, **settings: layer(x, **settings)
    added = make_positions(name, count * D_HEAD, count, max_length=40).added.to(dtype)
    wild(added, dtype)
    layer = placed("none", dtype, count, kv_heads)
    return lambda x, offset=0, **settings: layer(added(x, offset), **settings)


def tokens(length=TOKENS, dtype=torch.float64, count=HEADS):
    return torch.randn(BATCH, length, count * D_HEAD, dtype=dtype, requires_grad=True)


def lower(length=TOKENS, keys=None):
    keys = length if keys is None else keys
    return yes(length, keys).tril(keys - length)


def of_pairs(x, layout):
    """The vector as complex numbers, a pair each."""
    if layout == "half":
        return torch.complex(*x.chunk(2))
    return torch.complex(x[0::2], x[1::2])


def one_score(positions, head, q, k, behind):
    """One query and one key, unscaled, where the key stands `behind` places behind the query."""
    if isinstance(positions, RotaryPositions):
        size = len(q)
        turn = [behind / positions.base ** (2 * i / size) for i in range(size // 2)]
        turn = torch.tensor(turn, dtype=q.dtype)
        q, k = of_pairs(q, positions.layout), of_pairs(k, positions.layout)
        return (q.conj() * k * torch.polar(torch.ones_like(turn), turn)).real.sum()
    if isinstance(positions, ShawRelativePositions):
        k = k + positions.key[max(-FAR, min(FAR, behind)) + FAR]
    return (q * k).sum()


def one_bias(positions, head, behind):
    if isinstance(positions, AlibiBias):
        return (
            -abs(behind)
            * {3: [1 / 16, 1 / 256, 1 / 4], 4: [4**-n for n in (1, 2, 3, 4)]}[
                positions.slopes.numel()
            ][head]
        )
    if isinstance(positions, T5RelativeBias):
        from transformers.models.t5.modeling_t5 import T5Attention

        bucket = T5Attention._relative_position_bucket(torch.tensor(behind), **positions.sorting)
        return positions.table[bucket, head]
    return 0.0


def pair_by_pair(layer, x, mask):
    """One sequence, head, query and key at a time."""
    count, shared = layer.num_heads, layer.num_kv_heads
    outputs, every = [], []
    for b in range(len(x)):
        q, k, v = (
            cut(project(x[b][None]), n)[0]
            for project, n in ((layer.query, count), (layer.key, shared), (layer.value, shared))
        )
        beside, weights = [], []
        for h in range(count):
            group = h * shared // count
            rows = []
            for i in range(len(x[b])):
                scores = torch.stack(
                    [
                        one_score(layer.positions, h, q[h, i], k[group, j], j - i)
                        / math.sqrt(D_HEAD)
                        + one_bias(layer.positions, h, j - i)
                        for j in range(len(x[b]))
                    ]
                )
                alpha = scores.masked_fill(~mask[i], -torch.inf).softmax(0)
                weights.append(alpha)
                rows.append(
                    sum(
                        alpha[j] * one_value(layer.positions, v[group, j], j - i)
                        for j in range(len(x[b]))
                    )
                )
            beside.append(torch.stack(rows))
        outputs.append(layer.out(torch.cat(beside, -1)))
        every.append(torch.stack(weights).view(count, len(x[b]), -1))
    return Attended(torch.stack(outputs), torch.stack(every))


def one_value(positions, v, behind):
    if isinstance(positions, ShawRelativePositions):
        return v + positions.value[max(-FAR, min(FAR, behind)) + FAR]
    return v


PLACED = {
    "none": pytest.mark.verifies(
        "course_lib.multihead.MultiHeadAttention",
        against="whole layers, one pair of tokens at a time",
    ),
    "shaw": pytest.mark.verifies(
        "course_lib.positions.ShawRelativePositions",
        against="whole layers, one pair of tokens at a time",
    ),
    "t5": pytest.mark.verifies(
        "course_lib.positions.T5RelativeBias",
        against="whole layers, one pair of tokens at a time",
    ),
    "t5, causal": pytest.mark.verifies(
        "course_lib.positions.T5RelativeBias",
        against="whole layers, one pair of tokens at a time",
    ),
    "rotary": pytest.mark.verifies(
        "course_lib.positions.RotaryPositions",
        against="whole layers, one pair of tokens at a time",
    ),
    "rotary, half": pytest.mark.verifies(
        "course_lib.positions.RotaryPositions",
        against="whole layers, one pair of tokens at a time",
    ),
    "alibi": pytest.mark.verifies(
        "course_lib.positions.AlibiBias",
        against="whole layers, one pair of tokens at a time",
    ),
}
WITH_POSITIONS = pytest.mark.verifies(
    "course_lib.multihead.MultiHeadAttention",
    against="whole layers with positions, one pair of tokens at a time",
)
BY_PAIRS = [
    pytest.param(name, marks=[PLACED[name], *[WITH_POSITIONS][: name != "none"]]) for name in INSIDE
]


@pytest.mark.parametrize(("count", "kv_heads"), [(HEADS, None), (4, 2), (HEADS, 1)])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BY_PAIRS)
def test_positions_act_on_every_pair_of_tokens(ledger, name, dtype, causal, count, kv_heads):
    layer = placed(name, dtype, count, kv_heads)
    oracle = placed(name, torch.float64, count, kv_heads)
    oracle.load_state_dict(layer.state_dict())
    x, mask = tokens(5, dtype, count), lower(5) if causal else yes(5, 5)
    (copied,) = in_float64(x)
    theirs = pair_by_pair(oracle, copied, mask)
    mixes, named = mixes_for(theirs), dict(oracle.named_parameters())
    slopes = gradients(Attended(theirs.output, None), [copied, *named.values()], mixes[:1])
    for need_weights in (True, False):
        ours = layer(x, mask=mask if causal else None, need_weights=need_weights)
        assert ours.output.dtype == dtype and (ours.weights is not None) == need_weights
        agree(
            ledger,
            ours,
            Attended(theirs.output, theirs.weights if need_weights else None),
            ROUNDING[dtype],
        )
        leaves = [x, *(layer.get_parameter(name) for name in named)]
        mine = gradients(Attended(ours.output, None), leaves, mixes[:1])
        agree(ledger, mine, slopes, 10 * ROUNDING[dtype], backward=True)


@pytest.mark.parametrize("kv_heads", [1, HEADS])
@pytest.mark.parametrize("name", [*INSIDE, *AS_THEY_COME])
@pytest.mark.parametrize("dtype", DTYPES)
def test_written_in_pieces_a_sequence_is_what_it_is_at_once(name, dtype, kv_heads):
    call, x = whole(name, dtype, kv_heads=kv_heads), tokens(9, dtype)
    for need_weights in (True, False):
        full = call(x, mask=lower(9), need_weights=need_weights)
        for sizes in ([1] * 9, [4, 1, 3, 1], [9], [1, 8]):
            cache, pieces, done = KeyValueCache(), [], 0
            for new in sizes:
                piece = x[:, done : done + new]
                mask = lower(new, done + new) if new > 1 else None
                ours = call(piece, done, mask=mask, cache=cache, need_weights=need_weights)
                if need_weights:
                    seen = full.weights[:, :, done : done + new, : done + new]
                    assert (ours.weights - seen).abs().max() < ROUNDING[dtype]
                done += new
                pieces.append(ours.output)
            assert cache.length == 9
            near = (torch.cat(pieces, 1) - full.output).abs().max()
            assert near < ROUNDING[dtype]


@pytest.mark.parametrize("name", [*INSIDE, *AS_THEY_COME])
def test_only_with_positions_the_order_is_seen(name):
    call, x = whole(name), tokens()
    order = torch.tensor([6, 4, 2, 0, 1, 3, 5])
    ours, plain = call(x[:, order]).output, call(x).output[:, order]
    if name == "none":
        torch.testing.assert_close(ours, plain)
    else:
        assert ((ours - plain).abs().amax(-1) > 1e-4).all()


@pytest.mark.parametrize("name", [*INSIDE, *AS_THEY_COME])
def test_relative_positions_do_not_know_where_a_sequence_begins(name):
    call, x = whole(name), tokens()
    plain = call(x).output
    for room in (1, 20):
        longer = torch.cat([torch.randn(BATCH, room, D_MODEL).double(), x], 1)
        mask = (torch.arange(room + TOKENS) >= room).expand(1, room + TOKENS, -1)
        for need_weights in (True, False):
            shifted = call(longer, mask=mask, need_weights=need_weights).output[:, room:]
            if name in AS_THEY_COME:
                assert ((shifted - plain).abs().amax(-1) > 1e-4).all()
            else:
                torch.testing.assert_close(shifted, plain, rtol=0, atol=1e-10)


@pytest.mark.parametrize("kv_heads", [1, HEADS])
@pytest.mark.parametrize("name", INSIDE)
@pytest.mark.parametrize("dtype", [torch.float32, *HALVES])
def test_with_positions_too_a_query_without_keys_gets_the_bias_alone(name, dtype, kv_heads):
    layer, x = placed(name, dtype, kv_heads=kv_heads), tokens(dtype=dtype)
    mask = without_second_query(yes(TOKENS, TOKENS))
    for need_weights in (True, False):
        layer.zero_grad()
        x.grad = None
        ours = layer(x, mask=mask, need_weights=need_weights)
        with torch.autograd.set_detect_anomaly(True):  # no NaN on the way either
            ours.output.backward(torch.randn(ours.output.shape).to(dtype))
        assert ours.output.dtype == dtype and ours.output.isfinite().all()
        assert torch.equal(ours.output[:, 1], layer.out.bias.expand(BATCH, -1))
        assert all(tensor.grad.isfinite().all() for tensor in [x, *layer.parameters()])
        if need_weights:
            assert (ours.weights[:, :, 1] == 0).all()
    nobody = layer(x, mask=~yes(TOKENS, TOKENS)).output
    assert torch.equal(nobody, layer.out.bias.expand(BATCH, TOKENS, -1))


@pytest.mark.parametrize("kv_heads", [1, HEADS])
@pytest.mark.parametrize("name", INSIDE)
def test_a_layer_with_positions_works_under_autocast_and_in_half_precision(name, kv_heads):
    layer, x, mask = (
        placed(name, torch.float32, kv_heads=kv_heads),
        tokens(dtype=torch.float32),
        lower(),
    )
    plain = layer(x, mask=mask).output
    halves = []
    for need_weights in (True, False):
        layer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            mixed = layer(x, mask=mask, need_weights=need_weights).output
        mixed.sum().backward()
        assert all(p.grad is not None and p.grad.isfinite().all() for p in layer.parameters())
        halves.append(mixed)
        with torch.autocast("cpu", torch.bfloat16):
            cache = KeyValueCache()
            pieces = [
                layer(x[:, :4], mask=lower(4), cache=cache),
                layer(x[:, 4:], mask=lower(3, 7), cache=cache),
            ]
        halves.append(torch.cat([piece.output for piece in pieces], 1))
    layer.zero_grad()
    layer.bfloat16()
    for need_weights in (True, False):
        half = layer(x.bfloat16(), mask=mask, need_weights=need_weights).output
        half.sum().backward()
        assert all(p.grad is not None and p.grad.isfinite().all() for p in layer.parameters())
        halves.append(half)
    for output in halves:
        assert output.dtype == torch.bfloat16
        assert (output.float() - plain).abs().max() < 0.03 * plain.abs().max()


LEARNED = {
    "shaw": {"positions.key": (2 * FAR + 1, D_HEAD), "positions.value": (2 * FAR + 1, D_HEAD)},
    "t5": {"positions.table": (8, HEADS)},
    "t5, causal": {"positions.table": (4, HEADS)},
}


@pytest.mark.parametrize("name", INSIDE)
def test_the_parameters_are_four_projections_and_what_the_encoding_learns(name):
    layer, plain = placed(name), placed("none")
    layer(tokens(90))
    shapes = {key: tuple(tensor.shape) for key, tensor in plain.state_dict().items()}
    shapes |= LEARNED.get(name, {})
    assert {key: tuple(tensor.shape) for key, tensor in layer.state_dict().items()} == shapes
    assert {key: tuple(p.shape) for key, p in layer.named_parameters()} == shapes
    other = placed(name)
    other.load_state_dict(layer.state_dict())
    x = tokens()
    assert torch.equal(other(x).output, layer(x).output)


@pytest.mark.parametrize("name", INSIDE)
def test_what_is_recorded_of_a_layer_with_positions_are_its_weights(name):
    layer, x = placed(name), tokens()
    with record_attention(layer) as maps:
        assert layer(x, mask=lower()).weights is not None
    (recorded,) = maps[""]
    torch.testing.assert_close(recorded, layer(x, mask=lower(), need_weights=True).weights)


def test_only_what_moves_the_output_needs_the_weights():
    for name, make in INSIDE.items():
        positions = make(HEADS)
        assert positions is None or positions.needs_weights == (name == "shaw")
    assert type(MultiHeadAttention(D_MODEL, HEADS).positions) is AttentionPositions


@pytest.mark.parametrize("name", WITH_KERNEL)
def test_without_weights_the_kernel_is_called_and_with_them_it_is_not(monkeypatch, name):
    layer, x, calls = placed(name), tokens(), []
    kernel = F.scaled_dot_product_attention

    def counted(*args, **settings):
        calls.append(args)
        return kernel(*args, **settings)

    monkeypatch.setattr(F, "scaled_dot_product_attention", counted)
    layer(x, mask=lower())
    assert len(calls) == 1
    layer(x, mask=lower(), need_weights=True)
    assert len(calls) == 1


@pytest.mark.parametrize("name", INSIDE)
def test_dropout_with_positions_keeps_the_mean(name):
    x = tokens(4, torch.float32).detach()[:1]
    layer = MultiHeadAttention(D_MODEL, HEADS, dropout=0.4, positions=INSIDE[name](HEADS))
    plain = layer.eval()(x).output
    torch.testing.assert_close(layer(x).output, plain, rtol=0, atol=0)
    draws = layer.train()(x.expand(4000, -1, -1)).output
    spread = draws.std(0) / math.sqrt(4000)
    assert (spread > 0).all()
    assert ((draws.mean(0) - plain[0]).abs() < 5 * spread).all()


@pytest.mark.parametrize("name", ENCODINGS)
def test_every_setting_makes_a_layer_that_runs(name):
    made = make_positions(name, D_MODEL, HEADS, max_length=TOKENS)
    layer, x = (
        MultiHeadAttention(D_MODEL, HEADS, positions=made.inside),
        tokens(dtype=torch.float32),
    )
    x = x if made.added is None else made.added(x)
    assert layer(x, mask=lower()).output.shape == (BATCH, TOKENS, D_MODEL)


# --- layers of other libraries that have positions -------------------------------------------


def carried(layer, theirs, names):
    """Copy their projections: our name → theirs."""
    for ours, name in names.items():
        getattr(layer, ours).load_state_dict(getattr(theirs, name).state_dict())


def angles(base=10000.0, places=range(TOKENS)):
    """p ω_i in float64, (place, pair)."""
    rows = [[p / base ** (2 * i / D_HEAD) for i in range(D_HEAD // 2)] for p in places]
    return torch.tensor(rows, dtype=torch.float64)


def of_llama(base, kv_heads):
    """LLaMA's layer, with angles in float64, and what it takes to make ours."""
    from transformers.models.llama import modeling_llama

    config = modeling_llama.LlamaConfig(
        hidden_size=D_MODEL,
        num_attention_heads=HEADS,
        num_key_value_heads=kv_heads,
        attn_implementation="sdpa",  # its "eager" rounds the weights to float32
    )
    llama = wild(modeling_llama.LlamaAttention(config, layer_idx=0)).eval()
    turns = angles(base).repeat(1, 2)[None]
    mask = added_to_scores(lower())[None, None]
    names = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "out": "o_proj"}
    return llama, lambda x: llama(x, (turns.cos(), turns.sin()), mask)[0], names


def hold_llama(ledger, layer, base=10000.0, kv_heads=HEADS):
    """What a layer with rotary positions is held against; it must have no biases."""
    llama, call, names = of_llama(base, kv_heads)
    carried(layer, llama, names)
    x = tokens()
    ours, theirs = layer(x, mask=lower()).output, call(x)
    ledger.compare(ours, theirs, within=1e-10)
    mix = torch.randn_like(ours)
    projections = [
        [getattr(owner, name).weight for name in of]
        for owner, of in ((layer, names), (llama, names.values()))
    ]
    mine = torch.autograd.grad(ours, [x, *projections[0]], mix)
    slopes = torch.autograd.grad(theirs, [x, *projections[1]], mix)
    agree(ledger, mine, slopes, 1e-9, backward=True)


def rotated(kv_heads=HEADS, base=10000.0, layout="half", make=RotaryPositions):
    positions = make(D_HEAD, base, layout=layout)
    layer = MultiHeadAttention(
        D_MODEL, HEADS, num_kv_heads=kv_heads, bias=False, positions=positions
    )
    return layer.double()


@pytest.mark.verifies(
    "course_lib.multihead.MultiHeadAttention", against="Hugging Face `LlamaAttention`"
)
@pytest.mark.verifies(
    "course_lib.positions.RotaryPositions", against="Hugging Face `LlamaAttention`"
)
@pytest.mark.parametrize("base", [10000.0, 500_000.0])
@pytest.mark.parametrize("kv_heads", [1, HEADS])
def test_rotary_layers_are_those_of_llama(ledger, kv_heads, base):
    hold_llama(ledger, rotated(kv_heads, base), base, kv_heads)


class TurnedLinear(nn.Linear):
    """A projection whose heads are turned."""

    def forward(self, x):
        projected = cut(super().forward(x), HEADS)
        turned, _ = RotaryPositions(D_HEAD, layout="half").turn(projected, projected)
        return torch.cat(turned.unbind(1), -1)


class LayoutsMixed(RotaryPositions):
    """Queries in one layout, keys in the other."""

    def turn(self, query, key, offset=0):
        other = RotaryPositions(D_HEAD, self.base)
        return super().turn(query, key, offset)[0], other.turn(query, key, offset)[1]


class OnlyQueries(RotaryPositions):
    """Keys stay as they are."""

    def turn(self, query, key, offset=0):
        return super().turn(query, key, offset)[0], key


class AgainstEachOther(RotaryPositions):
    """Keys are turned to the other side."""

    def turn(self, query, key, offset=0):
        places = -torch.arange(offset, offset + key.shape[-2])
        turned = rotary(key, places, self.base, layout=self.layout)
        return super().turn(query, key, offset)[0], turned


def test_rotary_layers_that_turn_the_wrong_things_are_found(ledger):
    hold_llama(ledger, rotated())
    values = rotated()
    values.value = TurnedLinear(D_MODEL, D_MODEL, bias=False).double()
    wrong = [
        values,
        rotated(layout="interleaved"),
        rotated(make=LayoutsMixed),
        rotated(make=OnlyQueries),
        rotated(make=AgainstEachOther),
        rotated(base=1.0),
        rotated(base=10000.0**2),
        MultiHeadAttention(D_MODEL, HEADS, bias=False).double(),
    ]
    for layer in wrong:
        with pytest.raises(AssertionError, match="differs from the oracle"):
            hold_llama(ledger, layer)


def of_roformer(rotary_value=False):
    from transformers.models.roformer import modeling_roformer

    config = modeling_roformer.RoFormerConfig(
        hidden_size=D_MODEL, num_attention_heads=HEADS, rotary_value=rotary_value
    )
    roformer = wild(modeling_roformer.RoFormerSelfAttention(config)).eval()
    table = torch.cat([angles().sin(), angles().cos()], -1)[None, None]
    mask = added_to_scores(lower())
    return roformer, lambda x: roformer(x, mask, table)


@pytest.mark.verifies(
    "course_lib.multihead.MultiHeadAttention", against="Hugging Face `RoFormerSelfAttention`"
)
@pytest.mark.verifies(
    "course_lib.positions.RotaryPositions", against="Hugging Face `RoFormerSelfAttention`"
)
def test_rotary_layers_are_those_of_roformer_that_leaves_the_values_alone(ledger):
    layer = MultiHeadAttention(D_MODEL, HEADS, positions=RotaryPositions(D_HEAD)).double()
    layer.out = nn.Identity()  # RoFormer has its last projection in another layer
    x, names = tokens(), {name: name for name in ("query", "key", "value")}
    roformer, call = of_roformer()
    carried(layer, roformer, names)
    agree(ledger, layer(x, mask=lower(), need_weights=True), call(x), 1e-10)
    roformer, call = of_roformer(rotary_value=True)
    carried(layer, roformer, names)
    assert not torch.allclose(layer(x, mask=lower()).output, call(x)[0], atol=1e-3)


@pytest.mark.verifies(
    "course_lib.multihead.MultiHeadAttention", against="Hugging Face `T5Attention`"
)
@pytest.mark.verifies("course_lib.positions.T5RelativeBias", against="Hugging Face `T5Attention`")
@pytest.mark.parametrize("decoder", [False, True])
def test_layers_with_a_relative_bias_are_those_of_t5(ledger, decoder):
    from transformers.models.t5 import modeling_t5

    sizes = {"num_buckets": 8, "max_distance": 6}
    config = modeling_t5.T5Config(
        d_model=D_MODEL,
        d_kv=D_HEAD,
        num_heads=HEADS,
        is_decoder=decoder,
        relative_attention_num_buckets=8,
        relative_attention_max_distance=6,
        attn_implementation="eager",
    )
    t5 = modeling_t5.T5Attention(config, has_relative_attention_bias=True, layer_idx=0)
    t5 = wild(t5).eval()
    positions = T5RelativeBias(HEADS, bidirectional=not decoder, **sizes)
    layer = MultiHeadAttention(D_MODEL, HEADS, bias=False, positions=positions).double()
    carried(layer, t5, {"query": "q", "key": "k", "value": "v", "out": "o"})
    layer.query.weight.data *= math.sqrt(D_HEAD)  # T5 does not scale its scores
    positions.table.data = t5.relative_attention_bias.weight.detach().clone()
    x, mask = tokens(), lower() if decoder else yes(TOKENS, TOKENS)
    output, _, weights = t5(x, mask=added_to_scores(mask)[None, None])
    agree(ledger, layer(x, mask=mask, need_weights=True), (output, weights), 1e-10)
    ours, mix = layer(x, mask=mask).output, torch.randn(BATCH, TOKENS, D_MODEL).double()
    mine = torch.autograd.grad(ours, [x, positions.table], mix)
    slopes = torch.autograd.grad(output, [x, t5.relative_attention_bias.weight], mix)
    agree(ledger, mine, slopes, 1e-10, backward=True)


@pytest.mark.verifies(
    "course_lib.multihead.MultiHeadAttention", against="Hugging Face `BloomAttention`"
)
@pytest.mark.verifies("course_lib.positions.AlibiBias", against="Hugging Face `BloomAttention`")
@pytest.mark.parametrize("count", [HEADS, 4])
def test_layers_with_a_linear_bias_are_those_of_bloom(ledger, count):
    from transformers.models.bloom import modeling_bloom

    width = count * D_HEAD
    config = modeling_bloom.BloomConfig(hidden_size=width, n_head=count)
    bloom = wild(modeling_bloom.BloomAttention(config, layer_idx=0)).eval()
    layer = MultiHeadAttention(width, count, positions=AlibiBias(count)).double()
    layer.out.load_state_dict(bloom.dense.state_dict())
    for place, name in enumerate(("query", "key", "value")):  # theirs are packed head by head
        packed = bloom.query_key_value
        getattr(layer, name).weight.data = (
            packed.weight.detach().view(count, 3, D_HEAD, width)[:, place].reshape(width, width)
        )
        getattr(layer, name).bias.data = (
            packed.bias.detach().view(count, 3, D_HEAD)[:, place].flatten()
        )
    x = tokens(count=count)
    alibi = modeling_bloom.build_alibi_tensor(torch.ones(BATCH, TOKENS), count, torch.float64)
    theirs = bloom(x, torch.zeros_like(x), alibi, added_to_scores(lower())[None, None])
    agree(ledger, layer(x, mask=lower(), need_weights=True), theirs, 1e-6)  # its softmax is float32


# --- what is true of multi-head attention ----------------------------------------------------


@pytest.mark.parametrize("need_weights", [True, False])
def test_shuffled_tokens_give_shuffled_outputs(need_weights):
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
@pytest.mark.parametrize("kv_heads", [1, HEADS])
def test_the_future_never_changes_the_past(kv_heads, need_weights):
    layer = MultiHeadAttention(D_MODEL, HEADS, num_kv_heads=kv_heads).double()
    x, mask = torch.randn(BATCH, KEYS, D_MODEL).double().requires_grad_(), yes(KEYS, KEYS).tril()
    output = layer(x, mask=mask, need_weights=need_weights).output
    for now in range(KEYS):
        (reach,) = torch.autograd.grad(output[:, now].sum(), x, retain_graph=True)
        assert (reach[:, now + 1 :] == 0).all() and (reach[:, : now + 1] != 0).any(-1).all()
        prefix = layer(x[:, : now + 1], mask=mask[: now + 1, : now + 1], need_weights=need_weights)
        torch.testing.assert_close(prefix.output, output[:, : now + 1])


@pytest.mark.parametrize("need_weights", [True, False])
def test_longer_padding_changes_nothing(need_weights):
    layer, (x, memory, other) = MultiHeadAttention(D_MODEL, HEADS).double(), sequences()
    plain = layer(x, memory, other).output
    for room in (1, 6):
        longer = [F.pad(tensor, (0, 0, 0, room), value=9.0) for tensor in (memory, other)]
        mask = (torch.arange(KEYS + room) < KEYS).expand(BATCH, 1, -1)
        padded = layer(x, *longer, mask, need_weights=need_weights).output
        torch.testing.assert_close(padded, plain)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, *HALVES])
def test_a_query_that_may_attend_to_nothing_gets_the_bias_alone(dtype, need_weights):
    layer = wild(MultiHeadAttention(D_MODEL, HEADS, num_kv_heads=1, dropout=0.1), dtype)
    inputs = sequences(dtype=dtype)
    ours = layer(*inputs, without_second_query(yes(QUERIES, KEYS)), need_weights=need_weights)
    with torch.autograd.set_detect_anomaly(True):  # no NaN on the way either
        ours.output.backward(torch.randn(ours.output.shape).to(dtype))
    assert torch.equal(ours.output[:, 1], layer.out.bias.expand(BATCH, -1))
    assert (inputs[0].grad[:, 1] == 0).all() and (inputs[0].grad[:, 2] != 0).any()
    assert all(tensor.grad.isfinite().all() for tensor in [*inputs, *layer.parameters()])
    if need_weights:
        assert (ours.weights[:, :, 1] == 0).all()


def test_a_mask_of_one_axis_is_the_same_for_all_queries():
    layer, inputs = MultiHeadAttention(D_MODEL, HEADS).double(), sequences()
    mask = torch.tensor([True, False, True, True, False])
    torch.testing.assert_close(
        layer(*inputs, mask).output, layer(*inputs, mask, need_weights=True).output
    )


@pytest.mark.parametrize("need_weights", [True, False])
def test_dropout_acts_only_in_training_and_keeps_the_mean(need_weights):
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
@pytest.mark.parametrize("kv_heads", [1, HEADS])
def test_a_layer_works_under_autocast_and_in_half_precision(kv_heads, need_weights):
    layer = MultiHeadAttention(D_MODEL, HEADS, num_kv_heads=kv_heads)
    inputs, mask = sequences(dtype=torch.float32), drawn(BATCH, QUERIES, KEYS)
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
def test_the_parameters_are_four_projections(bias):
    layer = MultiHeadAttention(12, 6, num_kv_heads=2, bias=bias, key_size=7, value_size=5)
    weights = {"query": (12, 12), "key": (4, 7), "value": (4, 5), "out": (12, 12)}
    shapes = {f"{name}.weight": shape for name, shape in weights.items()}
    if bias:
        shapes |= {f"{name}.bias": shape[:1] for name, shape in weights.items()}
    assert {name: tuple(p.shape) for name, p in layer.named_parameters()} == shapes


# --- bad input -------------------------------------------------------------------------------

X, Y = torch.zeros(2, 4, 18), torch.zeros(2, 5, 18)
M = torch.ones(4, 5) > 0
LAYERED, LOOP = MultiHeadAttention(18, 3), PerHeadMultiHead(18, 3)
OTHERS = MultiHeadAttention(18, 3, key_size=7, value_size=8)
THREE, FOUR = (
    r"\(batch, query, key\) = \(2, 4, 5\): ",
    r"\(batch, heads, query, key\) = \(2, 3, 4, 5\): ",
)


@pytest.mark.usefixtures("without_annotations")
@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: split_heads([1.0], 1), r"x is a list; a tensor is needed"),
        (lambda: split_heads(X[0, 0], 3), r"x has shape \(18,\); it must be \(…, length, width\)"),
        (lambda: split_heads(X, 4), r"width=18 is not divisible by num_heads=4; try num_heads=3 or 6$"),
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
        (lambda: MultiHeadAttention(12, 3, key_size=0), r"key_size=0 is below 1"),
        (lambda: MultiHeadAttention(12, 3, value_size=1.5), r"value_size=1\.5 is a float"),
        (lambda: MultiHeadAttention(12, 3, positions="alibi"), r"positions is a str; it must be an AttentionPositions, such as RotaryPositions"),
        (lambda: MultiHeadAttention(12, 3, positions=AlibiBias), r"positions is a type; it must be an AttentionPositions"),
        (lambda: MultiHeadAttention(12, 3, positions=make_positions("sinusoidal", 12, 3, max_length=4).added), r"positions is a SinusoidalPositions; .*go before the layer"),
        (lambda: MultiHeadAttention(18, 3, positions=AlibiBias(3))(X, X.clone()), r"AlibiBias counts positions along one sequence, .*leave key out"),
        (lambda: MultiHeadAttention(18, 3, positions=AlibiBias(3)).to_torch(), r"has no place for AlibiBias"),
        (lambda: MultiHeadAttention(18, 3, positions=AlibiBias(2))(X), r"positions was made with num_heads=2, but the layer has num_heads=3"),
        (lambda: LAYERED(None), r"query is a NoneType; a tensor is needed"),
        (lambda: LAYERED(X.long()), r"query has dtype int64; .*query\.float\(\)"),
        (lambda: LAYERED(X[0]), r"query has shape \(4, 18\); it must be \(batch, length, size\), e\.g\. query\[None\]"),
        (lambda: LAYERED(X, Y[None]), r"key has shape \(1, 2, 5, 18\); it must be \(batch, length, size\)"),
        (lambda: LAYERED(X, Y, Y[0]), r"value has shape \(5, 18\); it must be \(batch, length, size\)"),
        (lambda: LAYERED(X[..., :7]), r"query has .* 7 numbers; the layer was made for 18 in each query"),
        (lambda: LAYERED(X, Y[..., :7]), r"key has .* 7 numbers; the layer was made for 18 in each key"),
        (lambda: OTHERS(X), r"key has .* 18 numbers; the layer was made for 7 in each key"),
        (lambda: OTHERS(X, Y[..., :7]), r"value has .* 7 numbers; the layer was made for 8 in each value"),
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
        (lambda: MultiHeadAttention.from_per_head(LAYERED), r"layer is a MultiHeadAttention; it must be a PerHeadMultiHead"),
        (lambda: MultiHeadAttention.from_per_head(FullWidthMultiHead(6, 2)), r"layer is a FullWidthMultiHead; it must be"),
        (lambda: MultiHeadAttention.from_torch(LOOP), r"layer is a PerHeadMultiHead; it must be an nn\.MultiheadAttention"),
        (lambda: MultiHeadAttention.from_torch(SingleHeadAttention(6)), r"layer is a SingleHeadAttention; it must be an nn\."),
        (lambda: MultiHeadAttention.from_torch(nn.MultiheadAttention(6, 2, add_bias_kv=True)), r"layer was made with add_bias_kv or add_zero_attn"),
        (lambda: MultiHeadAttention.from_torch(nn.MultiheadAttention(6, 2, add_zero_attn=True)), r"layer was made with add_bias_kv or add_zero_attn"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_by_name(call, says):
    with pytest.raises(ValueError, match=says):
        call()
