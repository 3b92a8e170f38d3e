"""Exercise `decoder_block` of notebook 07."""

from functools import partial
from itertools import permutations

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.catalogue.transformer_blocks._shared import (
    random_attention,
    random_cross_attention,
    random_network,
    trained_norm,
)
from course_lib.exercises.exercise import Case, Exercise, Mistake
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


def _run_block(
    x,
    memory,
    mask,
    memory_mask,
    self_attend,
    cross_attend,
    feed_forward,
    norms,
    *,
    order="scn",
    norm_of=(0, 1, 2),
    residual="scn",
    post="",
    memory_norm=None,
    hide=lambda mask, memory_mask: (mask, memory_mask),
    query="x",
    at_once=False,
    inputs=(),
    stale=False,
    after="",
):
    mask, memory_mask = hide(mask, memory_mask)
    n0, n1, n2 = (norms[number] if number is not None else (lambda x: x) for number in norm_of)
    memory = memory if memory_norm is None else norms[memory_norm](memory)
    steps = {
        "s": (n0, lambda x: self_attend(x, mask)),
        "c": (
            n1,
            {
                "x": lambda x: cross_attend(x, memory, memory_mask),
                "memory": lambda x: cross_attend(memory, x, memory_mask),
                "memory, no mask": lambda x: cross_attend(memory, x, None),
                "x twice": lambda x: cross_attend(x, x, memory_mask),
                "x as memory": lambda normed: cross_attend(normed, x, memory_mask),
                "x twice, causal": lambda x: cross_attend(x, x, mask),
                "memory twice": lambda x: cross_attend(memory, memory, memory_mask),
            }[query],
        ),
        "n": (n2, feed_forward),
    }
    first = x
    for step in order:
        norm, part = steps[step]
        if step in post:
            x = norm(x + part(x))
        else:
            change = part(norm(first if at_once or step in inputs else x))
            x = norm(x) if step in after else x
            x = (first if stale else x) + change if step in residual else change
    return x


EXERCISE = Exercise(
    name="decoder_block",
    notebook="07_transformer_blocks",
    title="A decoder block: self-attention, cross-attention, FFN",
    reference=_run_block,
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
    mistakes=(
        Mistake(
            "cross_first",
            partial(_run_block, order="csn"),
            "The order is exchanged: your cross-attention comes first. Self-attention comes first, then "
            "cross-attention.",
        ),
        Mistake(
            "cross_first_with_norms",
            partial(_run_block, order="csn", norm_of=(1, 0, 2)),
            "The order is exchanged: your cross-attention comes first, with the first norm. Self-attention comes first, "
            "then cross-attention.",
        ),
        Mistake(
            "ffn_between",
            partial(_run_block, order="snc"),
            "Your FFN comes before the cross-attention. It comes last.",
        ),
        Mistake(
            "ffn_between_with_norms",
            partial(_run_block, order="snc", norm_of=(0, 2, 1)),
            "Your FFN comes before the cross-attention, with the second norm. It comes last.",
        ),
        Mistake(
            "ffn_first",
            partial(_run_block, order="nsc"),
            "Your FFN comes first. It comes last.",
        ),
        Mistake(
            "memory_normed",
            partial(_run_block, memory_norm=1),
            "You normalise the memory too. The final norm of the encoder has done so once, for all blocks; here only "
            "the input of the queries is normalised.",
        ),
        Mistake(
            "only_memory_normed",
            partial(_run_block, memory_norm=1, norm_of=(0, None, 2)),
            "You normalise the memory instead of x. The memory is normalised already; x is not.",
        ),
        Mistake(
            "masks_exchanged",
            partial(_run_block, hide=lambda mask, memory_mask: (memory_mask, mask)),
            "The masks are exchanged: target tokens attend to later ones, and the source is masked causally. Where both "
            "have the same length, no error is raised.",
        ),
        Mistake(
            "mask_twice",
            partial(_run_block, hide=lambda mask, memory_mask: (mask, mask)),
            "Your cross-attention gets the causal mask. The whole source is known; only its padding is masked: "
            "memory_mask.",
        ),
        Mistake(
            "memory_mask_twice",
            partial(_run_block, hide=lambda mask, memory_mask: (memory_mask, memory_mask)),
            "Your self-attention gets memory_mask, so tokens attend to later ones. It needs mask.",
        ),
        Mistake(
            "no_mask",
            partial(_run_block, hide=lambda mask, memory_mask: (None, memory_mask)),
            "Your self-attention gets no mask: a token attends to those that come after it.",
        ),
        Mistake(
            "no_memory_mask",
            partial(_run_block, hide=lambda mask, memory_mask: (mask, None)),
            "Your cross-attention gets no mask: it attends to the padding of the source.",
        ),
        Mistake(
            "no_masks",
            partial(_run_block, hide=lambda mask, memory_mask: (None, None)),
            "Neither mask is passed on.",
        ),
        Mistake(
            "queries_from_memory",
            partial(_run_block, query="memory"),
            "Your queries come from the memory. They come from x: weights are (batch, target, source), and cross_attend "
            "takes x first.",
        ),
        Mistake(
            "queries_from_memory_no_mask",
            partial(_run_block, query="memory, no mask"),
            "Your queries come from the memory, and its mask is left out. Queries come from x: weights are "
            "(batch, target, source), and cross_attend takes x first.",
        ),
        Mistake(
            "memory_unused",
            partial(_run_block, query="x twice"),
            "Your cross-attention takes its keys and values from x: the memory is never used.",
        ),
        Mistake(
            "memory_unused_causal",
            partial(_run_block, query="x twice, causal"),
            "Your second attention is a second causal self-attention: the memory is never used.",
        ),
        Mistake(
            "memory_to_itself",
            partial(_run_block, query="memory twice"),
            "Your cross-attention takes queries, keys and values from the memory. The queries come from x.",
        ),
        Mistake(
            "post_norm",
            partial(_run_block, post="scn"),
            "This is post-norm: each sum is normalised. In pre-norm the input of each sublayer is normalised.",
        ),
        Mistake(
            "no_residual",
            partial(_run_block, residual=""),
            "None of the three sublayers has a residual connection: x + …",
        ),
        Mistake(
            "no_residual_self",
            partial(_run_block, residual="cn"),
            "The self-attention has no residual connection: x + self_attend(…).",
        ),
        Mistake(
            "no_residual_cross",
            partial(_run_block, residual="sn"),
            "The cross-attention has no residual connection: x + cross_attend(…).",
        ),
        Mistake(
            "no_residual_ffn",
            partial(_run_block, residual="sc"),
            "The feed-forward network has no residual connection: x + feed_forward(…).",
        ),
        Mistake(
            "one_norm",
            partial(_run_block, norm_of=(0, 0, 0)),
            "You use norms[0] three times. Each sublayer has its own norm.",
        ),
        Mistake(
            "no_norms",
            partial(_run_block, norm_of=(None, None, None)),
            "The norms are never used.",
        ),
        Mistake(
            "cross_not_normed",
            partial(_run_block, norm_of=(0, None, 2)),
            "The input x of your cross-attention is not normalised: norms[1].",
        ),
        Mistake(
            "ffn_not_normed",
            partial(_run_block, norm_of=(0, 1, None)),
            "The input of your FFN is not normalised: norms[2].",
        ),
        Mistake(
            "at_once",
            partial(_run_block, at_once=True),
            "All three sublayers get the first x. Each continues with the sum of the one before: x = x + …",
        ),
        Mistake(
            "no_cross_attention",
            partial(_run_block, order="sn"),
            "The cross-attention is missing: the memory is never used. It comes between self-attention and FFN, with norms[1].",
        ),
        Mistake(
            "no_cross_attention_next_norm",
            partial(_run_block, order="sn", norm_of=(0, None, 1)),
            "The cross-attention is missing: the memory is never used. It comes between self-attention and FFN, with norms[1].",
        ),
        Mistake(
            "no_self_attention",
            partial(_run_block, order="cn"),
            "The self-attention is missing. It comes first, with norms[0].",
        ),
        Mistake(
            "no_self_attention_next_norms",
            partial(_run_block, order="cn", norm_of=(None, 0, 1)),
            "The self-attention is missing. It comes first, with norms[0].",
        ),
        Mistake(
            "no_ffn",
            partial(_run_block, order="sc"),
            "The FFN is missing. It comes last, with norms[2].",
        ),
        *(
            Mistake(
                f"norms_permuted {norm_of}",
                partial(_run_block, norm_of=norm_of),
                "The norms are permuted: norms[0] belongs to the self-attention, norms[1] to the cross-attention, norms[2] to "
                "the FFN.",
            )
            for norm_of in permutations(range(3))
            if norm_of != (0, 1, 2)
        ),
        Mistake(
            "memory_is_x",
            partial(_run_block, query="x as memory"),
            "Your cross-attention takes its keys and values from x: the memory is never used.",
        ),
        Mistake(
            "cross_of_the_input",
            partial(_run_block, inputs={"c"}),
            "The queries of your cross-attention come from the input of the block. They come from the sum after the "
            "self-attention.",
        ),
        Mistake(
            "ffn_of_the_input",
            partial(_run_block, inputs={"n"}),
            "Your FFN gets the input of the block. It continues with the sum after the cross-attention.",
        ),
        Mistake(
            "residuals_of_the_input",
            partial(_run_block, stale=True),
            "Your residual connections all start at the input of the block, so the outputs of earlier sublayers are lost from "
            "the sum. Each starts at the sum before it: x = x + …",
        ),
        Mistake(
            "mask_inverted",
            partial(_run_block, hide=lambda mask, memory_mask: (~mask, memory_mask)),
            "You invert the mask of the self-attention. The sublayers take True = may attend: pass it as it is.",
        ),
        Mistake(
            "memory_mask_inverted",
            partial(_run_block, hide=lambda mask, memory_mask: (mask, ~memory_mask)),
            "You invert the mask of the memory. The sublayers take True = may attend: pass it as it is.",
        ),
        Mistake(
            "masks_inverted",
            partial(_run_block, hide=lambda mask, memory_mask: (~mask, ~memory_mask)),
            "You invert both masks. The sublayers take True = may attend: pass them as they are.",
        ),
        Mistake(
            "self_not_normed",
            partial(_run_block, norm_of=(None, 1, 2)),
            "The input of your self-attention is not normalised: norms[0].",
        ),
        Mistake(
            "final_norm",
            lambda *a: a[-1][2](_run_block(*a)),
            "You apply a norm once more at the end. The output of a pre-norm block is a sum that is not normalised.",
        ),
        Mistake(
            "residual_after_the_norm",
            lambda x, memory, mask, memory_mask, self_attend, cross_attend, feed_forward, norms: (
                _run_block(
                    x,
                    memory,
                    mask,
                    memory_mask,
                    self_attend,
                    cross_attend,
                    feed_forward,
                    norms,
                    after="scn",
                )
            ),
            "You add norm(x) to the output of a sublayer. The residual connection starts before the norm: add x itself.",
        ),
        *(
            Mistake(
                f"only_residual_{kept}",
                partial(_run_block, residual=kept),
                f"Only the {name} has a residual connection. All three sublayers need one: x + …",
            )
            for kept, name in (("s", "self-attention"), ("c", "cross-attention"), ("n", "FFN"))
        ),
        Mistake(
            "mask_of_the_target_for_the_memory_only",
            partial(_run_block, hide=lambda mask, memory_mask: (None, mask)),
            "Your cross-attention gets the mask of the self-attention, and the self-attention gets none. mask belongs to the "
            "self-attention, memory_mask to the cross-attention.",
        ),
    ),
    hints=(
        "Three times the same form: x = x + sublayer(norm(x)). In which order?",
        "Self-attention first. Cross-attention takes the queries, then the memory as it is, then its own mask.",
        "x = x + self_attend(norms[0](x), mask), then x = x + cross_attend(norms[1](x), memory, memory_mask), then "
        "the FFN.",
    ),
)
