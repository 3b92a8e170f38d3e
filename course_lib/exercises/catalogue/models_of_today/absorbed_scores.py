"""Scores of absorbed latent attention."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor


def absorbed_scores(q, W_uk, c):
    latent = q @ W_uk  # (heads, query, d_c)
    return latent @ c.T  # (heads, query, key)


def reference(q, W_uk, c):
    """With a key per head, in float64."""
    return torch.einsum("hqn,hnc,kc->hqk", q.double(), W_uk.double(), c.double()).to(q.dtype)


MISTAKES = """
latent @ c.T -> (latent @ c.T) / q.shape[-1] ** 0.5
    You scale the scores. Return them unscaled: the scale also depends on the rotated part.
latent @ c.T -> (latent @ c.T) / c.shape[-1] ** 0.5
    You divide by the root of the dimension of the latent vector. Return the scores unscaled.
latent @ c.T -> (latent @ c.T).softmax(dim=-1)
    These are weights. Return the scores before the softmax: the rotated part is still to be added.
q @ W_uk -> q @ W_uk[:1]
    Every head uses the matrix of head 0. Each has its own: q @ W_uk multiplies head by head.
latent @ c.T -> (latent @ c.T).sum(dim=0)
    You add the scores of the heads. Each head has its own.
latent @ c.T -> (latent @ c.T).mT
    Yours is (heads, key, query). Queries come first.
"""

CASES = (
    dict(q=torch.ones(1, 1, 1), W_uk=torch.tensor([[[1.0, 2.0]]]), c=torch.tensor([[3.0, 4.0]])),
    dict(
        q=random_tensor(2, 3, 4, seed=1),
        W_uk=random_tensor(2, 4, 5, seed=2),
        c=random_tensor(6, 5, seed=3),
    ),
    dict(
        q=random_tensor(3, 2, 5, seed=4),
        W_uk=random_tensor(3, 5, 4, seed=5),
        c=random_tensor(7, 4, seed=6),
    ),
)
HINTS = """
A key would be W_uk @ c. In the dot product with the query the matrix can go to the other side.
q @ W_uk is (heads, query, d_c): the query in the space of the latent vectors.
"""
