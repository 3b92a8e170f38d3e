"""Helpers of the exercises of several notebooks."""

import torch
import torch.nn.functional as F


def random_tensor(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def rounded_tensor(*shape, seed):
    """A random tensor with one decimal, for a case that a report prints."""
    return random_tensor(*shape, seed=seed).round(decimals=1) + 0.0  # no -0.0


def token_losses(logits, labels):
    """Cross-entropy of each token, (batch, length), for logits (batch, length, vocabulary)."""
    return F.cross_entropy(logits.transpose(1, 2), labels, reduction="none")
