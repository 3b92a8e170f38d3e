"""Exercise `one_head` of notebook 05."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.exercise import Case, Exercise, Mistake


def one_head(in_proj_weight, head, num_heads):
    d_model = in_proj_weight.shape[1]
    d_head = d_model // num_heads
    blocks = in_proj_weight.view(3, num_heads, d_head, d_model)  # q, k, v; then the heads
    return blocks[:, head]  # (3, d_head, d_model)


def _by_chunks(in_proj_weight, head, num_heads, *, axis=0, pick=None, order=(0, 1, 2)):
    """Chunk into q, k and v, then each into heads along `axis`; `pick` chooses the head."""
    blocks = in_proj_weight.chunk(3)
    pick = head if pick is None else pick(head, num_heads)
    return torch.stack([blocks[i].chunk(num_heads, dim=axis)[pick] for i in order])


def _interleaved(in_proj_weight, head, num_heads):
    blocks = torch.stack(in_proj_weight.chunk(3))  # (3, d_model, d_model)
    return blocks[:, head::num_heads]


def _head_by_head(in_proj_weight, head, num_heads):
    d_model = in_proj_weight.shape[1]
    return in_proj_weight.reshape(num_heads, 3, d_model // num_heads, d_model)[head]


def _from_row_head(in_proj_weight, head, num_heads):
    d_head = in_proj_weight.shape[1] // num_heads
    return torch.stack([block[head : head + d_head] for block in in_proj_weight.chunk(3)])


def _consecutive_rows(in_proj_weight, head, num_heads):
    d_model = in_proj_weight.shape[1]
    d_head = d_model // num_heads
    return in_proj_weight[head * d_head :][: 3 * d_head].reshape(3, d_head, d_model)


EXERCISE = Exercise(
    name="one_head",
    notebook="05_multi_head_attention",
    title="Read one head out of PyTorch's packed weights",
    reference=_by_chunks,
    solution=one_head,
    cases=(
        Case(in_proj_weight=torch.arange(48.0).view(12, 4), head=1, num_heads=2),
        Case(in_proj_weight=random_tensor(24, 8, seed=6), head=1, num_heads=4),
        Case(in_proj_weight=random_tensor(36, 12, seed=0), head=2, num_heads=3),
    ),
    mistakes=(
        Mistake(
            "columns",
            lambda *a: _by_chunks(*a, axis=1),
            "You take columns. nn.Linear stores (out, in), so the outputs of a head are rows: d_head rows of each "
            "block, all d_model columns.",
        ),
        Mistake(
            "head_by_head",
            _head_by_head,
            "You read the rows as q, k and v of head 0, then q, k and v of head 1. PyTorch stores the queries of all "
            "heads first, then all keys, then all values. (GPT-NeoX packs them your way.)",
        ),
        Mistake(
            "every_hth_row",
            _interleaved,
            "You take every num_heads-th row. A head has d_head consecutive rows of each block.",
        ),
        Mistake(
            "first_head",
            lambda *a: _by_chunks(*a, pick=lambda head, num_heads: 0),
            "This is head 0 whatever `head` is.",
        ),
        Mistake(
            "counted_from_1",
            lambda *a: _by_chunks(*a, pick=lambda head, num_heads: head - 1),
            "This is the head before. Heads are counted from 0.",
        ),
        Mistake(
            "values_before_keys",
            lambda *a: _by_chunks(*a, order=(0, 2, 1)),
            "Keys and values are exchanged: the order is queries, keys, values.",
        ),
        Mistake(
            "keys_before_queries",
            lambda *a: _by_chunks(*a, order=(1, 0, 2)),
            "Queries and keys are exchanged: the order is queries, keys, values.",
        ),
        Mistake(
            "joined",
            lambda *a: _by_chunks(*a).flatten(0, 1),
            "The right rows, but in one matrix (3 · d_head, d_model). Give q, k and v an axis of their own.",
        ),
        Mistake(
            "transposed",
            lambda *a: _by_chunks(*a).mT,
            "Your matrices are transposed: (3, d_model, d_head). Keep PyTorch's layout (out, in).",
        ),
        Mistake(
            "columns_transposed",
            lambda *a: _by_chunks(*a, axis=1).mT,
            "You take columns and transpose them, which gives the right shape. nn.Linear stores (out, in), so the outputs "
            "of a head are rows: d_head rows of each block.",
        ),
        Mistake(
            "from_row_head",
            _from_row_head,
            "You begin at row `head` of each block. A head has d_head rows, so head i begins at row i · d_head.",
        ),
        Mistake(
            "consecutive_rows",
            _consecutive_rows,
            "You take 3 · d_head consecutive rows, those of three heads in a row. The rows of a head are in three places: "
            "in the block of the queries, of the keys and of the values.",
        ),
        Mistake(
            "counted_from_the_end",
            lambda *a: _by_chunks(*a, pick=lambda head, num_heads: num_heads - 1 - head),
            "You count the heads from the last one. Head 0 has the first rows of each block.",
        ),
        Mistake(
            "reversed_order",
            lambda *a: _by_chunks(*a, order=(2, 1, 0)),
            "Queries and values are exchanged: the order is queries, keys, values.",
        ),
    ),
    hints=(
        "Which rows are the queries of head 0? How many rows does one head have in each of the three blocks?",
        "in_proj_weight.chunk(3) gives the blocks of q, k and v, (d_model, d_model) each.",
        "in_proj_weight.view(3, num_heads, d_head, d_model), then take one index of the second axis.",
    ),
)
