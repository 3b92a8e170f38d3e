"""Exercise `encoder_block` of notebook 07."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.catalogue.transformer_blocks._shared import (
    random_attention,
    random_network,
    trained_norm,
)
from course_lib.exercises.edits import mistakes
from course_lib.exercises.exercise import Case, Exercise
from course_lib.masks import padding_mask


def encoder_block(x, mask, self_attend, feed_forward, norms, placement):
    if placement == "pre":
        x = x + self_attend(norms[0](x), mask)  # (batch, length, d_model)
        return x + feed_forward(norms[1](x))
    x = norms[0](x + self_attend(x, mask))
    return norms[1](x + feed_forward(x))


def _parts(size, seed):
    return {
        "self_attend": random_attention(size, seed, "self-attention"),
        "feed_forward": random_network(size, seed + 1, "the FFN"),
        "norms": [trained_norm(size, seed + 2 + number, f"norm {number}") for number in range(2)],
    }


PRE_1 = "x = x + self_attend(norms[0](x), mask)"
PRE_2 = "return x + feed_forward(norms[1](x))"
POST_1 = "x = norms[0](x + self_attend(x, mask))"
POST_2 = "return norms[1](x + feed_forward(x))"
MISTAKES = rf"""
placement == "pre" -> placement == "post"
    The two placements are exchanged. In pre-norm the norm comes before the sublayer, inside the residual branch; in
    post-norm it comes after the sum.
placement == "pre" -> False
    This is post-norm, whatever placement says. For "pre", normalise the input of the sublayer: x + sublayer(norm(x)).
placement == "pre" -> True
    This is pre-norm, whatever placement says. For "post", normalise the sum: norm(x + sublayer(x)).
{PRE_1} -> x = norms[0](x + self_attend(x, mask))
    For "pre" your self-attention is post-norm. Normalise its input: x + self_attend(norms[0](x), mask).
{PRE_2} -> return norms[1](x + feed_forward(x))
    For "pre" your FFN is post-norm. Normalise its input: x + feed_forward(norms[1](x)).
{POST_1} -> x = x + self_attend(norms[0](x), mask)
    For "post" your self-attention is pre-norm. Normalise the sum: norms[0](x + self_attend(x, mask)).
{POST_2} -> return x + feed_forward(norms[1](x))
    For "post" your FFN is pre-norm. Normalise the sum: norms[1](x + feed_forward(x)).
x + =>
    The residual connections are missing: x is never added to the output of a sublayer.
{PRE_1} -> x = self_attend(norms[0](x), mask)
+ {PRE_2} -> return feed_forward(norms[1](x))
    For "pre" the residual connections are missing: x is never added.
{POST_1} -> x = norms[0](self_attend(x, mask))
+ {POST_2} -> return norms[1](feed_forward(x))
    For "post" the residual connections are missing: x is never added.
x + self_attend => self_attend
    The self-attention has no residual connection.
x + feed_forward => feed_forward
    The FFN has no residual connection.
{PRE_1} -> x = self_attend(norms[0](x), mask)
    For "pre" the self-attention has no residual connection.
{POST_1} -> x = norms[0](self_attend(x, mask))
    For "post" the self-attention has no residual connection.
{PRE_2} -> return feed_forward(norms[1](x))
    For "pre" the FFN has no residual connection.
{POST_2} -> return norms[1](feed_forward(x))
    For "post" the FFN has no residual connection.
{PRE_1} -> x = norms[0](x) + self_attend(norms[0](x), mask)
+ {PRE_2} -> return norms[1](x) + feed_forward(norms[1](x))
    For "pre" you add norm(x) to the output of the sublayer. The residual connection starts before the norm: add x
    itself.
{PRE_1} -> x = norms[0](x) + self_attend(norms[0](x), mask)
    For "pre" you add norms[0](x) to the output of the self-attention. Its residual connection starts before the norm:
    add x itself.
{PRE_2} -> return norms[1](x) + feed_forward(norms[1](x))
    For "pre" you add norms[1](x) to the output of the FFN. Its residual connection starts before the norm: add x
    itself.
{PRE_1} -> x = norms[0](x) + self_attend(norms[0](x), mask)
+ {PRE_2} -> return norms[1](x) + feed_forward(norms[1](x))
+ {POST_1} -> x = norms[0](x) + self_attend(norms[0](x), mask)
+ {POST_2} -> return norms[1](x) + feed_forward(norms[1](x))
    Whatever placement says, x itself is replaced by norm(x), so each residual connection starts after the norm. "pre"
    is x + sublayer(norm(x)), "post" is norm(x + sublayer(x)).
{POST_1} -> x = norms[0](x) + self_attend(x, mask)
+ {POST_2} -> return norms[1](x) + feed_forward(x)
    For "post" you normalise x alone. Normalise the sum: norm(x + sublayer(x)).
{POST_1} -> x = x + norms[0](self_attend(x, mask))
+ {POST_2} -> return x + norms[1](feed_forward(x))
    For "post" you normalise the output of the sublayer and then add x. Normalise the sum.
{PRE_1} -> x = x + norms[0](self_attend(x, mask))
+ {PRE_2} -> return x + norms[1](feed_forward(x))
    For "pre" you normalise the output of the sublayer. Normalise its input: sublayer(norm(x)).
{PRE_1} -> x = norms[0](x + self_attend(norms[0](x), mask))
+ {PRE_2} -> return norms[1](x + feed_forward(norms[1](x)))
{PRE_1} -> x = norms[0](x + self_attend(norms[0](x), mask))
    For "pre" you normalise the sum as well, so the residual stream passes through a norm. Normalise the input of the
    sublayer only.
{POST_1} -> x = norms[0](x + self_attend(norms[0](x), mask))
+ {POST_2} -> return norms[1](x + feed_forward(norms[1](x)))
{POST_1} -> x = norms[0](x + self_attend(norms[0](x), mask))
{POST_2} -> return norms[1](x + feed_forward(norms[1](x)))
    For "post" you normalise the input of the sublayer as well. Normalise the sum only.
norms[0] =>
+ norms[1] =>
    The norms are never used.
norms[0] =>
    The norm of the self-attention is missing: norms[0] is never used.
norms[1] =>
    The norm of the FFN is missing: norms[1] is never used.
norms[0](x) -> x
    For "pre" the norm of the self-attention is missing: norms[0] is never used.
norms[1](x) -> x
    For "pre" the norm of the FFN is missing: norms[1] is never used.
{POST_1} -> x = x + self_attend(x, mask)
    For "post" the norm of the self-attention is missing: norms[0] is never used.
{POST_2} -> return x + feed_forward(x)
    For "post" the norm of the FFN is missing: norms[1] is never used.
norms[1] => norms[0]
    You use norms[0] twice. Each sublayer has a norm with its own learned weight and bias.
norms[0] => norms[1]
    You use norms[1] twice. Each sublayer has a norm with its own learned weight and bias.
norms[0] => norms[1]
+ norms[1] => norms[0]
    The norms are exchanged: norms[0] belongs to the self-attention, norms[1] to the FFN.
norms[0](x) -> norms[1](x)
+ norms[1](x) -> norms[0](x)
    For "pre" the norms are exchanged: norms[0] belongs to the self-attention, norms[1] to the FFN.
x = norms[0](x + -> x = norms[1](x +
+ return norms[1](x + -> return norms[0](x +
    For "post" the norms are exchanged: norms[0] belongs to the self-attention, norms[1] to the FFN.
norms[1](x) -> norms[0](x)
    For "pre" you use norms[0] twice. The norm of the FFN is norms[1].
return norms[1](x + -> return norms[0](x +
    For "post" you use norms[0] twice. The norm of the FFN is norms[1].
{PRE_1} -> x = x + feed_forward(norms[1](x))
+ {PRE_2} -> return x + self_attend(norms[0](x), mask)
+ {POST_1} -> x = norms[1](x + feed_forward(x))
+ {POST_2} -> return norms[0](x + self_attend(x, mask))
    The order is exchanged: self-attention comes first, then the FFN.
{PRE_1} -> x = x + feed_forward(norms[0](x))
+ {PRE_2} -> return x + self_attend(norms[1](x), mask)
+ {POST_1} -> x = norms[0](x + feed_forward(x))
+ {POST_2} -> return norms[1](x + self_attend(x, mask))
    The order is exchanged: your FFN comes first, with norms[0]. Self-attention comes first, then the FFN.
, mask)) -> ))
+ (norms[0](x), mask) -> (norms[0](x))
    You do not pass the mask to the self-attention, so tokens attend to padding.
(norms[0](x), mask) -> (norms[0](x))
    For "pre" you do not pass the mask to the self-attention, so tokens attend to padding.
, mask)) -> ))
    For "post" you do not pass the mask to the self-attention, so tokens attend to padding.
, mask)) -> , ~mask))
+ (norms[0](x), mask) -> (norms[0](x), ~mask)
    You invert the mask, so tokens attend to padding only. self_attend takes True = may attend: pass it as it is.
{PRE_1} -> attended = self_attend(norms[0](x), mask)
+ {PRE_2} -> return x + attended + feed_forward(norms[1](x))
    For "pre" both sublayers get the same x. The FFN continues with the output of the attention sublayer: x = x + …,
    twice. (GPT-J computes both in parallel; the Transformer of 2017 does not.)
{POST_1} -> first = x; {POST_1}
+ {POST_2} -> return norms[1](x + feed_forward(first))
    For "post" both sublayers get the same x. The FFN continues with the output of the attention sublayer.
{PRE_1} -> attended = self_attend(norms[0](x), mask)
+ {PRE_2} -> return x + attended + feed_forward(norms[1](x))
+ {POST_1} -> first = x; {POST_1}
+ {POST_2} -> return norms[1](x + feed_forward(first))
    Both sublayers get the same x. The FFN continues with the output of the attention sublayer: x = x + …, twice.
{PRE_2} -> return x
+ {POST_2} -> return x
    The FFN is never used.
{PRE_1} ->
+ {POST_1} ->
    The self-attention is never used.
{PRE_1} -> first = x; {PRE_1}
+ {PRE_2} -> return first + feed_forward(norms[1](x))
+ {POST_1} -> first = x; {POST_1}
+ {POST_2} -> return norms[1](first + feed_forward(x))
    The residual connection of your FFN starts at the input of the block, so the output of the self-attention is lost
    from the sum. It starts at the sum before it: x = x + …, twice.
{PRE_1} -> first = x; {PRE_1}
+ {PRE_2} -> return first + feed_forward(norms[1](x))
    For "pre" the residual connection of your FFN starts at the input of the block. It starts at the sum before it.
{POST_1} -> first = x; {POST_1}
+ {POST_2} -> return norms[1](first + feed_forward(x))
    For "post" the residual connection of your FFN starts at the input of the block. It starts at the output of the
    first norm.
{PRE_2} -> return norms[1](x + feed_forward(norms[1](x)))
{PRE_2} -> return norms[0](x + feed_forward(norms[1](x)))
    For "pre" you apply a norm once more at the end. The output of a pre-norm block is a sum that is not normalised.
"""


EXERCISE = Exercise(
    title="An encoder block, pre-norm or post-norm",
    solution=encoder_block,
    cases=(
        Case(
            x=torch.tensor([[[1.0, 2.0, -1.0], [0.0, 3.0, 1.0]]]),
            mask=torch.tensor([[[True, False]]]),
            **_parts(3, seed=80),
            placement="pre",
        ),
        Case(
            x=torch.tensor([[[1.0, 2.0, -1.0], [0.0, 3.0, 1.0]]]),
            mask=torch.tensor([[[True, False]]]),
            **_parts(3, seed=80),
            placement="post",
        ),
        Case(
            x=random_tensor(2, 3, 4, seed=90),
            mask=padding_mask(torch.tensor([3, 2])),
            **_parts(4, seed=91),
            placement="post",
        ),
        Case(
            x=random_tensor(2, 5, 4, seed=95),
            mask=padding_mask(torch.tensor([5, 3])),
            **_parts(4, seed=96),
            placement="pre",
        ),
    ),
    mistakes=mistakes(encoder_block, MISTAKES),
    hints=(
        "Two sublayers, one after the other. Both have the same form; the form depends on placement.",
        'The form is x + sublayer(norm(x)) for "pre" and norm(x + sublayer(x)) for "post". The sublayers are '
        "self_attend(…, mask) with norms[0] and feed_forward(…) with norms[1].",
        'For "pre": x = x + self_attend(norms[0](x), mask), then return x + feed_forward(norms[1](x)).',
    ),
)
