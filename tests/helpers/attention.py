"""Queries, keys, values and masks for the tests of attention, and two oracles."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from course_lib.transformer.attention import AttentionOutput
from tests.helpers.tensors import ROUNDING, all_true, gradients, random_mask, without_second_query

# No two axes are equally long, so that none can be taken for another.
BATCH, HEADS, QUERIES, KEYS, SIZE, VALUE_SIZE = 2, 3, 4, 5, 6, 7
D_MODEL, D_HEAD = 8, 9


def causal():
    return torch.tensor([[k <= q + KEYS - QUERIES for k in range(KEYS)] for q in range(QUERIES)])


def padding():
    return torch.tensor([[[[k < length for k in range(KEYS)]]] for length in (5, 3)])


MASKS = {
    "none": lambda: None,
    "padding": padding,
    "causal": causal,
    "both": lambda: padding() & causal(),
    "(query, key)": lambda: random_mask(QUERIES, KEYS),
    "(query, 1)": lambda: without_second_query(all_true(QUERIES, 1)),
    "per sequence": lambda: random_mask(BATCH, 1, QUERIES, KEYS),
    "per head": lambda: random_mask(BATCH, HEADS, QUERIES, KEYS),
    "a fully masked row": lambda: without_second_query(random_mask(HEADS, QUERIES, KEYS)),
    "all rows masked": lambda: ~all_true(QUERIES, KEYS),
}


def triple(dtype=torch.float64):
    """Queries, keys and values of every head."""
    sizes = ((QUERIES, SIZE), (KEYS, SIZE), (KEYS, VALUE_SIZE))
    return [torch.randn(BATCH, HEADS, *size, dtype=dtype, requires_grad=True) for size in sizes]


def check(ledger, ours, leaves, theirs, oracles, dtype):
    """Compare output, weights and every gradient with an oracle in float64."""
    theirs = AttentionOutput(theirs.output, None if ours.weights is None else theirs.weights)
    given = [tensor for tensor in theirs if tensor is not None]
    mixes = [torch.randn(tensor.shape, dtype=torch.float64) for tensor in given]
    for mine, oracle in zip(ours, theirs, strict=True):
        if oracle is not None:
            assert mine.dtype == dtype
            ledger.compare(mine, oracle, within=ROUNDING[dtype])
    pairs = zip(gradients(ours, leaves, mixes), gradients(theirs, oracles, mixes), strict=True)
    for mine, oracle in pairs:
        ledger.compare(mine, oracle, within=ROUNDING[dtype], backward=True)


def by_double_loop(query, key, value, mask=None, scale=None, bias=None):
    """Equation 1, one query and one key at a time."""
    batch = torch.broadcast_shapes(*(tensor.shape[:-2] for tensor in (query, key, value)))
    query, key, value = (t.expand(*batch, *t.shape[-2:]) for t in (query, key, value))
    queries, keys = query.shape[-2], key.shape[-2]
    mask = (all_true() if mask is None else mask).expand(*batch, queries, keys)
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    bias = query.new_zeros(()) if bias is None else bias
    bias = bias.expand(*batch, queries, keys)
    rows, outputs = [], []
    for *where, i in np.ndindex(*batch, queries):
        powers = [
            torch.exp(scale * sum(query[*where, i] * key[*where, j]) + bias[*where, i, j])
            if mask[*where, i, j]
            else query.new_zeros(())
            for j in range(keys)
        ]
        total = sum(powers) if mask[*where, i].any() else 1
        row = [power / total for power in powers]
        rows.append(torch.stack(row))
        outputs.append(sum(row[j] * value[*where, j] for j in range(keys)))
    return AttentionOutput(
        torch.stack(outputs).reshape(*batch, queries, -1),
        torch.stack(rows).reshape(*batch, queries, keys),
    )


def by_pytorch(query, key, value, mask=None, scale=None):
    """PyTorch returns no weights: they are what it makes of the identity in place of the values."""
    identity = torch.eye(key.shape[-2], dtype=key.dtype).expand(*key.shape[:-1], -1)
    output, weights = (
        F.scaled_dot_product_attention(query, key, values, mask, scale=scale)
        for values in (value, identity)
    )
    return AttentionOutput(output, weights)


class Operators(TorchDispatchMode):
    """The names of the PyTorch operators that run within it."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.add(function.name())
        return function(*args, **(kwargs or {}))


FUSED = "aten::_scaled_dot_product_flash_attention_for_cpu"
