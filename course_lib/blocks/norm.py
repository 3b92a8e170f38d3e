"""Layer normalisation and RMSNorm, written out."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

import torch
from jaxtyping import Float
from torch import Tensor, nn

from course_lib.checks import blocks as checks
from course_lib.validation import validated

#: The normalisations by name, in PyTorch's fused kernels: what the blocks use.
NORM_TYPES: Mapping[str, Callable[..., nn.Module]] = MappingProxyType(
    {"layer": nn.LayerNorm, "rms": nn.RMSNorm}
)


@validated(partial(checks.make_norm, NORM_TYPES))
def make_norm(norm_type: str, d_model: int, eps: float = 1e-5) -> nn.Module:
    """Make the normalisation of this name for vectors of dimension `d_model`.

    Raises:
        ValueError: for an unknown name, a dimension below 1, and an `eps` that is not above 0.
    """
    return NORM_TYPES[norm_type](d_model, eps=eps)


class LayerNorm(nn.Module):
    r"""Normalise every vector to mean 0 and variance 1, then apply a learned scale and shift.

    $$\mathrm{LN}(x) = \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} \odot \gamma + \beta, \qquad
      \mu = \frac1d \sum_i x_i, \quad \sigma^2 = \frac1d \sum_i (x_i - \mu)^2$$

    Each vector is normalised by itself: no other token and no other sequence of the batch takes part. The
    variance is divided by $d$, not $d - 1$; $\epsilon$ stands under the root; $\gamma$ starts at one and
    $\beta$ at zero. The blocks use `nn.LayerNorm`, the same function in a fused kernel.

    Args:
        d_model: $d$, the dimension of the vectors.
        eps: $\epsilon$, which keeps a vector of equal components from a division by zero.

    Raises:
        ValueError: for a dimension below 1, and an `eps` that is not above 0.

    Source: Ba, Kiros and Hinton (2016), "Layer normalization".
    """

    @validated(checks.layer_norm_init)
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    @validated(checks.layer_norm_forward)
    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Normalise along the last axis.

        Raises:
            ValueError: for vectors of another dimension.
        """
        wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
        centred = wide - wide.mean(dim=-1, keepdim=True)  # (…, d_model)
        variance = centred.square().mean(dim=-1, keepdim=True)  # (…, 1)
        normal = centred * torch.rsqrt(variance + self.eps)  # (…, d_model)
        return (normal * self.weight + self.bias).to(x.dtype)


class RMSNorm(nn.Module):
    r"""Divide every vector by its root mean square, then apply a learned scale.

    $$\mathrm{RMSNorm}(x) = \frac{x}{\sqrt{\frac1d \sum_i x_i^2 + \epsilon}} \odot \gamma$$

    Layer normalisation without the subtraction of the mean and without a shift: one sum less, and $d$
    parameters less. $\epsilon$ stands under the root; $\gamma$ starts at one.

    Args:
        d_model: $d$, the dimension of the vectors.
        eps: $\epsilon$, which keeps a zero vector from a division by zero.

    Raises:
        ValueError: for a dimension below 1, and an `eps` that is not above 0.

    Source: Zhang and Sennrich (2019), "Root mean square layer normalization".
    """

    @validated(checks.layer_norm_init)
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))

    @validated(checks.layer_norm_forward)
    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Normalise along the last axis.

        Raises:
            ValueError: for vectors of another dimension.
        """
        wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
        mean_square = wide.square().mean(dim=-1, keepdim=True)  # (…, 1)
        normal = wide * torch.rsqrt(mean_square + self.eps)  # (…, d_model)
        return (normal * self.weight).to(x.dtype)
