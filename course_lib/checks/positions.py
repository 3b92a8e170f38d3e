"""Checks of `course_lib.positions`."""

import torch
from torch import Tensor

from course_lib.validation import (
    require_axes,
    require_bool,
    require_divides,
    require_even,
    require_floating,
    require_floating_dtype,
    require_one_of,
    require_positive,
    require_sequence,
    require_tensor,
    require_whole,
    short_name,
)

#: How RoPE may pair the components of a vector.
LAYOUTS = ("interleaved", "half")


def relative_positions(query_length, key_length, device=None):
    """At least as many keys as queries."""
    require_whole(query_length=query_length, key_length=key_length)
    if key_length < query_length:
        raise ValueError(
            f"key_length={key_length} is below query_length={query_length}; the queries are the last "
            f"of the keys, so there must be at least as many keys"
        )


def make_positions(
    encodings, name, d_model, num_heads, *, max_length, bidirectional=True, rope_theta=10000.0,
    rope_layout="interleaved",
):  # fmt: skip
    """A name among `encodings`, heads that divide the model's dimension, and what RoPE needs."""
    require_one_of(encodings, positions=name)
    require_bool(bidirectional=bidirectional)
    require_divides(num_heads=num_heads, d_model=d_model)
    require_positive(rope_theta=rope_theta)
    require_one_of(LAYOUTS, rope_layout=rope_layout)


def sinusoidal_table(length, d_model, base=10000.0, *, dtype=torch.float32):
    """Pairs of components."""
    require_whole(length=length)
    sinusoidal_init(None, d_model, base)
    require_floating_dtype(dtype)


def sinusoidal_init(self, d_model, base=10000.0):
    """Pairs of components."""
    require_even(d_model=d_model)
    require_positive(base=base)


def sinusoidal_forward(self, x, offset=0):
    """Embeddings of the right dimension."""
    require_sequence(self.d_model, x=x)
    require_whole(0, offset=offset)


def learned_init(self, max_length, d_model):
    """Sizes above 0."""
    require_whole(max_length=max_length, d_model=d_model)


def learned_forward(self, x, offset=0):
    """Embeddings of the right dimension, and no position after the table."""
    max_length, d_model = self.table.shape
    require_sequence(d_model, x=x)
    require_whole(0, offset=offset)
    end = offset + x.shape[1]
    if end > max_length:
        raise ValueError(
            f"x needs positions {offset} to {end - 1}, but the table was made with "
            f"max_length={max_length}: it has learned nothing beyond {max_length - 1}"
        )


def rotary(x, positions, base=10000.0, *, layout="interleaved"):
    """Pairs of components, and a position per vector."""
    require_floating(x=x)
    require_axes(2, "(…, length, d_head)", x=x)
    rotary_init(None, x.shape[-1], base, layout=layout)
    given = tuple(positions.shape) if isinstance(positions, Tensor) else type(positions).__name__
    if given != (x.shape[-2],):
        raise ValueError(
            f"positions is {given}; it must be a tensor of shape ({x.shape[-2]},), one position per vector"
        )
    require_tensor(positions=positions)
    if positions.is_complex():
        raise ValueError(
            f"positions has dtype {short_name(positions.dtype)}; positions are real numbers"
        )


def rotary_init(self, d_head, base=10000.0, *, layout="interleaved"):
    """Pairs of components."""
    require_even(d_head=d_head)
    require_positive(base=base)
    require_one_of(LAYOUTS, layout=layout)


def rotary_rotate(self, query, key, offset=0):
    """A position."""
    require_whole(0, offset=offset)


def shaw_init(self, d_head, max_distance=16):
    """Sizes above 0."""
    require_whole(d_head=d_head, max_distance=max_distance)


def t5_bucket(relative, *, bidirectional=True, num_buckets=32, max_distance=128):
    """Whole numbers, and buckets for all of them."""
    require_tensor(relative=relative)
    _require_buckets(bidirectional, num_buckets, max_distance)
    if relative.dtype not in (torch.int64, torch.int32):
        raise ValueError(
            f"relative is {short_name(relative.dtype)}; it must be a tensor of whole numbers (int64 or int32)"
        )


def t5_init(self, num_heads, *, bidirectional=True, num_buckets=32, max_distance=128):
    """Heads, and buckets for all offsets."""
    require_whole(num_heads=num_heads)
    _require_buckets(bidirectional, num_buckets, max_distance)


def t5_forward(self, query_length, key_length):
    """At least as many keys as queries."""
    relative_positions(query_length, key_length)


def _require_buckets(bidirectional, num_buckets, max_distance):
    require_bool(bidirectional=bidirectional)
    require_whole(2, num_buckets=num_buckets)
    require_whole(max_distance=max_distance)
    if bidirectional:
        require_even(num_buckets=num_buckets)
        if num_buckets < 4:
            raise ValueError(f"num_buckets={num_buckets} is below 4, two for each direction")
    exact = num_buckets // (4 if bidirectional else 2)
    if max_distance <= exact:
        raise ValueError(
            f"max_distance={max_distance} must be above {exact}: so many distances have a bucket alone"
        )


def alibi_slopes(num_heads):
    """At least one head, and not more than any model has."""
    require_whole(num_heads=num_heads)
    if num_heads > 2**16:
        raise ValueError(f"num_heads={num_heads} is above {2**16}")


def alibi_bias(num_heads, query_length, key_length=None):
    """At least one head, and at least as many keys as queries."""
    alibi_slopes(num_heads)
    relative_positions(query_length, query_length if key_length is None else key_length)


def num_heads_init(self, num_heads):
    """At least one head."""
    require_whole(num_heads=num_heads)
