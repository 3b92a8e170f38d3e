"""Carry the weights of PyTorch's layers over."""

from collections.abc import Iterable, Mapping
from typing import Any

import torch.nn.functional as F
from torch import nn

from course_lib.multihead import MultiHeadAttention


def settings_of(layer: nn.Module, kind: type[nn.Module]) -> dict[str, Any]:
    """Return the arguments that make a block like `layer`, which must be of a `kind`.

    Raises:
        ValueError: for any other layer, one without biases, and one with another activation.
    """
    if not isinstance(layer, kind):
        raise ValueError(f"layer is a {type(layer).__name__}; it must be an nn.{kind.__name__}")
    if layer.linear1.bias is None:
        raise ValueError("layer was made with bias=False; blocks of this course have biases")
    for name, functions in (("relu", (F.relu, nn.ReLU)), ("gelu", (F.gelu, nn.GELU))):
        exact = getattr(layer.activation, "approximate", "none") == "none"  # GELU has another form
        if layer.activation is functions[0] or (
            isinstance(layer.activation, functions[1]) and exact
        ):
            activation = name
            break
    else:
        raise ValueError(
            f"layer has the activation {layer.activation!r}; it must be relu or gelu, exact"
        )
    return {
        "d_model": layer.linear1.in_features,
        "num_heads": layer.self_attn.num_heads,
        "d_ff": layer.linear1.out_features,
        "norm": "pre" if layer.norm_first else "post",
        "dropout": layer.dropout.p,
        "activation": activation,
    }


def carry_layer(
    layer: nn.Module,
    made: nn.Module,
    attentions: Mapping[str, nn.MultiheadAttention],
    norms: Iterable[nn.LayerNorm],
) -> nn.Module:
    """Fill `made` with the weights of `layer`; return it in the same mode, dtype and place."""
    made = made.to(layer.linear1.weight)
    for name, theirs in attentions.items():
        carried = MultiHeadAttention.from_torch(theirs)
        getattr(made, name).load_state_dict(carried.state_dict())
        getattr(made, name).dropout = carried.dropout
    made.network.wider.load_state_dict(layer.linear1.state_dict())
    made.network.back.load_state_dict(layer.linear2.state_dict())
    for residual, norm in zip(made.residuals, norms, strict=True):
        residual.norm.load_state_dict(norm.state_dict())
        residual.norm.eps = norm.eps
    return made.train(layer.training)
