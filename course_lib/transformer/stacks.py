"""What both models do with their layers: stack them, end in a norm, initialise them."""

from jaxtyping import Bool
from torch import Tensor, nn

from course_lib.transformer.config import TransformerConfig
from course_lib.transformer.layers import DecoderLayer, EncoderLayer
from course_lib.transformer.norms import make_norm
from course_lib.transformer.positions import Positions
from course_lib.validation import is_traced

__all__: list[str] = []


def make_layers(
    layer: type[EncoderLayer] | type[DecoderLayer],
    layers: int,
    config: TransformerConfig,
    positions: Positions,
    *,
    bidirectional: bool,
) -> nn.ModuleList:
    """Return a stack of layers. Layers share an encoding without parameters; one that learns is made for each."""
    shared = positions.attention
    inside = [shared] * layers
    if shared is not None and any(True for _ in shared.parameters()):
        inside[1:] = [config.make_positions(bidirectional).attention for _ in inside[1:]]
    return nn.ModuleList(layer(**config.layer_options, positions=one) for one in inside)


def make_final_norm(config: TransformerConfig) -> nn.Module:
    """Return the normalisation after the last layer, or the identity where there is none."""
    if not config.has_final_norm:
        return nn.Identity()
    return make_norm(config.norm_type, config.d_model, config.norm_eps)


def unless_all(mask: Bool[Tensor, "..."]) -> Bool[Tensor, "..."] | None:
    """Return the mask, or None where it allows everything, which is faster. A GPU is not asked."""
    return None if mask.is_cpu and not is_traced() and mask.all() else mask


def initialise(model: nn.Module) -> None:
    r"""Initialise the matrices of all linear layers as Glorot and Bengio (2010) do, their biases with zeros.

    $$W \sim \mathcal{U}(-a, a), \qquad a = \sqrt{6 / (d_\text{in} + d_\text{out})}$$
    """
    for layer in model.modules():
        if isinstance(layer, nn.Linear):
            nn.init.xavier_uniform_(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
