"""Dropout, by hand."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from course_lib.inputs import require_floating, require_probability


class Dropout(nn.Module):
    r"""While training, set each number to zero with probability $p$ and divide the others by $1 - p$.

    $$\mathrm{drop}(x)_i = \frac{m_i\, x_i}{1 - p}, \qquad m_i = 0 \text{ with probability } p \text{, else } 1$$

    What is expected of a number stays the same, so nothing has to be rescaled afterwards. `train()` and
    `eval()` switch it on and off; there is no other switch.

    Args:
        p: from 0 up to but not including 1.

    Raises:
        ValueError: for a probability outside [0, 1).

    Source: Srivastava and others (2014), "Dropout".
    """

    def __init__(self, p: float = 0.1) -> None:
        super().__init__()
        require_probability(p=p)
        self.p = p

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """Drop, or pass on what came where there is nothing to drop."""
        require_floating(x=x)
        if not self.training or self.p == 0:
            return x
        dropped = torch.rand(x.shape, device=x.device) < self.p
        return torch.where(dropped, 0.0, x / (1 - self.p))

    def extra_repr(self) -> str:
        """Say what `print(model)` shows."""
        return f"p={self.p}"
