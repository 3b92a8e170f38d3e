"""The gradient of the scores of a tile."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor


def score_gradient(p, d_out, v, out):
    D = (d_out * out).sum(dim=-1, keepdim=True)  # (query, 1)
    return p * (d_out @ v.mT - D)


def _case(queries, keys, tile, d, seed):
    p = torch.softmax(random_tensor(queries, keys, seed=seed), dim=-1)
    v = random_tensor(keys, d, seed=seed + 1)
    d_out = random_tensor(queries, d, seed=seed + 2)
    return dict(p=p[:, tile], d_out=d_out, v=v[tile], out=p @ v)


D = "(d_out * out).sum(dim=-1, keepdim=True)"
MISTAKES = f"""
{D} -> (p * (d_out @ v.mT)).sum(dim=-1, keepdim=True)
    Your D is a sum over the keys of the tile, and it must be one over all keys of the row. That sum equals the sum of
    d_out · out over the components.
(d_out @ v.mT - D) -> (d_out @ v.mT)
    The softmax is normalised: raising one score lowers the other weights. Subtract D.
v.mT - D -> v.mT + D
    D is subtracted, not added.
p * (d_out @ v.mT - D) -> d_out @ v.mT - D
    The factor p is missing: a weight near 0 hardly changes with its score.
p * (d_out @ v.mT - D) -> p * (d_out @ v.mT) - D
p * (d_out @ v.mT - D) -> d_out @ v.mT - p * D
    p must multiply the whole difference, D too.
p * (d_out @ v.mT - D) -> d_out @ v.mT
    That is the gradient of the weights. The softmax is still missing.
{D} -> p * (d_out @ v.mT)
    That is only the diagonal of the softmax's Jacobian, p (1 - p). D is a sum over the whole row.
{D} -> (out * out).sum(dim=-1, keepdim=True)
{D} -> out.sum(dim=-1, keepdim=True)
    D is the product of the output with its *gradient*: (d_out * out).
{D} -> (d_out * out).mean(dim=-1, keepdim=True)
    D is a sum over the components, not their mean.
- D) -> - D) / v.shape[-1] ** 0.5
    You divide by √d. That gives the gradient of the products q · k. The scores are what the softmax takes, the
    products with their scale.
- D) -> - D) / v.shape[-1]
    You divide by d. The scores are what the softmax takes, and their gradient contains no scale.
(d_out @ v.mT - D) -> (D - d_out @ v.mT)
    Your gradient has the opposite sign: D is subtracted from the gradient of the weights.
{D} -> (d_out * out).sum()
    You add up all queries. Each query has its own D: sum over the components, dim=-1.
{D} -> (d_out * out).sum(dim=-1)
    D needs an axis for the keys, (query, 1): keepdim=True. Without it the queries are aligned with the keys.
{D} -> (d_out @ v.mT).sum(dim=-1, keepdim=True)
    Your D is a sum of the gradients of the weights, not weighted, over the keys of the tile. It is the sum of d_out ·
    out over the components.
p * (d_out @ v.mT - D) -> d_out @ v.mT - p * (d_out @ v.mT).sum(dim=-1, keepdim=True)
    That is the gradient through a log-softmax. The weights are a softmax: p * (gradient of the weights - D).
d_out @ v.mT -> out @ v.mT
    You multiply out by the values. What flows back to the weights is d_out @ v.mT.
"""

CASES = (
    dict(  # two of three keys; the third has the weight 0.25 and the value (8, 0)
        p=torch.tensor([[0.25, 0.5]]),
        d_out=torch.tensor([[1.0, 2.0]]),
        v=torch.tensor([[4.0, 0.0], [0.0, 8.0]]),
        out=torch.tensor([[3.0, 4.0]]),
    ),
    _case(3, 6, slice(2, 4), 5, seed=10),
    _case(4, 4, slice(0, 4), 4, seed=20),
)
HINTS = """
Start with the gradient of the weights: the output is p @ v, so it is d_out @ v.mT.
The Jacobian of a softmax gives p * (gradient of the weights - D), with D a sum over the whole row.
D = (d_out * out).sum(dim=-1, keepdim=True).
"""
DIFFERENTIABLE = False
