"""Bug hunt: accumulated gradients."""

import torch
import torch.nn.functional as F

from course_lib.exercises.catalogue._shared import rounded_tensor


def accumulated_loss(logits, labels):
    loss, total = 0.0, (labels != 0).sum()
    for z, y in zip(logits, labels, strict=True):  # (tokens, vocabulary), (tokens,)
        part = F.cross_entropy(z, y, ignore_index=0, reduction="sum")
        loss = loss + part / total
    return loss


def reference(logits, labels):
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=0)


SUM = 'reduction="sum"'
BUGS = f"""
{SUM} -> reduction="mean"
+ part / total -> part / len(labels)
    every part counts the same, however few tokens it has
"""
MISTAKES = f"""
part / total -> part / len(labels)
    The sums are divided by the number of parts. Divide by the number of tokens of all parts together.
part / total -> part
    The sums are not divided at all, so the gradient grows with the batch.
{SUM} -> reduction="mean"
    You divide twice: the mean of a part is divided once more by the number of all tokens.
{SUM} -> reduction="mean"
+ part / total -> part
part / total -> part / (y != 0).sum()
    You add up the means of the parts: two parts double the learning rate, and a short part still counts too much.
(labels != 0).sum() -> labels.numel()
part / total -> part / y.numel() / len(labels)
    Padding counts among the tokens that you divide by.
ignore_index=0, ->
    Now padding is predicted too: ignore_index=0 was right.
loss + part / total -> part / total
    Only the last part counts: add it to those before.
ignore_index=0, ->
+ (labels != 0).sum() -> labels.numel()
    This is one mean, and padding is predicted and counted in it: ignore_index=0 was right.
reduction="sum" -> reduction="mean"
+ part / total -> part * len(y) / total
    You weight the mean of a part by its positions, padding included. Take the sum of a part instead.
reduction="sum" -> reduction="mean"
+ part / total -> part * (y != 0).sum() / total
    Right for every part with a token. A part that is all padding has no mean, 0 / 0 is NaN: take sums.
"""

CASES = (
    dict(
        logits=torch.tensor([[[0.0, 0.0, 0.0], [0.0, 0.0, 2.0]], [[0.0, 3.0, 0.0]] * 2]),
        labels=torch.tensor([[1, 2], [1, 0]]),
    ),
    dict(
        logits=rounded_tensor(3, 4, 5, seed=1),
        labels=torch.tensor([[1, 2, 3, 4], [4, 0, 0, 0], [2, 2, 1, 0]]),
    ),
    dict(
        logits=rounded_tensor(2, 5, 7, seed=2),
        labels=torch.tensor([[6, 0, 0, 0, 0], [1, 3, 5, 2, 4]]),
    ),
    dict(  # a part that is all padding
        logits=rounded_tensor(3, 5, 6, seed=3),
        labels=torch.tensor([[1, 5, 2, 0, 0], [0, 0, 0, 0, 0], [3, 4, 0, 0, 0]]),
    ),
)
HINTS = """
One part has a single token with a large loss, the other nine with small ones. What is the mean over ten tokens?
Use sums over tokens, and divide by one number at the end. Which?
reduction="sum" in each part, divided by (labels != 0).sum(), the tokens of all parts.
"""
