"""Bug hunt: mean ablation."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor


def mean_ablated(z, others, head):
    mean = others.mean(dim=(0, 1))  # (heads, d_head)
    z = z.clone()
    z[:, :, head] = mean[head]
    return z


def reference(z, others, head):
    """Position by position, in float64."""
    rows = others[:, :, head].flatten(0, 1).double()
    mean = (rows.sum(dim=0) / len(rows)).to(z.dtype)
    kept = torch.arange(z.shape[2]) != head
    return torch.where(kept[:, None], z, mean)


AXES = "the mean runs over the heads: the axes of others are (batch, length, heads, d_head)"
POSITION = "you replace all heads at one position, because the heads are the third axis of z"
BUGS = f"""
dim=(0, 1) -> dim=(1, 2)
    {AXES}
z[:, :, head] -> z[:, head]
    {POSITION}
"""
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
= mean[head] -> = others.mean(dim=1)[0, head]
    You take the mean of one text alone. It runs over all other texts and their tokens: dim=(0, 1).
= mean[head] -> = mean[head].mean()
    You average over the components too. Each component of the head has a mean of its own.
"""

CASES = (
    dict(
        z=torch.tensor([[[[1.0], [2.0]], [[0.0], [1.0]]]]),
        others=torch.tensor([[[[3.0], [4.0]]], [[[5.0], [8.0]]]]),
        head=1,
    ),
    dict(z=random_tensor(2, 3, 3, 4, seed=1), others=random_tensor(4, 3, 3, 4, seed=2), head=1),
    dict(z=random_tensor(2, 3, 4, 2, seed=3), others=random_tensor(5, 6, 4, 2, seed=4), head=2),
)
HINTS = """
The mean of one head is a vector of d_head numbers, the same for every text and position.
Which of the axes of z counts the heads? Look at which numbers of the smallest example have changed.
"""
DIFFERENTIABLE = False
