"""Blocks on top of each other, and what all models share when they are made."""

from torch import nn

from course_lib.blocks import DecoderBlock, EncoderBlock, LayerNorm
from course_lib.positions import make_positions
from course_lib.transformer.config import TransformerConfig


def make_encoder(config: TransformerConfig) -> nn.ModuleList:
    """Make the blocks that read: every token may look at every other."""
    return _blocks(EncoderBlock, config.encoder_layers, config, causal=False)


def make_decoder(config: TransformerConfig, *, memory: bool) -> nn.ModuleList:
    """Make the blocks that write, with a memory to look across at or without one."""
    block = DecoderBlock if memory else EncoderBlock
    return _blocks(block, config.decoder_layers, config, causal=True)


def _blocks(
    block: type[EncoderBlock] | type[DecoderBlock],
    layers: int,
    config: TransformerConfig,
    *,
    causal: bool,
) -> nn.ModuleList:
    """Blocks, each with positions of its own where these work inside attention."""
    return nn.ModuleList(
        block(
            config.d_model,
            config.num_heads,
            config.d_ff,
            norm=config.norm,
            dropout=config.dropout,
            activation=config.activation,
            num_kv_heads=config.num_kv_heads,
            positions=make_positions(
                config.positions,
                config.d_model,
                config.num_heads,
                max_length=config.max_length,
                bidirectional=not causal,
            ).inside,
        )
        for _ in range(layers)
    )


def make_final_norm(config: TransformerConfig) -> nn.Module:
    """Return the norm behind the last block, or nothing where there is none."""
    return LayerNorm(config.d_model) if config.has_final_norm else nn.Identity()


def initialise(model: nn.Module) -> None:
    r"""Draw the matrices of all linear layers as Glorot and Bengio (2010) do; their biases start at zero.

    $$W \sim \mathcal{U}(-a, a), \qquad a = \sqrt{6 / (\text{size in} + \text{size out})}$$
    """
    for layer in model.modules():
        if isinstance(layer, nn.Linear):
            nn.init.xavier_uniform_(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
