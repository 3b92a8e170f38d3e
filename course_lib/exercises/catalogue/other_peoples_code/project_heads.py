"""A projection per head, for any sizes."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor, rounded_tensor


def project_heads(x, W):
    return x[:, None] @ W  # (batch, 1, length, d_in) @ (heads, d_in, d_head)


def reference(x, W):
    return torch.einsum("bli,hio->bhlo", x, W)


HEADS = "x[:, None] @ W"
CONCATENATED = "x @ W.transpose(0, 1).flatten(1)"
REGROUPED = "x @ W.reshape(W.shape[1], -1)"
MISTAKES = f"""
{HEADS} -> ({CONCATENATED}).view(len(x), x.shape[1], len(W), x.shape[2] // len(W)).transpose(1, 2)
    Correct where heads · d_head is d_in, an error everywhere else: you take the dimension of a head from x. It is
    W.shape[-1].
{HEADS} -> torch.einsum("bld,hdd->bhld", x, W)
{HEADS} -> torch.einsum("bli,hii->bhli", x, W)
    You use one letter for d_in and d_head. Where they are equal, einsum takes the diagonal of each matrix, and where
    they are not, it raises an error. They are two axes: two letters.
{HEADS} -> ({REGROUPED}).unflatten(-1, (len(W), -1)).transpose(1, 2)
    W.reshape(d_in, …) regroups the elements in memory order, so a head gets parts of other heads' matrices. Move d_in
    to the front first, or let x[:, None] @ W broadcast.
{HEADS} -> ({CONCATENATED}).reshape(len(x), len(W), x.shape[1], -1)
    The products are correct and then mixed up: a view alone gives a head parts of other positions. Cut the last axis,
    then transpose.
@ W -> @ W.mT
    Your matrices are transposed. W is (heads, d_in, d_head) here: x @ W, without .mT.
{HEADS} -> x @ W
{HEADS} -> x[None] @ W
    The batch of x is aligned with the heads of W. Give x an axis for the heads: x[:, None].
{HEADS} -> x @ W[:, None]
    Yours is (heads, batch, length, d_head). The batch comes first.
{HEADS} -> ({HEADS}).transpose(1, 2)
    Yours is (batch, length, heads, d_head). Swap the two axes in the middle.
{HEADS} -> {CONCATENATED}
    The heads are still concatenated in one vector. Give them an axis of their own.
{HEADS} -> (x @ W[0])[:, None].expand(-1, len(W), -1, -1)
    All heads use the matrix of head 0. Each head has its own.
{HEADS} -> ({HEADS}).sum(dim=1)
    You sum over the heads. Keep their axis: bhlo in the result of einsum.
{HEADS} -> x[:, :, None] @ W
    The length of x is aligned with the heads of W. The new axis comes before the length: x[:, None].
{HEADS} -> ({REGROUPED}).reshape(len(x), len(W), x.shape[1], -1)
    You regroup the matrices with a reshape, and the products with a view: heads and positions are mixed twice. Let x
    @ W broadcast, with an axis for the heads in x.
{HEADS} -> {REGROUPED}
    Your heads are still concatenated, and W.reshape(d_in, …) regroups the elements in memory order, so each one has
    parts of other heads' matrices.
{HEADS} -> ({CONCATENATED}).unflatten(-1, (-1, len(W))).permute(0, 3, 1, 2)
    Your heads get every heads-th component. Each head has d_head consecutive ones: (heads, d_head), in this order.
{HEADS} -> ({HEADS}).mT
    Yours is (batch, heads, d_head, length). The last two axes are exchanged.
{HEADS} -> ({HEADS}).mean(dim=1)
    You average over the heads. Keep their axis.
x[:, None] @ W -> (x[:, None] @ W).flatten(1, 2)
    The heads and the positions share an axis in your result. Keep both: (batch, heads, length, d_head).
"""

CASES = (
    dict(x=rounded_tensor(1, 4, 2, seed=2), W=rounded_tensor(3, 2, 2, seed=3)),
    dict(x=random_tensor(3, 5, 6, seed=4), W=random_tensor(2, 6, 3, seed=5)),  # 6 = 2 · 3
    dict(x=random_tensor(2, 4, 5, seed=6), W=random_tensor(3, 5, 6, seed=7)),
)
HINTS = """
Each head multiplies the same x by a matrix of its own. Which axis must x get, so that the two broadcast?
(batch, 1, length, d_in) @ (heads, d_in, d_head): the axes before the last two broadcast.
x[:, None] @ W. Or torch.einsum('bli,hio->bhlo', x, W): i and o need not be equal.
"""
