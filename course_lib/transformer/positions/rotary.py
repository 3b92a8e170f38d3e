"""RoPE, rotary position embedding: queries and keys are rotated by an angle that grows with the position."""

import torch
from jaxtyping import Complex, Float, Int
from torch import Tensor

from course_lib.transformer.cache import positions_from
from course_lib.transformer.positions.base import AttentionPositions
from course_lib.transformer.positions.sinusoidal import angles, frequencies
from course_lib.validation import is_traced, require_one_of

LAYOUTS = ("interleaved", "half")


def rotary(
    x: Float[Tensor, "*batch length d_head"],
    positions: Int[Tensor, " length"],
    base: float = 10000.0,
    *,
    layout: str = "interleaved",
    partial_rotary_factor: float = 1.0,
) -> Float[Tensor, "*batch length d_head"]:
    r"""Rotate each pair of components of the vector at position $p$ by the angle $p\,\omega_i$.

    $$\begin{pmatrix} x'_a \\ x'_b \end{pmatrix} =
      \begin{pmatrix} \cos p\omega_i & -\sin p\omega_i \\ \sin p\omega_i & \cos p\omega_i \end{pmatrix}
      \begin{pmatrix} x_a \\ x_b \end{pmatrix}, \qquad \omega_i = \text{base}^{-2i/d}$$

    A rotation keeps norms, and the dot product of two rotated vectors depends on the difference of their
    positions alone: $(R_m q)^\top (R_n k) = q^\top R_{n-m} k$.

    Args:
        x: queries or keys. Never the values.
        positions: $p$ of each vector.
        base: of the wavelengths; configurations of current models call it `rope_theta`.
        layout: which components make pair $i$. "interleaved": $2i$ and $2i+1$, as in the paper and in Meta's
            LLaMA code. "half": $i$ and $i + d/2$, as in GPT-NeoX and Hugging Face's `rotate_half`,
            whose conversion of LLaMA permutes the rows of $W^Q$ and $W^K$ to match. A model must keep to the
            one it was trained with.
        partial_rotary_factor: the share of the components that is rotated: the first $d$; the others stay as they
            are. 1: $d = d_\text{head}$; GPT-NeoX-20B rotates a quarter.

    Source: Su et al. (2021), "RoFormer", equations 15 and 34; Black et al. (2022), "GPT-NeoX-20B", section 2.1.1, for
    the rotation of a part.
    """
    require_one_of(LAYOUTS, layout=layout)
    if positions.shape != x.shape[-2:-1]:
        raise ValueError(
            f"positions has shape {tuple(positions.shape)}; it must be ({x.shape[-2]},), one position per vector"
        )
    x = (x if x.is_floating_point() else x.float()).contiguous()
    omega = _frequencies(x.shape[-1], base, partial_rotary_factor).to(positions.device)
    return rotate_pairs(x, phases(torch.outer(positions.double(), omega), x), layout)


def _frequencies(d_head: int, base: float, partial_rotary_factor: float) -> Float[Tensor, " pair"]:
    """Return the frequencies of the pairs among the first components of a head."""
    if not 0 < partial_rotary_factor <= 1:
        raise ValueError(
            f"partial_rotary_factor={partial_rotary_factor} must be a share of the components, above 0 and at most 1"
        )
    dimension = int(d_head * partial_rotary_factor)  # rounded down, as in Hugging Face
    if partial_rotary_factor < 1 and (dimension % 2 or not dimension):
        raise ValueError(
            f"partial_rotary_factor={partial_rotary_factor} of d_head={d_head} is {dimension} components; "
            f"it must be an even number, at least 2"
        )
    return frequencies(dimension, base)


def phases(angle: Float[Tensor, "length pair"], x: Tensor) -> Complex[Tensor, "length pair"]:
    r"""Return $e^{i\theta}$ of each angle, to multiply the pairs of `x` with: in complex64, of float64 in complex128."""
    dtype = torch.promote_types(x.dtype, torch.float32)
    return torch.complex(*(part.to(x.device, dtype) for part in (angle.cos(), angle.sin())))


def rotate_pairs(
    x: Float[Tensor, "*batch length d_head"], phase: Complex[Tensor, "length pair"], layout: str
) -> Float[Tensor, "*batch length d_head"]:
    r"""Rotate each pair of components, read as a complex number: $(x_a + i x_b)\, e^{i\theta}$.

    Where there are fewer angles than pairs, the last components stay as they are. In float32 at least: rounding
    cosines to 8 or 11 bits would change the norms of vectors.
    """
    rotated = 2 * phase.shape[-1]
    if rotated < x.shape[-1]:
        first = rotate_pairs(x[..., :rotated].contiguous(), phase, layout)
        return torch.cat([first, x[..., rotated:]], dim=-1)
    if x.dtype in (torch.bfloat16, torch.float16):
        return rotate_pairs(x.float(), phase, layout).to(x.dtype)
    if layout == "interleaved":
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))  # (…, length, pair)
        return torch.view_as_real(pairs * phase).flatten(-2)
    pairs = torch.complex(*x.chunk(2, dim=-1)) * phase  # (…, length, pair)
    return torch.cat(torch.view_as_real(pairs).unbind(-1), dim=-1)


class RotaryPositions(AttentionPositions):
    """Rotate queries and keys of every head, as `rotary` does; no parameters.

    Args:
        d_head: the dimension of a head, even.
        base: of the wavelengths (RoPE θ).
        layout: "interleaved" or "half".
        partial_rotary_factor: the share of the components that is rotated, the first ones.

    Attributes:
        frequencies: (pair,), radians per position, in float64; methods that extend the context change them.
    """

    def __init__(
        self,
        d_head: int,
        base: float = 10000.0,
        *,
        layout: str = "interleaved",
        partial_rotary_factor: float = 1.0,
    ) -> None:
        super().__init__()
        require_one_of(LAYOUTS, layout=layout)
        self.layer_sizes = {"d_head": d_head}
        self.base, self.layout = base, layout
        self.frequencies = _frequencies(d_head, base, partial_rotary_factor)
        self._table: tuple = ((), None, None)  # kept for the next layer and the next token

    def rotate(
        self, query: Tensor, key: Tensor, offset: int | Int[Tensor, ""] = 0
    ) -> tuple[Tensor, Tensor]:
        """Rotate both; the first vector of each is at position `offset`."""
        phase = self._phase(offset, query.shape[-2], query)  # (length, pair)
        return rotate_pairs(query, phase, self.layout), rotate_pairs(key, phase, self.layout)

    def reserve(self, length: int, like: Tensor) -> None:
        """Keep the phases of all these positions, from which a tensor of positions takes its own."""
        self._phase(0, length, like)

    def _phase(
        self, offset: int | Tensor, length: int, x: Tensor
    ) -> Complex[Tensor, "length pair"]:
        if isinstance(offset, Tensor):
            return self._table[2].index_select(0, positions_from(offset, length, x.device))
        if is_traced():
            return phases(angles(offset, length, self.frequencies), x)
        asked, (kind, omega, table) = (x.dtype, x.device, self.frequencies._version), self._table
        if kind != asked or omega is not self.frequencies or len(table) < offset + length:
            with torch.inference_mode(False):  # what is kept must serve in training too
                table = phases(angles(0, 2 * (offset + length), self.frequencies), x)
            self._table = (asked, self.frequencies, table)
        return table[offset : offset + length]
