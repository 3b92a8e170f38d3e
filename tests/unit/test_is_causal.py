"""`is_causal` alone and beside a mask: the same as `causal_mask`, in attention, layers, blocks and models."""

import pytest
import torch
import torch.nn.functional as F

from course_lib.topics.attention_maps import record_attention
from course_lib.transformer import DecoderOnly, TransformerConfig
from course_lib.transformer.attention import scaled_dot_product_attention
from course_lib.transformer.layers import DecoderLayer, EncoderLayer
from course_lib.transformer.masks import causal_mask
from course_lib.transformer.multihead import MultiHeadAttention
from course_lib.transformer.positions import AlibiBias

QUERIES, KEYS, SIZE = 4, 7, 6


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("queries, keys", [(KEYS, KEYS), (QUERIES, KEYS), (2, 2), (1, KEYS)])
def test_is_causal_equals_the_causal_mask(queries, keys, need_weights):
    q, k, v = (torch.randn(2, 3, n, SIZE).double() for n in (queries, keys, keys))
    bias = torch.randn(queries, keys).double()
    for options in ({}, {"bias": bias}):
        options = {"need_weights": need_weights, **options}
        ours = scaled_dot_product_attention(q, k, v, is_causal=True, **options)
        masked = scaled_dot_product_attention(q, k, v, causal_mask(queries, keys), **options)
        torch.testing.assert_close(ours, masked)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("queries, keys", [(KEYS, KEYS), (QUERIES, KEYS), (1, KEYS)])
@pytest.mark.verifies(
    "course_lib.transformer.attention.scaled_dot_product_attention",
    against="PyTorch `F.scaled_dot_product_attention`, its mask built pair by pair",
)
def test_a_mask_and_is_causal_must_both_allow(ledger, queries, keys, need_weights):
    q, k, v = (torch.randn(2, 3, n, SIZE).double() for n in (queries, keys, keys))
    real = torch.tensor([[True, False, True, True, True, False, True], [False, False] + [True] * 5])
    bias = torch.randn(3, queries, keys).double()
    both = torch.zeros(2, 1, queries, keys, dtype=torch.bool)
    for row in range(2):
        for i in range(queries):
            for j in range(keys):
                both[row, 0, i, j] = real[row, j] and j <= i + keys - queries
    for added in (None, bias):
        options = {"bias": added, "need_weights": need_weights, "is_causal": True}
        ours = scaled_dot_product_attention(q, k, v, real[:, None, None], **options).output
        additive = torch.zeros_like(both, dtype=q.dtype).masked_fill(~both, -torch.inf)
        theirs = F.scaled_dot_product_attention(q, k, v, additive + (0 if added is None else added))
        ledger.compare(ours, theirs, within=1e-12)


@pytest.mark.parametrize("scale", [-1.0, 0.0, 0.7])
@pytest.mark.parametrize("dtype, within", [(torch.float32, 1e-5), (torch.bfloat16, 0.03)])
def test_is_causal_with_any_scale(scale, dtype, within):
    """The fused kernel of CPUs masks before it scales: right for a positive scale alone."""
    q, k, v = (torch.randn(1, 2, 600, 8).to(dtype) for _ in range(3))
    ours = scaled_dot_product_attention(
        q, k, v, scale=scale, is_causal=True, need_weights=False
    ).output
    scores = scale * q.double() @ k.double().mT
    scores = scores.masked_fill(torch.ones(600, 600).triu(1) > 0, -torch.inf)
    theirs = scores.softmax(-1) @ v.double()
    torch.testing.assert_close(ours.double(), theirs, rtol=within, atol=within)


def test_is_causal_in_layers_and_blocks_equals_the_causal_mask():
    x, memory, mask = torch.randn(2, 5, 12), torch.randn(2, 3, 12), causal_mask(5)
    for positions in (None, AlibiBias(4)):
        layer = MultiHeadAttention(12, 4, num_kv_heads=2, positions=positions)
        torch.testing.assert_close(layer(x, is_causal=True).output, layer(x, mask=mask).output)
    block = EncoderLayer(12, 4, 20)
    torch.testing.assert_close(block(x, is_causal=True), block(x, mask))
    block = DecoderLayer(12, 4, 20)
    torch.testing.assert_close(block(x, memory, is_causal=True), block(x, memory, mask))


def test_a_model_without_padding_attends_to_no_later_token():
    config = TransformerConfig(target_vocabulary=20, d_model=12, num_heads=3, decoder_layers=2)
    model, tokens = DecoderOnly(config).eval(), torch.randint(1, 20, (2, 6))
    masks = []
    for block in model.blocks:
        block.register_forward_pre_hook(lambda _, args: masks.append(args[1]))
    with record_attention(model) as maps:
        model(tokens)
    assert masks == [None, None]
    for (weights,) in maps.values():
        assert (weights.triu(1) == 0).all() and (weights.tril() > 0).sum() == 2 * 3 * 21
