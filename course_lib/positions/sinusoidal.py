"""Sines and cosines of geometric wavelengths, added to the vectors."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from course_lib.inputs import require_even, require_positive, require_sequence, require_whole


def sinusoidal_table(
    length: int, d_model: int, base: float = 10000.0, *, dtype: torch.dtype = torch.float32
) -> Float[Tensor, "length d_model"]:
    r"""Return a row per position: pairs of a sine and a cosine, each pair turning at its own speed.

    $$P_{p, 2i} = \sin(p\, \omega_i), \quad P_{p, 2i+1} = \cos(p\, \omega_i), \quad
      \omega_i = \text{base}^{-2i / d_\text{model}}$$

    Pair $i$ has the wavelength $2\pi / \omega_i$ positions. Both numbers of a pair share $\omega_i$, so row
    $p + k$ is row $p$ with each pair rotated by the angle $k\,\omega_i$.

    Raises:
        ValueError: for a length below 1, an odd `d_model`, and a base that is not above 0.

    Source: Vaswani and others (2017), section 3.5.
    """
    require_whole(length=length)
    require_even(d_model=d_model)
    require_positive(base=base)
    # In float64: far from the start a float32 angle is off by more than the fast pairs can bear.
    angles = torch.outer(torch.arange(length).double(), frequencies(d_model, base))
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2).to(dtype)


def frequencies(size: int, base: float) -> Float[Tensor, " pair"]:
    r"""Return $\omega_i = \text{base}^{-2i/\text{size}}$ for each pair, in radians per position, in float64."""
    return base ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)


class SinusoidalPositions(nn.Module):
    """Add the sinusoidal table to vectors of any length; nothing is learned.

    Args:
        d_model: the size of the vectors, even.
        base: of the wavelengths.
    """

    def __init__(self, d_model: int, base: float = 10000.0) -> None:
        super().__init__()
        require_even(d_model=d_model)
        require_positive(base=base)
        self.d_model, self.base = d_model, base
        # No buffer: `to(dtype)` would round it, and there is no way back.
        self._table = sinusoidal_table(64, d_model, base)

    def forward(
        self, x: Float[Tensor, "batch length d_model"], offset: int = 0
    ) -> Float[Tensor, "batch length d_model"]:
        """Add the rows from `offset` on.

        Raises:
            ValueError: for vectors of another size, and a negative offset.
        """
        require_sequence(self.d_model, x=x)
        require_whole(0, offset=offset)
        return x + self._rows(offset + x.shape[1], x)[offset:]

    def _rows(self, length: int, like: Tensor) -> Tensor:
        """The first rows of the table, kept from call to call."""
        kept = self._table
        if length > len(kept) or kept.dtype != like.dtype or kept.device != like.device:
            with torch.inference_mode(False):  # what is kept must serve in training too
                room = max(64, 2 * length)
                table = sinusoidal_table(room, self.d_model, self.base, dtype=like.dtype)
                self._table = table.to(like.device)
        return self._table[:length]
