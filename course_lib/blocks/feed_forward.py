"""The network that works on every token by itself."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from course_lib.blocks.dropout import Dropout
from course_lib.inputs import (
    require_axes,
    require_floating,
    require_made_for,
    require_one_of,
    require_probability,
    require_size,
    require_whole,
)

#: What stands between the two layers.
ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = MappingProxyType(
    {"relu": F.relu, "gelu": F.gelu}
)


class FeedForward(nn.Module):
    r"""Two layers with a bend between them, the same for every token.

    $$\mathrm{FFN}(x) = W_2\, \phi(W_1 x + b_1) + b_2, \qquad \phi(u) = \max(0, u) \text{ for "relu"}$$

    Args:
        d_model: the size of the vectors that come in and go out.
        d_ff: the size between; four times `d_model` in the paper.
        dropout: of what stands between, while training.
        activation: $\phi$, one of `ACTIVATIONS`.

    Raises:
        ValueError: for sizes below 1, a dropout outside [0, 1), and an unknown activation.

    Source: Vaswani and others (2017), equation 2; Hendrycks and Gimpel (2016) for "gelu".
    """

    def __init__(
        self, d_model: int, d_ff: int, *, dropout: float = 0.0, activation: str = "relu"
    ) -> None:
        super().__init__()
        require_whole(d_model=d_model, d_ff=d_ff)
        require_probability(dropout=dropout)
        require_one_of(ACTIVATIONS, activation=activation)
        self.activation = activation
        self.dropout = Dropout(dropout)
        self.wider = nn.Linear(d_model, d_ff)
        self.back = nn.Linear(d_ff, d_model)

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Change each vector, whatever the others are.

        Raises:
            ValueError: for vectors of another size, dtype or device.
        """
        require_floating(x=x)
        require_made_for(self.wider, "network", x=x)
        size = self.wider.in_features
        require_axes(1, f"(…, {size})", x=x)
        require_size(size, f"the network was made for {size}", x=x)
        between = ACTIVATIONS[self.activation](self.wider(x))  # (…, d_ff)
        return self.back(self.dropout(between))  # (…, d_model)
