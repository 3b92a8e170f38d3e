"""Exercises and bug hunts of notebook 05."""

import math
from functools import partial
from itertools import product

import torch

from course_lib.attention import scaled_dot_product_attention
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.masks import causal_mask, masked_softmax
from course_lib.multihead import merge_heads, split_heads

_NOTEBOOK = "05_multi_head_attention"


def _drawn(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def _short(*shape, seed):
    """Drawn as well, with one decimal: for a report that is read."""
    return _drawn(*shape, seed=seed).round(decimals=1)


def _matrices(size, seed):
    """W_q, W_k, W_v and W_o."""
    drawn = (_drawn(4, size, size, seed=seed) / math.sqrt(size)).round(decimals=1)
    return dict(zip(("W_q", "W_k", "W_v", "W_o"), drawn, strict=True))


def _scores(query, key, root=None):
    return query @ key.mT / math.sqrt(key.shape[-1] if root is None else root)


def _softmax_of(scores, mask, *, hide=None, dim=-1):
    """A softmax over what `mask` allows. Rows without a key give 0, unless hidden scores become `hide`."""
    if hide is not None:
        return torch.softmax(scores.masked_fill(~mask, hide), dim=dim)
    lonely = ~mask.any(dim=-1, keepdim=True)
    scores = scores.masked_fill(~mask, -torch.inf).masked_fill(lonely, 0.0)
    return torch.softmax(scores, dim=dim).masked_fill(lonely, 0.0)


# --- split -----------------------------------------------------------------------------------


def split(x, num_heads):
    batch, length, width = x.shape
    pieces = x.view(batch, length, num_heads, width // num_heads)
    return pieces.transpose(1, 2)  # (batch, heads, length, d_head)


def _pieces(x, num_heads):
    return x.unflatten(-1, (num_heads, -1))  # (batch, length, heads, d_head)


_SPLIT = Exercise(
    name="split",
    notebook=_NOTEBOOK,
    title="Cut each vector into heads",
    reference=split_heads,
    solution=split,
    cases=(
        Case(x=torch.arange(12.0).reshape(1, 2, 6), num_heads=3),
        Case(x=_drawn(2, 5, 12, seed=0), num_heads=4),
    ),
    mistakes=(
        Mistake(
            "only_viewed",
            lambda x, h: x.view(x.shape[0], h, x.shape[1], x.shape[2] // h),
            "The shape is right and the numbers are mixed up: a view cuts the row of all numbers anew, so a head "
            "gets parts of other tokens. Keep the length in its place, cut the width, then transpose.",
        ),
        Mistake(
            "not_transposed",
            _pieces,
            "Cut right, but yours is (batch, length, heads, d_head). Swap the two axes in the middle.",
        ),
        Mistake(
            "heads_last",
            lambda x, h: x.unflatten(-1, (-1, h)).permute(0, 3, 1, 2),
            "Your heads take turns: number 0 for head 0, number 1 for head 1. Each head gets neighbours: view(…, num_heads, d_head).",
        ),
        Mistake(
            "size_for_heads",
            lambda x, h: x.unflatten(-1, (-1, h)).transpose(1, 2),
            "You have taken num_heads for the size of a head: that size is width // num_heads.",
        ),
        Mistake(
            "length_last",
            lambda x, h: _pieces(x, h).permute(0, 2, 3, 1),
            "Your last two axes are (d_head, length). Each head holds a vector per token: (length, d_head).",
        ),
        Mistake(
            "wrong_axes_swapped",
            lambda x, h: _pieces(x, h).mT,
            "You swapped the last two axes. The heads must come in front of the length: transpose(1, 2).",
        ),
        Mistake(
            "ends_swapped",
            lambda x, h: _pieces(x, h).transpose(1, 3),
            "You swapped length and d_head. The heads must come in front of the length: transpose(1, 2).",
        ),
        Mistake(
            "heads_first",
            lambda x, h: _pieces(x, h).permute(2, 0, 1, 3),
            "Yours is (heads, batch, length, d_head). The batch stays in front.",
        ),
    ),
    hints=(
        "Each vector is cut by itself. Which axis turns into two?",
        "x.view(batch, length, num_heads, width // num_heads) keeps every number with its token.",
        "Then .transpose(1, 2): (batch, heads, length, d_head).",
    ),
)


# --- merge -----------------------------------------------------------------------------------


def merge(heads):
    batch, num_heads, length, d_head = heads.shape
    pieces = heads.transpose(1, 2)  # (batch, length, heads, d_head)
    return pieces.reshape(batch, length, num_heads * d_head)


_MERGE = Exercise(
    name="merge",
    notebook=_NOTEBOOK,
    title="Put the heads back side by side",
    reference=merge_heads,
    solution=merge,
    cases=(
        Case(heads=torch.arange(12.0).reshape(1, 3, 2, 2)),
        Case(heads=_drawn(2, 4, 5, 3, seed=1)),
    ),
    mistakes=(
        Mistake(
            "only_reshaped",
            lambda x: x.reshape(x.shape[0], x.shape[2], -1),
            "The shape is right and the numbers are mixed up: your rows hold several tokens of one head. Transpose "
            "back first, so that the heads of one token are neighbours.",
        ),
        Mistake(
            "not_flattened",
            lambda x: x.transpose(1, 2),
            "The order is right, but there are four axes still. Flatten the last two.",
        ),
        Mistake(
            "not_transposed",
            lambda x: x.flatten(-2),
            "You put the tokens of each head side by side. It is the heads of each token that belong together.",
        ),
        Mistake(
            "heads_below",
            lambda x: x.flatten(1, 2),
            "You put the heads one below the other. They belong side by side, in one vector per token.",
        ),
        Mistake(
            "interleaved",
            lambda x: x.permute(0, 2, 3, 1).flatten(-2),
            "Your vectors hold the first number of every head, then the second of every head. The numbers of one "
            "head stay together: transpose(1, 2), then flatten.",
        ),
        Mistake(
            "added",
            lambda x: x.sum(1),
            "You add the heads up. They are put side by side; mixing them is the task of W_o.",
        ),
        Mistake(
            "averaged",
            lambda x: x.mean(1),
            "You average the heads. They are put side by side; mixing them is the task of W_o.",
        ),
    ),
    hints=(
        "It undoes a split: first which step, then which?",
        "heads.transpose(1, 2) is (batch, length, heads, d_head): now the pieces of one token are neighbours.",
        ".reshape(batch, length, num_heads * d_head). A view cannot: a transpose leaves the numbers where they lie.",
    ),
)


# --- project_heads ---------------------------------------------------------------------------


def project_heads(x, W):
    return x[:, None] @ W  # (batch, 1, length, d_in) @ (heads, d_in, d_head)


def _at_once(x, W):
    return x @ W.transpose(0, 1).flatten(1)  # (batch, length, heads · d_head)


def _narrow(x, W):
    batch, length, size = x.shape
    heads = len(W)
    return _at_once(x, W).view(batch, length, heads, size // heads).transpose(1, 2)


_PROJECT_HEADS = Exercise(
    name="project_heads",
    notebook=_NOTEBOOK,
    title="A projection per head, for any sizes",
    reference=lambda x, W: split_heads(_at_once(x, W), len(W)),
    solution=project_heads,
    cases=(
        Case(x=_short(1, 4, 2, seed=2), W=_short(3, 2, 2, seed=3)),
        Case(x=_drawn(3, 5, 6, seed=4), W=_drawn(2, 6, 3, seed=5)),  # 6 = 2 · 3
        Case(x=_drawn(2, 4, 5, seed=6), W=_drawn(3, 5, 6, seed=7)),
    ),
    mistakes=(
        Mistake(
            "size_of_x_divided",
            _narrow,
            "Right where heads · d_head is d_in, an error everywhere else: you take the size of a head from x. It is "
            "W.shape[-1].",
        ),
        Mistake(
            "one_letter",
            lambda x, W: torch.einsum("bld,hdd->bhld", x, W),
            "You use one letter for d_in and d_head. Where they are equal, einsum takes the diagonal of each matrix, "
            "and where they are not, it raises an error. They are two axes: two letters.",
        ),
        Mistake(
            "heads_mixed",
            lambda x, W: split_heads(x @ W.reshape(W.shape[1], -1), len(W)),
            "W.reshape(d_in, …) cuts the row of all numbers anew, so a head gets parts of other heads' matrices. "
            "Move d_in to the front first, or let x @ W broadcast.",
        ),
        Mistake(
            "only_viewed",
            lambda x, W: _at_once(x, W).reshape(len(x), len(W), x.shape[1], -1),
            "The products are right and then mixed up: a view alone gives a head parts of other tokens. Cut the "
            "width, then transpose.",
        ),
        Mistake(
            "transposed",
            lambda x, W: x[:, None] @ W.mT,
            "Your matrices are transposed. W is (heads, d_in, d_head) here: x @ W, without .mT.",
        ),
        Mistake(
            "no_axis",
            lambda x, W: x @ W,
            "The batch of x lines up with the heads of W. Give x an axis for the heads: x[:, None].",
        ),
        Mistake(
            "heads_first",
            lambda x, W: x @ W[:, None],
            "Yours is (heads, batch, length, d_head). The batch comes first.",
        ),
        Mistake(
            "not_transposed",
            lambda x, W: _at_once(x, W).unflatten(-1, (len(W), -1)),
            "Yours is (batch, length, heads, d_head). Swap the two axes in the middle.",
        ),
        Mistake(
            "not_split",
            _at_once,
            "The heads stand side by side in one vector. Give them an axis of their own.",
        ),
    ),
    hints=(
        "Each head multiplies the same x with a matrix of its own. Which axis must x get, so that they meet?",
        "(batch, 1, length, d_in) @ (heads, d_in, d_head): the axes in front of the last two broadcast.",
        "x[:, None] @ W. Or torch.einsum('bli,hio->bhlo', x, W): i and o need not be equal.",
    ),
)


# --- grouped ---------------------------------------------------------------------------------


def grouped(query, key, value):
    group = query.shape[1] // key.shape[1]  # so many heads of queries share one of keys
    key = key.repeat_interleave(group, dim=1)  # (batch, heads, key, d)
    value = value.repeat_interleave(group, dim=1)
    scores = query @ key.mT / math.sqrt(query.shape[-1])  # (batch, heads, query, key)
    return torch.softmax(scores, dim=-1) @ value  # (batch, heads, query, d)


def _neighbours(shared, group):
    return shared.repeat_interleave(group, dim=1)


def _in_turn(shared, group):
    return shared.repeat(1, group, 1, 1)


def _averaged(shared, group):
    return shared.mean(1, keepdim=True)


def _first(shared, group):
    return shared[:, :1]


def _grouped(query, key, value, *, keys=_neighbours, values=_neighbours, root=None, dim=-1):
    group = query.shape[1] // key.shape[1]
    scores = _scores(query, keys(key, group), root)
    return torch.softmax(scores, dim=dim) @ values(value, group)


_GROUPED = Exercise(
    name="grouped",
    notebook=_NOTEBOOK,
    title="Heads that share keys and values",
    reference=lambda q, k, v: (
        scaled_dot_product_attention(
            q,
            k.repeat_interleave(q.shape[1] // k.shape[1], 1),
            v.repeat_interleave(q.shape[1] // v.shape[1], 1),
        ).output
    ),
    solution=grouped,
    cases=(
        Case(
            query=_short(1, 4, 1, 2, seed=8),
            key=_short(1, 2, 3, 2, seed=9),
            value=_short(1, 2, 3, 2, seed=10),
        ),
        Case(  # one head of keys and values for all
            query=_drawn(2, 3, 4, 6, seed=11),
            key=_drawn(2, 1, 5, 6, seed=12),
            value=_drawn(2, 1, 5, 6, seed=13),
        ),
        Case(
            query=_drawn(2, 6, 4, 7, seed=14),
            key=_drawn(2, 3, 5, 7, seed=15),
            value=_drawn(2, 3, 5, 7, seed=16),
        ),
    ),
    mistakes=(
        Mistake(
            "in_turn",
            lambda *a: _grouped(*a, keys=_in_turn, values=_in_turn),
            "repeat gives heads 0 1 0 1. Neighbours share here, 0 0 1 1: repeat_interleave.",
        ),
        Mistake(
            "keys_in_turn",
            lambda *a: _grouped(*a, keys=_in_turn),
            "Your keys are repeated 0 1 0 1, your values 0 0 1 1: weights of one head average the values of another. "
            "Both need repeat_interleave.",
        ),
        Mistake(
            "values_in_turn",
            lambda *a: _grouped(*a, values=_in_turn),
            "Your values are repeated 0 1 0 1, your keys 0 0 1 1: weights of one head average the values of another. "
            "Both need repeat_interleave.",
        ),
        Mistake(
            "averaged",
            lambda *a: _grouped(*a, keys=_averaged, values=_averaged),
            "You average the heads of keys and values, and all heads of queries share the mean. Each group has "
            "one head of its own.",
        ),
        Mistake(
            "first_only",
            lambda *a: _grouped(*a, keys=_first, values=_first),
            "All your queries use the first head of keys and values. Each group has one of its own.",
        ),
        Mistake(
            "fewer_queries",
            lambda q, k, v: _grouped(q.unflatten(1, (k.shape[1], -1)).mean(2), k, v),
            "You average the queries of a group. Every head of queries keeps its own, and gets an output of its own.",
        ),
        Mistake(
            "no_scale",
            lambda *a: _grouped(*a, root=1),
            "The scale is missing. Divide the scores by the root of the size of a head.",
        ),
        Mistake(
            "by_d",
            lambda *a: _grouped(*a, root=a[0].shape[-1] ** 2),
            "You divide by d. Divide by its root.",
        ),
        Mistake(
            "by_d_model",
            lambda *a: _grouped(*a, root=a[0].shape[-1] * a[0].shape[1]),
            "You scale by the width of all heads together. A score adds up the numbers of one head.",
        ),
        Mistake(
            "over_queries",
            lambda *a: _grouped(*a, dim=-2),
            "Your softmax runs over the queries. A query shares its attention among the keys: dim=-1.",
        ),
        Mistake(
            "over_heads",
            lambda *a: _grouped(*a, dim=1),
            "Your softmax runs over the heads. A query shares its attention among the keys: dim=-1.",
        ),
    ),
    hints=(
        "With 6 heads of queries and 3 of keys, which queries use head 0 of the keys?",
        "key.repeat_interleave(group, dim=1) repeats each head in its place: 0 0 1 1 2 2. What is group?",
        "group = query.shape[1] // key.shape[1]. Repeat key and value so, and attend as ever.",
    ),
)


# --- multi_head_self -------------------------------------------------------------------------


def multi_head_self(x, W_q, W_k, W_v, W_o, num_heads):
    batch, length, d_model = x.shape
    d_head = d_model // num_heads

    def heads_of(W):  # (batch, heads, length, d_head)
        return (x @ W.T).view(batch, length, num_heads, d_head).transpose(1, 2)

    q, k, v = heads_of(W_q), heads_of(W_k), heads_of(W_v)
    scores = q @ k.mT / math.sqrt(d_head)  # (batch, heads, query, key)
    heads = torch.softmax(scores, dim=-1) @ v  # (batch, heads, query, d_head)
    return heads.transpose(1, 2).reshape(batch, length, d_model) @ W_o.T


def _mixed_split(x, num_heads):
    return x.reshape(x.shape[0], num_heads, x.shape[1], -1)


def _mixed_merge(heads):
    return heads.reshape(heads.shape[0], heads.shape[2], -1)


def _fast_split(x, num_heads):
    return x.unflatten(-1, (-1, num_heads)).permute(0, 3, 1, 2)


def _many(
    x, W_q, W_k, W_v, W_o, num_heads, *, cut=split_heads, join=merge_heads, root=None, dim=-1
):
    q, k, v = (cut(x @ W.mT, num_heads) for W in (W_q, W_k, W_v))
    return join(torch.softmax(_scores(q, k, root), dim=dim) @ v) @ W_o.mT


def _multi_head(query, key, value, mask, W_q, W_k, W_v, W_o, num_heads, *, join=merge_heads):
    q = split_heads(query @ W_q.mT, num_heads)
    k = split_heads(key @ W_k.mT, num_heads)
    v = split_heads(value @ W_v.mT, num_heads)
    mask = None if mask is None else mask[:, None]
    return join(scaled_dot_product_attention(q, k, v, mask).output) @ W_o.mT


_MULTI_HEAD_SELF = Exercise(
    name="multi_head_self",
    notebook=_NOTEBOOK,
    title="Multi-head self-attention, whole",
    reference=lambda x, *a: _multi_head(x, x, x, None, *a),
    solution=multi_head_self,
    cases=(
        Case(x=_short(1, 3, 4, seed=17), **_matrices(4, seed=18), num_heads=2),
        Case(x=_drawn(2, 5, 12, seed=19), **_matrices(12, seed=20), num_heads=3),
    ),
    mistakes=(
        Mistake(
            "by_d_model",
            lambda *a: _many(*a, root=a[0].shape[-1]),
            "You scale by √d_model. A score adds up the numbers of one head: √d_head.",
        ),
        Mistake(
            "by_d_head",
            lambda *a: _many(*a, root=(a[0].shape[-1] // a[5]) ** 2),
            "You divide by d_head. Divide by its root.",
        ),
        Mistake(
            "by_heads",
            lambda *a: _many(*a, root=a[5]),
            "You scale by the root of the number of heads. A score adds up the numbers of one head: √d_head.",
        ),
        Mistake(
            "no_scale",
            lambda *a: _many(*a, root=1),
            "The scale is missing. Divide the scores by √d_head.",
        ),
        Mistake(
            "no_W_o",
            lambda x, q, k, v, o, h: _many(x, q, k, v, torch.eye(len(o), dtype=o.dtype), h),
            "W_o is missing. Without it the heads stand side by side and nothing mixes them.",
        ),
        Mistake(
            "mixed_split",
            lambda *a: _many(*a, cut=_mixed_split),
            "You split by a view alone: the shape is right, but a head gets parts of other tokens. Keep the length "
            "in its place, cut the width, then transpose.",
        ),
        Mistake(
            "mixed_merge",
            lambda *a: _many(*a, join=_mixed_merge),
            "You merge without transposing back: the shape is right, but a row holds several tokens of one head.",
        ),
        Mistake(
            "mixed_both",
            lambda *a: _many(*a, cut=_mixed_split, join=_mixed_merge),
            "You split and merge by views alone. Every number finds its place again, but in between each head "
            "attended among pieces of tokens. Transpose after the cut, and back before the merge.",
        ),
        Mistake(
            "fast_heads",
            lambda *a: _many(*a, cut=_fast_split),
            "Your heads take turns: number 0 for head 0, number 1 for head 1. Each head gets neighbours: view(…, num_heads, d_head).",
        ),
        Mistake(
            "over_queries",
            lambda *a: _many(*a, dim=-2),
            "Your softmax runs over the queries. A query shares its attention among the keys: dim=-1.",
        ),
        Mistake(
            "over_heads",
            lambda *a: _many(*a, dim=1),
            "Your softmax runs over the heads. Each head has attention of its own, shared among the keys: dim=-1.",
        ),
        Mistake(
            "not_transposed",
            lambda x, q, k, v, o, h: _many(x, q.T, k.T, v.T, o.T, h),
            "You multiply with the matrices as they are. They are (out, in), as nn.Linear holds them: x @ W.T.",
        ),
        Mistake(
            "W_o_not_transposed",
            lambda x, q, k, v, o, h: _many(x, q, k, v, o.T, h),
            "Right up to the last step: W_o is (out, in) like the others, so … @ W_o.T.",
        ),
        Mistake(
            "one_head",
            lambda x, q, k, v, o, h: _many(x, q, k, v, o, 1),
            "num_heads makes no difference: this is one head as wide as the model.",
        ),
    ),
    hints=(
        "You have the parts: project, split, attend, merge, project. Write the shape behind each line.",
        "(x @ W_q.T).view(batch, length, num_heads, d_head).transpose(1, 2), the same for keys and values.",
        "Divide the scores by √d_head, softmax over the keys, @ v, then transpose(1, 2), reshape, @ W_o.T.",
    ),
)


# --- bug hunts -------------------------------------------------------------------------------


def multi_head(query, key, value, mask, W_q, W_k, W_v, W_o, num_heads):
    batch, query_length, d_model = query.shape
    _, key_length, _ = key.shape  # the batch is the first axis
    d_head = d_model // num_heads

    def attention(query, key, value, mask):
        scores = query @ key.mT / math.sqrt(query.shape[-1])  # (batch, heads, query, key)
        lonely = ~mask.any(dim=-1, keepdim=True)  # may attend to nothing
        scores = scores.masked_fill(~mask, -torch.inf).masked_fill(lonely, 0.0)
        return torch.softmax(scores, dim=-1).masked_fill(lonely, 0.0) @ value

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


def _given_multi_head(query, key, value, mask, W_q, W_k, W_v, W_o, num_heads):
    batch, query_length, d_model = query.shape
    key_length, _, _ = key.shape
    d_head = d_model // num_heads
    q = (query @ W_q.T).view(batch, query_length, num_heads, d_head).transpose(1, 2)
    k = (query @ W_k.T).view(batch, key_length, num_heads, d_head).transpose(1, 2)
    v = (query @ W_v.T).view(batch, key_length, num_heads, d_head).transpose(1, 2)
    heads = _given_attention(q, k, v, mask=None)
    heads.transpose(1, 2).contiguous().view(batch, query_length, d_model)
    return heads @ W_o.T


def _partly_repaired(
    query, key, value, mask, W_q, W_k, W_v, W_o, num_heads, *, length, deaf_to, hiding, merging
):
    """What `_given_multi_head` is with some of its bugs left; each argument names a symptom of `_LEFT`."""
    batch, query_length, d_model = query.shape
    key_length = key.shape[0 if length == "batch" else 1]
    key, value = {
        "": (key, value),
        "key and value": (query, query),
        "key": (query, value),
        "value": (key, query),
        "value is key": (key, key),
    }[deaf_to]

    def heads_of(x, W, tokens):
        return (x @ W.T).view(batch, tokens, num_heads, d_model // num_heads).transpose(1, 2)

    q = heads_of(query, W_q, query_length)
    k, v = heads_of(key, W_k, key_length), heads_of(value, W_v, key_length)
    if hiding == "unused":
        weights = torch.softmax(_scores(q, k), dim=-1)
    else:
        hide = {"nan": -torch.inf, "mean": -1e9, "": None}[hiding]
        weights = _softmax_of(_scores(q, k), mask[:, None], hide=hide)
    heads = weights @ v
    return (heads if merging else merge_heads(heads)) @ W_o.T


#: Symptom by what is left; "" is repaired.
_LEFT = {
    "length": {
        "": "",
        "batch": "there must be as many sequences in the batch as keys, or an error is raised",
    },
    "deaf_to": {
        "": "",
        "key and value": "another key or value does not change the output",
        "key": "another key does not change the output (that bug is half repaired)",
        "value": "another value does not change the output (that bug is half repaired)",
        "value is key": "the values are made of key (that bug is half repaired)",
    },
    "hiding": {
        "": "",
        "unused": "the mask changes nothing, which may hide one more bug",
        "nan": "a query that may attend to nothing gets NaN",
        "mean": "a query that may attend to nothing gets a mean of what is hidden",
    },
    "merging": {
        "": "",
        "thrown": "the output has four axes with one head, and with more heads an error is raised",
    },
}
_NUMBERS = ("None", "One", "Two", "Three", "Four")


def _count(**left):
    """How many are repaired, and the symptoms of the rest."""
    symptoms = [_LEFT[part][which] for part, which in left.items() if which]
    repaired = 5 - len(symptoms) - (left["hiding"] == "unused")
    count = f"{_NUMBERS[repaired]} of five repaired."
    if left["hiding"] == "unused" and repaired:
        count = f"At least {count.lower()}"
    return f"{count} Still wrong: {'; '.join(symptoms)}."


def _left_in(**left):
    """The mistake of whoever has repaired all but what is left."""
    return Mistake(
        "left: " + ", ".join(which for which in left.values() if which),
        partial(_partly_repaired, **left),
        _count(**left),
    )


_NONE_REPAIRED = ("batch", "key and value", "unused", "thrown")

_HUNT_FIVE = Exercise(
    name="hunt_five",
    notebook=_NOTEBOOK,
    title="Bug hunt: five bugs in one multi-head attention",
    reference=_multi_head,
    solution=multi_head,
    cases=(
        Case(  # as many sequences as queries and as keys, and one head: nothing raises
            query=_short(2, 2, 2, seed=21),
            key=_short(2, 2, 2, seed=22),
            value=_short(2, 2, 2, seed=23),
            mask=torch.tensor([[[True, False], [False, False]], [[True, True], [False, True]]]),
            **_matrices(2, seed=24),
            num_heads=1,
        ),
        Case(  # more sequences than keys
            query=_short(3, 2, 2, seed=25),
            key=_short(3, 2, 2, seed=26),
            value=_short(3, 2, 2, seed=27),
            mask=torch.ones(3, 2, 2, dtype=torch.bool),
            **_matrices(2, seed=28),
            num_heads=1,
        ),
        Case(
            query=_short(5, 3, 8, seed=29),
            key=_short(5, 6, 8, seed=30),
            value=_short(5, 6, 8, seed=31),
            mask=(torch.arange(6) < torch.tensor([6, 2, 0, 5, 3])[:, None, None]).repeat(1, 3, 1),
            **_matrices(8, seed=32),
            num_heads=2,
        ),
    ),
    mistakes=(
        *(
            _left_in(**dict(zip(_LEFT, left, strict=True)))
            for left in product(*_LEFT.values())
            if any(left) and left != _NONE_REPAIRED
        ),
        Mistake(
            "mixed_merge",
            lambda *a: _multi_head(*a, join=_mixed_merge),
            "Nothing of the five is left. But you merge without transposing back, so a row holds several tokens of "
            "one head.",
        ),
    ),
    hints=(
        "Give every axis a size of its own: 5 sequences, 3 queries, 6 keys, 2 heads. Where does it break?",
        "Change key, then value, then mask, and see whether the output changes. Print its shape. Then hide every "
        "key from one query.",
        "Ask of each line: which axis of key is its length? What is projected? What is handed to the attention? "
        "Who uses the result of the view? What is a softmax of nothing but -inf?",
    ),
    given=_given_multi_head,
    given_says=_count(**dict(zip(_LEFT, _NONE_REPAIRED, strict=True))),
)


def padded_weights(scores, allowed):
    mask = allowed[:, None, None, :]  # (batch, 1, 1, key): the same for all heads and queries
    lonely = ~mask.any(dim=-1, keepdim=True)  # (batch, 1, 1, 1): nothing but padding
    scores = scores.masked_fill(~mask, -torch.inf).masked_fill(lonely, 0.0)
    return torch.softmax(scores, dim=-1).masked_fill(lonely, 0.0)


def _given_padded_weights(scores, allowed):
    mask = allowed.unsqueeze(1)
    lonely = ~mask.any(dim=-1, keepdim=True)
    scores = scores.masked_fill(~mask, -torch.inf).masked_fill(lonely, 0.0)
    return torch.softmax(scores, dim=-1).masked_fill(lonely, 0.0)


def _padded(scores, allowed, **softmax):
    return _softmax_of(scores, allowed[:, None, None, :], **softmax)


_HUNT_MASK_AXES = Exercise(
    name="hunt_mask_axes",
    notebook=_NOTEBOOK,
    title="Bug hunt: it works as long as there are as many heads as sentences",
    reference=lambda scores, allowed: masked_softmax(scores, allowed[:, None, None, :]),
    solution=padded_weights,
    cases=(
        Case(  # as many heads as sequences
            scores=torch.tensor([[[[1.0, 2.0, 0.0]], [[0.0, 1.0, 2.0]]]]).repeat(2, 1, 1, 1),
            allowed=torch.tensor([[True, True, False], [True, False, False]]),
        ),
        Case(  # as many queries as sequences
            scores=_drawn(2, 3, 2, 4, seed=33),
            allowed=torch.tensor([[True, False, True, True], [True, True, False, False]]),
        ),
        Case(
            scores=_drawn(3, 2, 4, 5, seed=34),
            allowed=torch.arange(5) < torch.tensor([5, 0, 2])[:, None],
        ),
    ),
    mistakes=(
        Mistake(
            "minus_infinity",
            lambda *a: _padded(*a, hide=-torch.inf),
            "The axes line up now. But a sequence of nothing but padding gives NaN; it must give zeros.",
        ),
        Mistake(
            "large_negative",
            lambda *a: _padded(*a, hide=-1e9),
            "The axes line up now. But -1e9 is not minus infinity: a sequence of nothing but padding is looked at "
            "evenly. It must give zeros.",
        ),
        Mistake(
            "scores_to_zero",
            lambda *a: _padded(*a, hide=0.0),
            "A score of 0 hides nothing: exp(0) is 1, and padding still gets weight. Hidden scores must be -inf.",
        ),
        Mistake(
            "along_the_queries",
            lambda scores, allowed: _softmax_of(scores, allowed[:, None, :, None]),
            "Your padding lies along the queries: (batch, 1, key, 1). It belongs to the last axis.",
        ),
        Mistake(
            "batch_along_the_queries",
            lambda scores, allowed: _softmax_of(scores, allowed[None, None, :, :]),
            "Now the batch lines up with the queries. Broadcasting counts axes from the right: (batch, key) needs "
            "two new ones in between.",
        ),
        Mistake(
            "upside_down",
            lambda scores, allowed: _padded(scores, ~allowed),
            "Your mask is turned around: you look at padding only. True means 'may attend'.",
        ),
        Mistake(
            "after_the_softmax",
            lambda scores, allowed: torch.softmax(scores, dim=-1) * allowed[:, None, None, :],
            "Padding gets no weight now, but the weights that are left no longer sum to 1. Hide before the softmax.",
        ),
        Mistake(
            "ignored",
            lambda scores, allowed: torch.softmax(scores, dim=-1),
            "Padding is looked at like everything else.",
        ),
        Mistake(
            "over_heads",
            lambda *a: _padded(*a, dim=1),
            "Your softmax runs over the heads. A query shares its attention among the keys: dim=-1.",
        ),
    ),
    hints=(
        "Use 3 sequences and 2 heads. Which error do you get?",
        "Broadcasting lines axes up from the right: (batch, 1, key) against (batch, heads, query, key). What meets "
        "what?",
        "Two new axes: allowed[:, None, None, :] is (batch, 1, 1, key).",
    ),
    given=_given_padded_weights,
)


def newest(query, key, value):
    new, seen = query.shape[-2], key.shape[-2]
    scores = query @ key.mT / math.sqrt(query.shape[-1])  # (batch, heads, new, all)
    mask = torch.ones(new, seen, dtype=torch.bool).tril(seen - new)  # the queries are the last
    scores = scores.masked_fill(~mask, -torch.inf)
    return torch.softmax(scores, dim=-1) @ value  # (batch, heads, new, d)


def _given_newest(query, key, value):
    new, seen = query.shape[-2], key.shape[-2]
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    mask = torch.ones(new, seen, dtype=torch.bool).tril()
    scores = scores.masked_fill(~mask, -torch.inf)
    return torch.softmax(scores, dim=-1) @ value


def _newest(query, key, value, mask):
    """Attend under the mask that `mask(new, seen)` makes."""
    mask = mask(query.shape[-2], key.shape[-2])
    return _softmax_of(_scores(query, key), mask, hide=-torch.inf) @ value


def _ones(new, seen):
    return torch.ones(new, seen, dtype=torch.bool)


def _new_only(new, seen):
    kept = seen - new
    return _ones(new, seen).tril(kept) & (torch.arange(seen) >= kept)


_HUNT_CACHE = Exercise(
    name="hunt_cache",
    notebook=_NOTEBOOK,
    title="Bug hunt: the newest token sees only the oldest",
    reference=lambda q, k, v: (
        scaled_dot_product_attention(q, k, v, causal_mask(q.shape[-2], k.shape[-2])).output
    ),
    solution=newest,
    cases=(
        Case(
            query=_short(1, 1, 2, 2, seed=35),
            key=_short(1, 1, 5, 2, seed=36),
            value=_short(1, 1, 5, 2, seed=37),
        ),
        Case(
            query=_drawn(2, 3, 1, 4, seed=38),
            key=_drawn(2, 3, 5, 4, seed=39),
            value=_drawn(2, 3, 5, 4, seed=40),
        ),
        Case(  # nothing was kept
            query=_drawn(2, 4, 3, 5, seed=41),
            key=_drawn(2, 4, 3, 5, seed=42),
            value=_drawn(2, 4, 3, 5, seed=43),
        ),
        Case(
            query=_drawn(2, 3, 4, 5, seed=44),
            key=_drawn(2, 3, 7, 5, seed=45),
            value=_drawn(2, 3, 7, 5, seed=46),
        ),
    ),
    mistakes=(
        Mistake(
            "one_too_few",
            lambda *a: _newest(*a, lambda new, seen: _ones(new, seen).tril(seen - new - 1)),
            "Off by one: a query does not see its own place, and without kept keys the first one sees nothing. "
            "The offset is all - new.",
        ),
        Mistake(
            "one_too_many",
            lambda *a: _newest(*a, lambda new, seen: _ones(new, seen).tril(seen - new + 1)),
            "Off by one: each query sees the token after its own. The offset is all - new.",
        ),
        Mistake(
            "always_one",
            lambda *a: _newest(*a, lambda new, seen: _ones(new, seen).tril(1)),
            "An offset of 1 does not fit. It depends on how many keys were kept: all - new.",
        ),
        Mistake(
            "by_new",
            lambda *a: _newest(*a, lambda new, seen: _ones(new, seen).tril(new)),
            "Your offset is the number of new tokens. It is the number of those that came before: all - new.",
        ),
        Mistake(
            "nothing_hidden",
            lambda *a: _newest(*a, _ones),
            "Nothing is hidden: with several new tokens, each must not see those after it. The mask stays, and moves "
            "by the number of keys that were kept.",
        ),
        Mistake(
            "wrong_sign",
            lambda *a: _newest(*a, lambda new, seen: _ones(new, seen).tril(new - seen)),
            "Your offset has the wrong sign: the queries move before the keys.",
        ),
        Mistake(
            "square",
            lambda *a: _newest(*a, lambda new, seen: _ones(new, new).tril()),
            "Your mask is (new, new). There are more keys than new tokens: it must be (new, all).",
        ),
        Mistake(
            "new_only",
            lambda *a: _newest(*a, _new_only),
            "Your new tokens see only each other: the keys that were kept are hidden.",
        ),
        Mistake(
            "upper",
            lambda *a: _newest(*a, lambda new, seen: _ones(new, seen).triu(seen - new)),
            "Upper for lower: your queries see themselves and the future.",
        ),
    ),
    hints=(
        "With 7 keys and 2 queries, at which places do the queries stand? Print the mask.",
        "The row of the last query must be all True, whatever was kept.",
        ".tril(diagonal=seen - new) moves the triangle to where the queries stand.",
    ),
    given=_given_newest,
)

EXERCISES = (
    _HUNT_FIVE,
    _HUNT_MASK_AXES,
    _HUNT_CACHE,
    _SPLIT,
    _MERGE,
    _PROJECT_HEADS,
    _GROUPED,
    _MULTI_HEAD_SELF,
)
