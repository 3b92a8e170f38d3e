"""Layer normalisation, written out."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from course_lib.checks import blocks as checks
from course_lib.validation import validated


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
