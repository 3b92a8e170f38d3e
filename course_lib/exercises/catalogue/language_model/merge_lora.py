"""Exercise `merge_lora` of notebook 13."""

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.edits import mistakes
from course_lib.exercises.exercise import Case, Exercise


def merge_lora(W, A, B, alpha):
    rank = len(A)
    return W + alpha / rank * (B @ A)  # (out, in)


def _reference(W, A, B, alpha):
    added = (B[:, None, :] * A.T[None]).sum(dim=-1)  # (out, in)
    return W + added * (alpha / A.shape[0])


MISTAKES = r"""
alpha / rank * -> alpha *
    Your product is alpha times B A. LoRA divides by the rank: alpha / rank.
alpha / rank * -> rank / alpha *
    Your scale is rank / alpha. It is the other way round: alpha / rank.
alpha / rank * ->
    The scale alpha / rank is missing.
alpha / rank * -> 1 / rank *
    You divide by the rank, but alpha is missing from the scale.
len(A) -> A.shape[1]
    You divide by the number of inputs. A is (rank, in): the rank is its number of rows.
len(A) -> len(B)
    You divide by the number of outputs. A is (rank, in): the rank is its number of rows.
W + alpha -> alpha
    This is what training adds. The merged weight also holds W.
W + alpha -> W - alpha
    You subtract the product. The layer adds it to W x.
"""

EXERCISE = Exercise(
    title="Merge a low-rank update",
    reference=_reference,
    solution=merge_lora,
    cases=(
        Case(
            W=random_tensor(2, 3, seed=0).round(),
            A=random_tensor(1, 3, seed=1).round(),
            B=random_tensor(2, 1, seed=2).round(),
            alpha=2.0,
        ),
        Case(
            W=random_tensor(4, 4, seed=3),
            A=random_tensor(2, 4, seed=4),
            B=random_tensor(4, 2, seed=5),
            alpha=6.0,
        ),
        Case(
            W=random_tensor(6, 5, seed=6),
            A=random_tensor(3, 5, seed=7),
            B=random_tensor(6, 3, seed=8),
            alpha=16.0,
        ),
    ),
    mistakes=mistakes(merge_lora, MISTAKES),
    hints=(
        "The layer computes W x + (alpha / rank) B (A x). Which single matrix, times x, gives the same?",
        "B A x is (B A) x: the product of a (out, rank) and a (rank, in) matrix has the shape of W.",
        "W + alpha / rank * (B @ A), where the rank is the number of rows of A.",
    ),
)
