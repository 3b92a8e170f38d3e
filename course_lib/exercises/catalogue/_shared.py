"""Helpers of the exercises of several notebooks."""

import itertools
import math
from functools import partial

import torch
import torch.nn.functional as F

from course_lib.exercises.exercise import Mistake


def random_tensor(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def rounded_tensor(*shape, seed):
    """A random tensor with one decimal, for a case that a report prints."""
    return random_tensor(*shape, seed=seed).round(decimals=1) + 0.0  # no -0.0


def attention_scores(query, key, root=None):
    """q kᵀ / √root; the right `root` is d, the default."""
    return query @ key.mT / math.sqrt(key.shape[-1] if root is None else root)


def softmax_where_allowed(scores, mask, *, fill=None, dim=-1):
    """Softmax where `mask` allows; fully masked rows give 0, unless masked scores become `fill`."""
    if fill is not None:
        return torch.softmax(scores.masked_fill(~mask, fill), dim=dim)
    fully_masked = ~mask.any(dim=-1, keepdim=True)
    scores = scores.masked_fill(~mask, -torch.inf).masked_fill(fully_masked, 0.0)
    return torch.softmax(scores, dim=dim).masked_fill(fully_masked, 0.0)


def token_losses(logits, labels):
    """Cross-entropy of each token, (batch, length), for logits (batch, length, vocabulary)."""
    return F.cross_entropy(logits.transpose(1, 2), labels, reduction="none")


def still_wrong(*symptoms):
    """Name the symptoms of those bugs of a hunt that are left; an empty one is of a repaired bug."""
    return f"Still wrong: {'; '.join(symptom for symptom in symptoms if symptom)}."


def two_mistakes(attempt, *groups):
    """Mistakes that are two at once, each from another group: name → (settings of `attempt`, message)."""
    return tuple(
        Mistake(
            f"{name}_and_{other}",
            partial(attempt, **settings, **others),
            f"There are two mistakes. {message} {other_message}",
        )
        for group, other_group in itertools.combinations(groups, 2)
        for name, (settings, message) in group.items()
        for other, (others, other_message) in other_group.items()
    )
