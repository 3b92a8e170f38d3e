"""Sines and cosines of geometric wavelengths, added to the embeddings."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from course_lib.transformer.cache import positions_from
from course_lib.transformer.positions.base import EmbeddingPositions
from course_lib.validation import require_positive


def sinusoidal_table(
    length: int, d_model: int, base: float = 10000.0, *, dtype: torch.dtype = torch.float32
) -> Float[Tensor, "length d_model"]:
    r"""Return a row per position: pairs of a sine and a cosine, each pair with a wavelength of its own.

    $$P_{p, 2i} = \sin(p\, \omega_i), \quad P_{p, 2i+1} = \cos(p\, \omega_i), \quad
      \omega_i = \text{base}^{-2i / d_\text{model}}$$

    Pair $i$ has the wavelength $2\pi / \omega_i$ positions. Both components of a pair share $\omega_i$, so row
    $p + k$ is row $p$ with each pair rotated by the angle $k\,\omega_i$.

    Source: Vaswani et al. (2017), section 3.5.
    """
    return _rows(0, length, frequencies(d_model, base)).to(dtype)


def frequencies(dimension: int, base: float) -> Float[Tensor, " pair"]:
    r"""Return $\omega_i = \text{base}^{-2i/\text{dimension}}$ of each pair, in radians per position, in float64."""
    require_positive(base=base)
    if dimension % 2:
        raise ValueError(
            f"a dimension of {dimension} is odd; it must be even, for pairs of components"
        )
    return base ** (-torch.arange(0, dimension, 2, dtype=torch.float64, device="cpu") / dimension)


def angles(
    offset: int | Int[Tensor, ""], length: int, omega: Float[Tensor, " pair"]
) -> Float[Tensor, "length pair"]:
    r"""Return $p\,\omega_i$ for the positions $p$ = `offset`, `offset` + 1, …; in float64, as they may be large."""
    return torch.outer(positions_from(offset, length, omega.device).double(), omega)


def _rows(offset: int | Tensor, length: int, omega: Tensor) -> Tensor:
    angle = angles(offset, length, omega)  # (length, pair)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2)  # (length, d_model)


class SinusoidalPositions(EmbeddingPositions):
    """Add the sinusoidal table to embeddings of any length; no parameters.

    Args:
        d_model: the dimension of the embeddings, even.
        base: of the wavelengths.
    """

    def __init__(self, d_model: int, base: float = 10000.0) -> None:
        super().__init__()
        self.frequencies = frequencies(d_model, base)

    def forward(
        self, x: Float[Tensor, "batch length d_model"], offset: int | Int[Tensor, ""] = 0
    ) -> Float[Tensor, "batch length d_model"]:
        """Add the rows from position `offset` on."""
        x = x if x.is_floating_point() else x.float()  # the rows must not become whole numbers
        return x + _rows(offset, x.shape[-2], self.frequencies).to(x).expand_as(x)

    def reserve(self, length: int, like: Tensor) -> None:
        """Move the frequencies to the device."""
        self.frequencies = self.frequencies.to(like.device)
