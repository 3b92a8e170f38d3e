"""Checks of `course_lib.convert`."""

import torch.nn.functional as F
from torch import nn

from course_lib.multihead import MultiHeadAttention, PerHeadMultiHead
from course_lib.positions import AttentionPositions
from course_lib.transformer import TransformerConfig

#: The fields of a configuration that `nn.Transformer` does not settle.
CHOICES = ("positions", "max_length", "tie_embeddings", "pad_id")
_VOCABULARIES = ("target_vocabulary", "source_vocabulary")


def from_per_head(layer):
    """A `PerHeadMultiHead`."""
    _require_kind(layer, PerHeadMultiHead, "a PerHeadMultiHead")


def to_torch(layer):
    """A `MultiHeadAttention` without positions."""
    _require_kind(layer, MultiHeadAttention, "a MultiHeadAttention")
    if type(layer.positions) is not AttentionPositions:
        raise ValueError(
            f"layer has {type(layer.positions).__name__}, for which nn.MultiheadAttention has no counterpart"
        )


def from_torch(layer, **choices):
    """A layer of PyTorch with a counterpart, and the choices that it leaves open."""
    kinds = {
        nn.MultiheadAttention: _attention,
        nn.TransformerEncoderLayer: _block,
        nn.TransformerDecoderLayer: _block,
        nn.Transformer: _transformer,
    }
    for kind, check in kinds.items():
        if isinstance(layer, kind):
            if choices and kind is not nn.Transformer:
                raise ValueError(
                    f"{next(iter(choices))} is no choice here: an nn.{kind.__name__} settles everything"
                )
            return check(layer, **choices)
    *names, last = (f"nn.{kind.__name__}" for kind in kinds)
    raise ValueError(
        f"layer is a {type(layer).__name__}; it must be an {', '.join(names)} or {last}"
    )


def _require_kind(layer, kind, name):
    if not isinstance(layer, kind):
        raise ValueError(f"layer is a {type(layer).__name__}; it must be {name}")


def _attention(layer):
    if layer.bias_k is not None or layer.add_zero_attn:
        raise ValueError(
            "layer was made with add_bias_kv or add_zero_attn, which append a key that no token has; "
            "MultiHeadAttention has none"
        )


def _block(layer):
    if layer.linear1.bias is None:
        raise ValueError("layer was made with bias=False; blocks of this course have biases")
    activation = layer.activation
    exact = getattr(activation, "approximate", "none") == "none"  # GELU has another form
    if activation not in (F.relu, F.gelu) and not (
        isinstance(activation, nn.ReLU | nn.GELU) and exact
    ):
        raise ValueError(f"layer has the activation {activation!r}; it must be relu or gelu, exact")


def _transformer(layer, **choices):
    stacks = {"encoder": nn.TransformerEncoder, "decoder": nn.TransformerDecoder}
    layers = {"encoder": nn.TransformerEncoderLayer, "decoder": nn.TransformerDecoderLayer}
    for name, kind in stacks.items():
        stack = getattr(layer, name)
        if not isinstance(stack, kind):
            raise ValueError(
                f"layer.{name} is a {type(stack).__name__}; it must be an nn.{kind.__name__}"
            )
    for name in choices:
        if name not in (*_VOCABULARIES, *CHOICES):
            settled = name in TransformerConfig.__dataclass_fields__
            raise ValueError(
                f"{name} is no choice{' here: layer settles it' if settled else ''}; choices are "
                f"{', '.join(CHOICES)}"
            )
    for name, kind in layers.items():
        for number, one in enumerate(getattr(layer, name).layers):
            if not isinstance(one, kind):
                raise ValueError(
                    f"layer.{name}.layers[{number}] is a {type(one).__name__}; it must be an nn.{kind.__name__}"
                )
            _block(one)
    _require_alike(layer)
    _require_norms(layer)


def block_settings(layer):
    """Return the arguments that make a block like PyTorch's layer."""
    relu = layer.activation is F.relu or isinstance(layer.activation, nn.ReLU)
    return {
        "d_model": layer.linear1.in_features,
        "num_heads": layer.self_attn.num_heads,
        "d_ff": layer.linear1.out_features,
        "norm": "pre" if layer.norm_first else "post",
        "dropout": layer.dropout.p,
        "activation": "relu" if relu else "gelu",
    }


def _require_alike(model):
    """Refuse layers of unequal sizes or choices."""
    every = {
        f"layer.{stack}.layers[{number}]": block_settings(one)
        for stack in ("encoder", "decoder")
        for number, one in enumerate(getattr(model, stack).layers)
    }
    (first_name, first), *others = every.items()
    for name, settings in others:
        for field, value in settings.items():
            if value != first[field]:
                raise ValueError(
                    f"{first_name} has {field}={first[field]!r}, but {name} has {field}={value!r}; all "
                    f"layers must be alike"
                )


def _require_norms(model):
    """Refuse a final norm of another kind, and one after one stack alone."""
    norms = {"layer.encoder.norm": model.encoder.norm, "layer.decoder.norm": model.decoder.norm}
    for name, norm in norms.items():
        if norm is not None and (not isinstance(norm, nn.LayerNorm) or norm.bias is None):
            raise ValueError(
                f"{name} is {norm}; it must be an nn.LayerNorm with weights and biases, or None"
            )
    if len({norm is None for norm in norms.values()}) > 1:
        without = next(name for name, norm in norms.items() if norm is None)
        raise ValueError(f"{without} is None; both stacks must end in a norm, or neither")
