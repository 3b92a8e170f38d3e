"""Exercise `causal_self_attention` of notebook 05."""

import math

import torch

from course_lib.attention import scaled_dot_product_attention
from course_lib.exercises.catalogue._shared import (
    attention_scores,
    random_tensor,
    softmax_where_allowed,
)
from course_lib.exercises.catalogue.multi_head_attention._shared import merge_without_transpose
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.masks import causal_mask
from course_lib.multihead import merge_heads, split_heads


def causal_self_attention(x, W, W_o, num_heads):
    batch, length, d_model = x.shape
    d_head = d_model // num_heads
    q, k, v = (
        part.view(batch, length, num_heads, d_head).transpose(1, 2)
        for part in (x @ W.T).chunk(3, dim=-1)
    )  # (batch, heads, length, d_head) each
    scores = q @ k.mT / math.sqrt(d_head)  # (batch, heads, query, key)
    allowed = torch.ones(length, length, dtype=torch.bool).tril()
    weights = torch.softmax(scores.masked_fill(~allowed, -torch.inf), dim=-1)
    heads = weights @ v  # (batch, heads, query, d_head)
    return heads.transpose(1, 2).reshape(batch, length, d_model) @ W_o.T


def _reference(x, W, W_o, num_heads):
    q, k, v = (split_heads(x @ part.mT, num_heads) for part in W.chunk(3))
    return (
        merge_heads(scaled_dot_product_attention(q, k, v, causal_mask(x.shape[1])).output) @ W_o.mT
    )


def _split_without_transpose(x, num_heads):
    return x.reshape(x.shape[0], num_heads, x.shape[1], -1)


def _split_interleaved(x, num_heads):
    return x.unflatten(-1, (-1, num_heads)).permute(0, 3, 1, 2)


def _blocks(x, W):
    return (x @ W.mT).chunk(3, dim=-1)


def _lower(length):
    return causal_mask(length)


def _attention(
    x, W, W_o, num_heads,
    *, blocks=_blocks, order=(0, 1, 2), cut=split_heads, join=merge_heads, mask=_lower, root=None, dim=-1, fill=None,
    softmax=softmax_where_allowed,
):  # fmt: skip
    parts = blocks(x, W)
    q, k, v = (cut(parts[i], num_heads) for i in order)
    scores = attention_scores(q, k, root)
    allowed = mask(x.shape[1])
    return join(softmax(scores, allowed, dim=dim, fill=fill) @ v) @ W_o.mT


def _head_by_head(x, W, num_heads):
    """Read the outputs as q, k, v of head 0, then of head 1, …"""
    parts = (x @ W.mT).unflatten(-1, (num_heads, 3, -1))  # (batch, length, heads, 3, d_head)
    return parts.unbind(dim=-2)


EXERCISE = Exercise(
    name="causal_self_attention",
    notebook="05_multi_head_attention",
    title="Causal multi-head self-attention with packed weights",
    reference=_reference,
    solution=causal_self_attention,
    cases=(
        Case(
            x=torch.tensor([[[1.0, 0.0, 2.0, 1.0], [0.0, 1.0, 1.0, -1.0], [2.0, 1.0, 0.0, 1.0]]]),
            W=torch.tensor(
                [[(3 * i + 5 * j + i * j) % 5 - 2.0 for j in range(4)] for i in range(12)]
            ),
            W_o=torch.tensor(
                [
                    [1.0, 0.0, 1.0, 0.0],
                    [0.0, 1.0, 0.0, -1.0],
                    [2.0, 0.0, 1.0, 1.0],
                    [0.0, 1.0, 1.0, 0.0],
                ]
            ),
            num_heads=2,
        ),
        Case(
            x=random_tensor(2, 5, 12, seed=17),
            W=random_tensor(36, 12, seed=18) / math.sqrt(12),
            W_o=random_tensor(12, 12, seed=19) / math.sqrt(12),
            num_heads=3,
        ),
    ),
    mistakes=(
        Mistake(
            "no_mask",
            lambda *a: _attention(*a, mask=lambda n: torch.ones(n, n, dtype=torch.bool)),
            "The causal mask is missing: each position attends to later ones.",
        ),
        Mistake(
            "upper",
            lambda *a: _attention(*a, mask=lambda n: torch.ones(n, n, dtype=torch.bool).triu()),
            "Your mask is the upper triangle: each position attends to itself and to the future.",
        ),
        Mistake(
            "diagonal_masked",
            lambda *a: _attention(*a, mask=lambda n: torch.ones(n, n, dtype=torch.bool).tril(-1)),
            "Your mask excludes the diagonal: a position attends to itself too.",
        ),
        Mistake(
            "keys_before_queries",
            lambda *a: _attention(*a, order=(1, 0, 2)),
            "Queries and keys are exchanged: the blocks of W are queries, keys, values.",
        ),
        Mistake(
            "values_before_keys",
            lambda *a: _attention(*a, order=(0, 2, 1)),
            "Keys and values are exchanged: the blocks of W are queries, keys, values.",
        ),
        Mistake(
            "head_by_head",
            lambda x, W, W_o, h: _attention(
                x,
                W,
                W_o,
                h,
                blocks=lambda x, W: _head_by_head(x, W, h),
                cut=lambda part, _: part.transpose(1, 2),
            ),  # fmt: skip
            "You read W as q, k and v of head 0, then of head 1. It holds the queries of all heads first, then all "
            "keys, then all values.",
        ),
        Mistake(
            "by_d_model",
            lambda *a: _attention(*a, root=a[0].shape[-1]),
            "You scale by √d_model. A score is a sum over the components of one head: √d_head.",
        ),
        Mistake(
            "by_d_head",
            lambda *a: _attention(*a, root=(a[0].shape[-1] // a[3]) ** 2),
            "You divide by d_head. Divide by its square root.",
        ),
        Mistake(
            "no_scale",
            lambda *a: _attention(*a, root=1),
            "The scale is missing. Divide the scores by √d_head.",
        ),
        Mistake(
            "no_output_projection",
            lambda x, W, W_o, h: _attention(x, W, torch.eye(len(W_o), dtype=W_o.dtype), h),
            "W_o is missing. Without it the heads are concatenated and not mixed.",
        ),
        Mistake(
            "W_o_not_transposed",
            lambda x, W, W_o, h: _attention(x, W, W_o.mT, h),
            "Correct up to the last step: W_o is (out, in), as nn.Linear stores it, so … @ W_o.T.",
        ),
        Mistake(
            "split_by_view",
            lambda *a: _attention(*a, cut=_split_without_transpose),
            "You split by a view alone: the shape is right, but a head gets parts of other positions. Cut the last "
            "axis in two, then transpose(1, 2).",
        ),
        Mistake(
            "merged_by_view",
            lambda *a: _attention(*a, join=merge_without_transpose),
            "You merge without transposing back: the shape is right, but a row holds several positions of one head.",
        ),
        Mistake(
            "both_by_view",
            lambda *a: _attention(*a, cut=_split_without_transpose, join=merge_without_transpose),
            "You split and merge by views alone. The round trip returns x, but in between each head attends among "
            "parts of other positions. Transpose after the cut, and back before the merge.",
        ),
        Mistake(
            "interleaved_heads",
            lambda *a: _attention(*a, cut=_split_interleaved),
            "Your heads get every num_heads-th component. Each head gets d_head consecutive ones: "
            "view(…, num_heads, d_head).",
        ),
        Mistake(
            "one_head",
            lambda x, W, W_o, h: _attention(x, W, W_o, 1),
            "num_heads makes no difference: this is one head of dimension d_model.",
        ),
        Mistake(
            "triangle_masked",
            lambda *a: _attention(*a, mask=lambda n: ~_lower(n), fill=-torch.inf),
            "The mask is inverted: you mask the lower triangle, so each position attends only to later ones, and the last "
            "one has no key left and gets NaN. Mask what is above the diagonal.",
        ),
        Mistake(
            "triangle_masked_without_nan",
            lambda *a: _attention(*a, mask=lambda n: ~_lower(n)),
            "The mask is inverted: you mask the lower triangle, so each position attends only to later ones. Mask what is "
            "above the diagonal.",
        ),
        Mistake(
            "diagonal_masked_nan",
            lambda *a: _attention(*a, mask=lambda n: _lower(n).tril(-1), fill=-torch.inf),
            "Your mask excludes the diagonal, so the first position has no key left and gets NaN. A position attends to "
            "itself too.",
        ),
        Mistake(
            "one_ahead",
            lambda *a: _attention(*a, mask=lambda n: torch.ones(n, n, dtype=torch.bool).tril(1)),
            "Off by one: each position attends to the one after it.",
        ),
        Mistake(
            "over_queries",
            lambda *a: _attention(*a, dim=-2, fill=-torch.inf),
            "Your softmax runs over the queries. Each query has a distribution over the keys: dim=-1.",
        ),
        Mistake(
            "masked_after_softmax",
            lambda *a: _attention(
                *a, softmax=lambda scores, allowed, **_: torch.softmax(scores, dim=-1) * allowed
            ),
            "You mask after the softmax, so the weights of a row no longer sum to 1. Set the scores to -inf before it.",
        ),
        Mistake(
            "scores_to_zero",
            lambda *a: _attention(*a, fill=0.0),
            "A score of 0 masks nothing: exp(0) is 1. Masked scores must be -inf.",
        ),
        Mistake(
            "queries_and_values_exchanged",
            lambda *a: _attention(*a, order=(2, 1, 0)),
            "Queries and values are exchanged: the blocks of W are queries, keys, values.",
        ),
        Mistake(
            "by_number_of_heads",
            lambda *a: _attention(*a, root=a[3]),
            "You scale by the root of the number of heads. A score is a sum over the components of one head: √d_head.",
        ),
    ),
    hints=(
        "You have all the parts: project, split, attend, merge, project. Write the shape behind each line.",
        "q, k, v = (x @ W.T).chunk(3, dim=-1), then split each into heads.",
        "Divide the scores by √d_head, set those above the diagonal to -inf, softmax over the keys, @ v, then "
        "transpose(1, 2), reshape, @ W_o.T.",
    ),
)
