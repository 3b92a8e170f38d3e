"""Bug hunt `hunt_cross` of notebook 08."""

import math
from functools import partial

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.masks import masked_softmax


def cross_weights(x, memory, W_q, W_k, real):
    q = x @ W_q.T  # (batch, target, d_head): queries from the decoder
    k = memory @ W_k.T  # (batch, source, d_head): keys from memory
    scores = q @ k.mT / math.sqrt(q.shape[-1])  # (batch, target, source)
    scores = scores.masked_fill(~real[:, None, :], -torch.inf)
    return torch.softmax(scores, dim=-1)


def _given(x, memory, W_q, W_k, real):
    q = memory @ W_q.T
    k = x @ W_k.T
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    scores = scores.masked_fill(~real[:, None, :], -torch.inf)
    return torch.softmax(scores, dim=-1)


def _weights_of(
    x, memory, W_q, W_k, real, *, mask="keys", dim=-1, root=None, transposed=False, fill=-torch.inf
):
    scores = (x @ W_q.mT) @ (memory @ W_k.mT).mT / math.sqrt(root or len(W_q))
    if mask == "after":
        return torch.softmax(scores, dim=dim) * real[:, None, :]
    if mask:
        real = {
            "keys": real[:, None, :],
            "padding": ~real[:, None, :],
            "queries": real[:, :, None],
        }[mask]
        scores = scores.masked_fill(~real, fill)
    weights = torch.softmax(scores, dim=dim)
    return weights.mT if transposed else weights


def _queries_from_source(x, memory, W_q, W_k, real, *, mask, transposed):
    scores = (memory @ W_q.mT) @ (x @ W_k.mT).mT / math.sqrt(len(W_q))
    if mask == "queries":
        scores = scores.masked_fill(~real[:, :, None], -1e9)
    weights = torch.softmax(scores.mT if transposed == "scores" else scores, dim=-1)
    return weights.mT if transposed == "weights" else weights


EXERCISE = Exercise(
    name="hunt_cross",
    notebook="08_transformer",
    title="Bug hunt: weights of a cross-attention",
    reference=lambda x, memory, W_q, W_k, real: masked_softmax(
        (x @ W_q.mT) @ (memory @ W_k.mT).mT / math.sqrt(len(W_q)), real[:, None, :]
    ),
    solution=cross_weights,
    cases=(
        Case(  # as many tokens in the target as in the source: no error is raised
            x=torch.tensor([[[1.0, 0.0], [0.0, 1.0]]]),
            memory=torch.tensor([[[0.0, 0.0], [2.0, 0.0]]]),
            W_q=torch.eye(2),
            W_k=torch.eye(2),
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
            "You removed the mask, and the error with it, but the queries still come from memory. They come from x.",
        ),
        Mistake(
            "queries_of_the_source_masked",
            partial(_queries_from_source, mask="queries", transposed=""),
            "Your mask fits now, (batch, source, 1), but it masks queries, and these still come from memory. The "
            "queries come from x.",
        ),
        Mistake(
            "weights_turned",
            partial(_queries_from_source, mask="", transposed="weights"),
            "You transpose the weights at the end. Their shape is right now, but each column sums to 1, not each "
            "row, because the queries still come from memory.",
        ),
        Mistake(
            "matrices_exchanged",
            lambda x, memory, W_q, W_k, real: _weights_of(x, memory, W_k, W_q, real),
            "The shape is right now, but memory is multiplied by W_q and x by W_k. W_q makes queries: x @ W_q.T.",
        ),
        Mistake(
            "right_but_turned",
            partial(_weights_of, transposed=True),
            "The queries come from x now, but you transpose the weights: they are (batch, target, source) already.",
        ),
        Mistake(
            "only_keys",
            lambda x, memory, W_q, W_k, real: _weights_of(memory, memory, W_q, W_k, real),
            "Keys and queries both come from memory now: this is self-attention over the source.",
        ),
        Mistake(
            "only_queries",
            lambda x, memory, W_q, W_k, real: _weights_of(x, x, W_q, W_k, real),
            "Queries and keys both come from x now: this is self-attention over the target.",
        ),
        Mistake(
            "over_queries",
            partial(_weights_of, dim=-2),
            "The queries come from x now, but your softmax is over the queries: each row must sum to 1, dim=-1.",
        ),
        Mistake(
            "unmasked",
            partial(_weights_of, mask=""),
            "The queries come from x now, but padding is not masked.",
        ),
        Mistake(
            "after_the_softmax",
            partial(_weights_of, mask="after"),
            "The queries come from x now, but you mask after the softmax, and the rows no longer sum to 1.",
        ),
        Mistake(
            "upside_down",
            partial(_weights_of, mask="padding"),
            "The queries come from x now, but the mask is inverted: real is True where there is no padding.",
        ),
        Mistake(
            "no_scale",
            partial(_weights_of, root=1),
            "The queries come from x now, but the scale is missing: divide the scores by √d_head.",
        ),
        Mistake(
            "only_matrices_exchanged",
            lambda x, memory, W_q, W_k, real: _given(x, memory, W_k, W_q, real),
            "You exchanged the matrices. The inputs are exchanged: queries come from x, keys from memory.",
        ),
        Mistake(
            "weights_turned_and_masked",
            lambda *a: _queries_from_source(*a, mask="", transposed="weights") * a[-1][:, None, :],
            "You transpose the weights at the end. Their shape is right now, but each column sums to 1, not each "
            "row, because the queries still come from memory.",
        ),
        Mistake(
            "queries_masked",
            partial(_weights_of, mask="queries"),
            "The queries come from x now, but your mask is along the queries: (batch, source, 1). Padding is among the keys: "
            "real[:, None, :].",
        ),
        Mistake(
            "by_d_model",
            lambda *a: _weights_of(*a, root=a[0].shape[-1]),
            "The queries come from x now, but you scale by the dimension of x. A score is a sum over the components of q: "
            "√q.shape[-1], as before.",
        ),
        Mistake(
            "scores_to_zero",
            partial(_weights_of, fill=0.0),
            "The queries come from x now, but a score of 0 masks nothing: exp(0) is 1. Masked scores must be -inf.",
        ),
        Mistake(
            "W_q_twice",
            lambda x, memory, W_q, W_k, real: _weights_of(x, memory, W_q, W_q, real),
            "The queries come from x now, but the keys are projected with W_q too. W_k makes keys: memory @ W_k.T.",
        ),
        Mistake(
            "W_k_twice",
            lambda x, memory, W_q, W_k, real: _weights_of(x, memory, W_k, W_k, real),
            "The keys come from memory now, but the queries are projected with W_k too. W_q makes queries: x @ W_q.T.",
        ),
        Mistake(
            "over_the_batch",
            partial(_weights_of, dim=0),
            "The queries come from x now, but your softmax runs over the batch: each row must sum to 1, dim=-1.",
        ),
        Mistake(
            "given_and_turned",
            lambda *a: _given(*a).mT,
            "You transpose the weights at the end. That changes their shape and not the roles: the queries still come from memory, "
            "and the mask lies along the target.",
        ),
    ),
    hints=(
        "Give the target 3 tokens and the source 5. Which line raises an error, and with which shapes?",
        "Each row of the weights belongs to one target position. What does row 0 depend on?",
        "q = x @ W_q.T and k = memory @ W_k.T: then the weights are (batch, target, source).",
    ),
    given=_given,
)
