"""What layers return: named tuples, so that a result is read by name and unpacked by position."""

from typing import NamedTuple

from torch import Tensor

__all__ = ["DecoderOutput", "EncoderOutput"]


class EncoderOutput(NamedTuple):
    """What a recurrent encoder hands to its decoder.

    Attributes:
        memory: one hidden state per source token, (batch, source, memory_size).
        final_state: the last hidden state, both directions concatenated, (batch, memory_size).
        mask: True at tokens that are not padding, (batch, 1, source).
    """

    memory: Tensor
    final_state: Tensor
    mask: Tensor


class DecoderOutput(NamedTuple):
    """All steps of a recurrent decoder.

    Attributes:
        logits: (batch, target, vocabulary).
        weights: attention weights, (batch, target, source); None for a decoder without attention.
    """

    logits: Tensor
    weights: Tensor | None
