"""Bug hunt `hunt_five` of notebook 05."""

import math
from functools import partial
from itertools import product

import torch

from course_lib.exercises.catalogue._shared import (
    attention_scores,
    rounded_tensor,
    softmax_where_allowed,
)
from course_lib.exercises.catalogue.multi_head_attention._shared import (
    merge_without_transpose,
    multi_head_reference,
    projection_matrices,
)
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.multihead import merge_heads, split_heads


def multi_head(query, key, value, mask, W_q, W_k, W_v, W_o, num_heads):
    batch, query_length, d_model = query.shape
    _, key_length, _ = key.shape  # the batch is the first axis
    d_head = d_model // num_heads

    def attention(query, key, value, mask):
        scores = query @ key.mT / math.sqrt(query.shape[-1])  # (batch, heads, query, key)
        fully_masked = ~mask.any(dim=-1, keepdim=True)  # no key allowed
        scores = scores.masked_fill(~mask, -torch.inf).masked_fill(fully_masked, 0.0)
        return torch.softmax(scores, dim=-1).masked_fill(fully_masked, 0.0) @ value

    q = (query @ W_q.T).view(batch, query_length, num_heads, d_head).transpose(1, 2)
    k = (key @ W_k.T).view(batch, key_length, num_heads, d_head).transpose(1, 2)
    v = (value @ W_v.T).view(batch, key_length, num_heads, d_head).transpose(1, 2)
    heads = attention(q, k, v, mask[:, None])  # the same mask for all heads
    merged = heads.transpose(1, 2).reshape(batch, query_length, d_model)
    return merged @ W_o.T


def _given_attention(query, key, value, mask):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask[:, None], -torch.inf)
    return torch.softmax(scores, dim=-1) @ value


def _given(query, key, value, mask, W_q, W_k, W_v, W_o, num_heads):
    batch, query_length, d_model = query.shape
    key_length, _, _ = key.shape
    d_head = d_model // num_heads
    q = (query @ W_q.T).view(batch, query_length, num_heads, d_head).transpose(1, 2)
    k = (query @ W_k.T).view(batch, key_length, num_heads, d_head).transpose(1, 2)
    v = (query @ W_v.T).view(batch, key_length, num_heads, d_head).transpose(1, 2)
    heads = _given_attention(q, k, v, mask=None)
    heads.transpose(1, 2).contiguous().view(batch, query_length, d_model)
    return heads @ W_o.T


def _with_bugs(
    query, key, value, mask, W_q, W_k, W_v, W_o, num_heads, *, length, ignoring, masking, merging
):
    """`_given` with some of its bugs left; each argument is a key of `_SYMPTOMS[argument]`."""
    batch, query_length, d_model = query.shape
    key_length = key.shape[0 if length == "batch" else 1]
    key, value = {
        "": (key, value),
        "key and value": (query, query),
        "key": (query, value),
        "value": (key, query),
        "value is key": (key, key),
    }[ignoring]

    def heads_of(x, W, tokens):
        return (x @ W.T).view(batch, tokens, num_heads, d_model // num_heads).transpose(1, 2)

    q = heads_of(query, W_q, query_length)
    k, v = heads_of(key, W_k, key_length), heads_of(value, W_v, key_length)
    if masking == "unused":
        weights = torch.softmax(attention_scores(q, k), dim=-1)
    else:
        fill = {"nan": -torch.inf, "mean": -1e9}.get(masking)
        mask = ~mask if masking == "inverted" else mask
        weights = softmax_where_allowed(attention_scores(q, k), mask[:, None], fill=fill)
    heads = weights @ v
    return (heads if merging else merge_heads(heads)) @ W_o.T


#: Symptom by what is left; "" is repaired.
_SYMPTOMS = {
    "length": {
        "": "",
        "batch": "there must be as many sequences in the batch as keys, or an error is raised",
    },
    "ignoring": {
        "": "",
        "key and value": "another key or value does not change the output",
        "key": "another key does not change the output (that bug is half repaired)",
        "value": "another value does not change the output (that bug is half repaired)",
        "value is key": "the values are projected from key (that bug is half repaired)",
    },
    "masking": {
        "": "",
        "unused": "the mask changes nothing, which may hide one more bug",
        "nan": "a fully masked query gets NaN",
        "mean": "a fully masked query gets the mean of the masked values",
        "inverted": "the mask is inverted, so the queries attend to the masked keys (that bug is half repaired)",
    },
    "merging": {
        "": "",
        "thrown": "the output has four axes with one head, and with more heads an error is raised",
    },
}
_NUMBERS = ("None", "One", "Two", "Three", "Four")


def _message(**left):
    """The number of repaired bugs and the symptoms of the others."""
    symptoms = [_SYMPTOMS[part][which] for part, which in left.items() if which]
    repaired = 5 - len(symptoms) - (left["masking"] == "unused")
    count = f"{_NUMBERS[repaired]} of five repaired."
    if left["masking"] == "unused" and repaired:
        count = f"At least {count.lower()}"
    return f"{count} Still wrong: {'; '.join(symptoms)}."


def _partial_repair(**left):
    """The mistake of a learner who has repaired all other bugs."""
    return Mistake(
        "left: " + ", ".join(which for which in left.values() if which),
        partial(_with_bugs, **left),
        _message(**left),
    )


_NONE_REPAIRED = ("batch", "key and value", "unused", "thrown")


def _all_repaired(query, key, value, mask, W_q, W_k, W_v, W_o, num_heads, **wrong):
    """The layer without the five bugs, and with another one."""

    def heads_of(x, W):
        return split_heads(x @ W.mT, num_heads)

    scores = attention_scores(heads_of(query, W_q), heads_of(key, W_k), wrong.get("root"))
    weights = softmax_where_allowed(scores, mask[:, None], dim=wrong.get("dim", -1))
    return merge_heads(weights @ heads_of(value, W_v)) @ W_o.mT


EXERCISE = Exercise(
    name="hunt_five",
    notebook="05_multi_head_attention",
    title="Bug hunt: five bugs in one multi-head attention",
    reference=multi_head_reference,
    solution=multi_head,
    cases=(
        Case(  # as many sequences as queries and as keys, and one head: nothing raises
            query=torch.tensor([[[1.0, 0.0], [0.0, 2.0]], [[2.0, 1.0], [1.0, -1.0]]]),
            key=torch.tensor([[[0.0, 1.0], [2.0, 1.0]], [[1.0, 1.0], [-1.0, 2.0]]]),
            value=torch.tensor([[[3.0, 1.0], [0.0, 2.0]], [[1.0, -2.0], [4.0, 0.0]]]),
            mask=torch.tensor([[[True, False], [False, False]], [[True, True], [False, True]]]),
            W_q=torch.tensor([[1.0, 0.0], [1.0, 1.0]]),
            W_k=torch.tensor([[0.0, 1.0], [1.0, 0.0]]),
            W_v=torch.tensor([[1.0, 1.0], [0.0, 1.0]]),
            W_o=torch.tensor([[2.0, 0.0], [1.0, 1.0]]),
            num_heads=1,
        ),
        Case(  # more sequences than keys
            query=rounded_tensor(3, 2, 2, seed=25),
            key=rounded_tensor(3, 2, 2, seed=26),
            value=rounded_tensor(3, 2, 2, seed=27),
            mask=torch.ones(3, 2, 2, dtype=torch.bool),
            **projection_matrices(2, seed=28),
            num_heads=1,
        ),
        Case(
            query=rounded_tensor(5, 3, 8, seed=29),
            key=rounded_tensor(5, 6, 8, seed=30),
            value=rounded_tensor(5, 6, 8, seed=31),
            mask=(torch.arange(6) < torch.tensor([6, 2, 0, 5, 3])[:, None, None]).repeat(1, 3, 1),
            **projection_matrices(8, seed=32),
            num_heads=2,
        ),
    ),
    mistakes=(
        *(
            _partial_repair(**dict(zip(_SYMPTOMS, left, strict=True)))
            for left in product(*_SYMPTOMS.values())
            if any(left) and left != _NONE_REPAIRED
        ),
        Mistake(
            "mixed_merge",
            lambda *a: multi_head_reference(*a, join=merge_without_transpose),
            "None of the five is left. But you merge without transposing back, so a row holds several positions of "
            "one head.",
        ),
        Mistake(
            "over_queries",
            lambda *a: _all_repaired(*a, dim=-2),
            "None of the five is left. But your softmax runs over the queries: each query has a distribution over the "
            "keys, dim=-1.",
        ),
        Mistake(
            "no_scale",
            lambda *a: _all_repaired(*a, root=1),
            "None of the five is left. But the scale is missing now: divide the scores by √d_head.",
        ),
        Mistake(
            "keys_and_values_exchanged",
            lambda query, key, value, *rest: _all_repaired(query, value, key, *rest),
            "None of the five is left. But keys and values are exchanged: W_k projects key, W_v projects value.",
        ),
        Mistake(
            "W_o_not_transposed",
            lambda *a: _all_repaired(*a[:-2], a[-2].mT, a[-1]),
            "None of the five is left. But W_o is used as x @ W_o.T, like the other matrices.",
        ),
        Mistake(
            "by_d_model",
            lambda *a: _all_repaired(*a, root=a[0].shape[-1]),
            "None of the five is left. But you scale by √d_model: a score is a sum over the components of one head, √d_head.",
        ),
    ),
    hints=(
        "Make all axes differ: 5 sequences, 3 queries, 6 keys, 2 heads. Which line raises an error?",
        "Change key, then value, then mask, and see whether the output changes. Print its shape. Then mask every key "
        "for one query.",
        "Check each line: which axis of key is its length? What is projected? Which mask is passed on? Where is the "
        "result of the view used? What is a softmax over nothing but -inf?",
    ),
    given=_given,
    given_message=_message(**dict(zip(_SYMPTOMS, _NONE_REPAIRED, strict=True))),
)
