"""Exercise `score_gradient` of notebook 10."""

from functools import partial

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.exercise import Case, Exercise, Mistake


def score_gradient(p, d_out, v, out):
    D = (d_out * out).sum(dim=-1, keepdim=True)  # (query, 1)
    return p * (d_out @ v.mT - D)


def _from_output(p, d_out, v, out):
    return torch.einsum("qd,qd->q", d_out, out)[:, None]


def _gradient(p, d_out, v, out, *, row=_from_output, sign=-1, weigh=lambda p, inner: p * inner):
    return weigh(p, torch.einsum("qd,kd->qk", d_out, v) + sign * row(p, d_out, v, out))


def _case(queries, keys, tile, d, seed):
    p = torch.softmax(random_tensor(queries, keys, seed=seed), dim=-1)
    v = random_tensor(keys, d, seed=seed + 1)
    d_out = random_tensor(queries, d, seed=seed + 2)
    return Case(p=p[:, tile], d_out=d_out, v=v[tile], out=p @ v)


EXERCISE = Exercise(
    name="score_gradient",
    notebook="10_efficient_attention",
    title="The gradient of the scores of a tile",
    reference=_gradient,
    solution=score_gradient,
    cases=(
        Case(  # one query, both keys
            p=torch.tensor([[0.25, 0.75]]),
            d_out=torch.tensor([[2.0, 1.0]]),
            v=torch.tensor([[4.0, 0.0], [0.0, 8.0]]),
            out=torch.tensor([[1.0, 6.0]]),
        ),
        _case(3, 6, slice(2, 4), 5, seed=10),
        _case(4, 4, slice(0, 4), 4, seed=20),
    ),
    mistakes=(
        Mistake(
            "row_of_the_tile",
            partial(
                _gradient,
                row=lambda p, d_out, v, out: (p * (d_out @ v.mT)).sum(dim=-1, keepdim=True),
            ),
            "Right if the tile holds all keys of the row. Otherwise the sum over the row needs the other tiles: it "
            "equals the sum of d_out · out over the components.",
        ),
        Mistake(
            "no_row",
            partial(_gradient, sign=0),
            "The softmax is normalised: raising one score lowers the other weights. Subtract D.",
        ),
        Mistake(
            "sign",
            partial(_gradient, sign=1),
            "D is subtracted, not added.",
        ),
        Mistake(
            "not_weighted",
            partial(_gradient, weigh=lambda p, inner: inner),
            "The factor p is missing: a weight near 0 hardly changes with its score.",
        ),
        Mistake(
            "row_not_weighted",
            lambda p, d_out, v, out: p * (d_out @ v.mT) - (d_out * out).sum(dim=-1, keepdim=True),
            "p must multiply the whole difference, D too.",
        ),
        Mistake(
            "weights_only",
            lambda p, d_out, v, out: d_out @ v.mT + 0 * p,
            "That is the gradient of the weights. The softmax is still missing.",
        ),
        Mistake(
            "square",
            partial(_gradient, row=lambda p, d_out, v, out: p * (d_out @ v.mT)),
            "That is only the diagonal of the softmax's Jacobian, p (1 - p). D is a sum over the whole row.",
        ),
        Mistake(
            "row_of_the_output",
            partial(_gradient, row=lambda p, d_out, v, out: (out * out).sum(dim=-1, keepdim=True)),
            "D is the product of the output with its *gradient*: (d_out * out).",
        ),
        Mistake(
            "mean",
            partial(
                _gradient, row=lambda p, d_out, v, out: (d_out * out).mean(dim=-1, keepdim=True)
            ),
            "D is a sum over the components, not their mean.",
        ),
    ),
    hints=(
        "Start with the gradient of the weights: the output is p @ v, so it is d_out @ v.mT.",
        "The Jacobian of a softmax gives p * (gradient of the weights - D), with D a sum over the whole row.",
        "D = (d_out * out).sum(dim=-1, keepdim=True).",
    ),
)
