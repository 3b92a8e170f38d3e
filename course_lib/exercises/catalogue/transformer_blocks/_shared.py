"""Helpers of several exercises of notebook 07."""

import torch
import torch.nn.functional as F

from course_lib.exercises.catalogue._shared import random_tensor


class NamedFunction:
    """A function in a case: its repr is a name, and its copy is itself."""

    def __init__(self, name, function):
        self._name, self._function = name, function

    def __call__(self, *args):
        return self._function(*args)

    def __deepcopy__(self, memo):
        return self

    def __repr__(self):
        return self._name


def trained_norm(size, seed, name="a layer norm"):
    """A layer norm with weights as after training: applying it twice changes the output."""
    weight, bias = random_tensor(2, size, seed=seed) + torch.tensor([[1.5], [0.5]])
    return NamedFunction(
        name, lambda x: F.layer_norm(x, x.shape[-1:], weight.to(x.dtype), bias.to(x.dtype))
    )


def random_network(size, seed, name="a network"):
    W = random_tensor(size, size, seed=seed)
    return NamedFunction(name, lambda x: torch.tanh(x @ W.to(x.dtype)))


def standardise(x, eps, *, dim=-1, ddof=0, eps_at="inside", centred="xv", rooted=True):
    """Standardise, with one bug or another; `centred` says where the mean is subtracted."""
    centre = x - x.mean(dim, keepdim=True)
    square = (centre if "v" in centred else x) ** 2
    count = torch.ones_like(x).sum(dim, keepdim=True)
    variance = square.sum(dim, keepdim=True) / (count - ddof)
    std = {
        "inside": (variance + eps).sqrt() if rooted else variance + eps,
        "outside": variance.sqrt() + eps,
        "nowhere": variance.sqrt(),
    }[eps_at]
    return (centre if "x" in centred else x) / std
