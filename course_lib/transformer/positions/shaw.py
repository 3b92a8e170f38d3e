"""Shaw's relative position representations: a learned vector per offset, for keys and for values."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.transformer.attention import AttentionOutput
from course_lib.transformer.positions.base import AttentionPositions, in_place, relative_positions


class ShawRelativePositions(AttentionPositions):
    r"""Give each clipped offset a vector that is added to the keys, and one that is added to the values.

    $$e_{ij} = \frac{q_i^\top (k_j + a^K_{c(j-i)})}{\sqrt{d_\text{head}}}, \qquad
      z_i = \sum_j \alpha_{ij}\, (v_j + a^V_{c(j-i)}), \qquad c(x) = \max(-m, \min(m, x))$$

    All heads share the vectors. The (query, key, d_head) tensor of all $a_{c(j-i)}$ is never built: queries
    are multiplied with the $2m + 1$ vectors first, and each pair then gathers its product; weights of equal
    offset are summed first, and then multiplied with the vectors.

    Args:
        d_head: the dimension of a head.
        max_distance: $m$; offsets beyond it share the vector of $\pm m$.

    Source: Shaw, Uszkoreit and Vaswani (2018), equations 3 to 5.
    """

    def __init__(self, d_head: int, max_distance: int = 16) -> None:
        super().__init__()
        self.layer_sizes = {"d_head": d_head}
        self.max_distance = max_distance
        self.key = nn.Parameter(torch.randn(2 * max_distance + 1, d_head) / math.sqrt(d_head))
        self.value = nn.Parameter(torch.randn(2 * max_distance + 1, d_head) / math.sqrt(d_head))

    def bias(self, query: Tensor, key_length: int) -> Float[Tensor, "batch heads query key"]:
        r"""Return $q_i^\top a^K_{c(j-i)} / \sqrt{d_\text{head}}$."""
        products = query @ self.key.T / math.sqrt(query.shape[-1])  # (batch, heads, query, offset)
        rows = self._rows(query.shape[-2], key_length)  # (query, key)
        return products.gather(-1, rows.expand(*products.shape[:-2], -1, -1))

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        *,
        dropout: float = 0.0,
        training: bool = False,
        need_weights: bool = False,
        is_causal: bool = False,
        offset: int | Int[Tensor, ""] = 0,
    ) -> AttentionOutput:
        r"""Attend with the bias, and add $\sum_j \alpha_{ij}\, a^V_{c(j-i)}$ to the output."""
        options = {"dropout": dropout, "training": training, "is_causal": is_causal}
        options |= {"need_weights": True, "offset": offset}
        output, weights = super().attend(query, key, value, mask, **options)
        rows = in_place(self._rows(*weights.shape[-2:]), offset, query.shape[-2])
        rows = rows.expand(weights.shape)
        by_offset = weights.new_zeros(*weights.shape[:-1], len(self.value))
        by_offset = by_offset.scatter_add(-1, rows, weights)  # (batch, heads, query, offset)
        return AttentionOutput(output + by_offset @ self.value, weights if need_weights else None)

    def _rows(self, query_length: int, key_length: int) -> Int[Tensor, "query key"]:
        """Return the row of the tables that each pair of positions needs."""
        relative = relative_positions(query_length, key_length, self.key.device)
        return relative.clamp(-self.max_distance, self.max_distance) + self.max_distance
