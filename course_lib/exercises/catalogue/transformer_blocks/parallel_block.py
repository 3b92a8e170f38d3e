"""A parallel block: attention and FFN side by side."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.catalogue.transformer_blocks._shared import (
    random_attention,
    random_network,
    trained_norm,
)


def parallel_block(x, self_attend, feed_forward, norm):
    length = x.shape[1]
    mask = torch.ones(length, length, dtype=torch.bool).tril()  # (query, key)
    normal = norm(x)  # (batch, length, d_model), for both sublayers
    attended = self_attend(normal, mask)
    return x + attended + feed_forward(normal)


ATTENDED = "attended = self_attend(normal, mask)"
SUM = "return x + attended + feed_forward(normal)"
MISTAKES = rf"""
{SUM} -> x = x + attended\nreturn x + feed_forward(norm(x))
    Your FFN comes after the attention and reads norm of the sum: that is the sequential block. In the parallel block
    it reads norm(x) of the block's input, as the attention does.
{SUM} -> x = x + attended\nreturn x + feed_forward(x)
    Your FFN reads the sum after the attention, and no norm. In the parallel block it reads norm(x) of the block's
    input, as the attention does.
{ATTENDED} -> x = x + feed_forward(normal)
+ {SUM} -> return x + self_attend(norm(x), mask)
    Your attention comes after the FFN and reads norm of the sum. In the parallel block it reads norm(x) of the block's
    input, as the FFN does.
feed_forward(normal) -> feed_forward(attended)
feed_forward(normal) -> feed_forward(norm(attended))
    Your FFN reads the output of the attention. Both sublayers read norm(x).
.tril() -> .triu()
.tril() -> .tril().T
    Your mask is transposed: a position attends to itself and to later ones. Position i may attend to j <= i: tril.
.tril() -> .tril(-1)
    In your mask a position may not attend to itself. It may: the diagonal is True.
(normal, mask) -> (normal, ~mask)
    Your mask is inverted: a position attends to later ones only. True = may attend.
.tril() ->
(normal, mask) -> (normal)
    Your attention has no causal mask: a position attends to later ones.
return x + attended -> return attended
    The residual connection is missing: x is added to the outputs of both sublayers.
return x + attended -> return normal + attended
    You add norm(x). The residual connection starts before the norm: add x itself.
return x + attended -> return x + x + attended
    You add x twice. There is one residual connection around both sublayers.
return x + attended -> return x
    The attention is missing from the sum.
attended + feed_forward(normal) -> attended
    The FFN is missing from the sum.
normal = norm(x) -> normal = x
    The norm is never used. Both sublayers read norm(x).
normal = norm(x) -> normal = norm(norm(x))
    You apply the norm twice. Both sublayers read norm(x).
self_attend(normal, mask) -> self_attend(x, mask)
    Your attention reads x. It reads norm(x), as the FFN does.
feed_forward(normal) -> feed_forward(x)
    Your FFN reads x. It reads norm(x), as the attention does.
normal = norm(x) -> normal = x
+ {SUM} -> return norm(x + attended + feed_forward(normal))
    You normalise the sum, as in post-norm. Normalise the input of the sublayers, and add x as it is.
{SUM} -> return norm(x + attended + feed_forward(normal))
    You normalise the sum as well, so the residual stream passes through a norm. Normalise the input of the sublayers
    only.
normal = norm(x) -> normal = x
+ {SUM} -> return x + norm(attended) + norm(feed_forward(normal))
    You normalise the outputs of the sublayers. Normalise their input.
feed_forward(normal) -> feed_forward(norm(normal))
    Your FFN reads a vector that was normalised twice. It reads norm(x), as the attention does.
feed_forward(normal) -> feed_forward(normal + attended)
    Your FFN reads norm(x) plus the output of the attention. It reads norm(x) alone.
{ATTENDED} -> x = x + feed_forward(normal)
+ {SUM} -> return x + self_attend(x, mask)
    Your attention reads the sum after the FFN, and no norm. In the parallel block it reads norm(x) of the block's
    input, as the FFN does.
normal = norm(x) -> normal = x
+ {SUM} -> x = norm(x + attended)\nreturn norm(x + feed_forward(x))
    This is the sequential post-norm block. In the parallel block both sublayers read norm(x), and x is added as it is.
.tril() -> .tril(1)
    In your mask a position attends to the next one as well. Position i may attend to j <= i: tril().
{SUM} -> return x + (attended + feed_forward(normal)) / 2
    You add the mean of the two outputs. Add their sum.
{SUM} -> return x + attended * feed_forward(normal)
    You multiply the outputs of the two sublayers. Add them.
"""


def _case(*shape, seed):
    size = shape[-1]
    return dict(
        x=random_tensor(*shape, seed=seed),
        self_attend=random_attention(size, seed + 1),
        feed_forward=random_network(size, seed + 2),
        norm=trained_norm(size, seed + 3),
    )


CASES = (
    dict(  # a vector of two components would be 1 and -1 after any norm
        x=torch.tensor([[[1.0, 2.0, -1.0], [0.0, 3.0, 1.0]]]),
        self_attend=random_attention(3, 101),
        feed_forward=random_network(3, 102),
        norm=trained_norm(3, 103),
    ),
    _case(2, 3, 4, seed=110),
    _case(3, 5, 2, seed=120),
)
HINTS = """
How many residual connections and how many norms has the formula? What do both sublayers read?
Compute norm(x) once. The mask is a lower triangle of True: torch.ones(…, dtype=torch.bool).tril().
x + self_attend(normal, mask) + feed_forward(normal), with normal = norm(x).
"""
