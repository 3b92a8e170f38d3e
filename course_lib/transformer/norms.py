"""Normalisation of vectors: LayerNorm by its equation, and the kernels of PyTorch that the layers use."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import torch
from jaxtyping import Float
from torch import Tensor, nn

__all__ = ["LayerNorm", "NORM_TYPES", "make_norm"]

#: The normalisations by name, in PyTorch's fused kernels: what the layers use.
NORM_TYPES: Mapping[str, Callable[..., nn.Module]] = MappingProxyType(
    {"layer": nn.LayerNorm, "rms": nn.RMSNorm}
)

Vectors = Float[Tensor, "*batch d_model"]


def make_norm(norm_type: str, d_model: int, eps: float = 1e-5) -> nn.Module:
    """Make the normalisation of this name for vectors of dimension `d_model`."""
    return NORM_TYPES[norm_type](d_model, eps=eps)


class LayerNorm(nn.Module):
    r"""Normalise every vector to mean 0 and variance 1, then apply a learned scale and shift.

    $$\mathrm{LN}(x) = \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} \odot \gamma + \beta, \qquad
      \mu = \frac1d \sum_i x_i, \quad \sigma^2 = \frac1d \sum_i (x_i - \mu)^2$$

    Each vector is normalised by itself: no other token and no other sequence of the batch takes part. The
    variance is divided by $d$, not $d - 1$; $\epsilon$ stands under the root; $\gamma$ starts at one and
    $\beta$ at zero. The layers use `nn.LayerNorm`, the same function in a fused kernel.

    Args:
        d_model: $d$, the dimension of the vectors.
        eps: $\epsilon$, which keeps a vector of equal components from a division by zero.

    Source: Ba, Kiros and Hinton (2016), "Layer normalization".
    """

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Vectors) -> Vectors:
        """Normalise along the last axis."""
        wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
        centred = wide - wide.mean(dim=-1, keepdim=True)  # (…, d_model)
        variance = centred.square().mean(dim=-1, keepdim=True)  # (…, 1)
        normal = centred * torch.rsqrt(variance + self.eps)  # (…, d_model)
        return (normal * self.weight.expand_as(normal) + self.bias).to(x.dtype)
