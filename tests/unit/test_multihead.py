"""Multi-head attention against PyTorch's layer, NumPy, F.scaled_dot_product_attention, BERT and Llama."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

from course_lib.attention import Attended, SingleHeadAttention
from course_lib.multihead import (
    FullWidthMultiHead,
    MultiHeadAttention,
    PerHeadMultiHead,
    merge_heads,
    split_heads,
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
