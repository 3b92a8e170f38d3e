"""Shaw's relative positions: a learned vector per distance, for keys and for values."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.inputs import require_whole
from course_lib.positions.base import AttentionPositions, relative_positions


class ShawRelativePositions(AttentionPositions):
    r"""Give each clipped distance a vector that joins the keys, and one that joins the values.

    $$e_{ij} = \frac{q_i^\top (k_j + a^K_{c(j-i)})}{\sqrt{d_\text{head}}}, \qquad
      z_i = \sum_j \alpha_{ij}\, (v_j + a^V_{c(j-i)}), \qquad c(x) = \max(-m, \min(m, x))$$

    All heads share the vectors. The (query, key, d_head) tensor of all $a_{c(j-i)}$ is never built: queries
    meet the $2m + 1$ vectors first, and each pair then picks its number; weights of equal distance are
    added up first, and then meet the vectors.

    Args:
        d_head: the size of a head.
        max_distance: $m$, from which on distances are alike.

    Source: Shaw, Uszkoreit and Vaswani (2018), equations 3 to 5.
    """

    needs_weights = True

    def __init__(self, d_head: int, max_distance: int = 16) -> None:
        super().__init__()
        require_whole(d_head=d_head, max_distance=max_distance)
        self.made_for = {"d_head": d_head}
        self.max_distance = max_distance
        self.key = nn.Parameter(torch.randn(2 * max_distance + 1, d_head) / math.sqrt(d_head))
        self.value = nn.Parameter(torch.randn(2 * max_distance + 1, d_head) / math.sqrt(d_head))

    def bias(self, query: Tensor, key_length: int) -> Float[Tensor, "batch heads query key"]:
        r"""Return $q_i^\top a^K_{c(j-i)} / \sqrt{d_\text{head}}$."""
        met = query @ self.key.T / math.sqrt(query.shape[-1])  # (batch, heads, query, distance)
        which = self._rows(query.shape[-2], key_length)  # (query, key)
        return met.gather(-1, which.expand(*met.shape[:-2], -1, -1))  # (batch, heads, query, key)

    def move_output(self, output: Tensor, weights: Tensor | None) -> Tensor:
        r"""Add $\sum_j \alpha_{ij}\, a^V_{c(j-i)}$."""
        which = self._rows(*weights.shape[-2:]).expand(weights.shape)
        by_distance = weights.new_zeros(*weights.shape[:-1], len(self.value))
        by_distance = by_distance.scatter_add(-1, which, weights)  # (batch, heads, query, distance)
        return output + by_distance @ self.value

    def _rows(self, query_length: int, key_length: int) -> Int[Tensor, "query key"]:
        """Which row of the tables each pair needs."""
        relative = relative_positions(query_length, key_length, self.key.device)
        return relative.clamp(-self.max_distance, self.max_distance) + self.max_distance
