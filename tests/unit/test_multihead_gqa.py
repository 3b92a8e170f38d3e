"""Grouped-query (GQA) and multi-query attention (MQA) against PyTorch's kernel and LLaMA's layer."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from course_lib.attention import AttentionOutput, scaled_dot_product_attention
from course_lib.convert import to_torch
from course_lib.multihead import MultiHeadAttention
from tests.helpers.multihead import (
    BATCH,
    COLLECTS,
    FULLY_MASKED,
    KEY_SIZE,
    KEYS,
    MASKS,
    QUERIES,
    SHARING,
    VALUE_SIZE,
    added_to_scores,
    compare_all,
    cut,
    mixes_for,
    randomized,
    sequences,
)
from tests.helpers.tensors import (
    DTYPES,
    ROUNDING,
    all_true,
    gradients,
    in_float64,
    random_mask,
    without_second_query,
)

LAYER = pytest.mark.verifies(
    "course_lib.multihead.MultiHeadAttention", against="PyTorch `nn.MultiheadAttention`"
)


def shared(kv_heads, dtype=torch.float64):
    """A layer in which heads share keys, and inputs for it."""
    sizes = {"d_model": 2 * SHARING, "kdim": KEY_SIZE, "vdim": VALUE_SIZE}
    layer = MultiHeadAttention(num_heads=SHARING, num_kv_heads=kv_heads, **sizes)
    return layer.to(dtype), sequences(**sizes, dtype=dtype)


def by_pytorch(layer, query, key, value, mask, heads, kv_heads, repeat=False):
    """The kernel of PyTorch that knows of groups, or the keys repeated by hand."""
    q, k, v = (
        cut(layer.q_proj(query), heads),
        *(cut(project(x), kv_heads) for project, x in ((layer.k_proj, key), (layer.v_proj, value))),
    )
    if repeat:
        served = [head * kv_heads // heads for head in range(heads)]
        k, v = k[:, served], v[:, served]
    if mask is not None and mask.dim() == 3:
        mask = mask[:, None]
    attended = F.scaled_dot_product_attention(q, k, v, mask, enable_gqa=not repeat)
    return AttentionOutput(layer.out_proj(torch.cat(attended.unbind(1), -1)), None)


def fully_masked_row_in_one_head():
    mask = random_mask(BATCH, SHARING, QUERIES, KEYS)
    mask[:, 1] = without_second_query(mask[:, 1])
    return mask


SHARED_MASKS = {
    **{kind: MASKS[kind] for kind in ("none", "padding", "(batch, query, key)")},
    **{kind: FULLY_MASKED[kind] for kind in ("a fully masked row", "all rows masked")},
    "per head": lambda: random_mask(BATCH, SHARING, QUERIES, KEYS),
    "a fully masked row in one head": fully_masked_row_in_one_head,
}


@pytest.mark.verifies(
    "course_lib.multihead.MultiHeadAttention",
    against="PyTorch `F.scaled_dot_product_attention(enable_gqa=True)`",
)
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("mask", SHARED_MASKS)
@pytest.mark.parametrize("kv_heads", [1, 3, 4, SHARING], ids=["mqa", "gqa-3", "gqa-4", "mha"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_gqa_equals_pytorch(ledger, dtype, kv_heads, mask, need_weights):
    layer, inputs = shared(kv_heads, dtype)
    oracle, _ = shared(kv_heads)
    oracle.load_state_dict(layer.state_dict())
    copies, mask = in_float64(*inputs), SHARED_MASKS[mask]()
    ours = AttentionOutput(layer(*inputs, mask, need_weights=need_weights).output, None)
    for repeat in (False, True):
        theirs = by_pytorch(oracle, *copies, mask, SHARING, kv_heads, repeat)
        ledger.compare(ours.output, theirs.output, within=ROUNDING[dtype])
    mixes = mixes_for(theirs)
    slopes = gradients(theirs, [*copies, *oracle.parameters()], mixes)
    mine = gradients(ours, [*inputs, *layer.parameters()], mixes)
    compare_all(ledger, mine, slopes, ROUNDING[dtype], backward=True)


@LAYER
@pytest.mark.parametrize("kv_heads", [1, 3, 4], ids=["mqa", "gqa-3", "gqa-4"])
def test_to_torch_repeats_the_kv_heads_of_gqa(ledger, kv_heads):
    layer, inputs = shared(kv_heads)
    output, weights = to_torch(layer)(*inputs, average_attn_weights=False)
    compare_all(ledger, layer(*inputs, need_weights=True), (output, weights), 1e-10)


@st.composite
def layers(draw):
    """A layer of any sizes, inputs of any lengths, and a mask of any shape that fits."""
    heads, d_head = draw(st.sampled_from([1, 2, 3, 4, 6])), draw(st.integers(1, 3))
    kv_heads = draw(st.sampled_from([n for n in range(1, heads + 1) if heads % n == 0]))
    batch, queries, keys = (draw(st.integers(1, 4)) for _ in range(3))
    kdim, vdim = (draw(st.integers(1, 4)) for _ in range(2))
    bias = draw(st.booleans())
    torch.manual_seed(draw(st.integers(0, 1000)))
    sizes = {"kdim": kdim, "vdim": vdim, "bias": bias}
    layer = randomized(MultiHeadAttention(heads * d_head, heads, num_kv_heads=kv_heads, **sizes))
    shapes = (queries, heads * d_head), (keys, kdim), (keys, vdim)
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
def test_gqa_layers_of_any_size_equal_pytorch(ledger, need_weights, case):
    layer, inputs, mask, heads, kv_heads = case
    theirs = by_pytorch(layer, *inputs, mask, heads, kv_heads)
    ours = layer(*inputs, mask, need_weights=need_weights)
    ledger.compare(ours.output, theirs.output, within=1e-10)
    if need_weights:
        totals = ours.weights.sum(-1)
        assert ((totals - 1).abs() < 1e-10).logical_or(totals == 0).all()


@pytest.mark.verifies(
    "course_lib.multihead.MultiHeadAttention", against="Hugging Face `LlamaAttention`"
)
@pytest.mark.parametrize("kv_heads", [1, 3, SHARING], ids=["mqa", "gqa-3", "mha"])
def test_gqa_equals_llama_without_rotation(ledger, kv_heads):
    from transformers.models.llama import modeling_llama

    d_model = 2 * SHARING
    config = modeling_llama.LlamaConfig(
        hidden_size=d_model,
        num_attention_heads=SHARING,
        num_key_value_heads=kv_heads,
        attn_implementation="sdpa",  # its "eager" rounds the weights to float32
    )
    llama = randomized(modeling_llama.LlamaAttention(config, layer_idx=0)).eval()
    layer = MultiHeadAttention(d_model, SHARING, num_kv_heads=kv_heads, bias=False).double()
    names = {"q_proj": "q_proj", "k_proj": "k_proj", "v_proj": "v_proj", "o_proj": "out_proj"}
    state = {f"{ours}.weight": getattr(llama, hers).weight for hers, ours in names.items()}
    layer.load_state_dict(state)
    x = torch.randn(BATCH, KEYS, d_model, dtype=torch.float64, requires_grad=True)
    still = torch.ones(1, KEYS, 2).double(), torch.zeros(1, KEYS, 2).double()  # cosine 1, sine 0
    mask = all_true(KEYS, KEYS).tril()
    theirs = AttentionOutput(*llama(x, still, added_to_scores(mask)[None, None]))
    ours = layer(x, mask=mask)
    compare_all(ledger, ours, theirs, 1e-10)
    mixes = mixes_for(theirs)
    mine = gradients(ours, [x, *(layer.get_parameter(name) for name in state)], mixes)
    compare_all(ledger, mine, gradients(theirs, [x, *state.values()], mixes), 1e-10, backward=True)


def test_grouped_heads_where_all_axes_are_equally_long():
    query, (key, value) = torch.randn(4, 4, 4, 4), torch.randn(2, 4, 2, 4, 4)
    ours = scaled_dot_product_attention(query, key, value, enable_gqa=True)
    theirs = F.scaled_dot_product_attention(query, key, value, enable_gqa=True)
    torch.testing.assert_close(ours.output, theirs)
