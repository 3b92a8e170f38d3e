"""Queries, keys and values of one length, patterns by loops, and dense attention with a mask as the oracle."""

import torch
import torch.nn.functional as F

from tests.helpers.tensors import ROUNDING, gradients, in_float64

BATCH, HEADS, SIZE, VALUE_SIZE = 2, 3, 5, 6


def triple(length, dtype=torch.float64, keys=None):
    """Queries, keys and values of every head."""
    keys = length if keys is None else keys
    sizes = ((length, SIZE), (keys, SIZE), (keys, VALUE_SIZE))
    return [torch.randn(BATCH, HEADS, *size, dtype=dtype, requires_grad=True) for size in sizes]


def padding(length):
    """The second sequence has no key at all, the first lacks some."""
    mask = torch.rand(BATCH, 1, 1, length) < 0.7
    mask[1] = False
    return mask


def pairs(length, allowed):
    """The mask of a rule about query and key, pair by pair."""
    return torch.tensor([[allowed(i, j) for j in range(length)] for i in range(length)])


def compare(ledger, ours, oracle, leaves):
    """Compare the output and the gradient of every leaf; the oracle is computed in float64.

    Args:
        ledger: the fixture.
        ours, oracle: from the leaves to an output.
        leaves: tensors of one dtype that require gradients.
    """
    dtype, copies = leaves[0].dtype, in_float64(*leaves)
    within = {"within": ROUNDING[dtype]}
    mine, theirs = ours(*leaves), oracle(*copies)
    assert mine.dtype == dtype and mine.shape == theirs.shape
    ledger.compare(mine, theirs, **within)
    mixes = [torch.randn(theirs.shape, dtype=torch.float64)]
    for slope, wanted in zip(
        gradients([mine], leaves, mixes), gradients([theirs], copies, mixes), strict=True
    ):
        ledger.compare(slope, wanted, backward=True, **within)


def dense(query, key, value, mask=None, scale=None):
    """PyTorch's attention, with a mask that hides most of a matrix that it computes."""
    return F.scaled_dot_product_attention(query, key, value, mask, scale=scale)


def quadratic(weights, value):
    """The unnormalised weights of all pairs, divided by their sums; zeros for a row without a key."""
    total = weights.sum(-1, keepdim=True)
    return weights @ value / total.masked_fill(total == 0, 1.0)
