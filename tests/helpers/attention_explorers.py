"""Weights and a reader of texts for the tests of the attention explorer."""

import numpy as np
import torch

from course_lib.widgets import AttentionMap, attention_explorer
from tests.helpers.explorers import VIRIDIS

WORDS = "the horse did not cross the river because it was too tired".split()


def random_weights(*shape, sharpness=2.0):
    return torch.softmax(sharpness * torch.randn(*shape), dim=-1)


def viridis_of(weights, brightest):
    return np.asarray(VIRIDIS(np.sqrt(np.asarray(weights, dtype=float) / brightest)))[..., :3]


def two_layers():
    """Two layers of eight heads, and their explorer."""
    layers = {"first": random_weights(8, 12, 12), "second": random_weights(8, 12, 12)}
    return layers, attention_explorer(layers, WORDS, query=4)


class Reader:
    """Two layers, of three heads and of one, for any text; counts how often it was asked."""

    def __init__(self):
        self.asked = []

    def __call__(self, text):
        self.asked.append(text)
        words = text.split()
        if "zebra" in words or not words:
            raise ValueError("'zebra' is not among the words" if words else "the text is empty")
        draw = torch.Generator().manual_seed(sum(map(ord, text)))
        first = torch.softmax(2 * torch.randn(3, len(words), len(words), generator=draw), dim=-1)
        second = torch.softmax(2 * torch.randn(1, len(words), 4, generator=draw), dim=-1)
        return {"first": AttentionMap(first, words), "second": AttentionMap(second, words, "wxyz")}
