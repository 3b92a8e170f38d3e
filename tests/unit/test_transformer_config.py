"""The configuration: what it makes of both models, and how these are initialised."""

import math

import pytest
from torch import nn

from course_lib.transformer import DecoderOnly, Transformer
from tests.helpers.transformer import DECODER, HEADS, sized


@pytest.mark.parametrize(
    ("norm", "final", "has"),
    [("pre", None, True), ("post", None, False), ("pre", False, False), ("post", True, True)],
)
def test_final_norm_of_pre_norm_and_post_norm(norm, final, has):
    config = sized(norm=norm, final_norm=final)
    model, decoder = Transformer(config), DecoderOnly(config)
    ends = (model.encoder_norm, model.decoder_norm, decoder.norm)
    assert {isinstance(end, nn.LayerNorm) for end in ends} == {config.has_final_norm} == {has}
    assert model.encoder_norm is not model.decoder_norm


def test_every_setting_reaches_every_block():
    config = sized(num_kv_heads=1, dropout=0.3, activation="gelu", norm="pre", positions="t5")
    model, decoder = Transformer(config), DecoderOnly(config)
    for block in [*model.encoder, *model.decoder, *decoder.blocks]:
        own = getattr(block, "self_attention", None) or block.attention
        assert (own.num_heads, own.num_kv_heads, own.dropout) == (HEADS, 1, 0.3)
        assert own.positions.bidirectional == (block in [*model.encoder])
        assert (block.feed_forward.activation, block.feed_forward.dropout.p) == ("gelu", 0.3)
        assert (block.norm_first, block.dropout.p) == (True, 0.3)
    assert len({block.self_attention.positions for block in model.decoder}) == DECODER
    for part in (model.source_embedding, model.target_embedding, decoder.embedding):
        assert part.dropout.p == 0.3


def test_xavier_initialisation():
    model = Transformer(sized(d_model=60, d_ff=240))
    for layer in (one for one in model.modules() if isinstance(one, nn.Linear)):
        bound = math.sqrt(6 / (layer.in_features + layer.out_features))
        assert 0.9 * bound < layer.weight.abs().max() <= bound
        assert abs(layer.weight.std() * math.sqrt(3) / bound - 1) < 0.1
        assert layer.bias is None or not layer.bias.any()
    assert model.lm_head.bias is None
