"""Exercise `encoder_stack` of notebook 07."""

from functools import partial

import torch

from course_lib.attention import scaled_dot_product_attention
from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.catalogue.transformer_blocks._shared import NamedFunction, trained_norm
from course_lib.exercises.exercise import Case, Exercise, Mistake
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


def _run_stack(x, mask, blocks, norm, *, between=None, masks=lambda mask, number: mask):
    for number, block in enumerate(blocks):
        x = block(x, masks(mask, number))
        x = x if between is None else between(x, norm)
    return x


def _norm_before(block, norm):
    return lambda x, mask: block(norm(x), mask)


def _residual_around(block):
    return lambda x, mask: x + block(x, mask)


EXERCISE = Exercise(
    name="encoder_stack",
    notebook="07_transformer_blocks",
    title="A stack of pre-norm blocks",
    reference=lambda x, mask, blocks, norm: norm(_run_stack(x, mask, blocks, norm)),
    solution=encoder_stack,
    cases=(
        Case(
            x=torch.tensor([[[1.0, 2.0], [3.0, -1.0]]]),
            mask=torch.tensor([[[True, False]]]),
            blocks=_blocks(2, 2, seed=19),
            norm=trained_norm(2, seed=24),
        ),
        Case(
            x=random_tensor(2, 3, 4, seed=25),
            mask=padding_mask(torch.tensor([3, 2])),
            blocks=_blocks(3, 4, seed=26),
            norm=trained_norm(4, seed=30),
        ),
    ),
    mistakes=(
        Mistake(
            "no_final_norm",
            _run_stack,
            "The final norm is missing. Pre-norm blocks only add to the residual stream, so the output of the last block "
            "has never been normalised.",
        ),
        Mistake(
            "norm_after_every_block",
            partial(_run_stack, between=lambda x, norm: norm(x)),
            "You normalise after every block, so the residual stream passes through a norm each time. There is one norm, "
            "after the last block.",
        ),
        Mistake(
            "norm_after_every_block_and_last",
            lambda *a: a[3](_run_stack(*a, between=lambda x, norm: norm(x))),
            "You normalise after every block, and once more at the end. There is one norm, after the last block.",
        ),
        Mistake(
            "norm_first",
            lambda x, mask, blocks, norm: _run_stack(norm(x), mask, blocks, norm),
            "Your norm comes before the first block, which has its own norms inside. It belongs after the last block.",
        ),
        Mistake(
            "norm_first_and_last",
            lambda x, mask, blocks, norm: norm(_run_stack(norm(x), mask, blocks, norm)),
            "The norm after the last block is right. Remove the one before the first: a pre-norm block normalises its "
            "own input.",
        ),
        Mistake(
            "norm_before_every_block",
            lambda x, mask, blocks, norm: _run_stack(
                x, mask, [_norm_before(b, norm) for b in blocks], norm
            ),
            "You normalise before every block, and not after the last. There is one norm, after the last block.",
        ),
        Mistake(
            "last_only",
            lambda x, mask, blocks, norm: norm(blocks[-1](x, mask)),
            "Each of your blocks gets the first x, so only the last block has an effect. Each continues with the output "
            "of the one before: x = block(x, mask).",
        ),
        Mistake(
            "first_only",
            lambda x, mask, blocks, norm: norm(blocks[0](x, mask)),
            "You return after the first block. Is the return inside the loop?",
        ),
        Mistake(
            "reversed",
            lambda x, mask, blocks, norm: norm(_run_stack(x, mask, blocks[::-1], norm)),
            "You apply the blocks from the last to the first.",
        ),
        Mistake(
            "added",
            lambda x, mask, blocks, norm: norm(sum(block(x, mask) for block in blocks)),
            "You apply all blocks to the same x and add their outputs. Apply them one after the other: "
            "x = block(x, mask).",
        ),
        Mistake(
            "residual_around_the_block",
            lambda x, mask, blocks, norm: norm(
                _run_stack(x, mask, [_residual_around(b) for b in blocks], norm)
            ),
            "You add x to the output of a block. The residual connections are inside the block already.",
        ),
        Mistake(
            "residual_around_the_stack",
            lambda x, mask, blocks, norm: norm(x + _run_stack(x, mask, blocks, norm)),
            "You add the first x at the end. The residual connections are inside the blocks already.",
        ),
        Mistake(
            "no_mask",
            lambda x, mask, blocks, norm: norm(
                _run_stack(x, mask, blocks, norm, masks=lambda mask, number: None)
            ),
            "You do not pass the mask to the blocks, so they attend to padding.",
        ),
        Mistake(
            "no_mask_and_no_norm",
            partial(_run_stack, masks=lambda mask, number: None),
            "Two things are missing: the mask is not passed to the blocks, and there is no final norm.",
        ),
        Mistake(
            "mask_for_the_first",
            lambda x, mask, blocks, norm: norm(
                _run_stack(
                    x, mask, blocks, norm, masks=lambda mask, number: None if number else mask
                )
            ),
            "Only the first block gets the mask. The others attend to padding.",
        ),
        Mistake(
            "last_left_out",
            lambda x, mask, blocks, norm: norm(_run_stack(x, mask, blocks[:-1], norm)),
            "The last block is left out.",
        ),
        Mistake(
            "first_left_out",
            lambda x, mask, blocks, norm: norm(_run_stack(x, mask, blocks[1:], norm)),
            "The first block is left out.",
        ),
        Mistake(
            "first_repeated",
            lambda x, mask, blocks, norm: norm(
                _run_stack(x, mask, [blocks[0]] * len(blocks), norm)
            ),
            "You apply the first block each time. Each block has weights of its own.",
        ),
        Mistake(
            "norm_before_every_block_and_last",
            lambda x, mask, blocks, norm: norm(
                _run_stack(x, mask, [_norm_before(b, norm) for b in blocks], norm)
            ),
            "The norm after the last block is right. Remove the one before every block: a pre-norm block normalises its own "
            "input.",
        ),
        Mistake(
            "mask_inverted",
            lambda x, mask, blocks, norm: norm(_run_stack(x, ~mask, blocks, norm)),
            "You invert the mask, so tokens attend to padding only. A block takes True = may attend: pass it as it is.",
        ),
        Mistake(
            "norm_twice",
            lambda x, mask, blocks, norm: norm(norm(_run_stack(x, mask, blocks, norm))),
            "You apply the final norm twice.",
        ),
        Mistake(
            "blocks_twice",
            lambda x, mask, blocks, norm: norm(_run_stack(x, mask, [*blocks, *blocks], norm)),
            "You apply every block twice. Each is applied once, one after the other.",
        ),
        Mistake(
            "mask_for_the_last",
            lambda x, mask, blocks, norm: norm(
                _run_stack(
                    x,
                    mask,
                    blocks,
                    norm,
                    masks=lambda mask, number: mask if number == len(blocks) - 1 else None,
                )
            ),
            "Only the last block gets the mask. The others attend to padding.",
        ),
    ),
    hints=(
        "Each block continues with the output of the one before.",
        "A pre-norm block returns a sum that is not normalised. What must follow the last block?",
        "x = block(x, mask) for each block in blocks, then return norm(x).",
    ),
)
