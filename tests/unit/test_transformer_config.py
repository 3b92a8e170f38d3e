"""The configuration: parameter counts, initialisation, and which values it refuses."""

import dataclasses
import math

import pytest
import torch
from torch import nn

from course_lib.positions import ENCODINGS
from course_lib.transformer import DecoderOnly, Transformer, TransformerConfig
from tests.helpers.blocks import residuals
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
        assert {(r.placement, r.dropout.p) for r in residuals(block)} == {("pre", 0.3)}
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


@pytest.mark.usefixtures("without_annotations")
@pytest.mark.parametrize(
    ("choices", "says"),
    [
        ({"target_vocabulary": 0}, r"target_vocabulary=0 is below 1"),
        ({"target_vocabulary": None}, r"target_vocabulary=None is a NoneType"),
        ({"source_vocabulary": 0}, r"source_vocabulary=0 is below 1"),
        ({"source_vocabulary": 2.5}, r"source_vocabulary=2\.5 is a float"),
        ({"d_model": 0}, r"d_model=0 is below 1"),
        ({"d_model": 13}, r"d_model=13 is not divisible by num_heads=3; try num_heads=1 or 13"),
        ({"d_model": "12"}, r"d_model='12' is a str; it must be a whole number"),
        ({"num_heads": 0}, r"num_heads=0 is below 1"),
        ({"num_heads": 5}, r"d_model=12 is not divisible by num_heads=5; try num_heads=4 or 6"),
        ({"num_kv_heads": 2}, r"num_heads=3 is not divisible by num_kv_heads=2; try num_kv_heads=1 or 3"),
        ({"num_kv_heads": 0}, r"num_kv_heads=0 is below 1"),
        ({"encoder_layers": 0}, r"encoder_layers=0 is below 1"),
        ({"decoder_layers": 1.0}, r"decoder_layers=1\.0 is a float"),
        ({"d_ff": -1}, r"d_ff=-1 is below 1"),
        ({"dropout": 1}, r"dropout=1 must be a number from 0 up to but not including 1"),
        ({"dropout": -0.1}, r"dropout=-0\.1 must be"),
        ({"norm": "middle"}, r"norm='middle' is unknown; it must be one of 'pre', 'post'\."),
        ({"norm": "Pre"}, r"Did you mean 'pre'\?"),
        ({"final_norm": "yes"}, r"final_norm='yes' is a str; it must be True or False"),
        ({"positions": "rotery"}, r"positions='rotery' is unknown; .*Did you mean 'rotary'\?"),
        ({"positions": None}, r"positions=None is unknown; it must be one of 'none',"),
        ({"max_length": 0}, r"max_length=0 is below 1"),
        ({"tie_embeddings": "no"}, r"tie_embeddings='no' is a str; it must be True or False"),
        ({"tie_embeddings": None}, r"tie_embeddings=None is a NoneType; it must be True or False"),
        ({"activation": "swish"}, r"activation='swish' is unknown; it must be one of 'relu', 'gelu', 'swiglu'\."),
        ({"pad_id": -1}, r"pad_id=-1 is below 0"),
        ({"pad_id": 9}, r"pad_id=9 must be below target_vocabulary=9"),
        ({"pad_id": 11, "target_vocabulary": 12}, r"pad_id=11 must be below source_vocabulary=11"),
        ({"pad_id": None}, r"pad_id=None is a NoneType"),
        ({"d_model": 9}, r"positions='sinusoidal' does not fit d_model=9 and num_heads=3, .*: d_model=9 is odd; it must be even"),
        ({"d_model": 9, "positions": "rotary"}, r"positions='rotary' does not fit d_model=9 and num_heads=3, that is heads of dimension 3: d_head=3 is odd"),
        ({"num_heads": 4, "positions": "rotary"}, r"positions='rotary' does not fit d_model=12 and num_heads=4, that is heads of dimension 3: d_head=3 is odd"),
    ],
)  # fmt: skip
def test_invalid_config_raises_value_error(choices, says):
    with pytest.raises(ValueError, match=says):
        sized(**choices)


def test_odd_d_model_without_pairs():
    for positions in ("none", "learned", "shaw", "t5", "alibi"):
        assert Transformer(sized(d_model=9, positions=positions))(S, T).shape == (2, 3, TARGETS)
    assert sized(pad_id=8).pad_id == 8 and sized(source_vocabulary=None, pad_id=8).pad_id == 8
