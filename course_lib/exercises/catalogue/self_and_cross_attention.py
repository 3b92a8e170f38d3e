"""Exercises and bug hunts of notebook 04."""

import math

import torch
import torch.nn.functional as F

from course_lib.attention import scaled_dot_product_attention
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.masks import causal_mask, combine_masks, masked_softmax, padding_mask

_NOTEBOOK = "04_self_and_cross_attention"


def _drawn(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def _short(*shape, seed):
    """Drawn as well, with one decimal: for a report that is read."""
    return _drawn(*shape, seed=seed).round(decimals=1)


def _scores(query, key, root=None):
    return query @ key.mT / math.sqrt(key.shape[-1] if root is None else root)


def _softmax_of(scores, mask, *, hide=None, dim=-1):
    """A softmax over what `mask` allows. Rows without a key give 0, unless hidden scores become `hide`."""
    if hide is not None:
        return torch.softmax(scores.masked_fill(~mask, hide), dim=dim)
    lonely = ~mask.any(dim=-1, keepdim=True)
    scores = scores.masked_fill(~mask, -torch.inf).masked_fill(lonely, 0.0)
    return torch.softmax(scores, dim=dim).masked_fill(lonely, 0.0)


# --- attention_from_scratch ------------------------------------------------------------------


def attention_from_scratch(query, key, value, mask):
    scores = query @ key.mT / math.sqrt(query.shape[-1])  # (batch, query, key)
    lonely = ~mask.any(dim=-1, keepdim=True)  # (batch, query, 1): may attend to nothing
    scores = scores.masked_fill(~mask, -torch.inf)  # exp(-inf) = 0
    scores = scores.masked_fill(lonely, 0.0)  # a row of -inf would give 0/0
    weights = torch.softmax(scores, dim=-1).masked_fill(lonely, 0.0)
    return weights @ value  # (batch, query, value_size)


def _attention(query, key, value, mask, *, root=None, **softmax):
    return _softmax_of(_scores(query, key, root), mask, **softmax) @ value


_FROM_SCRATCH = Exercise(
    name="attention_from_scratch",
    notebook=_NOTEBOOK,
    title="Scaled dot-product attention with a mask, whole",
    reference=lambda q, k, v, m: scaled_dot_product_attention(q, k, v, m).output,
    solution=attention_from_scratch,
    cases=(
        Case(
            query=_short(1, 2, 2, seed=0),
            key=_short(1, 3, 2, seed=1),
            value=torch.tensor([[[1.0], [2.0], [4.0]]]),
            mask=torch.tensor([[[True, True, False], [False, False, False]]]),
        ),
        Case(
            query=_drawn(2, 3, 4, seed=2),
            key=_drawn(2, 5, 4, seed=3),
            value=_drawn(2, 5, 6, seed=4),
            mask=torch.tensor(
                [
                    [[True] * 5, [True, False, True, False, True], [False] * 5],
                    [[True, True, False, False, False]] * 3,
                ]
            ),
        ),
    ),
    mistakes=(
        Mistake(
            "minus_infinity",
            lambda *a: _attention(*a, hide=-torch.inf),
            "A query that may attend to nothing gets 0/0 = NaN here. Its output must be all zeros.",
        ),
        Mistake(
            "large_negative",
            lambda *a: _attention(*a, hide=-1e9),
            "-1e9 is not minus infinity: a query that may attend to nothing gets the mean of all values, and those "
            "were hidden. Its output must be all zeros.",
        ),
        Mistake(
            "scores_to_zero",
            lambda *a: _attention(*a, hide=0.0),
            "You set hidden scores to 0. exp(0) is 1, so a hidden key still gets weight. Its score must be -inf.",
        ),
        Mistake(
            "times_mask",
            lambda q, k, v, m: (torch.softmax(_scores(q, k), dim=-1) * m) @ v,
            "You set hidden weights to 0 after the softmax, and the row no longer sums to 1. Hide before the softmax.",
        ),
        Mistake(
            "ignored",
            lambda q, k, v, m: torch.softmax(_scores(q, k), dim=-1) @ v,
            "You take the mask and never use it.",
        ),
        Mistake(
            "upside_down",
            lambda q, k, v, m: _attention(q, k, v, ~m),
            "Your mask is turned around. In this course True means 'may attend'.",
        ),
        Mistake(
            "upside_down_and_nan",
            lambda q, k, v, m: _attention(q, k, v, ~m, hide=-torch.inf),
            "Your mask is turned around: True means 'may attend'. And a query that may attend to nothing must get "
            "zeros, not NaN.",
        ),
        Mistake(
            "over_queries",
            lambda *a: _attention(*a, dim=-2),
            "Your softmax runs over the queries. A query shares its attention among the keys: dim=-1.",
        ),
        Mistake(
            "over_queries_and_nan",
            lambda *a: _attention(*a, dim=-2, hide=-torch.inf),
            "Your softmax runs over the queries. A query shares its attention among the keys: dim=-1. After that, "
            "look at the queries that may attend to nothing.",
        ),
        Mistake(
            "no_scale",
            lambda *a: _attention(*a, root=1),
            "The scale is missing: the variance of the scores grows with the size of the vectors. Divide by √d.",
        ),
        Mistake(
            "no_scale_and_nan",
            lambda *a: _attention(*a, root=1, hide=-torch.inf),
            "The scale is missing: divide the scores by √d. And a query that may attend to nothing must get zeros, "
            "not NaN.",
        ),
        Mistake(
            "by_d",
            lambda *a: _attention(*a, root=a[0].shape[-1] ** 2),
            "You divide by d. That overshoots: the variance of the scores is then 1/d. Divide by its root.",
        ),
        Mistake(
            "by_value_size",
            lambda *a: _attention(*a, root=a[2].shape[-1]),
            "You divide by the root of the size of the values. They are not in the score. What is added up there is "
            "the numbers of one key.",
        ),
        Mistake(
            "by_number_of_keys",
            lambda *a: _attention(*a, root=a[1].shape[-2]),
            "You divide by the root of the number of keys. What is added up in a score is the numbers of one key: "
            "key.shape[-1].",
        ),
        Mistake(
            "after_the_softmax",
            lambda q, k, v, m: _attention(q, k, v, m, root=1) / math.sqrt(k.shape[-1]),
            "You scale after the softmax: the weights of a row sum to 1/√d. Scale the scores.",
        ),
        Mistake(
            "weights",
            lambda q, k, v, m: _softmax_of(_scores(q, k), m),
            "These are the weights, and they are right. The output is asked for: weights @ value.",
        ),
    ),
    hints=(
        "Five steps: scores, scale, mask, softmax, average. Write the shape behind each line.",
        "scores.masked_fill(~mask, -torch.inf) hides. Which rows are then -inf whole? ~mask.any(dim=-1, keepdim=True).",
        "Give those rows zeros before the softmax, so that it stays finite, and zeros after it. Then weights @ value.",
    ),
)


# --- decoder_mask ----------------------------------------------------------------------------


def decoder_mask(lengths, max_length):
    places = torch.arange(max_length)
    causal = places[None, :] <= places[:, None]  # (query, key): itself and all before
    real = places[None, :] < lengths[:, None]  # (batch, key): not padding
    return causal & real[:, None, :]  # (batch, query, key)


def _triangle(n, diagonal=0):
    return torch.ones(n, n, dtype=torch.bool).tril(diagonal)


def _real(lengths, n):
    return torch.arange(n) < lengths[:, None]  # (batch, key)


_DECODER_MASK = Exercise(
    name="decoder_mask",
    notebook=_NOTEBOOK,
    title="A decoder's mask: no looking ahead, and no looking at padding",
    reference=lambda lengths, n: combine_masks(causal_mask(n), padding_mask(lengths, n)),
    solution=decoder_mask,
    cases=(
        Case(lengths=torch.tensor([2]), max_length=3),
        Case(lengths=torch.tensor([3, 1]), max_length=4),
        Case(lengths=torch.tensor([5, 0, 2]), max_length=5),
    ),
    mistakes=(
        Mistake(
            "either",
            lambda y, n: _triangle(n) | _real(y, n)[:, None, :],
            "You allow what either mask allows. A key must be allowed by both: &.",
        ),
        Mistake(
            "hides_diagonal",
            lambda y, n: _triangle(n, -1) & _real(y, n)[:, None, :],
            "Your mask hides the diagonal: a query may look at its own place. The first one sees nothing at all.",
        ),
        Mistake(
            "shows_next",
            lambda y, n: _triangle(n, 1) & _real(y, n)[:, None, :],
            "Off by one: each query sees the token after its own. A model trained so learns to copy it.",
        ),
        Mistake(
            "looks_ahead",
            lambda y, n: _triangle(n).T & _real(y, n)[:, None, :],
            "Upper for lower: your queries see themselves and the future, and the past is hidden.",
        ),
        Mistake(
            "hides_past",
            lambda y, n: ~_triangle(n) & _real(y, n)[:, None, :],
            "torch.triu(…, 1) marks what to hide, as PyTorch's own layers want it. Here True means 'may attend'.",
        ),
        Mistake(
            "padding_on_queries",
            lambda y, n: _triangle(n) & _real(y, n)[:, :, None],
            "You silence the queries at padding. Nobody reads their outputs, so they may look; it is the keys at "
            "padding that nobody may look at: real[:, None, :].",
        ),
        Mistake(
            "no_query_axis",
            lambda y, n: _triangle(n) & _real(y, n),
            "Your padding is (batch, key), and next to (query, key) the batch lines up with the queries. Give it an "
            "axis in between: real[:, None, :].",
        ),
        Mistake(
            "one_too_many",
            lambda y, n: _triangle(n) & _real(y + 1, n)[:, None, :],
            "Off by one: the first place of padding is still seen. Place `length` is the first one behind the end.",
        ),
        Mistake(
            "one_too_few",
            lambda y, n: _triangle(n) & _real(y - 1, n)[:, None, :],
            "Off by one: the last real token is hidden too.",
        ),
        Mistake(
            "causal_alone",
            lambda y, n: _triangle(n),
            "This is the causal half, without a batch axis: the lengths are not used. Padding is yet to be hidden.",
        ),
        Mistake(
            "causal_only",
            lambda y, n: _triangle(n).expand(len(y), n, n),
            "Nobody looks ahead, but padding is seen: the lengths are not used.",
        ),
        Mistake(
            "padding_only",
            lambda y, n: _real(y, n)[:, None, :].expand(len(y), n, n),
            "Padding is hidden, but each query sees the future.",
        ),
        Mistake(
            "turned_around",
            lambda y, n: ~(_triangle(n) & _real(y, n)[:, None, :]),
            "Right, with True and False swapped. In this course True means 'may attend'.",
        ),
    ),
    hints=(
        "Two masks: (query, key) says who comes before whom, (batch, key) says what is real.",
        "places = torch.arange(max_length). Compare places with places for one mask, and with lengths[:, None] for "
        "the other.",
        "causal & real[:, None, :]: (query, key) and (batch, 1, key) broadcast to (batch, query, key).",
    ),
    differentiable=False,
)


# --- from_torch_masks ------------------------------------------------------------------------


def from_torch_masks(attn_mask, key_padding_mask):
    hidden = attn_mask | key_padding_mask[:, None, :]  # (batch, query, key): by one or the other
    return ~hidden


_FUTURE = torch.tensor([[False, True, True], [False, False, True]])  # (query, key)

_FROM_TORCH = Exercise(
    name="from_torch_masks",
    notebook=_NOTEBOOK,
    title="PyTorch's two masks, which hide, as one that allows",
    reference=lambda a, p: combine_masks(~a, ~p[:, None, :]),
    solution=from_torch_masks,
    cases=(
        Case(attn_mask=_FUTURE, key_padding_mask=torch.tensor([[True, False, False]])),
        Case(
            attn_mask=~_triangle(3),
            key_padding_mask=torch.tensor([[False, False, True], [False, True, True]]),
        ),
        Case(
            attn_mask=_drawn(4, 5, seed=5) > 0.3,
            key_padding_mask=~_real(torch.tensor([5, 2, 4]), 5),
        ),
    ),
    mistakes=(
        Mistake(
            "not_turned",
            lambda a, p: a | p[:, None, :],
            "You join the two as they are: True still means 'hidden'. Turn the result around with ~.",
        ),
        Mistake(
            "not_turned_and_both",
            lambda a, p: a & p[:, None, :],
            "True still means 'hidden' in your result, and only where both masks hide. One that hides is enough.",
        ),
        Mistake(
            "only_attn_turned",
            lambda a, p: ~a & p[:, None, :],
            "You turn attn_mask around, but not key_padding_mask. In both of them True hides.",
        ),
        Mistake(
            "only_padding_turned",
            lambda a, p: a & ~p[:, None, :],
            "You turn key_padding_mask around, but not attn_mask. In both of them True hides.",
        ),
        Mistake(
            "both_must_hide",
            lambda a, p: ~(a & p[:, None, :]),
            "You hide only what both masks hide. One is enough: not (a or b) is (not a) and (not b).",
        ),
        Mistake(
            "padding_on_queries",
            lambda a, p: ~(a | p[:, :, None]),
            "Your padding lies along the queries. It belongs to the keys: key_padding_mask[:, None, :].",
        ),
        Mistake(
            "no_query_axis",
            lambda a, p: ~(a | p),
            "(batch, key) next to (query, key): the batch lines up with the queries. Give the padding an axis in "
            "between, key_padding_mask[:, None, :].",
        ),
        Mistake(
            "no_padding",
            lambda a, p: (~a).expand(len(p), *a.shape),
            "You never use key_padding_mask.",
        ),
        Mistake(
            "no_attn",
            lambda a, p: (~p)[:, None, :].expand(len(p), *a.shape),
            "You never use attn_mask.",
        ),
    ),
    hints=(
        "Which keys does a query not see? Those that one mask hides, or the other.",
        "key_padding_mask[:, None, :] is (batch, 1, key). With (query, key) it broadcasts to (batch, query, key).",
        "Join them with | while True still hides, then turn the result around with ~.",
    ),
    differentiable=False,
)


# --- cross_attention -------------------------------------------------------------------------


def cross_attention(x, memory, W_q, W_k, W_v):
    q = x @ W_q.T  # (batch, query, d_head)
    k = memory @ W_k.T  # (batch, key, d_head)
    v = memory @ W_v.T  # (batch, key, d_head)
    scores = q @ k.mT / math.sqrt(q.shape[-1])  # (batch, query, key)
    return torch.softmax(scores, dim=-1) @ v  # (batch, query, d_head)


def _cross(x, memory, W_q, W_k, W_v, *, q="x", k="m", v="m", root=None, dim=-1):
    read = {"x": x, "m": memory}
    scores = _scores(read[q] @ W_q.T, read[k] @ W_k.T, root)
    return torch.softmax(scores, dim=dim) @ (read[v] @ W_v.T)


_CROSS = Exercise(
    name="cross_attention",
    notebook=_NOTEBOOK,
    title="One sequence looks at another",
    reference=lambda x, m, W_q, W_k, W_v: (
        scaled_dot_product_attention(x @ W_q.mT, m @ W_k.mT, m @ W_v.mT).output
    ),
    solution=cross_attention,
    cases=(
        Case(
            x=_short(1, 2, 2, seed=6),
            memory=_short(1, 3, 2, seed=7),
            W_q=_short(2, 2, seed=8),
            W_k=_short(2, 2, seed=9),
            W_v=_short(2, 2, seed=10),
        ),
        Case(  # as many queries as keys, and one size: nothing raises that should not
            x=_drawn(2, 3, 4, seed=11),
            memory=_drawn(2, 3, 4, seed=12),
            W_q=_drawn(5, 4, seed=13),
            W_k=_drawn(5, 4, seed=14),
            W_v=_drawn(5, 4, seed=15),
        ),
        Case(
            x=_drawn(2, 4, 3, seed=16),
            memory=_drawn(2, 6, 5, seed=17),
            W_q=_drawn(7, 3, seed=18),
            W_k=_drawn(7, 5, seed=19),
            W_v=_drawn(7, 5, seed=20),
        ),
    ),
    mistakes=(
        Mistake(
            "keys_and_values_from_x",
            lambda *a: _cross(*a, k="x", v="x"),
            "Keys and values come from x, so memory makes no difference: that is self-attention. They belong to "
            "what is looked at.",
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
            "Your queries come from memory: it looks at itself, and x makes no difference. Who looks is x.",
        ),
        Mistake(
            "turned_around",
            lambda *a: _cross(*a, q="m", k="x", v="x"),
            "Here memory looks at x. It is the other way round: queries from x, keys and values from memory.",
        ),
        Mistake(
            "not_transposed",
            lambda x, m, W_q, W_k, W_v: torch.softmax(_scores(x @ W_q, m @ W_k), dim=-1) @ m @ W_v,
            "You multiply with W as it is. It is (d_head, d_in), as nn.Linear holds it, so x @ W.T. Where W is "
            "square nobody warns you.",
        ),
        Mistake(
            "no_scale",
            lambda *a: _cross(*a, root=1),
            "The scale is missing. Divide the scores by the root of d_head.",
        ),
        Mistake(
            "by_size_of_x",
            lambda *a: _cross(*a, root=a[0].shape[-1]),
            "You scale by the size of x before it was projected. The dot product adds up as many terms as the "
            "projected vectors have: d_head.",
        ),
        Mistake(
            "by_size_of_memory",
            lambda *a: _cross(*a, root=a[1].shape[-1]),
            "You scale by the size of memory before it was projected. The dot product adds up as many terms as the "
            "projected vectors have: d_head.",
        ),
        Mistake(
            "by_d",
            lambda *a: _cross(*a, root=a[2].shape[0] ** 2),
            "You divide by d_head. Divide by its root.",
        ),
        Mistake(
            "over_queries",
            lambda *a: _cross(*a, dim=-2),
            "Your softmax runs over the queries. A query shares its attention among the keys: dim=-1.",
        ),
        Mistake(
            "unprojected_values",
            lambda x, m, W_q, W_k, W_v: torch.softmax(_scores(x @ W_q.T, m @ W_k.T), dim=-1) @ m,
            "You average memory itself. The values are its projection with W_v.",
        ),
    ),
    hints=(
        "Who looks? The queries come from there. What is looked at? Keys and values come from there.",
        "W is (d_head, d_in), as nn.Linear holds it: x @ W.T is (batch, length, d_head).",
        "q from x, k and v from memory, then softmax(q @ k.mT / math.sqrt(d_head)) @ v.",
    ),
)


# --- bug hunts -------------------------------------------------------------------------------


def dropped(scores, value, keep, dropout):
    weights = torch.softmax(scores, dim=-1)  # (query, key)
    weights = weights * keep / (1 - dropout)  # what is left grows, the mean stays
    return weights @ value  # (query, value_size)


def _given_dropped(scores, value, keep, dropout):
    scores = scores * keep / (1 - dropout)
    weights = torch.softmax(scores, dim=-1)
    return weights @ value


_HUNT_DROPOUT = Exercise(
    name="hunt_dropout",
    notebook=_NOTEBOOK,
    title="Bug hunt: a weight that was dropped and is still there",
    reference=lambda a, v, keep, p: masked_softmax(a) * keep / (1 - p) @ v,
    solution=dropped,
    cases=(
        Case(
            scores=torch.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, -1.0]]),
            value=torch.tensor([[1.0], [2.0], [4.0]]),
            keep=torch.tensor([[False, True, True], [True, True, False]]),
            dropout=0.25,
        ),
        Case(
            scores=_drawn(4, 5, seed=21),
            value=_drawn(5, 3, seed=22),
            keep=torch.tensor(
                [
                    [True, True, False, True, False],
                    [True, True, True, True, True],
                    [False, False, False, False, False],
                    [False, True, False, True, True],
                ]
            ),
            dropout=0.4,
        ),
    ),
    mistakes=(
        Mistake(
            "scores_to_zero",
            lambda a, v, keep, p: torch.softmax(a * keep, dim=-1) @ v,
            "The scores are no longer rescaled, but they are still what is dropped. A score of 0 has exp(0) = 1, "
            "and a weight. Drop weights.",
        ),
        Mistake(
            "scores_to_zero_and_rescaled",
            lambda a, v, keep, p: torch.softmax(a * keep, dim=-1) / (1 - p) @ v,
            "You rescale the weights now, but it is scores that you drop. A score of 0 has exp(0) = 1, and a weight.",
        ),
        Mistake(
            "minus_infinity",
            lambda a, v, keep, p: torch.softmax(a.masked_fill(~keep, -torch.inf), dim=-1) @ v,
            "What is kept of a row sums to 1 again: that is a mask, not dropout, and a row that loses everything is "
            "NaN. Drop after the softmax, and divide by 1 - dropout only.",
        ),
        Mistake(
            "minus_infinity_and_rescaled",
            lambda a, v, keep, p: (
                torch.softmax(a.masked_fill(~keep, -torch.inf), dim=-1) / (1 - p) @ v
            ),
            "You drop scores with -inf: the softmax gives what was dropped to the others, and then you divide as "
            "well. Drop after the softmax.",
        ),
        Mistake(
            "renormalised",
            lambda a, v, keep, p: (
                (w := torch.softmax(a, -1) * keep) / w.sum(-1, keepdim=True).clamp(min=1e-12) @ v
            ),
            "You divide what is left by its sum. Dropout divides by 1 - dropout: only on average a row sums to 1.",
        ),
        Mistake(
            "no_rescale",
            lambda a, v, keep, p: torch.softmax(a, dim=-1) * keep @ v,
            "You drop the right thing. But the output is too small on average: what is kept must grow by "
            "1 / (1 - dropout).",
        ),
        Mistake(
            "times",
            lambda a, v, keep, p: torch.softmax(a, dim=-1) * keep * (1 - p) @ v,
            "You multiply by 1 - dropout. That shrinks what is kept; divide.",
        ),
        Mistake(
            "by_dropout",
            lambda a, v, keep, p: torch.softmax(a, dim=-1) * keep / p @ v,
            "You divide by dropout, the share that goes. Divide by the share that stays, 1 - dropout.",
        ),
        Mistake(
            "upside_down",
            lambda a, v, keep, p: torch.softmax(a, dim=-1) * ~keep / (1 - p) @ v,
            "You keep what should be dropped. True in keep means that the weight survives.",
        ),
        Mistake(
            "rows_of_values",
            lambda a, v, keep, p: torch.softmax(a, dim=-1) @ (v * keep[0][:, None] / (1 - p)),
            "You drop values, so all queries lose the same ones. Each weight is dropped on its own.",
        ),
    ),
    hints=(
        "Print the weights. Are those that were dropped zero?",
        "A score of 0 is a score like any other: exp(0) is 1. What should be 0 is the weight.",
        "First the softmax, then weights * keep / (1 - dropout), then @ value.",
    ),
    given=_given_dropped,
)


def look(query, key, value, hidden):
    scores = query @ key.mT / math.sqrt(key.shape[-1])  # (batch, query, key)
    mask = ~hidden[:, None, :]  # (batch, 1, key), True = may attend
    lonely = ~mask.any(dim=-1, keepdim=True)  # (batch, 1, 1): nothing but padding
    scores = scores.masked_fill(~mask, -torch.inf).masked_fill(lonely, 0.0)
    return torch.softmax(scores, dim=-1).masked_fill(lonely, 0.0) @ value


def _look(query, key, value, mask, **softmax):
    return _softmax_of(_scores(query, key), mask, **softmax) @ value


def _given_look(query, key, value, hidden):
    scores = query @ key.mT / math.sqrt(key.shape[-1])
    mask = hidden[:, None, :]
    lonely = ~mask.any(dim=-1, keepdim=True)
    scores = scores.masked_fill(~mask, -torch.inf).masked_fill(lonely, 0.0)
    return torch.softmax(scores, dim=-1).masked_fill(lonely, 0.0) @ value


def _half_turned(query, key, value, hidden):
    lonely = ~hidden[:, None, :].any(dim=-1, keepdim=True)
    scores = _scores(query, key).masked_fill(hidden[:, None, :], -torch.inf)
    scores = scores.masked_fill(lonely, 0.0)
    return torch.softmax(scores, dim=-1).masked_fill(lonely, 0.0) @ value


_HUNT_CONVENTION = Exercise(
    name="hunt_convention",
    notebook=_NOTEBOOK,
    title="Bug hunt: it looks at nothing but padding",
    reference=lambda q, k, v, hidden: (
        scaled_dot_product_attention(q, k, v, ~hidden[:, None, :]).output
    ),
    solution=look,
    cases=(
        Case(  # as many queries as sequences
            query=_short(2, 2, 2, seed=23),
            key=_short(2, 3, 2, seed=24),
            value=torch.tensor([[[1.0], [2.0], [4.0]], [[3.0], [5.0], [9.0]]]),
            hidden=torch.tensor([[False, False, True], [True, True, True]]),
        ),
        Case(  # as many queries as keys, and no padding in one sequence
            query=_drawn(2, 3, 4, seed=25),
            key=_drawn(2, 3, 4, seed=26),
            value=_drawn(2, 3, 5, seed=27),
            hidden=torch.tensor([[False, True, True], [False, False, False]]),
        ),
        Case(  # here -1e9 does not exist
            query=_drawn(3, 2, 4, seed=28).half(),
            key=_drawn(3, 5, 4, seed=29).half(),
            value=_drawn(3, 5, 6, seed=30).half(),
            hidden=~_real(torch.tensor([5, 0, 2]), 5),
        ),
    ),
    mistakes=(
        Mistake(
            "half_turned",
            _half_turned,
            "The scores are hidden right now, but `lonely` is True for the sentences without padding. Turn the mask "
            "around once, in the line that makes it.",
        ),
        Mistake(
            "minus_infinity",
            lambda q, k, v, hidden: _look(q, k, v, ~hidden[:, None, :], hide=-torch.inf),
            "The mask is turned right. But a sequence of nothing but padding gives NaN; it must give zeros.",
        ),
        Mistake(
            "large_negative",
            lambda q, k, v, hidden: _look(q, k, v, ~hidden[:, None, :], hide=-1e9),
            "-1e9 is not minus infinity: a sequence of nothing but padding gets the mean of it. And in float16, "
            "where numbers end at 65504, it raises an error.",
        ),
        Mistake(
            "lowest",
            lambda q, k, v, hidden: _look(
                q, k, v, ~hidden[:, None, :], hide=torch.finfo(q.dtype).min
            ),
            "The lowest number of the dtype is not minus infinity: a sequence of nothing but padding gets the mean "
            "of it. It must give zeros.",
        ),
        Mistake(
            "scores_to_zero",
            lambda q, k, v, hidden: _look(q, k, v, ~hidden[:, None, :], hide=0.0),
            "A score of 0 hides nothing: exp(0) is 1, and padding still gets weight. Hidden scores must be -inf.",
        ),
        Mistake(
            "after_the_softmax",
            lambda q, k, v, hidden: (
                (torch.softmax(_scores(q, k), dim=-1) * ~hidden[:, None, :]) @ v
            ),
            "Padding gets no weight now, but the weights that are left no longer sum to 1. Hide before the softmax.",
        ),
        Mistake(
            "ignored",
            lambda q, k, v, hidden: torch.softmax(_scores(q, k), dim=-1) @ v,
            "Padding is looked at like everything else: hidden is not used.",
        ),
        Mistake(
            "along_the_queries",
            lambda q, k, v, hidden: _look(q, k, v, ~hidden[:, :, None]),
            "You silence queries where a key is padding. hidden is (batch, key): the new axis goes in the middle, "
            "hidden[:, None, :].",
        ),
        Mistake(
            "along_the_batch",
            lambda q, k, v, hidden: _look(q, k, v, ~hidden[None, :, :]),
            "hidden is (batch, key), and you let its batch line up with the queries. The new axis goes in the "
            "middle, hidden[:, None, :].",
        ),
    ),
    hints=(
        "Change the value of a key that is padding. Does the output change? And the value of one that is not?",
        "What does True mean in hidden, and what does the comment beside the mask say?",
        "In this course True means 'may attend': mask = ~hidden[:, None, :].",
    ),
    given=_given_look,
)


def effect_of(scores, mask):
    hidden = scores.masked_fill(~mask, -torch.inf)  # no underscore: a new tensor
    masked = torch.softmax(hidden, dim=-1)  # (query, key)
    unmasked = torch.softmax(scores, dim=-1)  # (query, key)
    return masked - unmasked


def _given_effect(scores, mask):
    hidden = scores.masked_fill_(~mask, -torch.inf)
    masked = torch.softmax(hidden, dim=-1)
    unmasked = torch.softmax(scores, dim=-1)
    return masked - unmasked


def _effect(scores, mask, *, dim=-1):
    return masked_softmax(scores, mask, dim=dim) - torch.softmax(scores, dim=dim)


_HUNT_EFFECT = Exercise(
    name="hunt_effect",
    notebook=_NOTEBOOK,
    title="Bug hunt: a mask that changes nothing",
    reference=_effect,
    solution=effect_of,
    cases=(
        Case(
            scores=torch.tensor([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0]]),
            mask=torch.tensor([[True, False, True], [True, True, False]]),
        ),
        Case(
            scores=_drawn(2, 4, 5, seed=31),
            mask=torch.tensor([True, True, False, True, False]).expand(2, 4, 5).clone(),
        ),
    ),
    mistakes=(
        Mistake(
            "reversed",
            lambda a, m: -_effect(a, m),
            "Your difference has the wrong sign: masked weights minus unmasked ones, so that a hidden key loses.",
        ),
        Mistake(
            "upside_down",
            lambda a, m: _effect(a, ~m),
            "You hide what may be seen. True means 'may attend', so fill where ~mask is True.",
        ),
        Mistake(
            "scores_to_zero",
            lambda a, m: _softmax_of(a, m, hide=0.0) - torch.softmax(a, dim=-1),
            "A score of 0 hides nothing: exp(0) is 1. Hidden scores must be -inf.",
        ),
        Mistake(
            "after_the_softmax",
            lambda a, m: torch.softmax(a, dim=-1) * m - torch.softmax(a, dim=-1),
            "You hide after the softmax: what hidden keys lose, nobody wins. Hide before it.",
        ),
        Mistake(
            "masked",
            lambda a, m: masked_softmax(a, m),
            "These are the masked weights. What the mask changed is asked for: take the unmasked ones away.",
        ),
        Mistake(
            "of_scores",
            lambda a, m: torch.softmax(a.masked_fill(~m, -torch.inf), dim=-1) - a,
            "You take the scores away. The weights without a mask are a softmax of them.",
        ),
    ),
    hints=(
        "Print scores before and after you call the function. Whose are they?",
        "In PyTorch a method whose name ends in an underscore writes into the tensor itself. Is there one?",
        "masked_fill, without the underscore, gives a new tensor and leaves scores alone.",
    ),
    given=_given_effect,
)


def add_and_norm(x, attended, weight, bias):
    return F.layer_norm(x + attended, x.shape[-1:], weight, bias)


def _given_norm(x, attended, weight, bias):
    norm = torch.nn.LayerNorm(x.shape[-1])
    return norm(x + attended)


def _norm(x, weight, bias, *, dim=-1, ddof=0, eps=1e-5, centre=True, inside=True):
    if centre:
        x = x - x.mean(dim, keepdim=True)
    variance = (x**2).sum(dim, keepdim=True) / (x.shape[dim] - ddof)
    return x / ((variance + eps).sqrt() if inside else variance.sqrt() + eps) * weight + bias


_HUNT_NORM = Exercise(
    name="hunt_norm",
    notebook=_NOTEBOOK,
    title="Bug hunt: a layer that never learns",
    reference=add_and_norm,
    solution=add_and_norm,
    cases=(
        Case(  # the second row is as small as eps
            x=torch.tensor([[[1.0, 2.0, 0.0], [0.002, -0.001, -0.002]]]),
            attended=torch.tensor([[[0.5, -1.0, 2.0], [0.001, 0.001, -0.003]]]),
            weight=torch.tensor([2.0, 1.0, -0.5]),
            bias=torch.tensor([0.5, 0.0, 1.0]),
        ),
        Case(
            x=_drawn(2, 4, 5, seed=32),
            attended=_drawn(2, 4, 5, seed=33),
            weight=_drawn(5, seed=34),
            bias=_drawn(5, seed=35),
        ),
    ),
    mistakes=(
        Mistake(
            "no_bias",
            lambda x, a, w, b: F.layer_norm(x + a, x.shape[-1:], w),
            "The trained weight is used now, the trained bias is not.",
        ),
        Mistake(
            "no_weight",
            lambda x, a, w, b: F.layer_norm(x + a, x.shape[-1:], None, b),
            "The trained bias is used now, the trained weight is not.",
        ),
        Mistake(
            "norm_of_attended",
            lambda x, a, w, b: x + F.layer_norm(a, x.shape[-1:], w, b),
            "You normalise before you add. Here the sum is normalised: that is what add and norm says.",
        ),
        Mistake(
            "norm_of_x",
            lambda x, a, w, b: F.layer_norm(x, x.shape[-1:], w, b) + a,
            "You normalise x alone, and then add. Here the sum is normalised.",
        ),
        Mistake(
            "no_residual",
            lambda x, a, w, b: F.layer_norm(a, x.shape[-1:], w, b),
            "x is lost: add it to what was attended, then normalise.",
        ),
        Mistake(
            "no_attended",
            lambda x, a, w, b: F.layer_norm(x, x.shape[-1:], w, b),
            "What was attended is lost: add it to x, then normalise.",
        ),
        Mistake(
            "unbiased",
            lambda x, a, w, b: _norm(x + a, w, b, ddof=1),
            "You divide by n - 1 in the variance, as .var() and .std() do unless told otherwise. A layer norm "
            "divides by n: correction=0.",
        ),
        Mistake(
            "unbiased_and_eps_outside",
            lambda x, a, w, b: _norm(x + a, w, b, ddof=1, inside=False),
            "You divide by .std() + eps. Two things differ: a layer norm divides by n, not by n - 1, and its eps "
            "stands under the root.",
        ),
        Mistake(
            "eps_outside",
            lambda x, a, w, b: _norm(x + a, w, b, inside=False),
            "Your eps stands outside the root. It belongs to the variance: (variance + eps).sqrt(). You see it where "
            "all numbers of a vector are nearly the same.",
        ),
        Mistake(
            "no_eps",
            lambda x, a, w, b: _norm(x + a, w, b, eps=0.0),
            "There is no eps. A vector of equal numbers would be divided by 0; add 1e-5 to the variance.",
        ),
        Mistake(
            "not_centred",
            lambda x, a, w, b: _norm(x + a, w, b, centre=False),
            "You do not subtract the mean. (Such a norm exists, RMSNorm, but this is a layer norm.)",
        ),
        Mistake(
            "along_the_length",
            lambda x, a, w, b: _norm(x + a, w, b, dim=-2),
            "You normalise along the sequence. Each token is normalised on its own: over the last axis.",
        ),
        Mistake(
            "everything_at_once",
            lambda x, a, w, b: F.layer_norm(x + a, x.shape[-2:]) * w + b,
            "You normalise a whole sequence at once. Each token is normalised on its own: over the last axis.",
        ),
    ),
    hints=(
        "Change weight, then bias. Does the output change?",
        "How often does the line that makes the LayerNorm run, and what does a new one hold?",
        "F.layer_norm(x + attended, x.shape[-1:], weight, bias) uses the ones it is given.",
    ),
    given=_given_norm,
)

EXERCISES = (
    _HUNT_DROPOUT,
    _HUNT_CONVENTION,
    _HUNT_EFFECT,
    _HUNT_NORM,
    _FROM_SCRATCH,
    _DECODER_MASK,
    _FROM_TORCH,
    _CROSS,
)
