"""Dropout, written out."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from course_lib.checks import blocks as checks
from course_lib.validation import validated


class Dropout(nn.Module):
    r"""In training mode, set each component to zero with probability $p$ and divide the others by $1 - p$.

    $$\mathrm{drop}(x)_i = \frac{m_i\, x_i}{1 - p}, \qquad m_i = 0 \text{ with probability } p \text{, else } 1$$

    The expected value of a component stays the same, so nothing has to be rescaled at inference time.
    `train()` and `eval()` switch it on and off. On a CPU this is faster than `F.dropout`, so the blocks use it.

    Args:
        p: from 0 up to but not including 1.

    Raises:
        ValueError: for a probability outside [0, 1).

    Source: Srivastava et al. (2014), "Dropout".
    """

    @validated(checks.dropout_init)
    def __init__(self, p: float = 0.1) -> None:
        super().__init__()
        self.p = p

    @validated(checks.dropout_forward)
    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """Drop components, or return x where there is nothing to drop."""
        if not self.training or self.p == 0:
            return x
        kept = torch.rand(x.shape, device=x.device) >= self.p
        return x * (kept.to(x.dtype) / (1 - self.p))

    def extra_repr(self) -> str:
        """Say what `print(model)` shows."""
        return f"p={self.p}"
