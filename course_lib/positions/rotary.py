"""Rotary positions: queries and keys are turned by an angle that grows with their position."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from course_lib.inputs import (
    require_axes,
    require_even,
    require_floating,
    require_one_of,
    require_positive,
    require_whole,
)
from course_lib.positions.base import AttentionPositions
from course_lib.positions.sinusoidal import frequencies

#: How the numbers of a vector are paired: neighbours, or number i with number i + size / 2.
LAYOUTS = ("interleaved", "half")


def rotary(
    x: Float[Tensor, "*batch length d_head"],
    positions: Int[Tensor, " length"],
    base: float = 10000.0,
    *,
    layout: str = "interleaved",
) -> Float[Tensor, "*batch length d_head"]:
    r"""Rotate each pair of numbers of the vector at position $p$ by the angle $p\,\omega_i$.

    $$\begin{pmatrix} x'_a \\ x'_b \end{pmatrix} =
      \begin{pmatrix} \cos p\omega_i & -\sin p\omega_i \\ \sin p\omega_i & \cos p\omega_i \end{pmatrix}
      \begin{pmatrix} x_a \\ x_b \end{pmatrix}, \qquad \omega_i = \text{base}^{-2i/d_\text{head}}$$

    A rotation keeps lengths, and a product of two rotated vectors depends on the difference of their
    positions alone: $(R_m q)^\top (R_n k) = q^\top R_{n-m} k$.

    Args:
        x: queries or keys, shape (…, length, d_head). Never the values.
        positions: $p$ of each vector, shape (length,).
        base: of the wavelengths.
        layout: which numbers make pair $i$: $2i$ and $2i+1$ for "interleaved", as in the paper; $i$ and
            $i + d_\text{head}/2$ for "half", as in LLaMA. A model must keep to the one it was trained with.

    Raises:
        ValueError: for an odd d_head, as many positions as there are not vectors, a base that is not
            above 0, and an unknown layout.

    Source: Su and others (2021), "RoFormer", equations 15 and 34.
    """
    require_floating(x=x)
    require_axes(2, "(…, length, d_head)", x=x)
    require_even(d_head=x.shape[-1])
    require_positive(base=base)
    if not isinstance(positions, Tensor) or positions.shape != x.shape[-2:-1]:
        came = tuple(positions.shape) if isinstance(positions, Tensor) else type(positions).__name__
        raise ValueError(
            f"positions is {came}; it must be a tensor of shape ({x.shape[-2]},), one position per vector"
        )
    angles = torch.outer(positions.double(), frequencies(x.shape[-1], base).to(x.device))
    return turned(x, angles.cos().to(x.dtype), angles.sin().to(x.dtype), layout)


def turned(
    x: Float[Tensor, "*batch length d_head"],
    cos: Float[Tensor, "length pair"],
    sin: Float[Tensor, "length pair"],
    layout: str,
) -> Float[Tensor, "*batch length d_head"]:
    """Rotate each pair, given the cosines and sines of its angles."""
    require_one_of(LAYOUTS, layout=layout)
    if layout == "half":
        a, b = x.chunk(2, dim=-1)  # (…, length, pair) each
        return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)
    a, b = x[..., 0::2], x[..., 1::2]  # (…, length, pair) each
    return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)


class RotaryPositions(AttentionPositions):
    """Turn queries and keys of every head, by `rotary`; nothing is learned.

    Args:
        d_head: the size of a head, even.
        base: of the wavelengths.
        layout: "interleaved" or "half".
    """

    def __init__(self, d_head: int, base: float = 10000.0, *, layout: str = "interleaved") -> None:
        super().__init__()
        require_even(d_head=d_head)
        require_positive(base=base)
        require_one_of(LAYOUTS, layout=layout)
        self.made_for = {"d_head": d_head}
        self.base, self.layout = base, layout
        # No buffers: `to(dtype)` would round them, and there is no way back.
        self._cos = self._sin = torch.empty(0, d_head // 2)

    def turn(self, query: Tensor, key: Tensor, offset: int = 0) -> tuple[Tensor, Tensor]:
        """Turn both; the first of each stands at position `offset`."""
        require_whole(0, offset=offset)
        return self._turned(query, offset), self._turned(key, offset)

    def _turned(self, x: Tensor, offset: int) -> Tensor:
        cos, sin = self._tables(offset + x.shape[-2], x)
        return turned(x, cos[offset:], sin[offset:], self.layout)

    def _tables(self, length: int, like: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines and sines of positions 0 to length - 1, kept from call to call."""
        kept = self._cos
        if length > len(kept) or kept.dtype != like.dtype or kept.device != like.device:
            with torch.inference_mode(False):  # what is kept must serve in training too
                positions = torch.arange(max(64, 2 * length)).double()
                angles = torch.outer(positions, frequencies(self.made_for["d_head"], self.base))
                self._cos = angles.cos().to(like.device, like.dtype)
                self._sin = angles.sin().to(like.device, like.dtype)
        return self._cos[:length], self._sin[:length]
