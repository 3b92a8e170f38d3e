"""ALiBi, attention with linear biases: scores fall linearly with distance, with a slope per head."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from course_lib.transformer.positions.base import AttentionPositions, relative_positions


def alibi_slopes(num_heads: int) -> Float[Tensor, " heads"]:
    r"""Return the slopes: $2^{-8/h}, 2^{-16/h}, \dots, 2^{-8}$ for $h$ heads, $h$ a power of two.

    For other numbers of heads: those of the largest power of two below, and as many as are left of
    every second one of the next power of two.

    Source: Press, Smith and Lewis (2022), "Train short, test long", section 3 and their code.
    """
    below = 2 ** math.floor(math.log2(num_heads))
    slopes = _geometric(below)
    return torch.tensor(slopes + _geometric(2 * below)[0::2][: num_heads - below])


def _geometric(heads: int) -> list[float]:
    return [2 ** (-8 * number / heads) for number in range(1, heads + 1)]


def alibi_bias(
    num_heads: int, query_length: int, key_length: int | None = None
) -> Float[Tensor, "heads query key"]:
    r"""Return $-m_h\, |i - j|$ for head $h$, query $i$ and key $j$; with more keys, the queries are the last.

    Source: Press, Smith and Lewis (2022), figure 3.
    """
    key_length = query_length if key_length is None else key_length
    distance = relative_positions(query_length, key_length).abs()  # (query, key)
    return alibi_slopes(num_heads)[:, None, None] * -distance


class AlibiBias(AttentionPositions):
    """Add `alibi_bias` to the scores of every head; no parameters.

    Args:
        num_heads: of the queries.
    """

    def __init__(self, num_heads: int) -> None:
        super().__init__()
        self.layer_sizes = {"num_heads": num_heads}
        self.slopes = alibi_slopes(num_heads)

    def reserve(self, length: int, like: Tensor) -> None:
        """Move the slopes to the device."""
        self.slopes = self.slopes.to(like.device)

    def bias(self, query: Tensor, key_length: int) -> Float[Tensor, "heads query key"]:
        """Return the bias, in the dtype of the queries."""
        distance = relative_positions(query.shape[-2], key_length, query.device).abs()
        return (self.slopes.to(query.device)[:, None, None] * -distance).to(query.dtype)
