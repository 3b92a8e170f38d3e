"""Exercise `decoder_block` of notebook 07."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.catalogue.transformer_blocks._shared import (
    random_attention,
    random_cross_attention,
    random_network,
    trained_norm,
)
from course_lib.exercises.edits import mistakes
from course_lib.exercises.exercise import Case, Exercise
from course_lib.masks import causal_mask, padding_mask


def decoder_block(x, memory, mask, memory_mask, self_attend, cross_attend, feed_forward, norms):
    x = x + self_attend(norms[0](x), mask)  # (batch, target, d_model)
    x = x + cross_attend(norms[1](x), memory, memory_mask)  # queries from x, keys from memory
    return x + feed_forward(norms[2](x))


def _decoder_parts(size, seed):
    return {
        "self_attend": random_attention(size, seed),
        "cross_attend": random_cross_attention(size, seed + 1),
        "feed_forward": random_network(size, seed + 2, "the FFN"),
        "norms": [trained_norm(size, seed + 3 + number, f"norm {number}") for number in range(3)],
    }


SELF = "x = x + self_attend(norms[0](x), mask)"
CROSS = "x = x + cross_attend(norms[1](x), memory, memory_mask)"
FFN = "return x + feed_forward(norms[2](x))"
MISTAKES = rf"""
{SELF} -> {CROSS}
+ {CROSS} -> {SELF}
    The order is exchanged: your cross-attention comes first. Self-attention comes first, then cross-attention.
self_attend(norms[0](x), mask) -> cross_attend(norms[0](x), memory, memory_mask)
+ cross_attend(norms[1](x), memory, memory_mask) -> self_attend(norms[1](x), mask)
    The order is exchanged: your cross-attention comes first, with the first norm. Self-attention comes first, then
    cross-attention.
{CROSS} -> x = x + feed_forward(norms[2](x))
+ {FFN} -> return x + cross_attend(norms[1](x), memory, memory_mask)
    Your FFN comes before the cross-attention. It comes last.
{CROSS} -> x = x + feed_forward(norms[1](x))
+ {FFN} -> return x + cross_attend(norms[2](x), memory, memory_mask)
    Your FFN comes before the cross-attention, with the second norm. It comes last.
{SELF} -> x = x + feed_forward(norms[2](x)); {SELF}
+ {FFN} -> return x
    Your FFN comes first. It comes last.
memory, memory_mask) -> norms[1](memory), memory_mask)
memory, memory_mask) -> norms[0](memory), memory_mask)
memory, memory_mask) -> norms[2](memory), memory_mask)
    You normalise the memory too. The final norm of the encoder has done so once, for all blocks; here only the input
    of the queries is normalised.
norms[1](x), memory, memory_mask) -> x, norms[1](memory), memory_mask)
    You normalise the memory instead of x. The memory is normalised already; x is not.
(norms[0](x), mask) -> (norms[0](x), memory_mask)
+ memory, memory_mask) -> memory, mask)
    The masks are exchanged: target tokens attend to later ones, and the source is masked causally. Where both have
    the same length, no error is raised.
memory, memory_mask) -> memory, mask)
    Your cross-attention gets the causal mask. The whole source is known; only its padding is masked: memory_mask.
(norms[0](x), mask) -> (norms[0](x), memory_mask)
    Your self-attention gets memory_mask, so tokens attend to later ones. It needs mask.
(norms[0](x), mask) -> (norms[0](x))
    Your self-attention gets no mask: a token attends to those that come after it.
memory, memory_mask) -> memory)
    Your cross-attention gets no mask: it attends to the padding of the source.
norms[1](x), memory, memory_mask) -> memory, norms[1](x), memory_mask)
norms[1](x), memory, memory_mask) -> memory, x, memory_mask)
norms[1](x), memory, memory_mask) -> norms[1](memory), x, memory_mask)
norms[1](x), memory, memory_mask) -> norms[1](memory), norms[1](x), memory_mask)
    Your queries come from the memory. They come from x: weights are (batch, target, source), and cross_attend takes x
    first.
norms[1](x), memory, memory_mask) -> memory, norms[1](x))
norms[1](x), memory, memory_mask) -> norms[1](memory), x)
    Your queries come from the memory, and its mask is left out. Queries come from x: weights are (batch, target,
    source), and cross_attend takes x first.
norms[1](x), memory, memory_mask) -> norms[1](x), norms[1](x), memory_mask)
norms[1](x), memory, memory_mask) -> norms[1](x), x, memory_mask)
    Your cross-attention takes its keys and values from x: the memory is never used.
norms[1](x), memory, memory_mask) -> norms[1](x), norms[1](x), mask)
norms[1](x), memory, memory_mask) -> norms[1](x), x, mask)
cross_attend(norms[1](x), memory, memory_mask) -> self_attend(norms[1](x), mask)
    Your second attention is a second causal self-attention: the memory is never used.
cross_attend(norms[1](x), memory, memory_mask) -> self_attend(norms[1](x), memory_mask)
    Your second attention is a second self-attention: the memory is never used.
norms[1](x), memory, memory_mask) -> memory, memory, memory_mask)
norms[1](x), memory, memory_mask) -> norms[1](memory), memory, memory_mask)
    Your cross-attention takes queries, keys and values from the memory. The queries come from x.
self_attend(norms[0](x), mask) -> cross_attend(norms[0](x), norms[0](x), mask)
    You call cross_attend for the self-attention. It has projections of its own: call self_attend(…, mask).
{SELF} -> x = norms[0](x + self_attend(x, mask))
+ {CROSS} -> x = norms[1](x + cross_attend(x, memory, memory_mask))
+ {FFN} -> return norms[2](x + feed_forward(x))
    This is post-norm: each sum is normalised. In pre-norm the input of each sublayer is normalised.
{SELF} -> x = norms[0](x + self_attend(x, mask))
    Your self-attention is post-norm: its sum with x is normalised. In pre-norm its input is normalised.
{CROSS} -> x = norms[1](x + cross_attend(x, memory, memory_mask))
    Your cross-attention is post-norm: its sum with x is normalised. In pre-norm its input x is normalised.
{FFN} -> return norms[2](x + feed_forward(x))
    Your FFN is post-norm: its sum with x is normalised. In pre-norm its input is normalised.
self_attend(norms[0](x), mask) -> norms[0](self_attend(x, mask))
+ cross_attend(norms[1](x), memory, memory_mask) -> norms[1](cross_attend(x, memory, memory_mask))
+ feed_forward(norms[2](x)) -> norms[2](feed_forward(x))
    You normalise the output of each sublayer. In pre-norm its input is normalised.
x = x + self_attend -> x = self_attend
+ x = x + cross_attend -> x = cross_attend
+ return x + feed_forward -> return feed_forward
    None of the three sublayers has a residual connection: x + …
x = x + self_attend -> x = self_attend
    The self-attention has no residual connection: x + self_attend(…).
x = x + cross_attend -> x = cross_attend
    The cross-attention has no residual connection: x + cross_attend(…).
return x + feed_forward -> return feed_forward
    The feed-forward network has no residual connection: x + feed_forward(…).
norms[1] -> norms[0]
+ norms[2] -> norms[0]
    You use norms[0] three times. Each sublayer has its own norm.
norms[0] -> norms[1]
norms[0] -> norms[2]
    Your self-attention uses the norm of another sublayer. Its own is norms[0].
norms[1] -> norms[0]
norms[1] -> norms[2]
    Your cross-attention uses the norm of another sublayer. Its own is norms[1].
norms[2] -> norms[0]
norms[2] -> norms[1]
    Your FFN uses the norm of another sublayer. Its own is norms[2].
norms[0](x) -> x
+ norms[1](x) -> x
+ norms[2](x) -> x
    The norms are never used.
norms[0](x) -> x
    The input of your self-attention is not normalised: norms[0].
norms[1](x) -> x
    The input x of your cross-attention is not normalised: norms[1].
norms[2](x) -> x
    The input of your FFN is not normalised: norms[2].
{SELF} -> first = x; {SELF}
+ norms[1](x) -> norms[1](first)
+ norms[2](x) -> norms[2](first)
    All three sublayers get the first x. Each continues with the sum of the one before: x = x + …
{SELF} -> first = x; {SELF}
+ norms[1](x) -> norms[1](first)
    The queries of your cross-attention come from the input of the block. They come from the sum after the
    self-attention.
{SELF} -> first = x; {SELF}
+ norms[2](x) -> norms[2](first)
    Your FFN gets the input of the block. It continues with the sum after the cross-attention.
{CROSS} -> second = x; {CROSS}
+ norms[2](x) -> norms[2](second)
    Your FFN gets the sum after the self-attention. It continues with the sum after the cross-attention.
{SELF} -> first = x; {SELF}
+ x = x + cross_attend -> x = first + cross_attend
+ return x + feed_forward -> return first + feed_forward
    Your residual connections all start at the input of the block, so the outputs of earlier sublayers are lost from
    the sum. Each starts at the sum before it: x = x + …
{SELF} -> first = x; {SELF}
+ x = x + cross_attend -> x = first + cross_attend
    The residual connection of your cross-attention starts at the input of the block, so the output of the
    self-attention is lost from the sum. It starts at the sum before it: x = x + …
{SELF} -> first = x; {SELF}
+ return x + feed_forward -> return first + feed_forward
    The residual connection of your FFN starts at the input of the block, so the outputs of both attentions are lost
    from the sum. It starts at the sum before it.
{CROSS} -> second = x; {CROSS}
+ return x + feed_forward -> return second + feed_forward
    The residual connection of your FFN starts at the sum after the self-attention, so the output of the
    cross-attention is lost. It starts at the sum before it.
{CROSS} ->
{CROSS} ->
+ norms[2](x) -> norms[1](x)
    The cross-attention is missing: the memory is never used. It comes between self-attention and FFN, with norms[1].
{SELF} ->
{SELF} ->
+ norms[1](x) -> norms[0](x)
+ norms[2](x) -> norms[1](x)
    The self-attention is missing. It comes first, with norms[0].
{FFN} -> return x
    The FFN is missing. It comes last, with norms[2].
norms[1] -> norms[2]
+ norms[2] -> norms[1]
norms[0] -> norms[1]
+ norms[1] -> norms[0]
norms[0] -> norms[1]
+ norms[1] -> norms[2]
+ norms[2] -> norms[0]
norms[0] -> norms[2]
+ norms[1] -> norms[0]
+ norms[2] -> norms[1]
norms[0] -> norms[2]
+ norms[2] -> norms[0]
    The norms are permuted: norms[0] belongs to the self-attention, norms[1] to the cross-attention, norms[2] to the
    FFN.
(norms[0](x), mask) -> (norms[0](x), ~mask)
    You invert the mask of the self-attention. The sublayers take True = may attend: pass it as it is.
memory, memory_mask) -> memory, ~memory_mask)
    You invert the mask of the memory. The sublayers take True = may attend: pass it as it is.
(norms[0](x), mask) -> (norms[0](x))
+ memory, memory_mask) -> memory, mask)
    Your cross-attention gets the mask of the self-attention, and the self-attention gets none. mask belongs to the
    self-attention, memory_mask to the cross-attention.
{FFN} -> return norms[2](x + feed_forward(norms[2](x)))
    You apply a norm once more at the end. The output of a pre-norm block is a sum that is not normalised.
x = x + self_attend -> x = norms[0](x) + self_attend
+ x = x + cross_attend -> x = norms[1](x) + cross_attend
+ return x + feed_forward -> return norms[2](x) + feed_forward
    You add norm(x) to the output of a sublayer. The residual connection starts before the norm: add x itself.
x = x + self_attend -> x = norms[0](x) + self_attend
    You add norms[0](x) to the output of the self-attention. Its residual connection starts before the norm: add x.
x = x + cross_attend -> x = norms[1](x) + cross_attend
    You add norms[1](x) to the output of the cross-attention. Its residual connection starts before the norm: add x.
return x + feed_forward -> return norms[2](x) + feed_forward
    You add norms[2](x) to the output of the FFN. Its residual connection starts before the norm: add x.
"""

EXERCISE = Exercise(
    title="A decoder block: self-attention, cross-attention, FFN",
    solution=decoder_block,
    cases=(
        Case(  # as many tokens in the target as in the source: no mistake raises an error
            x=torch.tensor([[[1.0, 2.0], [-1.0, 3.0]]]),
            memory=torch.tensor([[[2.0, 0.0], [1.0, -1.0]]]),
            mask=causal_mask(2),
            memory_mask=torch.tensor([[[False, True]]]),
            **_decoder_parts(2, seed=40),
        ),
        Case(
            x=random_tensor(2, 3, 3, seed=33),
            memory=random_tensor(2, 3, 3, seed=34),
            mask=causal_mask(3),
            memory_mask=padding_mask(torch.tensor([3, 1])),
            **_decoder_parts(3, seed=50),
        ),
        Case(
            x=random_tensor(2, 3, 4, seed=35),
            memory=random_tensor(2, 5, 4, seed=36),
            mask=causal_mask(3),
            memory_mask=padding_mask(torch.tensor([5, 2])),
            **_decoder_parts(4, seed=60),
        ),
    ),
    mistakes=mistakes(decoder_block, MISTAKES),
    hints=(
        "Three times the same form: x = x + sublayer(norm(x)). In which order?",
        "Self-attention first. Cross-attention takes the queries, then the memory as it is, then its own mask.",
        "x = x + self_attend(norms[0](x), mask), then x = x + cross_attend(norms[1](x), memory, memory_mask), then "
        "the FFN.",
    ),
)
