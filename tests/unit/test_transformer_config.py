"""The configuration: parameter counts, initialisation, and which values it refuses."""

import dataclasses
import math

import pytest
import torch
from torch import nn

from course_lib.positions import ENCODINGS
from course_lib.transformer import DecoderOnly, Transformer, TransformerConfig
from tests.helpers.encodings import IN_EMBEDDING, ROWS
from tests.helpers.ids import encoding_id
from tests.helpers.transformer import (
    BATCH,
    D_MODEL,
    DECODER,
    ENCODER,
    HEADS,
    SOURCE,
    TARGETS,
    pair,
    sized,
)

# PyTorch says so of every model that normalises first.
pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")


# --- parameter counts ------------------------------------------------------------------------


def count(model):
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("tie", [True, False])
@pytest.mark.parametrize("kv_heads", [1, 2, None], ids=["mqa", "gqa", "mha"])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_parameter_count(norm, kv_heads, tie):
    d, heads, inner, source, target = 8, 4, 20, 11, 9
    kv = d if kv_heads is None else 2 * kv_heads  # d / heads = 2 numbers a head
    config = TransformerConfig(
        target_vocabulary=target, source_vocabulary=source, d_model=d, num_heads=heads,
        num_kv_heads=kv_heads, encoder_layers=3, decoder_layers=2, d_ff=inner, norm=norm,
        tie_embeddings=tie,
    )  # fmt: skip
    attention = 2 * (d * d + d) + 2 * (d * kv + kv)
    network = d * inner + inner + inner * d + d
    reader, writer = attention + network + 2 * 2 * d, 2 * attention + network + 3 * 2 * d
    final = 2 * d if norm == "pre" else 0
    ends = target * d if tie else 2 * target * d
    assert count(Transformer(config)) == source * d + ends + 3 * reader + 2 * writer + 2 * final
    assert count(DecoderOnly(config)) == ends + 2 * reader + final


@pytest.mark.parametrize("positions", ENCODINGS, ids=encoding_id)
def test_parameter_count_of_each_encoding(positions):
    config, plain, row = sized(positions=positions), sized(positions="none"), ROWS[positions]
    each = row.count(D_MODEL, HEADS, config.max_length)
    # one for each sequence, or one for each self-attention layer
    model, decoder = (2, 1) if positions in IN_EMBEDDING else (ENCODER + DECODER, DECODER)
    assert count(Transformer(config)) - count(Transformer(plain)) == model * each
    assert count(DecoderOnly(config)) - count(DecoderOnly(plain)) == decoder * each


def test_defaults_are_the_base_model_of_the_paper():
    """Table 3: N = 6, d_model = 512, d_ff = 2048, h = 8, P_drop = 0.1. It says 65 · 10⁶ parameters, for
    about 37,000 tokens in one table; counted, they are 63."""
    config = TransformerConfig(target_vocabulary=37000, tie_embeddings=True)
    with torch.device("meta"):
        model = Transformer(config)
    assert round(count(model) / 1e6) == 63
    assert (config.norm, config.positions, config.has_final_norm) == ("post", "sinusoidal", False)
    assert (config.dropout, config.d_head, config.activation, config.pad_id) == (0.1, 64, "relu", 0)
    assert len(model.encoder) == len(model.decoder) == 6
    assert model.decoder[0].feed_forward.up_proj.out_features == 2048


@pytest.mark.parametrize(("norm", "final", "has"), [("pre", None, True), ("post", None, False), ("pre", False, False), ("post", True, True)])  # fmt: skip
def test_final_norm_of_pre_norm_and_post_norm(norm, final, has):
    config = sized(norm=norm, final_norm=final)
    assert config.has_final_norm is has
    model, decoder = Transformer(config), DecoderOnly(config)
    assert {isinstance(n, nn.LayerNorm) for n in (model.encoder_norm, model.decoder_norm, decoder.norm)} == {has}  # fmt: skip
    assert model.encoder_norm is not model.decoder_norm
    source, target = pair()
    if has:
        vectors = model.encode(source).vectors
        torch.testing.assert_close(vectors.mean(-1), torch.zeros(BATCH, SOURCE), atol=1e-5, rtol=0)


def test_every_setting_reaches_every_block():
    config = sized(num_kv_heads=1, dropout=0.3, activation="gelu", norm="pre", positions="t5")
    model, decoder = Transformer(config), DecoderOnly(config)
    for block in [*model.encoder, *model.decoder, *decoder.blocks]:
        own = getattr(block, "self_attention", None) or block.attention
        assert (own.num_heads, own.num_kv_heads, own.dropout) == (HEADS, 1, 0.3)
        assert (block.feed_forward.activation, block.feed_forward.dropout.p) == ("gelu", 0.3)
        assert (block.norm_first, block.dropout.p) == (True, 0.3)
    assert {b.attention.positions.bidirectional for b in model.encoder} == {True}
    assert {b.self_attention.positions.bidirectional for b in model.decoder} == {False}
    assert {b.attention.positions.bidirectional for b in decoder.blocks} == {False}
    places = [*model.decoder[0].modules(), *model.decoder[1].modules()]
    assert len({id(p) for p in places if type(p).__name__ == "T5RelativeBias"}) == DECODER
    assert [len(model.encoder), len(model.decoder), len(decoder.blocks)] == [ENCODER, DECODER, DECODER]  # fmt: skip
    for part in (model.source_embedding, model.target_embedding, decoder.embedding):
        assert part.dropout.p == 0.3


def test_xavier_initialisation():
    model = Transformer(sized(d_model=60, d_ff=240))
    for layer in model.modules():
        if isinstance(layer, nn.Linear):
            bound = math.sqrt(6 / (layer.in_features + layer.out_features))
            assert 0.9 * bound < layer.weight.abs().max() <= bound
            assert abs(layer.weight.std() * math.sqrt(3) / bound - 1) < 0.1
            assert layer.bias is None or not layer.bias.any()
    assert model.lm_head.bias is None


def test_config_is_frozen():
    config = sized()
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.d_model = 3
    with pytest.raises(TypeError):
        TransformerConfig(9)
    assert config == sized() and hash(config) == hash(sized())


# --- invalid input ---------------------------------------------------------------------------

S, T = torch.tensor([[3, 4, 5, 0], [6, 7, 8, 10]]), torch.tensor([[1, 2, 3], [1, 4, 0]])


def test_odd_d_model_without_pairs():
    for positions in ("none", "learned", "shaw", "t5", "alibi"):
        assert Transformer(sized(d_model=9, positions=positions))(S, T).shape == (2, 3, TARGETS)
    assert sized(pad_id=8).pad_id == 8 and sized(source_vocabulary=None, pad_id=8).pad_id == 8
