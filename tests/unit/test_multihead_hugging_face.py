"""Multi-head attention against the layers of BERT, LLaMA, RoFormer, T5 and BLOOM."""

import math

import pytest
import torch
from torch import nn

from course_lib.multihead import MultiHeadAttention
from course_lib.positions import AlibiBias, RotaryPositions, T5RelativeBias, rotary
from tests.helpers.multihead import (
    BATCH,
    D_HEAD,
    D_MODEL,
    HEADS,
    KEYS,
    TOKENS,
    added_to_scores,
    compare_all,
    cut,
    lower,
    padding,
    randomized,
    tokens,
)
from tests.helpers.tensors import all_true


@pytest.mark.verifies(
    "course_lib.multihead.MultiHeadAttention", against="Hugging Face `BertSelfAttention`"
)
@pytest.mark.parametrize("mask", [None, padding])
def test_multi_head_attention_equals_bert(ledger, mask):
    from transformers.models.bert import modeling_bert

    config = modeling_bert.BertConfig(
        hidden_size=D_MODEL, num_attention_heads=HEADS, attn_implementation="eager"
    )
    bert = randomized(modeling_bert.BertSelfAttention(config)).eval()
    layer = MultiHeadAttention(D_MODEL, HEADS).double().eval()
    carried(layer, bert, {"q_proj": "query", "k_proj": "key", "v_proj": "value"})
    layer.out_proj = nn.Identity()  # BERT has its last projection in another layer
    x = torch.randn(BATCH, KEYS, D_MODEL, dtype=torch.float64)
    mask = None if mask is None else mask()
    theirs = bert(x, None if mask is None else added_to_scores(mask[:, None]))
    compare_all(ledger, layer(x, mask=mask, need_weights=True), theirs, 1e-10)


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
    llama = randomized(modeling_llama.LlamaAttention(config, layer_idx=0)).eval()
    turns = angles(base).repeat(1, 2)[None]
    mask = added_to_scores(lower())[None, None]
    names = {"q_proj": "q_proj", "k_proj": "k_proj", "v_proj": "v_proj", "out_proj": "o_proj"}
    return llama, lambda x: llama(x, (turns.cos(), turns.sin()), mask)[0], names


def check_llama(ledger, layer, base=10000.0, kv_heads=HEADS):
    """What a layer with rotary positions is compared with; it must have no biases."""
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
    compare_all(ledger, mine, slopes, 1e-9, backward=True)


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
@pytest.mark.parametrize("kv_heads", [1, HEADS], ids=["mqa", "mha"])
def test_rope_layer_equals_llama(ledger, kv_heads, base):
    check_llama(ledger, rotated(kv_heads, base), base, kv_heads)


class TurnedLinear(nn.Linear):
    """A projection whose heads are turned."""

    def forward(self, x):
        projected = cut(super().forward(x), HEADS)
        turned, _ = RotaryPositions(D_HEAD, layout="half").rotate(projected, projected)
        return torch.cat(turned.unbind(1), -1)


class LayoutsMixed(RotaryPositions):
    """Queries in one layout, keys in the other."""

    def rotate(self, query, key, offset=0):
        other = RotaryPositions(D_HEAD, self.base)
        return super().rotate(query, key, offset)[0], other.rotate(query, key, offset)[1]


class OnlyQueries(RotaryPositions):
    """Keys stay as they are."""

    def rotate(self, query, key, offset=0):
        return super().rotate(query, key, offset)[0], key


class AgainstEachOther(RotaryPositions):
    """Keys are turned to the other side."""

    def rotate(self, query, key, offset=0):
        places = -torch.arange(offset, offset + key.shape[-2])
        turned = rotary(key, places, self.base, layout=self.layout)
        return super().rotate(query, key, offset)[0], turned


def test_wrong_rope_layers_are_detected(ledger):
    check_llama(ledger, rotated())
    values = rotated()
    values.v_proj = TurnedLinear(D_MODEL, D_MODEL, bias=False).double()
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
            check_llama(ledger, layer)


def of_roformer(rotary_value=False):
    from transformers.models.roformer import modeling_roformer

    config = modeling_roformer.RoFormerConfig(
        hidden_size=D_MODEL, num_attention_heads=HEADS, rotary_value=rotary_value
    )
    roformer = randomized(modeling_roformer.RoFormerSelfAttention(config)).eval()
    table = torch.cat([angles().sin(), angles().cos()], -1)[None, None]
    mask = added_to_scores(lower())
    return roformer, lambda x: roformer(x, mask, table)


@pytest.mark.verifies(
    "course_lib.multihead.MultiHeadAttention", against="Hugging Face `RoFormerSelfAttention`"
)
@pytest.mark.verifies(
    "course_lib.positions.RotaryPositions", against="Hugging Face `RoFormerSelfAttention`"
)
def test_rope_layer_equals_roformer_without_rotary_values(ledger):
    layer = MultiHeadAttention(D_MODEL, HEADS, positions=RotaryPositions(D_HEAD)).double()
    layer.out_proj = nn.Identity()  # RoFormer has its last projection in another layer
    names = {"q_proj": "query", "k_proj": "key", "v_proj": "value"}
    x = tokens()
    roformer, call = of_roformer()
    carried(layer, roformer, names)
    compare_all(ledger, layer(x, mask=lower(), need_weights=True), call(x), 1e-10)
    roformer, call = of_roformer(rotary_value=True)
    carried(layer, roformer, names)
    assert not torch.allclose(layer(x, mask=lower()).output, call(x)[0], atol=1e-3)


@pytest.mark.verifies(
    "course_lib.multihead.MultiHeadAttention", against="Hugging Face `T5Attention`"
)
@pytest.mark.verifies("course_lib.positions.T5RelativeBias", against="Hugging Face `T5Attention`")
@pytest.mark.parametrize("decoder", [False, True])
def test_t5_bias_layer_equals_t5(ledger, decoder):
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
    t5 = randomized(t5).eval()
    positions = T5RelativeBias(HEADS, bidirectional=not decoder, **sizes)
    layer = MultiHeadAttention(D_MODEL, HEADS, bias=False, positions=positions).double()
    carried(layer, t5, {"q_proj": "q", "k_proj": "k", "v_proj": "v", "out_proj": "o"})
    layer.q_proj.weight.data *= math.sqrt(D_HEAD)  # T5 does not scale its scores
    positions.table.data = t5.relative_attention_bias.weight.detach().clone()
    x, mask = tokens(), lower() if decoder else all_true(TOKENS, TOKENS)
    output, _, weights = t5(x, mask=added_to_scores(mask)[None, None])
    compare_all(ledger, layer(x, mask=mask, need_weights=True), (output, weights), 1e-10)
    ours, mix = layer(x, mask=mask).output, torch.randn(BATCH, TOKENS, D_MODEL).double()
    mine = torch.autograd.grad(ours, [x, positions.table], mix)
    slopes = torch.autograd.grad(output, [x, t5.relative_attention_bias.weight], mix)
    compare_all(ledger, mine, slopes, 1e-10, backward=True)


@pytest.mark.verifies(
    "course_lib.multihead.MultiHeadAttention", against="Hugging Face `BloomAttention`"
)
@pytest.mark.verifies("course_lib.positions.AlibiBias", against="Hugging Face `BloomAttention`")
@pytest.mark.parametrize("count", [HEADS, 4])
def test_alibi_layer_equals_bloom(ledger, count):
    from transformers.models.bloom import modeling_bloom

    width = count * D_HEAD
    config = modeling_bloom.BloomConfig(hidden_size=width, n_head=count)
    bloom = randomized(modeling_bloom.BloomAttention(config, layer_idx=0)).eval()
    layer = MultiHeadAttention(width, count, positions=AlibiBias(count)).double()
    layer.out_proj.load_state_dict(bloom.dense.state_dict())
    for place, name in enumerate(("q_proj", "k_proj", "v_proj")):  # theirs are packed head by head
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
    compare_all(
        ledger, layer(x, mask=lower(), need_weights=True), theirs, 1e-6
    )  # its softmax is float32
