"""Exercise `cross_attention` of notebook 04."""

import math

import torch

from course_lib.attention import scaled_dot_product_attention
from course_lib.exercises.catalogue._shared import attention_scores, random_tensor, rounded_tensor
from course_lib.exercises.exercise import Case, Exercise, Mistake


def cross_attention(x, memory, W_q, W_k, W_v):
    q = x @ W_q.T  # (batch, query, d_head)
    k = memory @ W_k.T  # (batch, key, d_head)
    v = memory @ W_v.T  # (batch, key, d_head)
    scores = q @ k.mT / math.sqrt(q.shape[-1])  # (batch, query, key)
    return torch.softmax(scores, dim=-1) @ v  # (batch, query, d_head)


def _cross(x, memory, W_q, W_k, W_v, *, q="x", k="m", v="m", root=None, dim=-1):
    read = {"x": x, "m": memory}
    scores = attention_scores(read[q] @ W_q.T, read[k] @ W_k.T, root)
    return torch.softmax(scores, dim=dim) @ (read[v] @ W_v.T)


EXERCISE = Exercise(
    name="cross_attention",
    notebook="04_self_and_cross_attention",
    title="Cross-attention between two sequences",
    reference=lambda x, m, W_q, W_k, W_v: (
        scaled_dot_product_attention(x @ W_q.mT, m @ W_k.mT, m @ W_v.mT).output
    ),
    solution=cross_attention,
    cases=(
        Case(
            x=rounded_tensor(1, 2, 2, seed=6),
            memory=rounded_tensor(1, 3, 2, seed=7),
            W_q=rounded_tensor(2, 2, seed=8),
            W_k=rounded_tensor(2, 2, seed=9),
            W_v=rounded_tensor(2, 2, seed=10),
        ),
        Case(  # as many queries as keys, and one dimension: no mistake raises an error
            x=random_tensor(2, 3, 4, seed=11),
            memory=random_tensor(2, 3, 4, seed=12),
            W_q=random_tensor(5, 4, seed=13),
            W_k=random_tensor(5, 4, seed=14),
            W_v=random_tensor(5, 4, seed=15),
        ),
        Case(
            x=random_tensor(2, 4, 3, seed=16),
            memory=random_tensor(2, 6, 5, seed=17),
            W_q=random_tensor(7, 3, seed=18),
            W_k=random_tensor(7, 5, seed=19),
            W_v=random_tensor(7, 5, seed=20),
        ),
    ),
    mistakes=(
        Mistake(
            "keys_and_values_from_x",
            lambda *a: _cross(*a, k="x", v="x"),
            "Keys and values come from x, so memory makes no difference: that is self-attention. Project them from "
            "memory.",
        ),
        Mistake(
            "keys_from_x",
            lambda *a: _cross(*a, k="x"),
            "Your keys come from x. Keys and values belong together: both are projections of memory.",
        ),
        Mistake(
            "values_from_x",
            lambda *a: _cross(*a, v="x"),
            "Your values come from x. Keys and values belong together: both are projections of memory.",
        ),
        Mistake(
            "queries_from_memory",
            lambda *a: _cross(*a, q="m"),
            "Your queries come from memory, so x makes no difference: that is self-attention of memory. Project the "
            "queries from x.",
        ),
        Mistake(
            "exchanged",
            lambda *a: _cross(*a, q="m", k="x", v="x"),
            "Here memory attends to x. Exchange the two: queries from x, keys and values from memory.",
        ),
        Mistake(
            "not_transposed",
            lambda x, m, W_q, W_k, W_v: (
                torch.softmax(attention_scores(x @ W_q, m @ W_k), dim=-1) @ m @ W_v
            ),
            "You multiply by W without transposing it. nn.Linear stores W as (d_head, d_in), so use x @ W.T. With a "
            "square W there is no error message.",
        ),
        Mistake(
            "no_scale",
            lambda *a: _cross(*a, root=1),
            "The scale is missing. Divide the scores by √d_head.",
        ),
        Mistake(
            "by_size_of_x",
            lambda *a: _cross(*a, root=a[0].shape[-1]),
            "You scale by the dimension of x before the projection. The dot product is a sum of d_head terms, one "
            "per component of the projected vectors.",
        ),
        Mistake(
            "by_size_of_memory",
            lambda *a: _cross(*a, root=a[1].shape[-1]),
            "You scale by the dimension of memory before the projection. The dot product is a sum of d_head terms, "
            "one per component of the projected vectors.",
        ),
        Mistake(
            "by_d",
            lambda *a: _cross(*a, root=a[2].shape[0] ** 2),
            "You divide by d_head. Divide by √d_head.",
        ),
        Mistake(
            "over_queries",
            lambda *a: _cross(*a, dim=-2),
            "Your softmax runs over the queries. The weights of one query sum to 1 over the keys: dim=-1.",
        ),
        Mistake(
            "unprojected_values",
            lambda x, m, W_q, W_k, W_v: (
                torch.softmax(attention_scores(x @ W_q.T, m @ W_k.T), dim=-1) @ m
            ),
            "You average memory itself. The values are its projection by W_v.",
        ),
    ),
    hints=(
        "Which sequence attends? Project the queries from it. Which is attended to? Project keys and values from it.",
        "W is (d_head, d_in), as nn.Linear stores it: x @ W.T is (batch, length, d_head).",
        "q from x, k and v from memory, then softmax(q @ k.mT / math.sqrt(d_head)) @ v.",
    ),
)
