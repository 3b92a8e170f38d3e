"""Carry the weights of `nn.Transformer` over."""

from typing import Any

from torch import nn

from course_lib.blocks import DecoderBlock, EncoderBlock
from course_lib.blocks.carry import settings_of
from course_lib.transformer.config import TransformerConfig

#: The fields of a configuration that PyTorch's layer says nothing about.
FREE = ("positions", "max_length", "tie_embeddings", "pad_id")


def config_of(layer: nn.Transformer, **choices) -> TransformerConfig:
    """Return the configuration of a model with stacks like those of `layer`.

    Raises:
        ValueError: for any other layer, one without biases, one with stacks of its own kind or of unequal
            layers, and for choices that it makes itself.
    """
    if not isinstance(layer, nn.Transformer):
        raise ValueError(f"layer is a {type(layer).__name__}; it must be an nn.Transformer")
    for name, kind in (("encoder", nn.TransformerEncoder), ("decoder", nn.TransformerDecoder)):
        if not isinstance(getattr(layer, name), kind):
            raise ValueError(
                f"layer.{name} is a {type(getattr(layer, name)).__name__}; it must be an nn.{kind.__name__}"
            )
    for name in choices:
        if name not in ("target_vocabulary", "source_vocabulary", *FREE):
            raise ValueError(
                f"{name} is no choice here: layer settles it; choices are {', '.join(FREE)}"
                if name in TransformerConfig.__dataclass_fields__
                else f"{name} is no choice; choices are {', '.join(FREE)}"
            )
    settings = _shared_settings(layer)
    _require_norms(layer)
    return TransformerConfig(
        encoder_layers=len(layer.encoder.layers),
        decoder_layers=len(layer.decoder.layers),
        final_norm=layer.encoder.norm is not None,
        **settings,
        **choices,
    )


def _shared_settings(layer: nn.Transformer) -> dict[str, Any]:
    """Return what all layers of both stacks are made like."""
    every = {
        f"layer.{stack}.layers[{number}]": settings_of(one, kind)
        for stack, kind in (
            ("encoder", nn.TransformerEncoderLayer),
            ("decoder", nn.TransformerDecoderLayer),
        )
        for number, one in enumerate(getattr(layer, stack).layers)
    }
    (first_name, first), *others = every.items()
    for name, settings in others:
        for field, value in settings.items():
            if value != first[field]:
                raise ValueError(
                    f"{first_name} has {field}={first[field]!r}, but {name} has {field}={value!r}; all "
                    f"layers must be alike"
                )
    return first


def _require_norms(layer: nn.Transformer) -> None:
    """Refuse a final norm of another kind, and one behind one stack alone."""
    norms = {"layer.encoder.norm": layer.encoder.norm, "layer.decoder.norm": layer.decoder.norm}
    for name, norm in norms.items():
        if norm is not None and (not isinstance(norm, nn.LayerNorm) or norm.bias is None):
            raise ValueError(
                f"{name} is {norm}; it must be an nn.LayerNorm with weights and biases, or None"
            )
    if len({norm is None for norm in norms.values()}) > 1:
        without = next(name for name, norm in norms.items() if norm is None)
        raise ValueError(f"{without} is None; both stacks must end in a norm, or neither")


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
            own = {n: p for n, p in block.state_dict().items() if ".positions." in n}
            block.load_state_dict(own | carried.state_dict())
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
