"""Bug hunt `hunt_turned` of notebook 08."""

import math
from functools import partial

import torch

from course_lib.exercises.catalogue._shared import random_tensor, rounded_tensor
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.masks import masked_softmax


def looked_at(x, memory, W_q, W_k, real):
    q = x @ W_q.T  # (batch, target, d_head): who writes, asks
    k = memory @ W_k.T  # (batch, source, d_head)
    scores = q @ k.mT / math.sqrt(q.shape[-1])  # (batch, target, source)
    scores = scores.masked_fill(~real[:, None, :], -torch.inf)
    return torch.softmax(scores, dim=-1)


def _given(x, memory, W_q, W_k, real):
    q = memory @ W_q.T
    k = x @ W_k.T
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    scores = scores.masked_fill(~real[:, None, :], -torch.inf)
    return torch.softmax(scores, dim=-1)


def _weights_of(x, memory, W_q, W_k, real, *, mask="keys", dim=-1, root=None, transposed=False):
    scores = (x @ W_q.mT) @ (memory @ W_k.mT).mT / math.sqrt(root or len(W_q))
    if mask == "after":
        return torch.softmax(scores, dim=dim) * real[:, None, :]
    if mask:
        real = real[:, None, :] if mask == "keys" else ~real[:, None, :]
        scores = scores.masked_fill(~real, -torch.inf)
    weights = torch.softmax(scores, dim=dim)
    return weights.mT if transposed else weights


def _queries_from_source(x, memory, W_q, W_k, real, *, mask, transposed):
    scores = (memory @ W_q.mT) @ (x @ W_k.mT).mT / math.sqrt(len(W_q))
    if mask == "queries":
        scores = scores.masked_fill(~real[:, :, None], -1e9)
    weights = torch.softmax(scores.mT if transposed == "scores" else scores, dim=-1)
    return weights.mT if transposed == "weights" else weights


EXERCISE = Exercise(
    name="hunt_turned",
    notebook="08_transformer",
    title="Bug hunt: the source asks, the target answers",
    reference=lambda x, memory, W_q, W_k, real: masked_softmax(
        (x @ W_q.mT) @ (memory @ W_k.mT).mT / math.sqrt(len(W_q)), real[:, None, :]
    ),
    solution=looked_at,
    cases=(
        Case(  # as many tokens in the target as in the source: nothing raises
            x=rounded_tensor(1, 2, 2, seed=33),
            memory=rounded_tensor(1, 2, 2, seed=34),
            W_q=rounded_tensor(2, 2, seed=35),
            W_k=rounded_tensor(2, 2, seed=36),
            real=torch.tensor([[True, True]]),
        ),
        Case(
            x=random_tensor(2, 3, 3, seed=37),
            memory=random_tensor(2, 3, 3, seed=38),
            W_q=random_tensor(4, 3, seed=39),
            W_k=random_tensor(4, 3, seed=40),
            real=torch.tensor([[True, True, True], [True, False, False]]),
        ),
        Case(
            x=random_tensor(2, 3, 4, seed=41),
            memory=random_tensor(2, 5, 4, seed=42),
            W_q=random_tensor(6, 4, seed=43),
            W_k=random_tensor(6, 4, seed=44),
            real=torch.tensor([[True] * 4 + [False], [True, True, False, False, False]]),
        ),
    ),
    mistakes=(
        Mistake(
            "queries_of_the_source_unmasked",
            partial(_queries_from_source, mask="", transposed=""),
            "You took the mask away, and the error with it. But the source still asks: x must make the queries.",
        ),
        Mistake(
            "queries_of_the_source_masked",
            partial(_queries_from_source, mask="queries", transposed=""),
            "Your mask fits now, (batch, source, 1), but it silences queries. The source still asks: x must make the "
            "queries.",
        ),
        Mistake(
            "weights_turned",
            partial(_queries_from_source, mask="", transposed="weights"),
            "You turn the weights around at the end. Their shape is right now, but each column sums to 1, not each "
            "row: the source shared out its attention.",
        ),
        Mistake(
            "matrices_exchanged",
            lambda x, memory, W_q, W_k, real: _weights_of(x, memory, W_k, W_q, real),
            "The weights have the right shape now, but memory meets W_q and x meets W_k. W_q belongs to who asks: x @ W_q.T.",
        ),
        Mistake(
            "right_but_turned",
            partial(_weights_of, transposed=True),
            "The target asks now. But you turn the weights around: they are (batch, target, source) as they come.",
        ),
        Mistake(
            "only_keys",
            lambda x, memory, W_q, W_k, real: _weights_of(memory, memory, W_q, W_k, real),
            "Keys come from memory now, and so do the queries still: the source looks at itself.",
        ),
        Mistake(
            "only_queries",
            lambda x, memory, W_q, W_k, real: _weights_of(x, x, W_q, W_k, real),
            "Queries come from x now, and so do the keys still: the target looks at itself.",
        ),
        Mistake(
            "over_queries",
            partial(_weights_of, dim=-2),
            "The target asks now. But your softmax runs over the target: each row must sum to 1, dim=-1.",
        ),
        Mistake(
            "unmasked",
            partial(_weights_of, mask=""),
            "The target asks now. But padding is looked at like everything else.",
        ),
        Mistake(
            "after_the_softmax",
            partial(_weights_of, mask="after"),
            "The target asks now. But padding is hidden after the softmax, and rows no longer sum to 1.",
        ),
        Mistake(
            "upside_down",
            partial(_weights_of, mask="padding"),
            "The target asks now. But the mask is turned around: real is True where there is no padding.",
        ),
        Mistake(
            "no_scale",
            partial(_weights_of, root=1),
            "The target asks now. But the scale is gone: divide the scores by the root of the size of a query.",
        ),
    ),
    hints=(
        "Give the target 3 tokens and the source 5. What is raised, and what are the shapes in that line?",
        "In cross-attention the decoder asks. Who makes the queries, and who is looked at?",
        "q = x @ W_q.T and k = memory @ W_k.T: then the weights are (batch, target, source).",
    ),
    given=_given,
)
