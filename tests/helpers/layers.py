"""The normalisations of a block, in the order of the forward pass."""

from torch import nn

from course_lib.transformer.layers import DecoderLayer


def norms(block: nn.Module) -> list[nn.Module]:
    """One per sublayer."""
    return [
        getattr(block, f"norm{n}") for n in range(1, 4 if isinstance(block, DecoderLayer) else 3)
    ]
