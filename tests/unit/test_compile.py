"""`torch.compile(fullgraph=True)` takes attention, blocks and models whole: no graph break, equal results."""

import pytest
import torch

from course_lib.transformer import DecoderOnly, Transformer, TransformerConfig
from course_lib.transformer.cache import KeyValueCache
from course_lib.transformer.masks import causal_mask
from course_lib.transformer.multihead import MultiHeadAttention
from course_lib.transformer.positions import ENCODINGS, RotaryPositions, make_positions
from tests.helpers.ids import encoding_id

SIZES = {"d_model": 24, "num_heads": 4, "d_ff": 32, "encoder_layers": 2, "decoder_layers": 2}


def config(**choices) -> TransformerConfig:
    return TransformerConfig(target_vocabulary=13, source_vocabulary=11, **(SIZES | choices))


@pytest.mark.parametrize("positions", ENCODINGS, ids=encoding_id)
def test_compile_multi_head_attention(as_one_graph, positions):
    """With weights and grouped queries; without, inside the Transformers below."""
    inside = make_positions(positions, 24, 4, max_length=32).attention
    layer = MultiHeadAttention(24, 4, num_kv_heads=2, positions=inside)
    x, options = torch.randn(2, 7, 24), {"mask": causal_mask(7), "need_weights": True}
    torch.testing.assert_close(as_one_graph(layer.eval())(x, **options), layer(x, **options))


@pytest.mark.parametrize("positions", ENCODINGS, ids=encoding_id)
def test_compile_transformer(as_one_graph, positions):
    model = Transformer(config(positions=positions, max_length=16)).eval()
    source, target = torch.randint(0, 11, (3, 8)), torch.randint(0, 13, (3, 6))
    torch.testing.assert_close(as_one_graph(model)(source, target), model(source, target))


def test_compile_decoder_only(as_one_graph):
    model = DecoderOnly(config(positions="rotary", norm="pre")).eval()
    tokens = torch.randint(0, 13, (3, 9))
    torch.testing.assert_close(as_one_graph(model)(tokens), model(tokens))


def test_compile_in_training_gives_the_same_gradients(without_annotations):
    torch.compiler.reset()
    model = Transformer(config(dropout=0.0))
    source, target = torch.randint(1, 11, (3, 8)), torch.randint(1, 13, (3, 6))
    parameters = list(model.parameters())
    run = torch.compile(model, fullgraph=True, backend="aot_eager")
    ours = torch.autograd.grad(run(source, target).square().mean(), parameters)
    plain = torch.autograd.grad(model(source, target).square().mean(), parameters)
    torch.testing.assert_close(ours, plain)


def test_compile_a_cached_step(as_one_graph):
    layer = MultiHeadAttention(24, 4, positions=RotaryPositions(6))
    cache, plain = KeyValueCache(), KeyValueCache()
    x = torch.randn(2, 5, 24)
    run = as_one_graph(layer.eval())
    with torch.no_grad():
        for token in x.split(1, dim=1):
            torch.testing.assert_close(
                run(token, cache=cache).output, layer(token, cache=plain).output
            )
    assert cache.length == 5
