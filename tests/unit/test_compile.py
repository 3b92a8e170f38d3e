"""`torch.compile(fullgraph=True)` takes attention, blocks and models whole: no graph break, equal results."""

import pytest
import torch
from torch import nn

from course_lib.blocks import DecoderBlock, EncoderBlock
from course_lib.cache import KeyValueCache
from course_lib.masks import causal_mask
from course_lib.multihead import MultiHeadAttention
from course_lib.positions import ENCODINGS, make_positions
from course_lib.transformer import DecoderOnly, Transformer, TransformerConfig
from tests.helpers.ids import encoding_id

pytestmark = pytest.mark.usefixtures("without_annotations")
SIZES = {"d_model": 24, "num_heads": 4, "d_ff": 32, "encoder_layers": 2, "decoder_layers": 2}


@pytest.fixture(autouse=True)
def _fresh_compiler():
    torch.compiler.reset()


def compiled(module: nn.Module):
    """The module in one graph; `eager` records it as every backend does, and needs no C++ compiler."""
    return torch.compile(module.eval(), fullgraph=True, backend="eager")


def config(**choices) -> TransformerConfig:
    return TransformerConfig(target_vocabulary=13, source_vocabulary=11, **(SIZES | choices))


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("num_kv_heads", [4, 2], ids=["mha", "gqa"])
@pytest.mark.parametrize("positions", ENCODINGS, ids=encoding_id)
def test_compile_multi_head_attention(positions, num_kv_heads, need_weights):
    inside = make_positions(positions, 24, 4, max_length=32).attention
    layer = MultiHeadAttention(24, 4, num_kv_heads=num_kv_heads, positions=inside)
    x, mask = torch.randn(2, 7, 24), causal_mask(7)
    ours = compiled(layer)(x, mask=mask, need_weights=need_weights)
    plain = layer(x, mask=mask, need_weights=need_weights)
    torch.testing.assert_close(ours.output, plain.output)
    assert (ours.weights is None) == (not need_weights)
    if need_weights:
        torch.testing.assert_close(ours.weights, plain.weights)


@pytest.mark.parametrize("block", [EncoderBlock, DecoderBlock])
def test_compile_blocks(block):
    made = block(24, 4, 32, dropout=0.1)
    inputs = [torch.randn(2, 5, 24)] * (2 if block is DecoderBlock else 1)
    torch.testing.assert_close(compiled(made)(*inputs), made(*inputs))


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("positions", ENCODINGS, ids=encoding_id)
def test_compile_transformer(positions, norm):
    model = Transformer(config(positions=positions, norm=norm, max_length=16))
    source, target = torch.randint(0, 11, (3, 8)), torch.randint(0, 13, (3, 6))
    torch.testing.assert_close(compiled(model)(source, target), model(source, target))


@pytest.mark.parametrize("positions", ENCODINGS, ids=encoding_id)
def test_compile_decoder_only(positions):
    model = DecoderOnly(config(positions=positions, max_length=16))
    tokens = torch.randint(0, 13, (3, 9))
    torch.testing.assert_close(compiled(model)(tokens), model(tokens))


def test_compile_in_training_gives_the_same_gradients():
    model = Transformer(config(dropout=0.0))
    source, target = torch.randint(1, 11, (3, 8)), torch.randint(1, 13, (3, 6))
    parameters = list(model.parameters())
    run = torch.compile(model, fullgraph=True, backend="aot_eager")
    ours = torch.autograd.grad(run(source, target).square().mean(), parameters)
    plain = torch.autograd.grad(model(source, target).square().mean(), parameters)
    torch.testing.assert_close(ours, plain)


def test_compile_a_cached_step():
    layer = MultiHeadAttention(
        24, 4, positions=make_positions("rotary", 24, 4, max_length=1).attention
    )
    cache, plain = KeyValueCache(), KeyValueCache()
    x = torch.randn(2, 5, 24)
    run = compiled(layer)
    with torch.no_grad():
        for token in x.split(1, dim=1):
            torch.testing.assert_close(
                run(token, cache=cache).output, layer(token, cache=plain).output
            )
    assert cache.length == 5
