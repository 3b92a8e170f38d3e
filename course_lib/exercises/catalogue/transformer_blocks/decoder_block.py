"""Exercise `decoder_block` of notebook 07."""

from functools import partial

import torch

from course_lib.attention import scaled_dot_product_attention
from course_lib.exercises.catalogue._shared import random_tensor, rounded_tensor
from course_lib.exercises.catalogue.transformer_blocks._shared import (
    NamedFunction,
    random_network,
    trained_norm,
)
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.masks import causal_mask, padding_mask


def decoder_block(x, memory, mask, memory_mask, self_attend, cross_attend, network, norms):
    x = x + self_attend(norms[0](x), mask)  # (batch, target, d_model)
    x = x + cross_attend(norms[1](x), memory, memory_mask)  # queries from x, keys from memory
    return x + network(norms[2](x))


def _attention_part(size, seed, name):
    """Single-head attention with random projections, for self- and cross-attention."""
    W_q, W_k, W_v = random_tensor(3, size, size, seed=seed)

    def attend(x, memory, mask):
        W = [W.to(x.dtype) for W in (W_q, W_k, W_v)]
        return scaled_dot_product_attention(x @ W[0], memory @ W[1], memory @ W[2], mask).output

    return NamedFunction(name, attend)


def _decoder_parts(size, seed):
    own = _attention_part(size, seed, "")
    return {
        "self_attend": NamedFunction("self-attention", lambda x, mask: own(x, x, mask)),
        "cross_attend": _attention_part(size, seed + 1, "cross-attention"),
        "network": random_network(size, seed + 2),
        "norms": [trained_norm(size, seed + 3 + number, f"norm {number}") for number in range(3)],
    }


def _run_block(
    x,
    memory,
    mask,
    memory_mask,
    self_attend,
    cross_attend,
    network,
    norms,
    *,
    order="scn",
    norm_of=(0, 1, 2),
    around="scn",
    post="",
    memory_norm=None,
    hide=lambda mask, memory_mask: (mask, memory_mask),
    query="x",
    at_once=False,
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
                "x twice, causal": lambda x: cross_attend(x, x, mask),
                "memory twice": lambda x: cross_attend(memory, memory, memory_mask),
            }[query],
        ),
        "n": (n2, network),
    }
    first = x
    for step in order:
        norm, part = steps[step]
        if step in post:
            x = norm(x + part(x))
        else:
            change = part(norm(first if at_once else x))
            x = x + change if step in around else change
    return x


EXERCISE = Exercise(
    name="decoder_block",
    notebook="07_transformer_blocks",
    title="A decoder block: to itself, to the source, then the network",
    reference=_run_block,
    solution=decoder_block,
    cases=(
        Case(  # as many tokens in the target as in the source: nothing raises
            x=rounded_tensor(1, 2, 2, seed=31),
            memory=rounded_tensor(1, 2, 2, seed=32),
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
            "The order is exchanged: you look at the source first. The target looks at itself first, then at the "
            "source.",
        ),
        Mistake(
            "cross_first_with_norms",
            partial(_run_block, order="csn", norm_of=(1, 0, 2)),
            "The order is exchanged: you look at the source first, with the first norm. The target looks at itself "
            "first, then at the source.",
        ),
        Mistake(
            "network_between",
            partial(_run_block, order="snc"),
            "Your network stands before the cross-attention. It comes last.",
        ),
        Mistake(
            "network_between_with_norms",
            partial(_run_block, order="snc", norm_of=(0, 2, 1)),
            "Your network stands before the cross-attention, with the second norm. It comes last.",
        ),
        Mistake(
            "network_first",
            partial(_run_block, order="nsc"),
            "Your network comes first. It comes last.",
        ),
        Mistake(
            "memory_normed",
            partial(_run_block, memory_norm=1),
            "You normalise the memory too. The encoder's final norm has done so once, for all blocks; here only the "
            "queries are normalised.",
        ),
        Mistake(
            "only_memory_normed",
            partial(_run_block, memory_norm=1, norm_of=(0, None, 2)),
            "You normalise the memory in place of x. It came normalised; the queries did not.",
        ),
        Mistake(
            "masks_exchanged",
            partial(_run_block, hide=lambda mask, memory_mask: (memory_mask, mask)),
            "The masks are exchanged: your target looks ahead, and the source is hidden as if it were still to be "
            "written. Where both are of one length, nothing raises an error.",
        ),
        Mistake(
            "mask_twice",
            partial(_run_block, hide=lambda mask, memory_mask: (mask, mask)),
            "Your cross-attention gets the causal mask. The source is there as a whole; only its padding is hidden: "
            "memory_mask.",
        ),
        Mistake(
            "memory_mask_twice",
            partial(_run_block, hide=lambda mask, memory_mask: (memory_mask, memory_mask)),
            "Your self-attention gets memory_mask, so it looks ahead. It needs mask.",
        ),
        Mistake(
            "no_mask",
            partial(_run_block, hide=lambda mask, memory_mask: (None, memory_mask)),
            "Your self-attention gets no mask: a token sees those that come after it.",
        ),
        Mistake(
            "no_memory_mask",
            partial(_run_block, hide=lambda mask, memory_mask: (mask, None)),
            "Your cross-attention gets no mask: it looks at the source's padding.",
        ),
        Mistake(
            "no_masks",
            partial(_run_block, hide=lambda mask, memory_mask: (None, None)),
            "Both masks are taken and never handed on.",
        ),
        Mistake(
            "queries_from_memory",
            partial(_run_block, query="memory"),
            "Your queries come from the memory, so a row of weights belongs to a word of the source. The target "
            "asks: weights are (batch, target, source), and cross_attend takes x first.",
        ),
        Mistake(
            "queries_from_memory_no_mask",
            partial(_run_block, query="memory, no mask"),
            "Your queries come from the memory, and its mask is left out. The target asks: weights are "
            "(batch, target, source), and cross_attend takes x first.",
        ),
        Mistake(
            "memory_unused",
            partial(_run_block, query="x twice"),
            "Your cross-attention looks at x: the memory makes no difference.",
        ),
        Mistake(
            "memory_unused_causal",
            partial(_run_block, query="x twice, causal"),
            "Your second attention is a second self-attention, mask included: the memory makes no difference.",
        ),
        Mistake(
            "memory_to_itself",
            partial(_run_block, query="memory twice"),
            "Your cross-attention looks from the memory at the memory. The queries come from x.",
        ),
        Mistake(
            "post_norm",
            partial(_run_block, post="scn"),
            "This is post-norm: each sum is normalised. Here the norm stands before each part, outside the residual connection.",
        ),
        Mistake(
            "no_way_around",
            partial(_run_block, around=""),
            "None of the three sublayers has a residual connection: x + …",
        ),
        Mistake(
            "no_way_around_self",
            partial(_run_block, around="cn"),
            "The self-attention has no residual connection: x + self_attend(…).",
        ),
        Mistake(
            "no_way_around_cross",
            partial(_run_block, around="sn"),
            "The cross-attention has no residual connection: x + cross_attend(…).",
        ),
        Mistake(
            "no_way_around_network",
            partial(_run_block, around="sc"),
            "The feed-forward network has no residual connection: x + network(…).",
        ),
        Mistake(
            "one_norm",
            partial(_run_block, norm_of=(0, 0, 0)),
            "You use the first norm three times. Each part has one of its own.",
        ),
        Mistake(
            "no_norms",
            partial(_run_block, norm_of=(None, None, None)),
            "The norms are never used.",
        ),
        Mistake(
            "cross_not_normed",
            partial(_run_block, norm_of=(0, None, 2)),
            "The queries of your cross-attention are not normalised: norms[1].",
        ),
        Mistake(
            "network_not_normed",
            partial(_run_block, norm_of=(0, 1, None)),
            "What goes into your network is not normalised: norms[2].",
        ),
        Mistake(
            "at_once",
            partial(_run_block, at_once=True),
            "All three parts work on the first x. Each goes on with what the one before left: x = x + …",
        ),
    ),
    hints=(
        "Three times the same form: x = x + part(norm(x)). In which order?",
        "Self-attention first. Cross-attention takes the queries, then the memory as it is, then its own mask.",
        "x = x + self_attend(norms[0](x), mask), then x = x + cross_attend(norms[1](x), memory, memory_mask), then "
        "the network.",
    ),
)
