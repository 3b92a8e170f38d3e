"""From PyTorch's layers to those of this course."""

from functools import singledispatch

from torch import nn

from course_lib.blocks import DecoderBlock, EncoderBlock
from course_lib.checks import convert as checks
from course_lib.convert.attention import attention_from_torch
from course_lib.transformer import Transformer, TransformerConfig
from course_lib.validation import validated


@validated(checks.from_torch, calls_back=True)
def from_torch(layer: nn.Module, **choices) -> nn.Module:
    """Return the layer or model of this course with the weights of PyTorch's, in the same mode and dtype.

    | PyTorch | this course |
    |---|---|
    | `nn.MultiheadAttention` | `MultiHeadAttention` |
    | `nn.TransformerEncoderLayer` | `EncoderBlock` |
    | `nn.TransformerDecoderLayer` | `DecoderBlock` |
    | `nn.Transformer` | `Transformer` |

    Args:
        layer: one of these.
        choices: for `nn.Transformer`, which has neither embeddings nor an output layer, the fields of
            `TransformerConfig` that it does not settle: target_vocabulary, and where needed
            source_vocabulary, positions, max_length, tie_embeddings, pad_id.

    Raises:
        ValueError: for any other layer, one without biases, with another activation than ReLU and exact GELU,
            with `add_bias_kv` or `add_zero_attn`, stacks of unequal layers, and for other choices.
    """
    return _convert(layer, **choices)


@singledispatch
def _convert(layer):
    raise NotImplementedError  # `checks.from_torch` has refused it


_convert.register(nn.MultiheadAttention)(attention_from_torch)


@_convert.register
def _(layer: nn.TransformerEncoderLayer) -> EncoderBlock:
    block = EncoderBlock(**checks.block_settings(layer)).to(layer.linear1.weight)
    _copy_attention(block.attention, layer.self_attn)
    _copy_norm(block.attention_residual.norm, layer.norm1)
    _copy_feed_forward(block, layer, layer.norm2)
    return block.train(layer.training)


@_convert.register
def _(layer: nn.TransformerDecoderLayer) -> DecoderBlock:
    block = DecoderBlock(**checks.block_settings(layer)).to(layer.linear1.weight)
    _copy_attention(block.self_attention, layer.self_attn)
    _copy_norm(block.self_attention_residual.norm, layer.norm1)
    _copy_attention(block.cross_attention, layer.multihead_attn)
    _copy_norm(block.cross_attention_residual.norm, layer.norm2)
    _copy_feed_forward(block, layer, layer.norm3)
    return block.train(layer.training)


@_convert.register
def _(layer: nn.Transformer, **choices) -> Transformer:
    encoder, decoder = layer.encoder, layer.decoder
    config = TransformerConfig(
        encoder_layers=len(encoder.layers),
        decoder_layers=len(decoder.layers),
        final_norm=encoder.norm is not None,
        **checks.block_settings(encoder.layers[0]),
        **choices,
    )
    model = Transformer(config).to(encoder.layers[0].linear1.weight)
    pairs = [*zip(model.encoder, encoder.layers, strict=True)]
    pairs += zip(model.decoder, decoder.layers, strict=True)
    for block, theirs in pairs:
        converted = _convert(theirs)
        own = {name: p for name, p in block.state_dict().items() if ".positions." in name}
        block.load_state_dict(own | converted.state_dict())
        for ours, other in zip(_norms(block), _norms(converted), strict=True):
            ours.eps = other.eps
    if encoder.norm is not None:
        _copy_norm(model.encoder_norm, encoder.norm)
        _copy_norm(model.decoder_norm, decoder.norm)
    return model.train(layer.training)


def _norms(block: nn.Module) -> list[nn.LayerNorm]:
    return [module for module in block.modules() if isinstance(module, nn.LayerNorm)]


def _copy_norm(ours: nn.LayerNorm, theirs: nn.LayerNorm) -> None:
    ours.load_state_dict(theirs.state_dict())
    ours.eps = theirs.eps


def _copy_attention(ours: nn.Module, theirs: nn.MultiheadAttention) -> None:
    converted = attention_from_torch(theirs)
    ours.load_state_dict(converted.state_dict())
    ours.dropout = converted.dropout


def _copy_feed_forward(block: nn.Module, layer: nn.Module, norm: nn.LayerNorm) -> None:
    block.feed_forward.up_proj.load_state_dict(layer.linear1.state_dict())
    block.feed_forward.down_proj.load_state_dict(layer.linear2.state_dict())
    _copy_norm(block.feed_forward_residual.norm, norm)
