"""A learned vector per position, added to the embeddings."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from course_lib.checks import positions as checks
from course_lib.positions.base import EmbeddingPositions
from course_lib.validation import validated


class LearnedPositions(EmbeddingPositions):
    r"""Add row $p$ of a learned table $P$, shape (max_length, d_model). There is no position after its end.

    Args:
        max_length: how many positions the table has.
        d_model: the dimension of the embeddings.

    Source: Gehring et al. (2017); Devlin et al. (2019), "BERT".
    """

    @validated(checks.learned_init)
    def __init__(self, max_length: int, d_model: int) -> None:
        super().__init__()
        self.max_length = max_length
        self.table = nn.Parameter(0.02 * torch.randn(max_length, d_model))

    @validated(checks.learned_forward)
    def forward(
        self, x: Float[Tensor, "batch length d_model"], offset: int = 0
    ) -> Float[Tensor, "batch length d_model"]:
        """Add the rows from position `offset` on.

        Raises:
            ValueError: for vectors of another dimension, a negative offset, and a position after the table.
        """
        return x + self.table[offset : offset + x.shape[1]]
