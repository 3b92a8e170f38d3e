"""Exercise `project_heads` of notebook 05."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor, rounded_tensor
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.multihead import split_heads


def project_heads(x, W):
    return x[:, None] @ W  # (batch, 1, length, d_in) @ (heads, d_in, d_head)


def _project_all(x, W):
    return x @ W.transpose(0, 1).flatten(1)  # (batch, length, heads · d_head)


def _project_then_split(x, W):
    batch, length, size = x.shape
    heads = len(W)
    return _project_all(x, W).view(batch, length, heads, size // heads).transpose(1, 2)


EXERCISE = Exercise(
    name="project_heads",
    notebook="05_multi_head_attention",
    title="A projection per head, for any sizes",
    reference=lambda x, W: split_heads(_project_all(x, W), len(W)),
    solution=project_heads,
    cases=(
        Case(x=rounded_tensor(1, 4, 2, seed=2), W=rounded_tensor(3, 2, 2, seed=3)),
        Case(x=random_tensor(3, 5, 6, seed=4), W=random_tensor(2, 6, 3, seed=5)),  # 6 = 2 · 3
        Case(x=random_tensor(2, 4, 5, seed=6), W=random_tensor(3, 5, 6, seed=7)),
    ),
    mistakes=(
        Mistake(
            "size_of_x_divided",
            _project_then_split,
            "Correct where heads · d_head is d_in, an error everywhere else: you take the dimension of a head from x. It "
            "is W.shape[-1].",
        ),
        Mistake(
            "one_letter",
            lambda x, W: torch.einsum("bld,hdd->bhld", x, W),
            "You use one letter for d_in and d_head. Where they are equal, einsum takes the diagonal of each matrix, "
            "and where they are not, it raises an error. They are two axes: two letters.",
        ),
        Mistake(
            "heads_mixed",
            lambda x, W: split_heads(x @ W.reshape(W.shape[1], -1), len(W)),
            "W.reshape(d_in, …) regroups the elements in memory order, so a head gets parts of other heads' matrices. "
            "Move d_in to the front first, or let x @ W broadcast.",
        ),
        Mistake(
            "only_viewed",
            lambda x, W: _project_all(x, W).reshape(len(x), len(W), x.shape[1], -1),
            "The products are correct and then mixed up: a view alone gives a head parts of other positions. Cut the "
            "last axis, then transpose.",
        ),
        Mistake(
            "transposed",
            lambda x, W: x[:, None] @ W.mT,
            "Your matrices are transposed. W is (heads, d_in, d_head) here: x @ W, without .mT.",
        ),
        Mistake(
            "no_axis",
            lambda x, W: x @ W,
            "The batch of x is aligned with the heads of W. Give x an axis for the heads: x[:, None].",
        ),
        Mistake(
            "heads_first",
            lambda x, W: x @ W[:, None],
            "Yours is (heads, batch, length, d_head). The batch comes first.",
        ),
        Mistake(
            "not_transposed",
            lambda x, W: _project_all(x, W).unflatten(-1, (len(W), -1)),
            "Yours is (batch, length, heads, d_head). Swap the two axes in the middle.",
        ),
        Mistake(
            "not_split",
            _project_all,
            "The heads are still concatenated in one vector. Give them an axis of their own.",
        ),
        Mistake(
            "first_matrix",
            lambda x, W: (x @ W[0])[:, None].expand(-1, len(W), -1, -1),
            "All heads use the matrix of head 0. Each head has its own.",
        ),
        Mistake(
            "summed",
            lambda x, W: torch.einsum("bli,hio->blo", x, W),
            "You sum over the heads. Keep their axis: bhlo in the result of einsum.",
        ),
    ),
    hints=(
        "Each head multiplies the same x by a matrix of its own. Which axis must x get, so that the two broadcast?",
        "(batch, 1, length, d_in) @ (heads, d_in, d_head): the axes before the last two broadcast.",
        "x[:, None] @ W. Or torch.einsum('bli,hio->bhlo', x, W): i and o need not be equal.",
    ),
)
