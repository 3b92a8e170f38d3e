"""Checks of `course_lib.inspection`."""

from torch import nn

from course_lib.validation import require_axes, require_floating


def record_attention(model):
    """A model."""
    if not isinstance(model, nn.Module):
        raise ValueError(f"model is a {type(model).__name__}; it must be an nn.Module")


def entropy(weights):
    """Weights, of any shape, none of them negative."""
    require_floating(weights=weights)
    if not weights.is_meta and (weights < 0).any():
        raise ValueError(f"weights holds {weights.min().item():g}; attention weights are 0 or more")


def mean_distance(weights):
    """Weights with an axis for the queries and one for the keys."""
    require_floating(weights=weights)
    require_axes(2, "(…, query, key)", weights=weights)
