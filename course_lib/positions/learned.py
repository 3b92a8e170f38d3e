"""A learned vector per position, added to the vectors."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from course_lib.inputs import require_sequence, require_whole


class LearnedPositions(nn.Module):
    r"""Add row $p$ of a learned table $P$, shape (max_length, d_model). Beyond it there is nothing.

    Args:
        max_length: how many positions the table has.
        d_model: the size of the vectors.

    Source: Gehring and others (2017); Devlin and others (2019), "BERT".
    """

    def __init__(self, max_length: int, d_model: int) -> None:
        super().__init__()
        require_whole(max_length=max_length, d_model=d_model)
        self.table = nn.Parameter(0.02 * torch.randn(max_length, d_model))

    def forward(
        self, x: Float[Tensor, "batch length d_model"], offset: int = 0
    ) -> Float[Tensor, "batch length d_model"]:
        """Add the rows from `offset` on.

        Raises:
            ValueError: for vectors of another size, a negative offset, and a position beyond the table.
        """
        max_length, d_model = self.table.shape
        require_sequence(d_model, x=x)
        require_whole(0, offset=offset)
        end = offset + x.shape[1]
        if end > max_length:
            raise ValueError(
                f"x needs positions {offset} to {end - 1}, but the table was made with "
                f"max_length={max_length}: it has learned nothing beyond {max_length - 1}"
            )
        return x + self.table[offset:end]
