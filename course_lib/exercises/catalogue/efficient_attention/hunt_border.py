"""Bug hunt `hunt_border` of notebook 10."""

import math
from functools import partial

import torch
import torch.nn.functional as F

from course_lib.efficient import sliding_window_attention
from course_lib.exercises.catalogue._shared import random_tensor, still_wrong
from course_lib.exercises.exercise import Case, Exercise, Mistake


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


def _near(i, j, w):
    return (i - j).abs() <= w


def _off_by_one(i, j, w):
    return (i - j).abs() < w


def _inside(place, n):
    return (place >= 0) & (place < n)


def _anything(place, n):
    return torch.ones_like(place, dtype=torch.bool)


def _windowed(q, k, v, w, *, near=_near, inside=_inside, scale=True):
    n, d = q.shape
    q = q.unflatten(0, (n // w, w))
    k, v = (F.pad(x, (0, 0, w, w)).unfold(0, 3 * w, w).mT for x in (k, v))
    scores = q @ k.mT / (math.sqrt(d) if scale else 1)
    i, j = torch.arange(w)[:, None], torch.arange(3 * w) - w
    place = j + w * torch.arange(n // w)[:, None, None]
    scores = scores.masked_fill(~(near(i, j, w) & inside(place, n)), -torch.inf)
    return (torch.softmax(scores, dim=-1) @ v).flatten(0, 1)


_BORDER = "keys exactly w positions away get no weight"
_WIDER = "keys w + 1 positions away get weight too"
_PADDING = "the first and the last queries attend to padding"


EXERCISE = Exercise(
    name="hunt_border",
    notebook="10_efficient_attention",
    title="Bug hunt: a sliding window in blocks",
    reference=sliding_window_attention,
    solution=windowed,
    cases=(
        Case(  # three positions, one neighbour on each side
            q=torch.tensor([[1.0], [2.0], [1.0]]),
            k=torch.tensor([[1.0], [0.0], [2.0]]),
            v=torch.tensor([[1.0], [2.0], [4.0]]),
            w=1,
        ),
        Case(
            q=random_tensor(8, 3, seed=4),
            k=random_tensor(8, 3, seed=5),
            v=random_tensor(8, 5, seed=6),
            w=4,
        ),
        Case(
            q=random_tensor(12, 4, seed=1),
            k=random_tensor(12, 4, seed=2),
            v=random_tensor(12, 2, seed=3),
            w=3,
        ),
    ),
    mistakes=(
        Mistake(
            "padding_left",
            partial(_windowed, inside=_anything),
            f"One of two repaired. {still_wrong(_PADDING)}",
        ),
        Mistake(
            "border_left",
            partial(_windowed, near=_off_by_one),
            f"One of two repaired. {still_wrong(_BORDER)}",
        ),
        Mistake(
            "too_wide",
            partial(_windowed, near=lambda i, j, w: (i - j).abs() <= w + 1),
            f"The padding is masked. {still_wrong(_WIDER)}",
        ),
        Mistake(
            "whole_slices",
            partial(_windowed, near=lambda i, j, w: torch.ones_like(i - j, dtype=torch.bool)),
            "The band is gone: each query attends to all 3w keys of its slice. Keys more than w positions away must be "
            "masked.",
        ),
        Mistake(
            "left_padding_only",
            partial(_windowed, inside=lambda place, n: place >= 0),
            "The first queries are right, but the last ones still attend to padding: positions of n and more.",
        ),
        Mistake(
            "right_padding_only",
            partial(_windowed, inside=lambda place, n: place < n),
            "The last queries are right, but the first ones still attend to padding: negative positions.",
        ),
        Mistake(
            "causal",
            partial(_windowed, near=lambda i, j, w: ((i - j) <= w) & (j <= i)),
            "Your window is causal: the w keys to the right of a query are missing.",
        ),
        Mistake(
            "no_scale",
            partial(_windowed, scale=False),
            "The scores are not divided by √d any more; that was right.",
        ),
    ),
    hints=(
        "Let all values be 1. Which rows of the output are not 1?",
        "A query at position i attends to i - w, …, i + w. Print which distances your mask keeps.",
        "The position of a key in the sequence is j + w * block. It exists if it is at least 0 and below n.",
    ),
    given=partial(_windowed, near=_off_by_one, inside=_anything),
    given_message=f"None of two repaired. {still_wrong(_BORDER, _PADDING)}",
)
