r"""Attention pooling: the Nadaraya-Watson kernel regression of 1964, read as attention.

A *query* $x$ is compared with every *key* $x_i$; the *values* $y_i$ are averaged with the attention weights
$\alpha(x, x_i)$ that the comparison gives. The bandwidth $h$ is in the units of the keys.

E. A. Nadaraya, "On estimating regression", Theory of Probability and its Applications 9 (1964).
G. S. Watson, "Smooth regression analysis", Sankhya A 26 (1964).
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from course_lib.transformer.attention import AttentionOutput
from course_lib.validation import is_traced, require_finite, require_positive

__all__ = [
    "KERNELS",
    "NadarayaWatson",
    "attention_pooling",
    "boxcar_kernel",
    "epanechnikov_kernel",
    "gaussian_kernel",
    "leave_one_out_error",
]


def gaussian_kernel(u: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    r"""$K(u) = \exp(-u^2/2) / \sqrt{2\pi}$: every key has weight, near ones the most."""
    return torch.exp(-u.square() / 2) / math.sqrt(2 * math.pi)


def boxcar_kernel(u: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    r"""$K(u) = \frac12$ where $|u| \le 1$, else 0: keys inside the window have equal weights."""
    return (u.abs() <= 1).to(u.dtype) / 2


def epanechnikov_kernel(u: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    r"""$K(u) = \frac34 \max(0, 1 - u^2)$: a window in which the weight falls to 0 at the edges.

    V. A. Epanechnikov, Theory of Probability and its Applications 14 (1969).
    """
    return 0.75 * (1 - u.square()).clamp(min=0)


Kernel = Callable[[Tensor], Tensor]

#: The kernels by name. Each integrates to 1 over the real line.
KERNELS: dict[str, Kernel] = {
    "gaussian": gaussian_kernel,
    "boxcar": boxcar_kernel,
    "epanechnikov": epanechnikov_kernel,
}


def attention_pooling(
    queries: Float[Tensor, " query"],
    keys: Float[Tensor, " key"],
    values: Float[Tensor, "key *d_value"],
    *,
    kernel: str | Kernel = "gaussian",
    bandwidth: float | Float[Tensor, ""] = 1.0,
    mask: Bool[Tensor, "..."] | None = None,
) -> AttentionOutput:
    r"""Average the values, weighted by how near each key is to the query.

    $$f(x) = \sum_i \alpha(x, x_i)\, y_i, \qquad
      \alpha(x, x_i) = \frac{K((x - x_i)/h)}{\sum_j K((x - x_j)/h)}$$

    Args:
        queries: the points $x$ at which to estimate.
        keys: the points $x_i$ at which values were observed.
        values: the observations $y_i$, finite, like queries and keys.
        kernel: a name in `KERNELS`, or your own function $K(u)$, elementwise and never negative.
        bandwidth: $h > 0$, in the units of the keys; a one-element tensor may carry gradients.
        mask: boolean, True = may attend, broadcastable to (query, key).

    Returns:
        `AttentionOutput(output, weights)`, with weights of shape (query, key). Each row of weights sums to 1.
        Where the mask or the kernel leaves a query no key, its weights are all zero and its output is 0.

    Source: Nadaraya (1964), Watson (1964).
    """
    if queries.dim() != 1 or keys.dim() != 1:  # a column would be a batch of points, each alone
        raise ValueError(
            f"queries has shape {tuple(queries.shape)} and keys has shape {tuple(keys.shape)}; they must be "
            f"(query,) and (key,)"
        )
    bandwidth = torch.as_tensor(bandwidth, dtype=keys.dtype, device=keys.device).reshape(())
    if not is_traced():
        require_finite(queries=queries, keys=keys, values=values)
        require_positive(bandwidth=bandwidth)  # in the dtype of the keys it may round to 0
    differences = queries[:, None] - keys[None, :]  # (query, key)
    mask = torch.ones_like(differences, dtype=torch.bool) if mask is None else mask
    if kernel in ("gaussian", gaussian_kernel):
        similarity = _gaussian_similarity(differences, bandwidth, mask)
    else:
        kernel = kernel if callable(kernel) else KERNELS[kernel]
        similarity = kernel(differences / bandwidth).to(keys.dtype)
        if not is_traced() and not ((similarity >= 0) & similarity.isfinite()).all():
            raise ValueError(
                "kernel returned a negative number, NaN or infinity; K(u) must be finite and 0 or more"
            )
    similarity = similarity.masked_fill(~mask, 0.0)  # (query, key)
    total = similarity.sum(dim=-1, keepdim=True)  # (query, 1)
    weights = similarity / total.masked_fill(total == 0, 1.0)  # a row of zeros stays zero
    return AttentionOutput(weights @ values, weights)


def _gaussian_similarity(differences: Tensor, bandwidth: Tensor, mask: Tensor) -> Tensor:
    """Return exp(-(d² - c²)/2h²) with c the smallest d of the row; the weights are the same for every c.

    Softmax is computed in the same way. Without c, exp(-d²/2h²) is 0 for all keys of a far query, and the
    weights are 0/0. d² - c² is computed as (d - c)(d + c), which does not cancel.
    """
    dtype = differences.dtype
    h = bandwidth.to(torch.promote_types(dtype, torch.float32)).clamp(min=1e-15)  # h² is not 0
    d = differences.abs().to(h.dtype)  # (query, key)
    c = d.detach().masked_fill(~mask, torch.inf).amin(dim=-1, keepdim=True)  # (query, 1)
    c = c.masked_fill(c.isinf(), 0.0)  # where the row is fully masked
    d = torch.where(mask, d, c)  # a masked key may be nearer than c, and exp would overflow
    exponent = ((d - c) / h) * ((d + c) / h)  # (query, key)
    return torch.exp(-exponent / 2).to(dtype)


class NadarayaWatson(nn.Module):
    r"""Gaussian attention pooling whose bandwidth is learned.

    $$f(x) = \sum_i \mathrm{softmax}_i\!\left(-\frac{(x - x_i)^2}{2h^2}\right) y_i$$

    The parameter is $\log h$, so that no gradient step can make $h$ negative. (Textbooks often
    learn the width $w = 1/h$ instead, which gives the same functions.)

    Args:
        bandwidth: the initial $h$, in the units of the keys; above 0.
    """

    def __init__(self, bandwidth: float = 1.0) -> None:
        super().__init__()
        self.log_bandwidth = nn.Parameter(torch.tensor(math.log(bandwidth)))

    @property
    def bandwidth(self) -> Tensor:
        """The current $h$, a tensor that carries gradients."""
        return self.log_bandwidth.exp()

    def forward(
        self,
        queries: Float[Tensor, " query"],
        keys: Float[Tensor, " key"],
        values: Float[Tensor, "key *d_value"],
        mask: Bool[Tensor, "..."] | None = None,
    ) -> AttentionOutput:
        """Return `attention_pooling` with the learned bandwidth."""
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
    r"""Return the mean squared error at the keys, each predicted with itself masked.

    $$\mathrm{LOO}(h) = \frac1n \sum_i \bigl(y_i - f_{-i}(x_i)\bigr)^2$$

    where $f_{-i}$ pools over every pair but the $i$-th. In squared units of the values. The prediction for a
    key without a neighbour in its window is 0.

    Args:
        keys, values: $x_i$ and $y_i$, at least two of each.
        kernel, bandwidth: as for `attention_pooling`.

    Source: M. Stone, Journal of the Royal Statistical Society B 36 (1974).
    """
    if len(keys) < 2:
        raise ValueError(f"keys has length {len(keys)}; leaving one out needs at least 2")
    others = ~torch.eye(len(keys), dtype=torch.bool, device=keys.device)  # (key, key)
    predicted, _ = attention_pooling(
        keys, keys, values, kernel=kernel, bandwidth=bandwidth, mask=others
    )
    return (values - predicted).square().mean()
