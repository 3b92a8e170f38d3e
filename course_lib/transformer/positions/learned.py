"""A learned vector per position, added to the embeddings."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.transformer.cache import positions_from
from course_lib.transformer.positions.base import EmbeddingPositions


class LearnedPositions(EmbeddingPositions):
    r"""Add row $p$ of a learned table $P$, shape (max_length, d_model). There is no position after its end.

    Args:
        max_length: how many positions the table has.
        d_model: the dimension of the embeddings.

    Source: Gehring et al. (2017); Devlin et al. (2019), "BERT".
    """

    def __init__(self, max_length: int, d_model: int) -> None:
        super().__init__()
        self.max_length = max_length
        self.table = nn.Parameter(0.02 * torch.randn(max_length, d_model))

    def forward(
        self, x: Float[Tensor, "batch length d_model"], offset: int | Int[Tensor, ""] = 0
    ) -> Float[Tensor, "batch length d_model"]:
        """Add the rows from position `offset` on."""
        if isinstance(offset, Tensor):
            return x + self.table[positions_from(offset, x.shape[-2], x.device)].expand_as(x)
        end = offset + x.shape[-2]
        if end > self.max_length:
            raise ValueError(
                f"x needs positions {offset} to {end - 1}, but the table was made with "
                f"max_length={self.max_length}: it has learned nothing beyond {self.max_length - 1}"
            )
        return x + self.table[offset:end].expand_as(x)
