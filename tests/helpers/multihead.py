"""Masks, inputs and comparisons for the tests of multi-head attention."""

import torch
from torch import nn

from course_lib.transformer.attention import AttentionOutput, SingleHeadAttention
from tests.helpers.attention import causal
from tests.helpers.tensors import all_true, random_mask, without_second_query

# No two axes are equally long, so that none can be taken for another.
BATCH, HEADS, QUERIES, KEYS, D_HEAD, KEY_SIZE, VALUE_SIZE = 2, 3, 4, 5, 6, 7, 8
D_MODEL = HEADS * D_HEAD
SHARING = 12  # heads where several share their keys: in groups of 12, 6, 4, 3, 2 and 1


def padding():
    return torch.tensor([[[k < length for k in range(KEYS)]] for length in (5, 3)])


MASKS = {
    "none": lambda: None,
    "padding": padding,
    "causal": causal,
    "both": lambda: padding() & causal(),
    "(query, key)": lambda: random_mask(QUERIES, KEYS),
    "(batch, query, key)": lambda: random_mask(BATCH, QUERIES, KEYS),
    "per head": lambda: random_mask(BATCH, HEADS, QUERIES, KEYS),
    "per head of any sequence": lambda: random_mask(1, HEADS, QUERIES, KEYS),
}
FULLY_MASKED = {
    "a fully masked row": lambda: without_second_query(random_mask(BATCH, QUERIES, KEYS)),
    "all rows masked": lambda: ~all_true(QUERIES, KEYS),
}


def randomized(layer, dtype=torch.float64):
    """Weights and biases large enough that no attention is even."""
    for parameter in layer.parameters():
        parameter.data = 0.25 * torch.randn(parameter.shape).to(dtype)
    return layer


def sequences(kdim=D_MODEL, vdim=D_MODEL, dtype=torch.float64, d_model=D_MODEL):
    sizes = ((QUERIES, d_model), (KEYS, kdim), (KEYS, vdim))
    return [torch.randn(BATCH, *size, dtype=dtype, requires_grad=True) for size in sizes]


def mixes_for(attended):
    return [torch.randn(t.shape, dtype=torch.float64) for t in attended if t is not None]


def compare_all(ledger, ours, theirs, within, backward=False):
    for mine, oracle in zip(ours, theirs, strict=True):
        if oracle is not None:
            ledger.compare(mine, oracle, within=within, backward=backward)


def cut(tensor, heads):
    """Vectors cut by slices, and the pieces stacked."""
    return torch.stack(tensor.chunk(heads, dim=-1), dim=1)


def added_to_scores(mask):
    return torch.zeros(mask.shape, dtype=torch.float64).masked_fill(~mask, -torch.inf)


TOKENS = 7


def tokens(length=TOKENS, dtype=torch.float64, count=HEADS):
    return torch.randn(BATCH, length, count * D_HEAD, dtype=dtype, requires_grad=True)


def lower(length=TOKENS, keys=None):
    keys = length if keys is None else keys
    return all_true(length, keys).tril(keys - length)


class HeadLoop(nn.Module):
    """One head after the other, each a layer of its own, and a projection of their concatenated outputs."""

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        d_head = d_model // num_heads
        self.heads = nn.ModuleList(SingleHeadAttention(d_model, d_head) for _ in range(num_heads))
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key=None, value=None, mask=None) -> AttentionOutput:
        key = query if key is None else key
        value = key if value is None else value
        heads = [head(query, key, value, mask) for head in self.heads]
        output = self.out_proj(torch.cat([head.output for head in heads], dim=-1))
        return AttentionOutput(output, torch.stack([head.weights for head in heads], dim=1))
