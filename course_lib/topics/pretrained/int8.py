"""Weights in eight bits while the model computes: a generated token reads half the bytes of bfloat16."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from course_lib.transformer import DecoderOnly

#: PyTorch's product of bfloat16 vectors and int8 weights; None where it has none.
PRODUCT = getattr(torch, "_weight_int8pack_mm", None)


class Int8Linear(nn.Module):
    r"""Compute $y = (x R^\top) \odot s$ with $R$ in int8, a scale for each row, and $x$ in bfloat16.

    $s_i = \max_j |w_{ij}| / 127$ and $r_{ij} = \mathrm{round}(w_{ij} / s_i)$: absmax quantisation by rows.

    Args:
        linear: the layer whose weights are quantised; it has no bias.

    Source: Dettmers et al. (2022), "LLM.int8()", section 2, for the weights.
    """

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        weight = linear.weight.detach().float()  # in bfloat16, 127 might become 128
        scale = weight.abs().amax(dim=1).clamp_min(torch.finfo(torch.float32).tiny) / 127
        self.register_buffer("rows", (weight / scale[:, None]).round().to(torch.int8))
        self.register_buffer("scale", scale.bfloat16())
        self.out_features, self.in_features = weight.shape

    @property
    def weight(self) -> Float[Tensor, "out in"]:
        """The weights that the layer computes with, dequantised."""
        return self.rows * self.scale[:, None]

    def forward(self, x: Float[Tensor, "*batch in"]) -> Float[Tensor, "*batch out"]:
        """Multiply each vector by the weights."""
        vectors = x.reshape(-1, self.in_features).contiguous()
        return PRODUCT(vectors, self.rows, self.scale).view(*x.shape[:-1], self.out_features)


def to_int8(model: DecoderOnly) -> DecoderOnly:
    """Replace every linear layer by an `Int8Linear`; what remains becomes bfloat16. Changes the model itself."""
    for module in [*model.modules()]:
        for name, layer in [*module.named_children()]:
            if isinstance(layer, nn.Linear):
                setattr(module, name, Int8Linear(layer))
    return model.bfloat16()
