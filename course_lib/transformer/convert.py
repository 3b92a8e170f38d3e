"""Weights from PyTorch's layers.

PyTorch's boolean masks have the opposite convention: in `nn.MultiheadAttention` and `nn.Transformer`, True
means that a key is masked.
"""

from functools import singledispatch
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.transformer.config import TransformerConfig
from course_lib.transformer.layers import DecoderLayer, EncoderLayer
from course_lib.transformer.model import Transformer
from course_lib.transformer.multihead import MultiHeadAttention

__all__ = ["from_torch"]


@singledispatch
def from_torch(layer: nn.Module, **choices: Any) -> nn.Module:
    """Return the layer or model of this course with the weights of PyTorch's, in the same mode and dtype.

    | PyTorch | this course |
    |---|---|
    | `nn.MultiheadAttention` | `MultiHeadAttention` |
    | `nn.TransformerEncoderLayer` | `EncoderLayer` |
    | `nn.TransformerDecoderLayer` | `DecoderLayer` |
    | `nn.Transformer` | `Transformer` |

    Args:
        layer: one of these.
        choices: for `nn.Transformer`, which has neither embeddings nor an output layer, the fields of
            `TransformerConfig` that it does not settle: target_vocabulary, and where needed
            source_vocabulary, positions, max_length, tie_embeddings, pad_id.
    """
    raise ValueError(
        f"layer is a {type(layer).__name__}; it must be an nn.MultiheadAttention, nn.TransformerEncoderLayer, "
        f"nn.TransformerDecoderLayer or nn.Transformer"
    )


@from_torch.register
def _(layer: nn.MultiheadAttention) -> MultiHeadAttention:
    if layer.bias_k is not None or layer.add_zero_attn:
        raise ValueError(
            "layer was made with add_bias_kv or add_zero_attn, which append a key that no token has; "
            "MultiHeadAttention has none"
        )
    ours = MultiHeadAttention(
        layer.embed_dim,
        layer.num_heads,
        dropout=layer.dropout,
        bias=layer.in_proj_bias is not None,
        kdim=layer.kdim,
        vdim=layer.vdim,
    ).to(layer.out_proj.weight)
    ours.load_state_dict(_projections(layer))
    return ours.train(layer.training)


@from_torch.register
def _(layer: nn.TransformerEncoderLayer) -> EncoderLayer:
    block = EncoderLayer(**_block_options(layer)).to(layer.linear1.weight)
    _copy(block, layer, attention="self_attn", norm1="norm1", norm2="norm2")
    return block.train(layer.training)


@from_torch.register
def _(layer: nn.TransformerDecoderLayer) -> DecoderLayer:
    block = DecoderLayer(**_block_options(layer)).to(layer.linear1.weight)
    attentions = {"self_attention": "self_attn", "cross_attention": "multihead_attn"}
    _copy(block, layer, **attentions, norm1="norm1", norm2="norm2", norm3="norm3")
    return block.train(layer.training)


@from_torch.register
def _(layer: nn.Transformer, **choices: Any) -> Transformer:
    every = [*layer.encoder.layers, *layer.decoder.layers]
    options = [_block_options(one) for one in every]
    unlike = next((other for other in options if other != options[0]), None)
    if unlike:
        raise ValueError(f"layers of {layer} are {options[0]} and {unlike}; all must be alike")
    if (layer.encoder.norm is None) != (layer.decoder.norm is None):
        raise ValueError("both stacks must end in a norm, or neither")
    settled = options[0] | {
        "encoder_layers": len(layer.encoder.layers),
        "decoder_layers": len(layer.decoder.layers),
        "final_norm": layer.encoder.norm is not None,
    }
    model = Transformer(TransformerConfig(**settled, **choices)).to(every[0].linear1.weight)
    for block, theirs in zip([*model.encoder, *model.decoder], every, strict=True):
        one = from_torch(theirs)
        positions = {name: p for name, p in block.state_dict().items() if ".positions." in name}
        block.load_state_dict(positions | one.state_dict())
        for ours, other in zip(_norms(block), _norms(one), strict=True):
            ours.eps = other.eps
    if layer.encoder.norm is not None:
        _copy(model, layer, encoder_norm="encoder.norm", decoder_norm="decoder.norm")
    return model.train(layer.training)


def _block_options(layer: nn.Module) -> dict[str, Any]:
    """Return the arguments that make a block like PyTorch's layer."""
    phi = layer.activation
    relu = phi is F.relu or isinstance(phi, nn.ReLU)
    exact_gelu = phi is F.gelu or getattr(phi, "approximate", "") == "none"  # GELU has another form
    if not (relu or exact_gelu):
        raise ValueError(f"layer has the activation {phi!r}; it must be relu or gelu, exact")
    if layer.linear1.bias is None:
        raise ValueError("layer was made with bias=False; the norms of this course have biases")
    return {
        "d_model": layer.linear1.in_features,
        "num_heads": layer.self_attn.num_heads,
        "d_ff": layer.linear1.out_features,
        "norm": "pre" if layer.norm_first else "post",
        "dropout": layer.dropout.p,
        "activation": "relu" if relu else "gelu",
    }


def _copy(ours: nn.Module, theirs: nn.Module, **parts: str) -> None:
    """Copy the weights of these parts, our name = their name, and of the FFN where there is one."""
    if isinstance(ours, EncoderLayer | DecoderLayer):
        parts |= {"feed_forward.up_proj": "linear1", "feed_forward.down_proj": "linear2"}
    for our_name, their_name in parts.items():
        part, other = ours.get_submodule(our_name), theirs.get_submodule(their_name)
        if isinstance(other, nn.MultiheadAttention):
            other = from_torch(other)
            part.dropout = other.dropout
        part.load_state_dict(other.state_dict())
        if isinstance(other, nn.LayerNorm):
            part.eps = other.eps


def _norms(block: nn.Module) -> list[nn.LayerNorm]:
    return [module for module in block.modules() if isinstance(module, nn.LayerNorm)]


def _projections(layer: nn.MultiheadAttention) -> dict[str, Tensor]:
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
