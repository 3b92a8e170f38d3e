"""Bug hunt `hunt_mean_ablated` of notebook 14."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.edits import bugs, mistakes
from course_lib.exercises.exercise import Case, Exercise


def mean_ablated(z, others, head):
    mean = others.mean(dim=(0, 1))  # (heads, d_head)
    z = z.clone()
    z[:, :, head] = mean[head]
    return z


def _reference(z, others, head):
    """Position by position, in float64."""
    rows = others[:, :, head].flatten(0, 1).double()
    mean = (rows.sum(dim=0) / len(rows)).to(z.dtype)
    kept = torch.arange(z.shape[2]) != head
    return torch.where(kept[:, None], z, mean)


AXES = "the mean runs over the heads: the axes of others are (batch, length, heads, d_head)"
POSITION = "you replace all heads at one position, because the heads are the third axis of z"
GIVEN, LEFT, GIVEN_MESSAGE = bugs(
    mean_ablated,
    f"""
dim=(0, 1) -> dim=(1, 2)
    {AXES}
z[:, :, head] -> z[:, head]
    {POSITION}
""",
)
MISTAKES = r"""
dim=(0, 1) -> dim=(0, 2)
    The mean runs over the heads: the axes of others are (batch, length, heads, d_head).
dim=(0, 1) -> dim=0
    The mean runs over the batch alone, so it differs from position to position.
dim=(0, 1) -> dim=1
    The mean runs over the positions alone, so it differs from text to text.
mean[head] -> mean.mean(dim=0)
    Every head's mean is mixed in. Use that of `head` alone.
mean[head] -> 0.0
    This is zero ablation. Use the mean over the other texts.
mean[head] -> z[:, :, head].mean(dim=(0, 1))
    You take the mean over the text itself, which still depends on it. Take that over the other texts.
z[:, :, head] = mean[head] -> z[:] = mean
    All heads are replaced. Replace `head` alone.
z[:, :, head] = -> z[:, :, head] +=
    You add the mean. It replaces what the head gave.
"""

EXERCISE = Exercise(
    title="Bug hunt: mean ablation",
    reference=_reference,
    solution=mean_ablated,
    cases=(
        Case(
            z=torch.tensor([[[[1.0], [2.0]], [[0.0], [1.0]]]]),
            others=torch.tensor([[[[3.0], [4.0]]], [[[5.0], [8.0]]]]),
            head=1,
        ),
        Case(z=random_tensor(2, 3, 3, 4, seed=1), others=random_tensor(4, 3, 3, 4, seed=2), head=1),
        Case(z=random_tensor(2, 3, 4, 2, seed=3), others=random_tensor(5, 6, 4, 2, seed=4), head=2),
    ),
    mistakes=(*LEFT, *mistakes(mean_ablated, MISTAKES)),
    hints=(
        "The mean of one head is a vector of d_head numbers, the same for every text and position.",
        "Which of the axes of z counts the heads? Look at which numbers of the smallest example have changed.",
    ),
    given=GIVEN,
    given_message=GIVEN_MESSAGE,
    differentiable=False,
)
