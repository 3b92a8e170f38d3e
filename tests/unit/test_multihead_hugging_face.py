"""Multi-head attention with positions against the layers of T5 and BLOOM."""

import math

import pytest
import torch

from course_lib.transformer.multihead import MultiHeadAttention
from course_lib.transformer.positions import AlibiBias, T5RelativeBias
from tests.helpers.multihead import (
    BATCH,
    D_HEAD,
    D_MODEL,
    HEADS,
    TOKENS,
    added_to_scores,
    compare_all,
    lower,
    randomized,
    tokens,
)
from tests.helpers.tensors import all_true


def carried(layer, theirs, names):
    """Copy their projections: our name → theirs."""
    for ours, name in names.items():
        getattr(layer, ours).load_state_dict(getattr(theirs, name).state_dict())


@pytest.mark.verifies(
    "course_lib.transformer.multihead.MultiHeadAttention",
    "course_lib.transformer.positions.T5RelativeBias",
    against="Hugging Face `T5Attention`",
)
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
    "course_lib.transformer.multihead.MultiHeadAttention",
    "course_lib.transformer.positions.AlibiBias",
    against="Hugging Face `BloomAttention`",
)
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
