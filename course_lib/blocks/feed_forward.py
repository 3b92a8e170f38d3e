"""The position-wise feed-forward network."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from course_lib.blocks.dropout import Dropout
from course_lib.checks import blocks as checks
from course_lib.validation import validated

#: The activation functions by name; that of "swiglu" is applied to the gate.
ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = MappingProxyType(
    {"relu": F.relu, "gelu": F.gelu, "swiglu": F.silu}
)


class FeedForward(nn.Module):
    r"""Two linear layers with an activation function between them, applied to each position independently.

    $$\mathrm{FFN}(x) = W_2\, \phi(W_1 x + b_1) + b_2, \qquad \phi(u) = \max(0, u) \text{ for "relu"}$$

    `up_proj` is $W_1$ and expands each vector to `d_ff` hidden units; `down_proj` is $W_2$ and projects back.
    For "swiglu" a third matrix, `gate_proj`, gives each hidden unit a factor that depends on the input:

    $$\mathrm{FFN}(x) = W_2\, (\mathrm{SiLU}(W_g x) \odot W_1 x), \qquad
      \mathrm{SiLU}(u) = u\, / (1 + e^{-u}) \text{, here without biases}$$

    Args:
        d_model: the dimension of input and output.
        d_ff: the number of hidden units; four times `d_model` in the paper.
        dropout: of the hidden units, in training mode.
        activation: $\phi$, one of `ACTIVATIONS`.
        bias: whether the linear layers add one.

    Raises:
        ValueError: for sizes below 1, a dropout outside [0, 1), and an unknown activation.

    Source: Vaswani et al. (2017), equation 2; Hendrycks and Gimpel (2016) for "gelu"; Shazeer
    (2020), "GLU variants improve Transformer", for "swiglu".
    """

    @validated(partial(checks.feed_forward_init, ACTIVATIONS))
    def __init__(
        self,
        d_model: int,
        d_ff: int,
        *,
        dropout: float = 0.0,
        activation: str = "relu",
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.activation = activation
        self.up_proj = nn.Linear(d_model, d_ff, bias)
        self.gate_proj = nn.Linear(d_model, d_ff, bias) if activation == "swiglu" else None
        self.dropout = Dropout(dropout)
        self.down_proj = nn.Linear(d_ff, d_model, bias)

    @validated(checks.feed_forward_forward)
    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Transform each position, whatever the others are.

        Raises:
            ValueError: for vectors of another dimension, dtype or device.
        """
        phi = ACTIVATIONS[self.activation]
        if self.gate_proj is None:
            hidden = phi(self.up_proj(x))  # (…, d_ff)
        else:
            hidden = phi(self.gate_proj(x)) * self.up_proj(x)  # (…, d_ff)
        return self.down_proj(self.dropout(hidden))  # (…, d_model)
