"""What of a full fine-tuning fits into LoRA."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor


def low_rank_update(W, tuned, rank):
    U, S, V = torch.linalg.svd(tuned - W, full_matrices=False)  # (out, k), (k,), (k, in)
    return U[:, :rank] * S[:rank] @ V[:rank]  # (out, in)


def reference(W, tuned, rank):
    change = tuned - W  # (out, in)
    _, directions = torch.linalg.eigh(change.T @ change)  # (in, in), the strongest last
    kept = directions[:, -rank:]  # (in, rank)
    return change @ kept @ kept.T


PRODUCT = "U[:, :rank] * S[:rank] @ V[:rank]"
MISTAKES = rf"""
tuned - W -> tuned
    You decompose the tuned matrix. LoRA keeps W and adds to it: decompose what was added, tuned - W.
tuned - W -> W
    You decompose W. LoRA keeps it and adds to it: decompose what was added, tuned - W.
tuned - W -> W - tuned
    The sign is wrong: you decompose W - tuned. The update is what is added to W.
{PRODUCT} -> W + {PRODUCT}
    This is the merged weight. Return the update alone, without W.
tuned - W -> tuned
+ {PRODUCT} -> {PRODUCT} - W
    You approximate the tuned matrix and then subtract W. That has a higher rank: decompose the difference.
{PRODUCT} -> tuned - W
{PRODUCT} -> U * S @ V
    This is the whole difference. LoRA has only matrices of rank `rank`: keep that many singular values.
* S[:rank] ->
    The singular values are missing: each pair of singular vectors is weighted by its own.
* S[:rank] -> * S[:rank].sqrt()
    You take the square root of the singular values once. It belongs in both factors, B and A, or leave it out.
* S[:rank] -> * S[:rank] ** 2
    You use the singular values twice. Once is enough: in one factor, or their square roots in both.
{PRODUCT} -> U[:, -rank:] * S[-rank:] @ V[-rank:]
    You keep the smallest singular values. The nearest matrix keeps the largest, which come first.
{PRODUCT} -> U[:, : rank + 1] * S[: rank + 1] @ V[: rank + 1]
    Your matrix has rank `rank` + 1: one singular value too many.
{PRODUCT} -> U[:, : rank - 1] * S[: rank - 1] @ V[: rank - 1]
    Your matrix has rank `rank` - 1: one singular value is missing.
{PRODUCT} -> U[:, rank - 1 : rank] * S[rank - 1 : rank] @ V[rank - 1 : rank]
    You keep a single singular value, number `rank`. Keep all up to it.
{PRODUCT} -> U[:, rank:] * S[rank:] @ V[rank:]
    This is what does not fit into the update. Keep the first singular values, not the others.
{PRODUCT} -> torch.nn.functional.pad((tuned - W)[:rank], (0, 0, 0, len(W) - rank))
    You keep the first rows of the difference. That has the right rank, but it is not the nearest: use the SVD.
U, S, V = torch.linalg.svd(tuned - W, full_matrices=False) -> low = lambda M: (lambda U, S, V: U[:, :rank] * S[:rank] @ V[:rank])(*torch.linalg.svd(M, full_matrices=False))
+ U[:, :rank] * S[:rank] @ V[:rank] -> low(tuned) - low(W)
    You approximate both matrices and then subtract. The difference can have twice the rank: decompose tuned - W.
@ V[:rank] -> @ V.mT[:rank]
    You transpose V once more. torch.linalg.svd returns it transposed: its rows are the singular vectors.
U[:, :rank] * S[:rank] @ V[:rank] -> (tuned - W) * ((tuned - W).norm(dim=1) >= (tuned - W).norm(dim=1).topk(rank).values[-1])[:, None]
    You keep the largest rows of the difference. That has the right rank, but it is not the nearest: use the SVD.
"""


def _case(*shape, rank, seed):
    return dict(
        W=random_tensor(*shape, seed=seed), tuned=random_tensor(*shape, seed=seed + 1), rank=rank
    )


CASES = (
    dict(
        W=torch.tensor([[1.0, 1.0], [1.0, 1.0]]),
        tuned=torch.tensor([[1.0, 2.0], [4.0, 1.0]]),
        rank=1,
    ),
    _case(4, 3, rank=2, seed=3),
    _case(5, 6, rank=3, seed=6),
)
HINTS = """
Which matrices can B A be, if A has `rank` rows? And which of them is nearest to a given matrix?
A sum of pairs of singular vectors: the first `rank` columns of U, singular values, and rows of V. (`torch.linalg.svd`
    returns V transposed already.)
U[:, :rank] * S[:rank] @ V[:rank], from the SVD of tuned - W with full_matrices=False.
"""
