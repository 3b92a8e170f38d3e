"""Exercises and bug hunts of notebook 02."""

import math

import torch

from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.masks import causal_mask, masked_softmax
from course_lib.scoring import ScaledDotScore, attend

_NOTEBOOK = "02_scoring_functions"


def _drawn(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


_QUERY = torch.tensor([[1.0, 0.0], [0.5, -1.0]])  # (2, 2)
_KEY = torch.tensor([[2.0, 1.0], [0.0, 1.0], [-1.0, 3.0]])  # (3, 2)
_THREE = torch.tensor([[1.0, 0.0], [0.5, -1.0], [0.0, 2.0]])  # (3, 2)


# --- scaled_scores ---------------------------------------------------------------------------


def scaled_scores(query, key):
    d = query.shape[-1]  # how many numbers a vector has
    return query @ key.mT / math.sqrt(d)  # (…, query, key)


_SCALED = Exercise(
    name="scaled_scores",
    notebook=_NOTEBOOK,
    title="Scaled dot products of every query with every key",
    reference=lambda query, key: ScaledDotScore()(query, key),
    solution=scaled_scores,
    cases=(
        Case(query=_THREE, key=_drawn(4, 2, seed=22)),
        Case(query=_drawn(2, 4, 6, seed=0), key=_drawn(2, 5, 6, seed=1)),
    ),
    mistakes=(
        Mistake(
            "no_scale",
            lambda q, k: q @ k.mT,
            "These are plain dot products: their variance grows with the size of the vectors. Divide by √d.",
        ),
        Mistake(
            "by_d",
            lambda q, k: q @ k.mT / q.shape[-1],
            "You divide by d, or by √d twice. That overshoots: the variance of the scores is then 1/d. Divide by √d, once.",
        ),
        Mistake(
            "by_number_of_keys",
            lambda q, k: q @ k.mT / math.sqrt(k.shape[-2]),
            "You divide by the root of the number of keys. What makes the variance grow is how many products are "
            "added up: the size of one vector, the last axis.",
        ),
        Mistake(
            "by_number_of_queries",
            lambda q, k: q @ k.mT / math.sqrt(q.shape[-2]),
            "You divide by the root of the number of queries. The size of one vector is the last axis, shape[-1].",
        ),
        Mistake(
            "by_len",
            lambda q, k: q @ k.mT / math.sqrt(len(q)),
            "len(query) is its first axis: the number of queries, or the size of the batch. The size of one vector is "
            "query.shape[-1].",
        ),
        Mistake(
            "keys_first",
            lambda q, k: k @ q.mT / math.sqrt(q.shape[-1]),
            "Your scores are (key, query). The queries come first: query @ key.mT.",
        ),
        Mistake(
            "times",
            lambda q, k: q @ k.mT * math.sqrt(q.shape[-1]),
            "You multiply by √d, so the variance is d² now. Divide.",
        ),
        Mistake(
            "softmaxed",
            lambda q, k: torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1),
            "You took the softmax already. Scores are asked for, before it.",
        ),
        Mistake(
            "scaled_after",
            lambda q, k: torch.softmax(q @ k.mT, dim=-1) / math.sqrt(q.shape[-1]),
            "You scale after a softmax. That only shrinks the weights, and they no longer sum to 1. Scale the "
            "scores, and leave the softmax for later.",
        ),
    ),
    hints=(
        "key.mT swaps the last two axes: (…, key, d) becomes (…, d, key), ready for @.",
        "d is the size of one vector, query.shape[-1].",
        "query @ key.mT / math.sqrt(d).",
    ),
)


# --- additive_scores -------------------------------------------------------------------------


def additive_scores(query, key, W, U, v):
    from_query = query @ W.T  # (query, hidden)
    from_key = key @ U.T  # (key, hidden)
    together = from_query[:, None, :] + from_key[None, :, :]  # (query, key, hidden)
    return torch.tanh(together) @ v  # (query, key)


def _together(q, k, W, U):
    return (q @ W.T)[:, None, :] + (k @ U.T)[None, :, :]


_ADDITIVE = Exercise(
    name="additive_scores",
    notebook=_NOTEBOOK,
    title="Bahdanau's score of every query with every key",
    reference=lambda q, k, W, U, v: torch.tanh(_together(q, k, W, U)) @ v,
    solution=additive_scores,
    cases=(
        Case(
            query=_QUERY,
            key=_drawn(3, 3, seed=2),
            W=_drawn(4, 2, seed=3),
            U=_drawn(4, 3, seed=4),
            v=torch.tensor([1.0, -0.5, 2.0, 0.5]),
        ),
        Case(
            query=_drawn(4, 3, seed=5),
            key=_drawn(6, 5, seed=6),
            W=_drawn(7, 3, seed=7),
            U=_drawn(7, 5, seed=8),
            v=_drawn(7, seed=9),
        ),
    ),
    mistakes=(
        Mistake(
            "no_tanh",
            lambda q, k, W, U, v: _together(q, k, W, U) @ v,
            "The tanh is missing. Without it the score is a part of the query plus a part of the key, and the "
            "softmax cancels the query's part: every query would get the same weights.",
        ),
        Mistake(
            "tanh_of_parts",
            lambda q, k, W, U, v: (
                (torch.tanh(q @ W.T)[:, None, :] + torch.tanh(k @ U.T)[None, :, :]) @ v
            ),
            "You take tanh of each part and then add. The parts must meet inside the tanh, or query and key never "
            "interact.",
        ),
        Mistake(
            "tanh_outside",
            lambda q, k, W, U, v: torch.tanh(_together(q, k, W, U) @ v),
            "The tanh comes last here. It belongs inside, before v, or all scores lie between -1 and 1.",
        ),
        Mistake(
            "product",
            lambda q, k, W, U, v: torch.tanh((q @ W.T)[:, None, :] * (k @ U.T)[None, :, :]) @ v,
            "You multiply the two projections. This score adds them; that is its name.",
        ),
        Mistake(
            "by_key_first",
            lambda q, k, W, U, v: (torch.tanh(_together(q, k, W, U)) @ v).mT,
            "Your scores are (key, query). The queries come first.",
        ),
        Mistake(
            "sigmoid",
            lambda q, k, W, U, v: torch.sigmoid(_together(q, k, W, U)) @ v,
            "This is a sigmoid. The score has a tanh.",
        ),
        Mistake(
            "relu",
            lambda q, k, W, U, v: torch.relu(_together(q, k, W, U)) @ v,
            "This is a ReLU. The score has a tanh.",
        ),
        Mistake(
            "no_v",
            lambda q, k, W, U, v: torch.tanh(_together(q, k, W, U)).sum(-1),
            "You add up the hidden numbers as they are. Weigh them with v: … @ v.",
        ),
        Mistake(
            "softmaxed",
            lambda q, k, W, U, v: torch.softmax(torch.tanh(_together(q, k, W, U)) @ v, dim=-1),
            "You took the softmax already. Scores are asked for, before it.",
        ),
    ),
    hints=(
        "Project first: query @ W.T is (query, hidden), key @ U.T is (key, hidden).",
        "Every query meets every key by broadcasting: a[:, None, :] + b[None, :, :] is (query, key, hidden).",
        "torch.tanh(…) @ v turns the last axis into one number.",
    ),
)


# --- masked_weights --------------------------------------------------------------------------


def masked_weights(scores, mask):
    lonely = ~mask.any(dim=-1, keepdim=True)  # (…, query, 1): rows that may attend to nothing
    hidden = scores.masked_fill(~mask, -torch.inf)  # exp(-inf) = 0
    hidden = hidden.masked_fill(lonely, 0.0)  # a row of -inf would give 0/0
    return torch.softmax(hidden, dim=-1).masked_fill(lonely, 0.0)


_SCORES = torch.tensor([[1.0, 2.0, 3.0], [0.5, 0.0, -0.5]])
_MASK_CASES = (
    Case(scores=_SCORES, mask=torch.tensor([[True, True, False], [False, False, False]])),
    Case(scores=_SCORES, mask=torch.tensor([[True, False, True], [True, True, False]])),
    Case(  # exp of these is 0, or too large
        scores=torch.tensor([[-140.0, -141.0, 0.0], [120.0, 121.0, 0.0]]),
        mask=torch.tensor([[True, True, False], [True, True, True]]),
    ),
    Case(
        scores=_drawn(2, 3, 4, seed=10),
        mask=torch.tensor([[[True, True, True, False]], [[True, False, False, False]]]),
    ),
)

_MASKED = Exercise(
    name="masked_weights",
    notebook=_NOTEBOOK,
    title="A softmax that looks only where it may",
    reference=masked_softmax,
    solution=masked_weights,
    cases=_MASK_CASES,
    mistakes=(
        Mistake(
            "scores_to_zero",
            lambda a, m: torch.softmax(a.masked_fill(~m, 0.0), dim=-1),
            "You set hidden scores to 0. exp(0) is 1, so a hidden key still gets weight. Its score must be -inf.",
        ),
        Mistake(
            "times_mask",
            lambda a, m: torch.softmax(a, dim=-1) * m,
            "You set hidden weights to 0 after the softmax, and the row no longer sums to 1. Hide before the softmax.",
        ),
        Mistake(
            "minus_infinity",
            lambda a, m: torch.softmax(a.masked_fill(~m, -torch.inf), dim=-1),
            "A row that may attend to nothing is 0/0 = NaN here. Its weights must all be 0.",
        ),
        Mistake(
            "large_negative",
            lambda a, m: torch.softmax(a.masked_fill(~m, -1e9), dim=-1),
            "-1e9 is not minus infinity: a row that may attend to nothing becomes uniform, and looks at what was "
            "hidden. (In float16 the number does not even exist.) Its weights must all be 0.",
        ),
        Mistake(
            "no_maximum",
            lambda a, m: (e := a.exp() * m) / e.sum(-1, keepdim=True).clamp(min=1e-12),
            "You take exp of the scores as they are. It is 0 for -140 and infinite for 120. torch.softmax subtracts "
            "the largest score of the row first.",
        ),
        Mistake(
            "renormalised",
            lambda a, m: (w := torch.softmax(a, -1) * m) / w.sum(-1, keepdim=True).clamp(min=1e-12),
            "You hide after the softmax and divide again. If a hidden score is much larger than the others, nothing is "
            "left to divide. Hide before the softmax.",
        ),
        Mistake(
            "upside_down",
            lambda a, m: masked_softmax(a, ~m),
            "Your mask is turned around. In this course True means 'may attend'.",
        ),
        Mistake(
            "over_queries",
            lambda a, m: masked_softmax(a, m, dim=-2),
            "Your softmax runs over the queries. A query shares its attention among the keys: dim=-1.",
        ),
        Mistake(
            "ignored",
            lambda a, m: torch.softmax(a, dim=-1),
            "You take the mask and never use it.",
        ),
    ),
    hints=(
        "scores.masked_fill(~mask, -torch.inf) puts -inf wherever the mask is False. exp(-inf) is 0.",
        "Which rows have no True at all? ~mask.any(dim=-1, keepdim=True).",
        "Give those rows any finite scores before the softmax, and zeros after it.",
    ),
)


# --- causal ----------------------------------------------------------------------------------


def causal(query_length, key_length):
    queries = torch.arange(query_length)[:, None] + (key_length - query_length)  # their own places
    keys = torch.arange(key_length)[None, :]
    return keys <= queries  # (query, key): itself and all before


def _triangle(m, n, diagonal):
    return torch.ones(m, n, dtype=torch.bool).tril(diagonal)


_CAUSAL = Exercise(
    name="causal",
    notebook=_NOTEBOOK,
    title="No looking ahead, also when the queries are the last of the keys",
    reference=lambda query_length, key_length: causal_mask(query_length, key_length),
    solution=causal,
    cases=(
        Case(query_length=3, key_length=3),
        Case(query_length=3, key_length=4),
        Case(query_length=2, key_length=5),
        Case(query_length=1, key_length=4),
    ),
    mistakes=(
        Mistake(
            "hides_diagonal",
            lambda m, n: _triangle(m, n, n - m - 1),
            "Your mask hides the diagonal too: a query may look at its own place. The first one sees nothing at all.",
        ),
        Mistake(
            "shows_next",
            lambda m, n: _triangle(m, n, n - m + 1),
            "Off by one: each query sees the token after its own. A model trained so learns to copy it.",
        ),
        Mistake(
            "looks_ahead",
            lambda m, n: torch.ones(m, n, dtype=torch.bool).triu(n - m),
            "Upper for lower: your queries see themselves and the future, and the past is hidden.",
        ),
        Mistake(
            "hides_past",
            lambda m, n: ~_triangle(m, n, n - m),
            "True and False are swapped: in this course True means 'may attend'. torch.triu of ones marks what to hide.",
        ),
        Mistake(
            "hides_past_and_offset",
            lambda m, n: torch.ones(m, n, dtype=torch.bool).triu(1),
            "torch.triu(…, 1) marks what to hide, as PyTorch's own layers want it. Here True means 'may attend'. And "
            "with fewer queries than keys, the queries are the last ones.",
        ),
        Mistake(
            "looks_ahead_and_offset",
            lambda m, n: torch.ones(m, n, dtype=torch.bool).triu(),
            "Upper for lower: your queries see themselves and the future. Keep the lower triangle, and let the last "
            "query see every key.",
        ),
        Mistake(
            "hides_diagonal_and_offset",
            lambda m, n: _triangle(m, n, -1),
            "Your mask hides the diagonal too: a query may look at its own place. And with fewer queries than keys, "
            "the queries are the last ones.",
        ),
        Mistake(
            "top_left",
            lambda m, n: _triangle(m, n, 0),
            "Right for as many queries as keys. With fewer queries than keys, the queries are the last ones: "
            "the last query sees every key.",
        ),
    ),
    hints=(
        "torch.ones(m, n, dtype=torch.bool).tril() keeps the lower triangle, diagonal included.",
        "With 2 queries and 5 keys, the queries stand at places 3 and 4. Which keys may each see?",
        "tril takes diagonal=key_length - query_length. Or compare places: torch.arange(n)[None, :] <= places[:, None].",
    ),
    differentiable=False,
)


# --- projected_scores ------------------------------------------------------------------------


def projected_scores(query, key, A, B):
    q = query @ A.T  # (query, hidden)
    k = key @ B.T  # (key, hidden)
    return q @ k.T / math.sqrt(A.shape[0])  # the size of what is multiplied


_PROJECTED = Exercise(
    name="projected_scores",
    notebook=_NOTEBOOK,
    title="The score of the Transformer: two projections, one dot product",
    reference=lambda q, k, A, B: ScaledDotScore()(q @ A.mT, k @ B.mT),
    solution=projected_scores,
    cases=(
        Case(
            query=_QUERY,
            key=_drawn(3, 3, seed=11),
            A=_drawn(4, 2, seed=12),
            B=_drawn(4, 3, seed=13),
        ),
        Case(
            query=_drawn(5, 6, seed=14),
            key=_drawn(4, 3, seed=15),
            A=_drawn(2, 6, seed=16),
            B=_drawn(2, 3, seed=17),
        ),
    ),
    mistakes=(
        Mistake(
            "no_scale",
            lambda q, k, A, B: (q @ A.T) @ (k @ B.T).T,
            "The scale is missing. Divide by the root of the size of the projected vectors.",
        ),
        Mistake(
            "scaled_by_query_size",
            lambda q, k, A, B: (q @ A.T) @ (k @ B.T).T / math.sqrt(q.shape[-1]),
            "You scale by the size of the query before it was projected. The dot product adds up as many terms as "
            "the projected vectors have.",
        ),
        Mistake(
            "scaled_by_key_size",
            lambda q, k, A, B: (q @ A.T) @ (k @ B.T).T / math.sqrt(k.shape[-1]),
            "You scale by the size of the key before it was projected. The dot product adds up as many terms as "
            "the projected vectors have.",
        ),
        Mistake(
            "by_hidden",
            lambda q, k, A, B: (q @ A.T) @ (k @ B.T).T / A.shape[0],
            "You divide by the size itself. Divide by its root.",
        ),
        Mistake(
            "softmaxed",
            lambda q, k, A, B: torch.softmax(
                (q @ A.T) @ (k @ B.T).T / math.sqrt(A.shape[0]), dim=-1
            ),
            "You took the softmax already. Scores are asked for, before it.",
        ),
        Mistake(
            "tanh",
            lambda q, k, A, B: torch.tanh(q @ A.T) @ torch.tanh(k @ B.T).T / math.sqrt(A.shape[0]),
            "There is no tanh in this score. It is linear in the query and in the key.",
        ),
    ),
    hints=(
        "query @ A.T is (query, hidden), key @ B.T is (key, hidden). Now they have one size.",
        "A dot product of every pair: q @ k.T. How many products does each one add up?",
        "hidden, which is A.shape[0]: divide by its root.",
    ),
)


# --- bug hunts -------------------------------------------------------------------------------


def look_up(query, key, value):
    scores = query @ key.mT / math.sqrt(key.shape[-1])  # (…, query, key)
    weights = torch.softmax(scores, dim=-1)  # (…, query, key)
    return weights @ value  # (…, query, value_size)


def _look_up(query, key, value, *, root, dim=-1):
    return torch.softmax(query @ key.mT / math.sqrt(root), dim=dim) @ value


def _given_look_up(query, key, value):
    scores = query @ key.mT / math.sqrt(value.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return weights @ value


_HUNT_WIDTH = Exercise(
    name="hunt_width",
    notebook=_NOTEBOOK,
    title="Bug hunt: wider values, blurrier attention",
    reference=lambda q, k, v: attend(ScaledDotScore()(q, k), v).output,
    solution=look_up,
    cases=(
        Case(query=_QUERY, key=_KEY, value=_drawn(3, 4, seed=18)),
        Case(
            query=_drawn(2, 4, 6, seed=19),
            key=_drawn(2, 5, 6, seed=20),
            value=_drawn(2, 5, 3, seed=21),
        ),
    ),
    mistakes=(
        Mistake(
            "no_scale",
            lambda q, k, v: _look_up(q, k, v, root=1),
            "The width of the values is gone, and the scale with it. The variance of the scores grows with the size "
            "of the keys.",
        ),
        Mistake(
            "number_of_keys",
            lambda q, k, v: _look_up(q, k, v, root=k.shape[-2]),
            "Now it is the number of keys. What is added up in a score is the numbers of one key.",
        ),
        Mistake(
            "by_d",
            lambda q, k, v: _look_up(q, k, v, root=k.shape[-1] ** 2),
            "The right size, but without its root: the variance of the scores is 1/d now.",
        ),
        Mistake(
            "after_the_softmax",
            lambda q, k, v: torch.softmax(q @ k.mT, dim=-1) / math.sqrt(k.shape[-1]) @ v,
            "You scale after the softmax: the weights sum to 1/√d. Scale the scores.",
        ),
    ),
    hints=(
        "Give the same query and key two values of different width. Do the weights change? Should they?",
        "The scale undoes how the variance of q·k grows. Which size does that depend on?",
        "math.sqrt(key.shape[-1]).",
    ),
    given=_given_look_up,
)


def align(query, key, W, U, v):
    together = (query @ W.T)[:, None, :] + (key @ U.T)[None, :, :]  # (query, key, hidden)
    scores = torch.tanh(together) @ v  # (query, key)
    return torch.softmax(scores, dim=-1)  # (query, key)


def _given_align(query, key, W, U, v):
    together = (query @ W.T)[:, None, :] + (key @ U.T)[None, :, :]
    scores = together @ v
    return torch.softmax(scores, dim=-1)


_HUNT_ALIKE = Exercise(
    name="hunt_alike",
    notebook=_NOTEBOOK,
    title="Bug hunt: every query looks at the same place",
    reference=align,
    solution=align,
    cases=_ADDITIVE.cases,
    mistakes=(
        Mistake(
            "tanh_outside",
            lambda q, k, W, U, v: torch.softmax(torch.tanh(_together(q, k, W, U) @ v), dim=-1),
            "A tanh around the finished score does tell queries apart, but it squeezes every score between -1 and 1. "
            "It belongs before v.",
        ),
        Mistake(
            "tanh_of_parts",
            lambda q, k, W, U, v: torch.softmax(
                (torch.tanh(q @ W.T)[:, None, :] + torch.tanh(k @ U.T)[None, :, :]) @ v, dim=-1
            ),
            "Each part has its own tanh, and the sum is again a part of the query plus a part of the key. They must "
            "meet inside one tanh.",
        ),
        Mistake(
            "no_softmax",
            lambda q, k, W, U, v: torch.tanh(_together(q, k, W, U)) @ v,
            "The scores are right now, but the softmax is gone. Weights were asked for.",
        ),
        Mistake(
            "sigmoid",
            lambda q, k, W, U, v: torch.softmax(torch.sigmoid(_together(q, k, W, U)) @ v, dim=-1),
            "Any bend lets query and key interact, a sigmoid too. The paper's score bends with a tanh.",
        ),
        Mistake(
            "relu",
            lambda q, k, W, U, v: torch.softmax(torch.relu(_together(q, k, W, U)) @ v, dim=-1),
            "Any bend lets query and key interact, a ReLU too. The paper's score bends with a tanh.",
        ),
        Mistake(
            "over_queries",
            lambda q, k, W, U, v: torch.softmax(_together(q, k, W, U) @ v, dim=0),
            "The axis was right. Along the queries the weights of one query no longer sum to 1.",
        ),
    ),
    hints=(
        "Write the score as a sum: v·(W q) + v·(U k). Which of the two terms changes along a row?",
        "A softmax does not notice a number that is added to a whole row. So the query's part is lost.",
        "What stood between the sum and v in the formula?",
    ),
    given=_given_align,
)

EXERCISES = (_HUNT_WIDTH, _HUNT_ALIKE, _SCALED, _ADDITIVE, _MASKED, _CAUSAL, _PROJECTED)
