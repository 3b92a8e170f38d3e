"""Bug hunt: a sliding window in blocks."""

import math

import torch
import torch.nn.functional as F

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.topics.efficient import sliding_window_attention


def windowed(q, k, v, w):
    n, d = q.shape
    q = q.unflatten(0, (n // w, w))  # (blocks, w, d)
    k, v = (F.pad(x, (0, 0, w, w)).unfold(0, 3 * w, w).mT for x in (k, v))
    scores = q @ k.mT / math.sqrt(d)  # (blocks, w, 3w)
    i, j = torch.arange(w)[:, None], torch.arange(3 * w) - w
    place = j + w * torch.arange(n // w)[:, None, None]  # (blocks, 1, 3w): in the sequence
    keep = ((i - j).abs() <= w) & (place >= 0) & (place < n)
    scores = scores.masked_fill(~keep, -torch.inf)
    return (torch.softmax(scores, dim=-1) @ v).flatten(0, 1)


NEAR, INSIDE = "(i - j).abs() <= w", "& (place >= 0) & (place < n)"
BUGS = f"""
{NEAR} -> (i - j).abs() < w
    keys exactly w positions away get no weight
{INSIDE} ->
    padding still takes part in the softmax of the first and the last queries (its values are 0, so zeroing its
    weights afterwards changes nothing)
"""
MISTAKES = f"""
{NEAR} -> (i - j).abs() <= w + 1
    Keys w + 1 positions away get weight too.
({NEAR}) & (place -> (place
    The band is gone: each query attends to all 3w keys of its slice. Keys more than w positions away must be masked.
& (place < n) ->
    Padding takes part in the softmax of the last queries: positions of n and more.
& (place >= 0) ->
    Padding takes part in the softmax of the first queries: negative positions.
{NEAR} -> (i - j <= w) & (j <= i)
    Your window is causal: the w keys to the right of a query are missing.
/ math.sqrt(d) ->
    The scores are not divided by √d any more; that was right.
{NEAR} -> (j - i <= w) & (j >= i)
    The w keys to the left of a query are missing.
{NEAR} -> i - j <= w
    Your window has no end on the right: each query also attends to the rest of its slice.
{NEAR} -> j - i <= w
    Your window has no end on the left: each query also attends to the rest of its slice.
(place >= 0) -> (place > 0)
    The first position of the sequence is masked for all queries. A key exists if its position is at least 0.
(place < n) -> (place < n - 1)
    The last position of the sequence is masked for all queries. A key exists if its position is below n.
(place < n) -> (place <= n)
    Position n exists for you, so one key of the padding takes part in the softmax of the last queries. A key exists if its position is
    below n.
j + w * torch.arange(n // w) -> j + torch.arange(n // w)
    Blocks begin w positions apart, not one: the position of a key is j + w * block.
j + w * torch.arange(n // w) -> j + w + w * torch.arange(n // w)
    j is counted from the block's first query already: the position of a key is j + w * block.
masked_fill(~keep, -torch.inf) -> masked_fill(~keep, 0.0)
    Masked scores are 0 now, which masks nothing: exp(0) is 1. Masked scores must be -inf.
scores.masked_fill(~keep, -torch.inf) -> scores
+ torch.softmax(scores, dim=-1) -> torch.softmax(scores, dim=-1) * keep
    You mask after the softmax, so the weights of a row no longer sum to 1. Set the scores to -inf before it.
masked_fill(~keep -> masked_fill(keep
masked_fill(~keep, -torch.inf) -> masked_fill(keep, -1e9)
    The mask is inverted: each query attends only to what lies outside of its window.
dim=-1) @ -> dim=-2) @
    Your softmax runs over the queries. Each query has a distribution over the keys: dim=-1.
math.sqrt(d) -> d
    The scores are divided by d now. The √d was right.
& (place >= 0) & (place < n) -> & (k != 0).any(dim=-1)[:, None]
    You tell padding by its zeros, and a real key may be zero. Tell it by its place in the sequence.
"""

reference = sliding_window_attention
CASES = (
    dict(  # three positions, one neighbour on each side
        q=torch.tensor([[1.0], [2.0], [1.0]]),
        k=torch.tensor([[1.0], [0.0], [2.0]]),
        v=torch.tensor([[1.0], [2.0], [4.0]]),
        w=1,
    ),
    dict(
        q=random_tensor(8, 3, seed=4),
        k=random_tensor(8, 3, seed=5),
        v=random_tensor(8, 5, seed=6),
        w=4,
    ),
    dict(
        q=random_tensor(12, 4, seed=1),
        k=random_tensor(12, 4, seed=2),
        v=random_tensor(12, 2, seed=3),
        w=3,
    ),
    dict(  # n² is 4,096
        q=random_tensor(64, 2, seed=7),
        k=random_tensor(64, 2, seed=8),
        v=random_tensor(64, 2, seed=9),
        w=2,
    ),
)
HINTS = """
Let all values be 1. Which rows of the output are not 1?
A query at position i attends to i - w, …, i + w. Print which distances your mask keeps.
The position of a key in the sequence is j + w * block. It exists if it is at least 0 and below n.
"""
MOST_ELEMENTS = 2048
