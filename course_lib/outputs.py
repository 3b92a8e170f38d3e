"""What layers return: named tuples, so that a result is read by name and unpacked by position."""

from typing import NamedTuple

from torch import Tensor

__all__ = ["AttentionOutput"]


class AttentionOutput(NamedTuple):
    """The result of an attention function or layer.

    Attributes:
        output: the weighted sums of the values, (…, query, d_value).
        weights: the attention weights, (…, query, key); None where they were not asked for.
    """

    output: Tensor
    weights: Tensor | None
