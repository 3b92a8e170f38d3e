"""Exercise `encoder_stack` of notebook 07."""

import torch

from course_lib.attention import scaled_dot_product_attention
from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.catalogue.transformer_blocks._shared import NamedFunction, trained_norm
from course_lib.exercises.edits import mistakes
from course_lib.exercises.exercise import Case, Exercise
from course_lib.masks import padding_mask


def encoder_stack(x, mask, blocks, norm):
    for block in blocks:
        x = block(x, mask)
    return norm(x)


def _random_block(size, seed, number):
    """Attention and a linear map, with a residual connection around both."""
    W = random_tensor(size, size, seed=seed)

    def block(x, mask=None):
        return x + torch.tanh(scaled_dot_product_attention(x, x, x, mask).output @ W.to(x.dtype))

    return NamedFunction(f"block {number}", block)


def _blocks(count, size, seed):
    return [_random_block(size, seed + number, number) for number in range(1, count + 1)]


MISTAKES = r"""
return norm(x) -> return x
    The final norm is missing. Pre-norm blocks only add to the residual stream, so the output of the last block has
    never been normalised.
x = block(x, mask) -> x = norm(block(x, mask))
+ return norm(x) -> return x
    You normalise after every block, so the residual stream passes through a norm each time. There is one norm, after
    the last block.
x = block(x, mask) -> x = norm(block(x, mask))
    You normalise after every block, and once more at the end. There is one norm, after the last block.
for block in blocks: -> x = norm(x)\nfor block in blocks:
+ return norm(x) -> return x
    Your norm comes before the first block, which has its own norms inside. It belongs after the last block.
for block in blocks: -> x = norm(x)\nfor block in blocks:
    The norm after the last block is right. Remove the one before the first: a pre-norm block normalises its own
    input.
block(x, mask) -> block(norm(x), mask)
+ return norm(x) -> return x
    You normalise before every block, and not after the last. There is one norm, after the last block.
block(x, mask) -> block(norm(x), mask)
    The norm after the last block is right. Remove the one before every block: a pre-norm block normalises its own
    input.
x = block(x, mask) -> out = block(x, mask)
+ return norm(x) -> return norm(out)
    Each of your blocks gets the first x, so only the last block has an effect. Each continues with the output of the
    one before: x = block(x, mask).
x = block(x, mask) -> return norm(block(x, mask))
    You return after the first block. Is the return inside the loop?
x = block(x, mask) -> return block(x, mask)
    You return after the first block, without the norm. Is the return inside the loop?
in blocks: -> in blocks[::-1]:
    You apply the blocks from the last to the first.
x = block(x, mask) -> pass
+ return norm(x) -> return norm(sum(block(x, mask) for block in blocks))
x = block(x, mask) -> pass
+ return norm(x) -> return norm(sum(block(x, mask) for block in blocks) / len(blocks))
    You apply all blocks to the same x and add or average their outputs. Apply them one after the other: x = block(x,
    mask).
x = block(x, mask) -> x = x + block(x, mask)
    You add x to the output of a block. The residual connections are inside the block already.
x = block(x, mask) -> x = x + block(norm(x), mask)
x = block(x, mask) -> x = x + block(norm(x), mask)
+ return norm(x) -> return x
    You treat a block as a sublayer: x + block(norm(x)). Its norms and residual connections are inside it already: x =
    block(x, mask).
x = block(x, mask) -> x = norm(x + block(x, mask))
x = block(x, mask) -> x = norm(x + block(x, mask))
+ return norm(x) -> return x
    You treat a block as a sublayer: norm(x + block(x)). Its norms and residual connections are inside it already: x =
    block(x, mask).
for block in blocks: -> first = x\nfor block in blocks:
+ return norm(x) -> return norm(first + x)
    You add the first x at the end. The residual connections are inside the blocks already.
for block in blocks: -> first = x\nfor block in blocks:
+ return norm(x) -> return first + norm(x)
    You add the first x after the final norm. The residual connections are inside the blocks already.
return norm(x) -> return x + norm(x)
    You add x to the output of the final norm. The norm is the last step.
block(x, mask) -> block(x)
    You do not pass the mask to the blocks, so they attend to padding.
x = block(x, mask) -> x = block(x, mask); mask = None
    Only the first block gets the mask. The others attend to padding.
block(x, mask) -> block(x, mask if block is blocks[-1] else None)
    Only the last block gets the mask. The others attend to padding.
block(x, mask) -> block(x, ~mask)
    You invert the mask, so tokens attend to padding only. A block takes True = may attend: pass it as it is.
in blocks: -> in blocks[:-1]:
    The last block is left out.
in blocks: -> in blocks[1:]:
    The first block is left out.
= block(x, mask) -> = blocks[0](x, mask)
    You apply the first block each time. Each block has weights of its own.
= block(x, mask) -> = blocks[-1](x, mask)
    You apply the last block each time. Each block has weights of its own.
return norm(x) -> return norm(norm(x))
    You apply the final norm twice.
in blocks: -> in [*blocks, *blocks]:
x = block(x, mask) -> x = block(block(x, mask), mask)
    You apply every block twice. Each is applied once, one after the other.
"""


EXERCISE = Exercise(
    title="A stack of pre-norm blocks",
    solution=encoder_stack,
    cases=(
        Case(  # a vector of two components would be 1 and -1 after any norm
            x=torch.tensor([[[1.0, 2.0, 0.0], [3.0, -1.0, 1.0]]]),
            mask=torch.tensor([[[True, False]]]),
            blocks=_blocks(2, 3, seed=19),
            norm=trained_norm(3, seed=24),
        ),
        Case(
            x=random_tensor(2, 3, 4, seed=25),
            mask=padding_mask(torch.tensor([3, 2])),
            blocks=_blocks(3, 4, seed=26),
            norm=trained_norm(4, seed=30),
        ),
    ),
    mistakes=mistakes(encoder_stack, MISTAKES),
    hints=(
        "Each block continues with the output of the one before.",
        "A pre-norm block returns a sum that is not normalised. What must follow the last block?",
        "x = block(x, mask) for each block in blocks, then return norm(x).",
    ),
)
