"""Multi-head attention: from the loop over heads, and from and to `nn.MultiheadAttention`."""

import torch
from torch import Tensor, nn

from course_lib.checks import convert as checks
from course_lib.multihead import MultiHeadAttention, PerHeadMultiHead
from course_lib.validation import validated


@validated(checks.from_per_head)
def from_per_head(layer: PerHeadMultiHead) -> MultiHeadAttention:
    """Return the batched layer with the same weights: the matrices of the heads, one below the other.

    Raises:
        ValueError: for any other layer.
    """
    out = layer.out_proj
    batched = MultiHeadAttention(out.out_features, len(layer.heads)).to(out.weight)
    with torch.no_grad():
        for name in ("q_proj", "k_proj", "v_proj"):
            heads = [head.get_submodule(name) for head in layer.heads]
            batched.get_submodule(name).weight.copy_(torch.cat([head.weight for head in heads]))
            batched.get_submodule(name).bias.copy_(torch.cat([head.bias for head in heads]))
    batched.out_proj.load_state_dict(out.state_dict())
    return batched.train(layer.training)


def attention_from_torch(layer: nn.MultiheadAttention) -> MultiHeadAttention:
    """Return the layer of this course with the weights of PyTorch's."""
    ours = MultiHeadAttention(
        layer.embed_dim,
        layer.num_heads,
        dropout=layer.dropout,
        bias=layer.in_proj_bias is not None,
        kdim=layer.kdim,
        vdim=layer.vdim,
    ).to(layer.out_proj.weight)
    with torch.no_grad():
        for name, parameter in _parameters(layer).items():
            ours.get_parameter(name).copy_(parameter)
    return ours.train(layer.training)


@validated(checks.to_torch)
def to_torch(layer: MultiHeadAttention) -> nn.MultiheadAttention:
    """Return PyTorch's layer with the same weights, batch first; shared key/value heads are repeated.

    Raises:
        ValueError: for any other layer, and for one with positions, which PyTorch's layer does not have.
    """
    theirs = nn.MultiheadAttention(
        layer.q_proj.in_features,
        layer.num_heads,
        dropout=layer.dropout,
        bias=layer.q_proj.bias is not None,
        kdim=layer.k_proj.in_features,
        vdim=layer.v_proj.in_features,
        batch_first=True,
    ).to(layer.out_proj.weight)
    group = layer.num_heads // layer.num_kv_heads
    with torch.no_grad():
        for name, parameter in _parameters(theirs).items():
            ours = layer.get_parameter(name)
            if name.startswith(("k_proj", "v_proj")):
                heads = ours.unflatten(0, (layer.num_kv_heads, -1))
                ours = heads.repeat_interleave(group, 0).flatten(0, 1)
            parameter.copy_(ours)
    return theirs.train(layer.training)


def _parameters(layer: nn.MultiheadAttention) -> dict[str, Tensor]:
    """Return PyTorch's parameters by the names of ours; one that packs q, k and v in its three parts."""
    if layer.in_proj_weight is not None:
        weights = layer.in_proj_weight.chunk(3)
    else:
        weights = layer.q_proj_weight, layer.k_proj_weight, layer.v_proj_weight
    named = dict(zip(("q_proj.weight", "k_proj.weight", "v_proj.weight"), weights, strict=True))
    named["out_proj.weight"] = layer.out_proj.weight
    if layer.in_proj_bias is not None:
        biases = layer.in_proj_bias.chunk(3)
        named |= dict(zip(("q_proj.bias", "k_proj.bias", "v_proj.bias"), biases, strict=True))
        named["out_proj.bias"] = layer.out_proj.bias
    return named
