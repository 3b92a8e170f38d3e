"""Exercise `cross_attention` of notebook 04."""

import math

import torch
import torch.nn.functional as F

from course_lib.attention import scaled_dot_product_attention
from course_lib.exercises.catalogue._shared import (
    attention_scores,
    random_tensor,
    rounded_tensor,
    two_mistakes,
)
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


def _with_matrices(q, k, v):
    """The exercise with other matrices: each one the position of W_q, W_k or W_v among the three."""
    return lambda x, m, *W: _cross(x, m, W[q], W[k], W[v])


def _from_scores(result):
    """The exercise with another function of (scores, values, queries)."""
    return lambda x, m, W_q, W_k, W_v: result(
        attention_scores(x @ W_q.T, m @ W_k.T), m @ W_v.T, x @ W_q.T
    )


def _changed(x, m, *W, root=None, **settings):
    return _cross(x, m, *W, root=None if root is None else root(len(W[0])), **settings)


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
        Case(  # all dimensions are equal
            x=rounded_tensor(1, 3, 3, seed=31),
            memory=rounded_tensor(1, 3, 3, seed=32),
            W_q=rounded_tensor(3, 3, seed=33),
            W_k=rounded_tensor(3, 3, seed=34),
            W_v=rounded_tensor(3, 3, seed=35),
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
        Mistake(
            "W_k_and_W_v_exchanged",
            _with_matrices(0, 2, 1),
            "W_k and W_v are exchanged: W_k projects the keys, which are compared with the queries, W_v the values, which "
            "are averaged.",
        ),
        Mistake(
            "W_q_and_W_k_exchanged",
            _with_matrices(1, 0, 2),
            "W_q and W_k are exchanged: W_q projects the queries, from x, and W_k the keys, from memory.",
        ),
        Mistake(
            "W_q_and_W_v_exchanged",
            _with_matrices(2, 1, 0),
            "W_q and W_v are exchanged: W_q projects the queries, from x, and W_v the values, from memory.",
        ),
        *(
            Mistake(
                f"W_{name}",
                _with_matrices(*which),
                f"You use W_{name[0]} for two of the three projections. Queries, keys and values each have their own: W_q, "
                "W_k and W_v.",
            )
            for name, which in {
                "k_for_values": (0, 1, 1),
                "v_for_keys": (0, 2, 2),
                "q_for_keys": (0, 0, 2),
                "k_for_queries": (1, 1, 2),
                "q_for_values": (0, 1, 0),
                "v_for_queries": (2, 1, 2),
            }.items()
        ),
        Mistake(
            "W_q_for_all",
            _with_matrices(0, 0, 0),
            "You use W_q for all three projections. Keys and values have their own, W_k and W_v.",
        ),
        *(
            Mistake(
                f"sides_and_matrices_{name}",
                lambda x, m, *W, which=which: _cross(m, x, *(W[i] for i in which)),
                "Here memory attends to x, and the matrices are in another order. Queries are x @ W_q.T; keys and values "
                "are memory @ W_k.T and memory @ W_v.T.",
            )
            for name, which in {"kqv": (1, 0, 2), "vkq": (2, 1, 0)}.items()
        ),
        Mistake(
            "number_of_keys",
            lambda *a: _cross(*a, root=a[1].shape[-2]),
            "You scale by the number of keys. The dot product is a sum of d_head terms, one per component of the projected "
            "vectors.",
        ),
        Mistake(
            "multiplied",
            lambda *a: _cross(*a, root=1 / len(a[2])),
            "You multiply by √d_head. Divide, so that the variance of the scores does not grow with the dimension.",
        ),
        Mistake(
            "after_the_softmax",
            lambda *a: _cross(*a, root=1) / math.sqrt(len(a[2])),
            "You scale after the softmax: the weights of a row sum to 1/√d_head. Scale the scores.",
        ),
        Mistake(
            "no_softmax",
            _from_scores(lambda scores, v, q: scores @ v),
            "You use the scores as weights. Apply a softmax over the keys first.",
        ),
        Mistake(
            "residual",
            _from_scores(lambda scores, v, q: torch.softmax(scores, dim=-1) @ v + q),
            "You add the projected queries to the output. There is no residual connection in this exercise.",
        ),
        Mistake(
            "residual_of_x",
            lambda x, *a: _cross(x, *a) + x,
            "You add x to the output. There is no residual connection in this exercise.",
        ),
        Mistake(
            "weights",
            _from_scores(lambda scores, v, q: torch.softmax(scores, dim=-1)),
            "These are the weights, and they are right. Return the output: weights @ v.",
        ),
        Mistake(
            "queries_not_projected",
            lambda x, m, W_q, W_k, W_v: (
                torch.softmax(attention_scores(x, m @ W_k.T), dim=-1) @ (m @ W_v.T)
            ),
            "The queries are not projected: W_q is not used.",
        ),
        Mistake(
            "keys_not_projected",
            lambda x, m, W_q, W_k, W_v: (
                torch.softmax(attention_scores(x @ W_q.T, m), dim=-1) @ (m @ W_v.T)
            ),
            "The keys are not projected: W_k is not used.",
        ),
        Mistake(
            "not_projected",
            lambda x, m, W_q, W_k, W_v: torch.softmax(attention_scores(x, m), dim=-1) @ m,
            "Nothing is projected: W_q, W_k and W_v are not used.",
        ),
        Mistake(
            "causal",
            _from_scores(
                lambda scores, v, q: (
                    torch.softmax(
                        scores.masked_fill(
                            ~torch.ones_like(scores, dtype=torch.bool).tril(), -torch.inf
                        ),
                        dim=-1,
                    )
                    @ v
                )
            ),
            "Your mask is causal. In cross-attention every query may attend to all of memory.",
        ),
        Mistake(
            "memory_appended",
            lambda x, m, *W: (
                scaled_dot_product_attention(
                    x @ W[0].mT,
                    torch.cat([x @ W[1].mT, m @ W[1].mT], dim=1),
                    torch.cat([x @ W[2].mT, m @ W[2].mT], dim=1),
                ).output
            ),
            "Your queries attend to x and memory together. In cross-attention, keys and values come from memory alone.",
        ),
        Mistake(
            "cosine",
            lambda x, m, W_q, W_k, W_v: (
                torch.softmax(
                    F.normalize(x @ W_q.T, dim=-1) @ F.normalize(m @ W_k.T, dim=-1).mT, dim=-1
                )
                @ (m @ W_v.T)
            ),
            "You divide by the norms, so your scores are cosine similarities. Divide the dot products by √d_head.",
        ),
        *two_mistakes(
            _changed,
            {
                "unscaled": ({"root": lambda d: 1}, "The scale 1/√d_head is missing."),
                "d_for_root": ({"root": lambda d: d**2}, "Divide by √d_head, not by d_head."),
            },
            {
                "softmax_over_queries": (
                    {"dim": -2},
                    "Your softmax runs over the queries; it must run over the keys: dim=-1.",
                )
            },
            {
                "self_attention": (
                    {"k": "x", "v": "x"},
                    "Keys and values come from memory, not from x.",
                ),
                "sides_exchanged": (
                    {"q": "m", "k": "x", "v": "x"},
                    "Queries come from x, keys and values from memory.",
                ),
            },
        ),
    ),
    hints=(
        "Which sequence attends? Project the queries from it. Which is attended to? Project keys and values from it.",
        "W is (d_head, d_in), as nn.Linear stores it: x @ W.T is (batch, length, d_head).",
        "q from x, k and v from memory, then softmax(q @ k.mT / math.sqrt(d_head)) @ v.",
    ),
)
