"""The residual connections of a block, in the order of the forward pass."""

from torch import nn

from course_lib.blocks import DecoderBlock, Residual


def residual_names(*, decoder: bool) -> tuple[str, ...]:
    """The names of a block's residual connections."""
    if decoder:
        return "self_attention_residual", "cross_attention_residual", "feed_forward_residual"
    return "attention_residual", "feed_forward_residual"


def residuals(block: nn.Module) -> list[Residual]:
    """The residual connections themselves."""
    return [getattr(block, n) for n in residual_names(decoder=isinstance(block, DecoderBlock))]
