"""The way around a sublayer, and where the norm stands on it."""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor, nn

from course_lib.blocks.dropout import Dropout
from course_lib.blocks.norm import LayerNorm
from course_lib.inputs import require_floating, require_one_of, require_probability

#: Where the norm stands: before the sublayer, beside the way around it, or behind their sum, on it.
NORMS = ("pre", "post")


class Residual(nn.Module):
    r"""Add what a sublayer $f$ makes of $x$ to $x$.

    $$\text{pre:}\quad x + f(\mathrm{LN}(x)) \qquad\qquad \text{post:}\quad \mathrm{LN}(x + f(x))$$

    With "pre" nothing stands on the way from input to output, whatever the depth; what comes out of the
    last block has grown and needs one more norm. With "post" every sum is normalised, as in the first paper.

    Args:
        d_model: the size of the vectors.
        norm: "pre" or "post".
        dropout: of what the sublayer returns, while training.

    Raises:
        ValueError: for another norm, a size below 1, and a dropout outside [0, 1).

    Source: He and others (2016) for the sum; Vaswani and others (2017), section 3.1, for "post";
    Xiong and others (2020), "On layer normalization in the Transformer architecture", for "pre".
    """

    def __init__(self, d_model: int, *, norm: str = "pre", dropout: float = 0.0) -> None:
        super().__init__()
        require_one_of(NORMS, norm=norm)
        require_probability(dropout=dropout)
        self.placement = norm
        self.dropout = Dropout(dropout)
        self.norm = LayerNorm(d_model)

    def forward(
        self, x: Float[Tensor, "*batch d_model"], sublayer: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "*batch d_model"]:
        """Go through the sublayer and around it.

        Raises:
            ValueError: for vectors of another size, and for a sublayer that is no function or returns
                another shape.
        """
        require_floating(x=x)
        _require_function(sublayer)
        if self.placement == "pre":
            return x + self._change(sublayer, self.norm(x))
        return self.norm(x + self._change(sublayer, x))

    def _change(self, sublayer: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        change = sublayer(x)  # (…, d_model)
        _require_same_shape(change, x)
        return self.dropout(change)


def _require_function(sublayer: object) -> None:
    if not callable(sublayer):
        raise ValueError(
            f"sublayer is a {type(sublayer).__name__}; it must be a layer or a function of x"
        )


def _require_same_shape(change: object, x: Tensor) -> None:
    if not isinstance(change, Tensor) or change.shape != x.shape:
        came = f"a {type(change).__name__}"
        if isinstance(change, Tensor):
            came = f"shape {tuple(change.shape)}"
        raise ValueError(
            f"sublayer returned {came}; to be added to x it must return a tensor of shape "
            f"{tuple(x.shape)}"
        )
