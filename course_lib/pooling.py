r"""Attention pooling: the Nadaraya-Watson kernel regression of 1964, read as attention.

A *query* $x$ is compared with every *key* $x_i$; the *values* $y_i$ are averaged with the weights
$\alpha(x, x_i)$ that the comparison gives. Lengths are in the units of the keys; $h$ is the
bandwidth, in the same units.

E. A. Nadaraya, "On estimating regression", Theory of Probability and its Applications 9 (1964).
G. S. Watson, "Smooth regression analysis", Sankhya A 26 (1964).
"""

import math
from collections.abc import Callable
from types import MappingProxyType
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from course_lib.inputs import (
    as_positive,
    require_alike,
    require_dimensions,
    require_finite,
    require_kernel_values,
    require_mask,
    require_one_of,
    require_positive,
    require_same_length,
)

__all__ = [
    "Attended",
    "KERNELS",
    "NadarayaWatson",
    "attention_pooling",
    "boxcar_kernel",
    "epanechnikov_kernel",
    "gaussian_kernel",
    "leave_one_out_error",
]


class Attended(NamedTuple):
    """What attention returns: `output` (…, query, value size) and `weights` (…, query, key).

    `weights` is None where they were not asked for.
    """

    output: Tensor
    weights: Tensor | None


def gaussian_kernel(u: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    r"""$K(u) = \exp(-u^2/2) / \sqrt{2\pi}$: every key counts, near ones most."""
    return torch.exp(-u.square() / 2) / math.sqrt(2 * math.pi)


def boxcar_kernel(u: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    r"""$K(u) = \frac12$ where $|u| \le 1$, else 0: keys inside the window count alike."""
    return (u.abs() <= 1).to(u.dtype) / 2


def epanechnikov_kernel(u: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    r"""$K(u) = \frac34 \max(0, 1 - u^2)$: a window whose edges fade out.

    V. A. Epanechnikov, Theory of Probability and its Applications 14 (1969).
    """
    return 0.75 * (1 - u.square()).clamp(min=0)


Kernel = Callable[[Tensor], Tensor]

#: The kernels by name. Each integrates to 1 over the real line.
KERNELS: MappingProxyType[str, Kernel] = MappingProxyType(
    {
        "gaussian": gaussian_kernel,
        "boxcar": boxcar_kernel,
        "epanechnikov": epanechnikov_kernel,
    }
)


def attention_pooling(
    queries: Float[Tensor, " query"],
    keys: Float[Tensor, " key"],
    values: Float[Tensor, "key *value_size"],
    *,
    kernel: str | Kernel = "gaussian",
    bandwidth: float | Float[Tensor, ""] = 1.0,
    mask: Bool[Tensor, "..."] | None = None,
) -> Attended:
    r"""Average the values, weighted by how near each key is to the query.

    $$f(x) = \sum_i \alpha(x, x_i)\, y_i, \qquad
      \alpha(x, x_i) = \frac{K((x - x_i)/h)}{\sum_j K((x - x_j)/h)}$$

    Args:
        queries: the points $x$ at which to estimate, shape (query,).
        keys: the points $x_i$ at which values were seen, shape (key,).
        values: what was seen there, $y_i$, shape (key,) or (key, value_size).
        kernel: a name in `KERNELS`, or your own function $K(u)$, elementwise and never negative.
        bandwidth: $h > 0$, in the units of the keys; a one-element tensor may carry gradients.
        mask: boolean, True = may attend, broadcastable to (query, key).

    Returns:
        `Attended(output, weights)`: shapes (query,) or (query, value_size), and (query, key).
        Each row of weights sums to 1. A query that no key may reach (mask, or a kernel that is 0
        everywhere) has all-zero weights and output 0.

    Raises:
        ValueError: for empty, non-finite or integer tensors, unequal lengths, a bandwidth that is
            not above 0, an unknown kernel or one whose values are negative, not finite or of another
            shape, a mask that is not boolean or does not fit.

    Source: Nadaraya (1964), Watson (1964).
    """
    require_finite(queries=queries, keys=keys, values=values)
    require_dimensions({1: "(query,)"}, queries=queries)
    require_dimensions({1: "(key,)"}, keys=keys)
    require_dimensions({1: "(key,)", 2: "(key, value_size)"}, values=values)
    require_alike(queries=queries, keys=keys, values=values)
    require_same_length(keys=keys, values=values)
    bandwidth = as_positive(keys, bandwidth=bandwidth)
    if not callable(kernel):
        require_one_of(KERNELS, kernel=kernel)
    if mask is not None:
        require_mask(mask, (len(queries), len(keys)), ("query", "key"))

    if mask is None:
        mask = torch.ones(len(queries), len(keys), dtype=torch.bool, device=keys.device)
    differences = queries[:, None] - keys[None, :]  # (query, key)
    if kernel in ("gaussian", gaussian_kernel):
        similarity = _gaussian_similarity(differences, bandwidth, mask)  # (query, key)
    else:
        kernel = kernel if callable(kernel) else KERNELS[kernel]
        similarity = kernel(differences / bandwidth)  # (query, key)
        require_kernel_values(similarity, (len(queries), len(keys)))
        similarity = similarity.to(keys.dtype)
    similarity = similarity.masked_fill(~mask, 0.0)
    total = similarity.sum(dim=-1, keepdim=True)  # (query, 1)
    weights = similarity / total.masked_fill(total == 0, 1.0)  # a row of zeros stays zero
    return Attended(weights @ values, weights)


def _gaussian_similarity(differences: Tensor, bandwidth: Tensor, mask: Tensor) -> Tensor:
    """exp(-(d² - c²)/2h²) with c the smallest d of the row: the weights are the same for every c.

    This is how softmax is computed. Without it, exp(-d²/2h²) is 0 for all keys of a far query, and the
    weights are 0/0. d² - c² is taken as (d - c)(d + c), which neither overflows nor cancels.
    """
    d = differences.abs()  # (query, key)
    nearest = d.detach().masked_fill(~mask, torch.inf).amin(dim=-1, keepdim=True)  # (query, 1)
    nearest = nearest.masked_fill(nearest.isinf(), 0.0)  # no key may be attended
    farther = ((d - nearest) / bandwidth) * ((d + nearest) / bandwidth)
    return torch.exp(-farther.masked_fill(~mask, 0.0) / 2)


class NadarayaWatson(nn.Module):
    r"""Gaussian attention pooling whose bandwidth is learned.

    $$f(x) = \sum_i \mathrm{softmax}_i\!\left(-\frac{(x - x_i)^2}{2h^2}\right) y_i$$

    The parameter is $\log h$, so that no gradient step can make $h$ negative. (Textbooks often
    learn the width $w = 1/h$ instead; it is the same family.)

    Args:
        bandwidth: where $h$ starts, in the units of the keys; above 0.

    Raises:
        ValueError: where `attention_pooling` would.
    """

    def __init__(self, bandwidth: float = 1.0) -> None:
        super().__init__()
        require_positive(bandwidth=bandwidth)
        self.log_bandwidth = nn.Parameter(torch.tensor(math.log(bandwidth)))

    @property
    def bandwidth(self) -> Tensor:
        """The present $h$, a tensor that carries gradients."""
        return self.log_bandwidth.exp()

    def forward(
        self,
        queries: Float[Tensor, " query"],
        keys: Float[Tensor, " key"],
        values: Float[Tensor, "key *value_size"],
        mask: Bool[Tensor, "..."] | None = None,
    ) -> Attended:
        """Pool as `attention_pooling` does, at the learned bandwidth."""
        return attention_pooling(queries, keys, values, bandwidth=self.bandwidth, mask=mask)

    def extra_repr(self) -> str:
        """Show the bandwidth in the printed module."""
        return f"bandwidth={self.bandwidth.item():.3g}"


def leave_one_out_error(
    keys: Float[Tensor, " key"],
    values: Float[Tensor, " key"],
    *,
    kernel: str | Kernel = "gaussian",
    bandwidth: float | Float[Tensor, ""] = 1.0,
) -> Float[Tensor, ""]:
    r"""Mean squared error at each key when that key itself may not be looked at.

    $$\mathrm{LOO}(h) = \frac1n \sum_i \bigl(y_i - f_{-i}(x_i)\bigr)^2$$

    where $f_{-i}$ pools over every pair but the $i$-th. In squared units of the values. A key with
    no neighbour in its window is predicted as 0.

    Raises:
        ValueError: where `attention_pooling` would, and for fewer than two keys.

    Source: M. Stone, Journal of the Royal Statistical Society B 36 (1974).
    """
    require_finite(keys=keys, values=values)
    require_dimensions({1: "(key,)"}, keys=keys, values=values)
    require_alike(keys=keys, values=values)
    require_same_length(keys=keys, values=values)
    if len(keys) < 2:
        raise ValueError("keys has length 1; leaving one out needs at least 2")
    others = ~torch.eye(len(keys), dtype=torch.bool, device=keys.device)  # (key, key)
    predicted = attention_pooling(
        keys, keys, values, kernel=kernel, bandwidth=bandwidth, mask=others
    ).output
    return (values - predicted).square().mean()
