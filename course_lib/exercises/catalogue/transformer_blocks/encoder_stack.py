"""A stack of encoder blocks, pre-norm or post-norm."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.catalogue.transformer_blocks._shared import (
    random_attention,
    random_network,
    trained_norm,
)
from course_lib.transformer.masks import padding_mask


def encoder_stack(x, mask, blocks, norm, placement):
    pre = placement == "pre"
    for self_attend, feed_forward, norm1, norm2 in blocks:
        if pre:
            x = x + self_attend(norm1(x), mask)  # (batch, length, d_model)
            x = x + feed_forward(norm2(x))
        else:
            x = norm1(x + self_attend(x, mask))
            x = norm2(x + feed_forward(x))
    return norm(x) if pre else x


def _parts(count, size, seed):
    blocks = [
        (
            random_attention(size, start, f"self-attention {number}"),
            random_network(size, start + 1, f"FFN {number}"),
            trained_norm(size, start + 2, f"norm 1 of block {number}"),
            trained_norm(size, start + 3, f"norm 2 of block {number}"),
        )
        for number, start in enumerate(range(seed, seed + 4 * count, 4))
    ]
    return {"blocks": blocks, "norm": trained_norm(size, seed + 4 * count, "one more norm")}


PRE_1 = "x = x + self_attend(norm1(x), mask)"
PRE_2 = "x = x + feed_forward(norm2(x))"
POST_1 = "x = norm1(x + self_attend(x, mask))"
POST_2 = "x = norm2(x + feed_forward(x))"
LAST = "return norm(x) if pre else x"
MISTAKES = rf"""
placement == "pre" -> placement == "post"
    The two placements are exchanged. In pre-norm the norm comes before the sublayer, inside the residual branch; in
    post-norm it comes after the sum.
placement == "pre" -> False
    This is post-norm, whatever placement says. For "pre", normalise the input of the sublayer, x + sublayer(norm(x)),
    and the output of the last block.
placement == "pre" -> True
    This is pre-norm, whatever placement says. For "post", normalise the sum: norm(x + sublayer(x)).
{LAST} -> return x
    The last norm of the pre-norm stack is missing. Its blocks only add to the residual stream, so the output of the
    last one has never been normalised.
{LAST} -> return norm(x)
    You apply the last norm in both placements. After a post-norm block it is not needed: its output is normalised.
{LAST} -> return x if pre else norm(x)
    The last norm follows the wrong stack. A post-norm block ends with a norm; a pre-norm block ends with a sum.
{LAST} -> return norm(norm(x)) if pre else x
    You apply the last norm twice.
{LAST} -> return x + norm(x) if pre else x
    You add x to the output of the last norm. The norm is the last step.
{PRE_2} -> x = norm(x + feed_forward(norm2(x)))
+ {LAST} -> return x
    You apply the last norm after every block, so the residual stream passes through it each time. It comes once, after
    the last block.
{PRE_2} -> x = norm(x + feed_forward(norm2(x)))
    You apply the last norm after every block, and once more at the end. It comes once, after the last block.
for self_attend -> x = norm(x) if pre else x\nfor self_attend
+ {LAST} -> return x
    Your last norm comes before the first block, which has its own norms inside. It belongs after the last block.
for self_attend -> x = norm(x) if pre else x\nfor self_attend
    The norm after the last block is right. Remove the one before the first: a pre-norm block normalises its own
    input.
in blocks: -> in blocks[::-1]:
    You apply the blocks from the last to the first.
in blocks: -> in blocks[:1]:
    You apply the first block only. If there is a return in the loop, put it after the loop.
in blocks: -> in blocks[:-1]:
    The last block is left out.
in blocks: -> in blocks[1:]:
    The first block is left out.
in blocks: -> in [blocks[0]] * len(blocks):
    You apply the first block each time. Each block has weights of its own.
{PRE_1} -> x = norm1(x + self_attend(x, mask))
    For "pre" your self-attention is post-norm. Normalise its input: x + self_attend(norm1(x), mask).
{PRE_2} -> x = norm2(x + feed_forward(x))
    For "pre" your FFN is post-norm. Normalise its input: x + feed_forward(norm2(x)).
{POST_1} -> x = x + self_attend(norm1(x), mask)
    For "post" your self-attention is pre-norm. Normalise the sum: norm1(x + self_attend(x, mask)).
{POST_2} -> x = x + feed_forward(norm2(x))
    For "post" your FFN is pre-norm. Normalise the sum: norm2(x + feed_forward(x)).
x + =>
    The residual connections are missing: x is never added to the output of a sublayer.
x + self_attend => self_attend
    The self-attention has no residual connection.
x + feed_forward => feed_forward
    The FFN has no residual connection.
{PRE_1} -> x = norm1(x) + self_attend(norm1(x), mask)
+ {PRE_2} -> x = norm2(x) + feed_forward(norm2(x))
    For "pre" you add norm(x) to the output of the sublayer. The residual connection starts before the norm: add x
    itself.
{POST_1} -> x = norm1(x) + self_attend(x, mask)
+ {POST_2} -> x = norm2(x) + feed_forward(x)
    For "post" you normalise x alone. Normalise the sum: norm(x + sublayer(x)).
{POST_1} -> x = x + norm1(self_attend(x, mask))
+ {POST_2} -> x = x + norm2(feed_forward(x))
    For "post" you normalise the output of the sublayer and then add x. Normalise the sum.
{PRE_1} -> x = x + norm1(self_attend(x, mask))
+ {PRE_2} -> x = x + norm2(feed_forward(x))
    For "pre" you normalise the output of the sublayer. Normalise its input: sublayer(norm(x)).
{PRE_1} -> x = norm1(x + self_attend(norm1(x), mask))
+ {PRE_2} -> x = norm2(x + feed_forward(norm2(x)))
    For "pre" you normalise the sum as well, so the residual stream passes through a norm. Normalise the input of the
    sublayer only.
{POST_1} -> x = norm1(x + self_attend(norm1(x), mask))
+ {POST_2} -> x = norm2(x + feed_forward(norm2(x)))
    For "post" you normalise the input of the sublayer as well. Normalise the sum only.
norm2( => norm1(
    You use norm1 twice. Each sublayer has a norm with its own learned weight and bias.
norm1( => norm2(
    You use norm2 twice. Each sublayer has a norm with its own learned weight and bias.
norm1, norm2 -> norm2, norm1
    The norms are exchanged: norm1 belongs to the self-attention, norm2 to the FFN.
norm1( => (
+ norm2( => (
    Neither norm of a block is used.
norm1( => (
    The norm of the self-attention is missing: norm1 is never used.
norm2( => (
    The norm of the FFN is missing: norm2 is never used.
norm1(x) -> x
    For "pre" the norm of the self-attention is missing: norm1 is never used.
norm2(x) -> x
    For "pre" the norm of the FFN is missing: norm2 is never used.
{POST_1} -> x = x + self_attend(x, mask)
    For "post" the norm of the self-attention is missing: norm1 is never used.
{POST_2} -> x = x + feed_forward(x)
    For "post" the norm of the FFN is missing: norm2 is never used.
{PRE_1} -> {PRE_2}
+ {PRE_2} -> {PRE_1}
+ {POST_1} -> {POST_2}
+ {POST_2} -> {POST_1}
    The order is exchanged: self-attention comes first, then the FFN.
, mask) => )
    You do not pass the mask to the self-attention, so tokens attend to padding.
(norm1(x), mask) -> (norm1(x))
    For "pre" you do not pass the mask to the self-attention, so tokens attend to padding.
(x, mask) -> (x)
    For "post" you do not pass the mask to the self-attention, so tokens attend to padding.
, mask) => , ~mask)
    You invert the mask, so tokens attend to padding only. self_attend takes True = may attend: pass it as it is.
{PRE_1} -> attended = self_attend(norm1(x), mask)
+ {PRE_2} -> x = x + attended + feed_forward(norm2(x))
    For "pre" both sublayers get the same x. The FFN continues with the output of the attention sublayer: x = x + …,
    twice. (GPT-J computes both in parallel; the Transformer of 2017 does not.)
{PRE_1} -> first = x; {PRE_1}
+ {PRE_2} -> x = first + feed_forward(norm2(x))
    For "pre" the residual connection of your FFN starts at the input of the block. It starts at the sum before it.
{POST_1} -> first = x; {POST_1}
+ {POST_2} -> x = norm2(first + feed_forward(x))
    For "post" the residual connection of your FFN starts at the input of the block. It starts at the output of the
    first norm.
x = norm1(x + self_attend(x, mask)) -> h = x; x = norm1(x + self_attend(x, mask))
+ x + feed_forward(x) -> x + feed_forward(h)
    With post-norm the FFN reads the input of the block. It reads x after attention and its norm.
"""


def _small(placement):
    return dict(  # a vector of two components would be 1 and -1 after any norm
        x=torch.tensor([[[1.0, 2.0, -1.0], [0.0, 3.0, 1.0]]]),
        mask=torch.tensor([[[True, False]]]),
        **_parts(2, 3, seed=80),
        placement=placement,
    )


def _large(placement):
    return dict(
        x=random_tensor(2, 3, 4, seed=90),
        mask=padding_mask(torch.tensor([3, 2])),
        **_parts(3, 4, seed=91),
        placement=placement,
    )


CASES = (_small("pre"), _small("post"), _large("pre"), _large("post"))
HINTS = """
Each block continues with the output of the one before, and has two sublayers of the same form; the form depends on
    placement. In which placement does the last block return a sum that is not normalised?
The form is x + sublayer(norm(x)) for "pre" and norm(x + sublayer(x)) for "post". The sublayers are self_attend(…,
    mask) with norm1 and feed_forward(…) with norm2.
For "pre": x = x + self_attend(norm1(x), mask), then x = x + feed_forward(norm2(x)) in every block, and norm(x) at the
    end.
"""
