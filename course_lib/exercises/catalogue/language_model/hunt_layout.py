"""Bug hunt: weights for another library."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor


def fuse_qkv(w_q, w_k, w_v, d_head):
    def to_half(weight):  # (heads * d_head, d)
        rows = weight.unflatten(0, (-1, d_head // 2, 2))  # (heads, pair, 2, d)
        return rows.transpose(1, 2).flatten(0, 2)  # of each head the first of all pairs first

    return torch.cat([to_half(w_q), to_half(w_k), w_v])  # values are not rotated


def reference(w_q, w_k, w_v, d_head):
    def to_half(weight):
        heads = weight.split(d_head)
        return torch.cat([half for head in heads for half in (head[0::2], head[1::2])])

    return torch.cat([to_half(w_q), to_half(w_k), w_v])


TO_HALF = "to_half(w_q), to_half(w_k), w_v"
MIXED = "so that heads are mixed. Each head keeps its own d_head rows"
ORDERS = {
    "(-1, d_head // 2, 2) -> (-1, 2, d_head // 2)": "the rows of a head go from the half layout to the interleaved "
    "one, not the other way round",
    "(-1, d_head // 2, 2) -> (1, -1, 2)": f"the even rows of all heads come first, {MIXED}",
    "(-1, d_head // 2, 2) -> (1, 2, -1)": f"rows are taken from two halves of the whole matrix, {MIXED}",
    "transpose(1, 2) -> transpose(0, 1)": f"the axes of head and pair are exchanged, {MIXED}",
    "transpose(1, 2) -> transpose(1, 2).flip(1)": "the second component of each pair comes first, which rotates in the "
    "other direction",
    "transpose(1, 2) -> transpose(1, 2).flip(2)": "the order of the pairs is reversed, so each gets the frequency of "
    "another",
    "transpose(1, 2) -> flip(2)": "the rows of each pair are exchanged; they are still next to each other",
    "(-1, d_head // 2, 2) -> (-1, 2, d_head // 2)\n+ transpose(1, 2) -> flip(1)": "the two halves of each head are "
    "exchanged; the rows of a pair are still next to each other",
    "rows.transpose(1, 2).flatten(0, 2) -> torch.cat([weight[:, 0::2], weight[:, 1::2]], dim=1)": "the columns are "
    "reordered. They belong to the residual stream; the rows belong to the head",
}
VALUES = "to_half(w_k), w_v -> to_half(w_k), to_half(w_v)"
REORDERED = "the rows of W_v are reordered as well, although values are never rotated, and W_o expects the old order"
AS_GIVEN = next(iter(ORDERS))
BUGS = f"{AS_GIVEN}\n    {ORDERS.pop(AS_GIVEN)}\n{VALUES}\n    {REORDERED}"
MISTAKES = "".join(
    f"{order}\n    1 of 2 bugs repaired. Still wrong: {symptom}.\n"
    f"{order}\n+ {VALUES}\n    0 of 2 bugs repaired. Still wrong: {symptom}; {REORDERED}.\n"
    for order, symptom in ORDERS.items()
)
MISTAKES += f"""
transpose(1, 2) -> clone()
    1 of 2 bugs repaired. Still wrong: the rows of W_q and W_k are in the order of the file.
to_half(w_q) -> w_q
    W_q is in the order of the file, so components of different pairs are multiplied in the scores.
to_half(w_k) -> w_k
    W_k is in the order of the file, so components of different pairs are multiplied in the scores.
{TO_HALF} -> w_q, to_half(w_k), to_half(w_v)
    W_q is in the order of the file, and W_v is reordered. RoPE rotates queries and keys.
{TO_HALF} -> to_half(w_q), w_k, to_half(w_v)
    W_k is in the order of the file, and W_v is reordered. RoPE rotates queries and keys.
{TO_HALF} -> w_q, w_k, to_half(w_v)
    The other way round: W_v is reordered, W_q and W_k are not. RoPE rotates queries and keys.
{TO_HALF} -> to_half(w_k), to_half(w_q), w_v
{TO_HALF} -> to_half(w_q), w_v, to_half(w_k)
{TO_HALF} -> w_v, to_half(w_q), to_half(w_k)
{TO_HALF} -> to_half(w_k), w_v, to_half(w_q)
{TO_HALF} -> w_v, to_half(w_k), to_half(w_q)
    The order of the three matrices has changed: W_q, W_k, W_v.
{TO_HALF} -> to_half(w_q), to_half(w_k)
    W_v is missing. It belongs below the other two, as it is.
torch.cat([{TO_HALF}]) -> torch.cat([{TO_HALF}], dim=1)
    The three matrices stand side by side. Put one below another: torch.cat along the first axis.
torch.cat([{TO_HALF}]) -> torch.stack([{TO_HALF}])
    torch.stack makes a new axis, and needs three matrices of one size. Use torch.cat along the first axis.
torch.cat([{TO_HALF}]) -> torch.cat([{TO_HALF}]).T
    The result is transposed: rows belong to heads, columns to the residual stream.
"""


def _case(heads, kv_heads, d_head, d, seed):
    sizes = (heads, kv_heads, kv_heads)
    weights = (random_tensor(n * d_head, d, seed=seed + i) for i, n in enumerate(sizes))
    return dict(**dict(zip(("w_q", "w_k", "w_v"), weights, strict=True)), d_head=d_head)


_COLUMN = torch.arange(6.0)[:, None]

CASES = (
    dict(w_q=_COLUMN, w_k=_COLUMN + 10, w_v=_COLUMN + 20, d_head=6),
    _case(2, 1, d_head=4, d=3, seed=1),
    _case(3, 3, d_head=2, d=7, seed=5),
    _case(4, 2, d_head=8, d=5, seed=9),
)
HINTS = """
Call it with one head of six rows, 0 to 5, and read where they go. With d_head = 4 one of the bugs does not show.
In the file, rows 2i and 2i + 1 of a head are a pair; in the half layout, rows i and i + d_head / 2. And which of
    queries, keys and values does RoPE rotate?
weight.unflatten(0, (-1, d_head // 2, 2)), and W_v as it is.
"""
