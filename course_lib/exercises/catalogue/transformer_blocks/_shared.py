"""Helpers of several exercises of notebook 07."""

import torch
import torch.nn.functional as F

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.transformer.attention import scaled_dot_product_attention


class NamedFunction:
    """A function in a case: its repr is a name, and its copy is itself.

    Its parameters are named as the notebook names them, so that it can be called by keyword; the first
    may be called `input` too, as in `nn.LayerNorm`.
    """

    def __init__(self, name, function):
        self._name, self._function = name, function

    def __call__(self, *args, **named):
        if "input" in named:
            args = (named.pop("input"), *args)
        return self._function(*args, **named)

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


def random_network(size, seed, name="an FFN"):
    W = random_tensor(size, size, seed=seed)
    # + 0: the output may be changed in place, as that of a linear layer may
    return NamedFunction(name, lambda x: torch.tanh(x @ W.to(x.dtype)) + 0)


def random_cross_attention(size, seed, name="cross-attention"):
    """Single-head attention with random projections: x, memory and a mask → the output."""
    W_q, W_k, W_v = random_tensor(3, size, size, seed=seed)

    def attend(x, memory, memory_mask=None):
        W = [W.to(x.dtype) for W in (W_q, W_k, W_v)]
        q, k, v = x @ W[0], memory @ W[1], memory @ W[2]
        return scaled_dot_product_attention(q, k, v, memory_mask).output

    return NamedFunction(name, attend)


def random_attention(size, seed, name="self-attention"):
    """The same, from x to itself: x and a mask → the output."""
    attend = random_cross_attention(size, seed)
    return NamedFunction(name, lambda x, mask=None: attend(x, x, mask))
