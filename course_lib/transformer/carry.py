"""Carry the weights of `nn.Transformer` over."""

from torch import nn

from course_lib.blocks import DecoderBlock, EncoderBlock
from course_lib.blocks.carry import settings_of
from course_lib.transformer.config import TransformerConfig


def config_of(layer: nn.Transformer, **choices) -> TransformerConfig:
    """Return the configuration of a model with stacks like those of `layer`.

    Raises:
        ValueError: for any other layer, one without biases, and one with stacks of its own kind.
    """
    if not isinstance(layer, nn.Transformer):
        raise ValueError(f"layer is a {type(layer).__name__}; it must be an nn.Transformer")
    for name, kind in (("encoder", nn.TransformerEncoder), ("decoder", nn.TransformerDecoder)):
        if not isinstance(getattr(layer, name), kind):
            raise ValueError(
                f"layer has a {name} of its own kind, {type(getattr(layer, name)).__name__}; it must be "
                f"an nn.{kind.__name__}"
            )
    settings = settings_of(layer.encoder.layers[0], nn.TransformerEncoderLayer)
    return TransformerConfig(
        encoder_layers=len(layer.encoder.layers),
        decoder_layers=len(layer.decoder.layers),
        final_norm=layer.encoder.norm is not None,
        **(settings | choices),
    )


def carry_stacks(layer: nn.Transformer, model: nn.Module) -> nn.Module:
    """Fill the two stacks of `model` with those of `layer`; return it in the same mode, dtype and place."""
    model = model.to(layer.encoder.layers[0].linear1.weight)
    pairs = (
        (model.encoder, EncoderBlock, layer.encoder),
        (model.decoder, DecoderBlock, layer.decoder),
    )
    for blocks, kind, stack in pairs:
        for block, theirs in zip(blocks, stack.layers, strict=True):
            carried = kind.from_torch(theirs)
            block.load_state_dict(carried.state_dict())
            for mine, norm in zip(block.residuals, carried.residuals, strict=True):
                mine.norm.eps = norm.norm.eps
    for norm, theirs in (
        (model.encoder_norm, layer.encoder.norm),
        (model.decoder_norm, layer.decoder.norm),
    ):
        if theirs is not None:
            norm.load_state_dict(theirs.state_dict())
            norm.eps = theirs.eps
    return model.train(layer.training)
