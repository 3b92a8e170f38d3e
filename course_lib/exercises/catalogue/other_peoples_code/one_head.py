"""Read one head out of PyTorch's packed weights."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor


def one_head(in_proj_weight, head, num_heads):
    d_model = in_proj_weight.shape[1]
    d_head = d_model // num_heads
    blocks = in_proj_weight.view(3, num_heads, d_head, d_model)  # q, k, v; then the heads
    return blocks[:, head]  # (3, d_head, d_model)


def reference(in_proj_weight, head, num_heads):
    return torch.stack([block.chunk(num_heads)[head] for block in in_proj_weight.chunk(3)])


VIEW, HEAD = "in_proj_weight.view(3, num_heads, d_head, d_model)", "blocks[:, head]"
MATRICES = "in_proj_weight.view(3, d_model, d_model)"
COLUMNS = "in_proj_weight.view(3, d_model, num_heads, d_head)[:, :, head]"
MISTAKES = f"""
{HEAD} -> {COLUMNS}
    You take columns. nn.Linear stores (out, in), so the outputs of a head are rows: d_head rows of each block, all
    d_model columns.
{VIEW} -> in_proj_weight.view(num_heads, 3, d_head, d_model)
+ {HEAD} -> blocks[head]
    You read the rows as q, k and v of head 0, then q, k and v of head 1. PyTorch stores the queries of all heads
    first, then all keys, then all values. (GPT-NeoX packs them your way.)
{HEAD} -> {MATRICES}[:, head::num_heads]
    You take every num_heads-th row. A head has d_head consecutive rows of each block.
{HEAD} -> blocks[:, 0]
    This is head 0 whatever `head` is.
{HEAD} -> blocks[:, head - 1]
    This is the head before. Heads are counted from 0.
{HEAD} -> blocks[[0, 2, 1], head]
    Keys and values are exchanged: the order is queries, keys, values.
{HEAD} -> blocks[[1, 0, 2], head]
    Queries and keys are exchanged: the order is queries, keys, values.
{HEAD} -> blocks[:, head].flatten(0, 1)
    Your rows are in one matrix, (3 · d_head, d_model). Give q, k and v an axis of their own.
{HEAD} -> blocks[:, head].mT
    Your matrices are transposed: (3, d_model, d_head). Keep PyTorch's layout (out, in).
{HEAD} -> {COLUMNS}.mT
    You take columns and transpose them, which gives the right shape. nn.Linear stores (out, in), so the outputs of a
    head are rows: d_head rows of each block.
{HEAD} -> {MATRICES}[:, head : head + d_head]
    You begin at row `head` of each block. A head has d_head rows, so head i begins at row i · d_head.
{HEAD} -> in_proj_weight[head * d_head :][: 3 * d_head].view(3, d_head, d_model)
    You take 3 · d_head consecutive rows, those of three heads in a row. The rows of a head are in three places: in
    the block of the queries, of the keys and of the values.
{HEAD} -> blocks[:, num_heads - 1 - head]
    You count the heads from the last one. Head 0 has the first rows of each block.
{HEAD} -> blocks[[2, 1, 0], head]
    Queries and values are exchanged: the order is queries, keys, values.
{HEAD} -> blocks[[1, 2, 0], head]
{HEAD} -> blocks[[2, 0, 1], head]
    Queries, keys and values are in another order: the order is queries, keys, values.
{HEAD} -> blocks[head]
    The first axis of your view counts queries, keys and values, the second the heads. You index the first with
    `head`.
{HEAD} -> blocks[0, head]
{HEAD} -> blocks[:1, head]
    These are the rows of the queries only. Return those of the keys and the values too.
{HEAD} -> blocks[:, head : head + 1]
    Your result has an axis of size 1 for the head. Index the heads with a number instead of a slice.
{VIEW} -> in_proj_weight.view(3, d_head, num_heads, d_model)
    You take num_heads rows from row head · num_heads on: num_heads and d_head have changed places. A head has d_head
    = d_model // num_heads rows.
{HEAD} -> {MATRICES}[:, head * d_head :]
    Your rows begin at the right place and run to the end of the block. A head has d_head of them.
{HEAD} -> {MATRICES}[:, : (head + 1) * d_head]
    These are the rows of all heads up to this one. They begin at row head · d_head.
{HEAD} -> blocks[:, head + 1]
{HEAD} -> {MATRICES}[:, (head + 1) * d_head : (head + 2) * d_head]
    This is the head after. Heads are counted from 0.
"""

CASES = (
    dict(in_proj_weight=torch.arange(48.0).view(12, 4), head=1, num_heads=2),
    dict(in_proj_weight=random_tensor(24, 8, seed=6), head=1, num_heads=4),
    dict(in_proj_weight=random_tensor(36, 12, seed=0), head=2, num_heads=3),
)
HINTS = """
Which rows are the queries of head 0? How many rows does one head have in each of the three blocks?
in_proj_weight.chunk(3) gives the blocks of q, k and v, (d_model, d_model) each.
in_proj_weight.view(3, num_heads, d_head, d_model), then take one index of the second axis.
"""
