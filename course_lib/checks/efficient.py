"""Checks of `course_lib.efficient`."""

from collections.abc import Sequence

import torch
from torch import Tensor

from course_lib.checks import attention as dense
from course_lib.validation import (
    require_alike,
    require_axes,
    require_bool,
    require_divides,
    require_floating,
    require_floating_dtype,
    require_mask,
    require_one_of,
    require_same_batch,
    require_same_dtype_and_device_as,
    require_sequence,
    require_size,
    require_tensor,
    require_value_per_key,
    require_vectors,
    require_whole,
    short_name,
)

#: The patterns that `attention_pattern` knows.
PATTERNS = (
    "dense",
    "causal",
    "sliding_window",
    "causal_sliding_window",
    "block",
    "causal_block",
    "longformer",
)

_ANY_MAP = torch.exp  # stands where the default of the function is not known here


# --- exact -----------------------------------------------------------------------------------


def flash_attention(query, key, value, mask=None, *, causal=False, block_size=64, scale=None):
    """As for scaled dot-product attention; tiles of at least one query and key."""
    dense.scaled_dot_product_attention(query, key, value, mask, scale=scale)
    require_same_batch(key=key, value=value)
    require_bool(causal=causal)
    require_whole(block_size=block_size)
    queries, keys = query.shape[-2], key.shape[-2]
    if causal and keys < queries:
        raise ValueError(
            f"query has {queries} queries but key has {keys} keys; with causal=True the queries are the "
            f"last of the keys, so there must be at least as many keys"
        )


# --- sparse ----------------------------------------------------------------------------------


def sliding_window_attention(
    query, key, value, window, *, causal=False, padding_mask=None, scale=None
):
    """One sequence of queries, keys and values, and a window above 0."""
    require_whole(window=window)
    require_bool(causal=causal)
    _require_self_attention(query, key, value, padding_mask, scale)


def block_attention(query, key, value, block_size, *, causal=False, padding_mask=None, scale=None):
    """One sequence of queries, keys and values, and blocks of at least one."""
    require_whole(block_size=block_size)
    require_bool(causal=causal)
    _require_self_attention(query, key, value, padding_mask, scale)


def longformer_attention(
    query, key, value, window, global_positions, *, global_query=None, global_key=None,
    global_value=None, padding_mask=None, scale=None,
):  # fmt: skip
    """As for a sliding window; positions inside the sequence; further projections like the first."""
    require_whole(window=window)
    _require_self_attention(query, key, value, padding_mask, scale)
    require_positions(global_positions, query.shape[-2])
    batch = torch.broadcast_shapes(*(x.shape[:-2] for x in (query, key, value)))
    for name, local, other in (
        ("query", query, global_query),
        ("key", key, global_key),
        ("value", value, global_value),
    ):
        if other is None:
            continue
        name = f"global_{name}"
        require_floating(**{name: other})
        require_alike(**{name.removeprefix("global_"): local, name: other})
        _require_expands(other, (*batch, *local.shape[-2:]), name)


def require_positions(global_positions, length):
    """Refuse anything but whole numbers from 0 to `length` - 1, each once."""
    if isinstance(global_positions, Tensor):
        given = global_positions
        if given.dim() != 1 or given.dtype not in (torch.int64, torch.int32):
            raise ValueError(
                f"global_positions has shape {tuple(given.shape)} and dtype {short_name(given.dtype)}; "
                f"it must be whole numbers (int64 or int32) of shape (globals,)"
            )
        require_tensor(global_positions=given)
        if given.is_meta:  # shapes without values
            return
        global_positions = given.tolist()
    if not isinstance(global_positions, Sequence) or isinstance(global_positions, str | bytes):
        raise ValueError(
            f"global_positions is a {type(global_positions).__name__}; it must be a list of positions, "
            f"e.g. [0] for the first token"
        )
    for number, position in enumerate(global_positions):
        name = f"global_positions[{number}]"
        require_whole(-(2**63), **{name: position})
        if not 0 <= position < length:
            raise ValueError(
                f"{name}={position} is outside the sequence; its positions are 0 to {length - 1}"
            )
    if len(set(global_positions)) < len(global_positions):
        twice = next(p for p in global_positions if list(global_positions).count(p) > 1)
        raise ValueError(f"global_positions holds {twice} more than once")


def _require_self_attention(query, key, value, padding_mask, scale):
    dense.scaled_dot_product_attention(query, key, value, scale=scale)
    _require_same_length(query, key)
    _require_padding_mask(query, key, value, padding_mask)


def _require_same_length(query, key):
    queries, keys = query.shape[-2], key.shape[-2]
    if queries != keys or not queries:
        raise ValueError(
            f"query has shape {tuple(query.shape)} and key {tuple(key.shape)}, that is {queries} queries "
            f"and {keys} keys; positions are compared, so there must be as many, at least one"
        )


def _require_padding_mask(query, key, value, padding_mask):
    require_same_batch(key=key, value=value)
    batch = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    if padding_mask is not None:
        axes = {0: (), 1: ("batch",), 2: ("batch", "heads")}.get(len(batch))
        axes = (*axes, "1", "key") if axes is not None else ()
        shape = (*batch, 1, key.shape[-2])
        require_mask(padding_mask, shape, axes, key.device, name="padding_mask")
        if padding_mask.dim() == 0:
            raise ValueError("padding_mask has shape (); it must have one entry per key")


def _require_expands(tensor, shape, name):
    require_axes(2, f"like {name.removeprefix('global_')}", **{name: tensor})
    try:
        fits = torch.broadcast_shapes(tensor.shape, shape) == shape
    except RuntimeError:
        fits = False
    if not fits or tensor.shape[-2:] != shape[-2:]:
        raise ValueError(
            f"{name} has shape {tuple(tensor.shape)}; it must be {tuple(shape)}, like "
            f"{name.removeprefix('global_')}"
        )


# --- approximate -----------------------------------------------------------------------------


def linear_attention(query, key, value, *, causal=False, feature_map=_ANY_MAP, padding_mask=None):
    """Tensors that fit each other, one sequence if causal, and a map that can be called."""
    dense.scaled_dot_product_attention(query, key, value)
    require_bool(causal=causal)
    if causal:
        _require_same_length(query, key)
    _require_padding_mask(query, key, value, padding_mask)
    _require_feature_map(feature_map)


def linear_attention_state(key, value, *, feature_map=_ANY_MAP, padding_mask=None):
    """A value per key, and a map that can be called."""
    require_vectors(key=key, value=value)
    require_alike(key=key, value=value)
    require_value_per_key(key, value)
    require_same_batch(key=key, value=value)
    _require_padding_mask(key, key, value, padding_mask)
    _require_feature_map(feature_map)


def linear_attention_step(query, key, value, state=None, *, feature_map=_ANY_MAP):
    """One token, and a state that has its shape."""
    linear_attention(query, key, value, feature_map=feature_map)
    for name, tensor in (("query", query), ("key", key)):
        if tensor.shape[-2] != 1:
            raise ValueError(
                f"{name} has shape {tuple(tensor.shape)}; a step takes one token, (…, 1, d)"
            )
    if state is None:
        return
    if not (isinstance(state, tuple) and len(state) == 2):
        raise ValueError(
            f"state is a {type(state).__name__}; it must be a LinearAttentionState, or None for the "
            f"first token"
        )
    require_floating(key_value=state[0], key_sum=state[1])


def same_state(state, new):
    """Refuse a state that is not like that of the new token."""
    if torch.compiler.is_compiling():
        return
    for name, kept, made in zip(("key_value", "key_sum"), state, new, strict=True):
        if (kept.shape, kept.dtype, kept.device) != (made.shape, made.dtype, made.device):
            raise ValueError(
                f"state.{name} has shape {tuple(kept.shape)} and dtype {short_name(kept.dtype)} on "
                f"{kept.device}; for such a token it has {tuple(made.shape)} and "
                f"{short_name(made.dtype)} on {made.device}"
            )


def features(feature_map, x):
    """Return the features of x from a map that may be the caller's own: one vector per position."""
    made = feature_map(x)
    if torch.compiler.is_compiling():
        return made
    if not isinstance(made, Tensor):
        raise ValueError(f"feature_map returned a {type(made).__name__}; it must return a tensor")
    if made.dim() != x.dim() or made.shape[:-1] != x.shape[:-1] or made.dtype != x.dtype:
        raise ValueError(
            f"feature_map returned shape {tuple(made.shape)} and dtype {short_name(made.dtype)} for x of "
            f"shape {tuple(x.shape)} and dtype {short_name(x.dtype)}; only the last axis may change"
        )
    return made


def _require_feature_map(feature_map):
    if not callable(feature_map):
        raise ValueError(
            f"feature_map={feature_map!r} cannot be called; it must be a function of a tensor, e.g. "
            f"elu_plus_one"
        )


def orthogonal_projection(num_features, d, generator=None, *, device=None, dtype=torch.float32):
    """Sizes above 0, a floating-point dtype, a generator of the CPU."""
    require_whole(num_features=num_features, d=d)
    require_floating_dtype(dtype)
    for name, size in (("num_features", num_features), ("d", d)):
        if size > 65536:
            raise ValueError(f"{name}={size} is above 65536")
    if generator is not None and not isinstance(generator, torch.Generator):
        raise ValueError(
            f"generator is a {type(generator).__name__}; it must be a torch.Generator, e.g. "
            f"torch.Generator().manual_seed(0)"
        )
    if generator is not None and generator.device.type != "cpu":
        raise ValueError(f"generator is on {generator.device}; it must be on the CPU")


def performer_features(x, projection):
    """Vectors of the dimension that the rows of the projection have."""
    require_vectors(x=x)
    _require_projection(projection, x, "x")


def performer_attention(
    query, key, value, projection, *, causal=False, padding_mask=None, scale=None
):
    """As for linear attention, and a projection of the dimension of the queries."""
    dense.scaled_dot_product_attention(query, key, value, scale=scale)
    require_bool(causal=causal)
    if causal:
        _require_same_length(query, key)
    if not key.shape[-2]:
        raise ValueError(f"key has shape {tuple(key.shape)}; there must be at least one key")
    _require_padding_mask(query, key, value, padding_mask)
    _require_projection(projection, query, "query")


def _require_projection(projection, x, name):
    require_floating(projection=projection)
    require_axes(2, "(features, d), e.g. orthogonal_projection(64, d)", 2, projection=projection)
    require_alike(**{name: x, "projection": projection})
    require_size(
        x.shape[-1], f"{name} has vectors of dimension {x.shape[-1]}", projection=projection
    )
    if not projection.numel():
        raise ValueError(f"projection has shape {tuple(projection.shape)}; it is empty")


def linformer_init(self, d_model, num_heads, length, rank, *, shared=False, bias=True):
    """Heads that divide the dimension, and a rank up to the length."""
    require_divides(num_heads=num_heads, d_model=d_model)
    require_whole(length=length, rank=rank)
    require_bool(shared=shared, bias=bias)
    if rank > length:
        raise ValueError(f"rank={rank} is above length={length}; a projection cannot add keys")


def linformer_forward(self, x, padding_mask=None, *, need_weights=False):
    """Sequences of the dimension of the layer, no longer than it was made for."""
    require_sequence(self.q_proj.in_features, x=x)
    require_same_dtype_and_device_as(self.q_proj, "layer", x=x)
    require_bool(need_weights=need_weights)
    length = x.shape[1]
    if length > self.length:
        raise ValueError(
            f"x has shape {tuple(x.shape)}, that is {length} positions; the layer was made for "
            f"length={self.length}"
        )
    if padding_mask is not None:
        axes = ("batch", "1", "key")
        require_mask(padding_mask, (len(x), 1, length), axes, x.device, name="padding_mask")


# --- patterns --------------------------------------------------------------------------------


def attention_pattern(
    kind, length, window=None, global_positions=(), *, block_size=None, device=None
):
    """A known kind, with what it needs."""
    require_one_of(PATTERNS, kind=kind)
    require_whole(length=length)
    if length > 65536:
        raise ValueError(f"length={length} is above 65536; the mask has length² entries")
    for name, number, needed in (
        ("window", window, "window" in kind or kind == "longformer"),
        ("block_size", block_size, "block" in kind),
    ):
        if needed and number is None:
            raise ValueError(f"{name} is missing; the pattern {kind!r} has one")
        if number is not None:
            require_whole(**{name: number})
    require_positions(global_positions, length)


def pattern_cost(mask, d_head, *, bytes_per_score=4):
    """A mask of two axes, and sizes above 0."""
    require_whole(d_head=d_head, bytes_per_score=bytes_per_score)
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool or mask.dim() != 2:
        given = (
            f"has shape {tuple(mask.shape)} and dtype {short_name(mask.dtype)}"
            if isinstance(mask, Tensor)
            else f"is a {type(mask).__name__}"
        )
        raise ValueError(f"mask {given}; it must be a boolean tensor of shape (query, key)")
    require_tensor(mask=mask)
    if not mask.numel():
        raise ValueError(f"mask is empty (shape {tuple(mask.shape)})")
