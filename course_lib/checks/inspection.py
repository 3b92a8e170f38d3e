"""Checks of `course_lib.inspection`."""

from torch import nn

from course_lib.validation import require_axes, require_floating


def record_attention(model):
    """A model."""
    if not isinstance(model, nn.Module):
        raise ValueError(f"model is a {type(model).__name__}; it must be an nn.Module")


def entropy(weights):
    """Weights, of any shape."""
    require_floating(weights=weights)


def mean_distance(weights):
    """Weights with an axis for the queries and one for the keys."""
    require_floating(weights=weights)
    require_axes(2, "(…, query, key)", weights=weights)
