"""Weights, explorers and readings of their pictures, for the tests of the attention explorers."""

import re

import matplotlib
import numpy as np
import torch

from course_lib.plots.style import COLOURS
from course_lib.widgets import AttentionMap, attention_explorer
from tests.helpers.explorers import pixels

WORDS = "the horse did not cross the river because it was too tired".split()
VIRIDIS = matplotlib.colormaps["viridis"]
ORANGE, BLUE = (matplotlib.colors.to_rgb(COLOURS[name]) for name in ("second", "main"))


def random_weights(*shape, sharpness=2.0):
    return torch.softmax(sharpness * torch.randn(*shape), dim=-1)


def facts(explorer):
    """The summary, taken apart: name → what is said of it."""
    names = (
        "head 0 gets|text|layer|head|entropy|distance|query|attends to|brightest colour|"
        "mask|convention|allowed pairs|fully masked rows|"
        "weights of the last query|variant|step|shape|strides|the split is|merging gives x again"
    )
    lines = explorer.summary.split("\n  ")[1:]
    return {match[1]: match[2] for match in (re.match(f"({names}) (.*)$", line) for line in lines)}


def at(png, across, down):
    """The colours at places that are fractions of the picture, from its top left."""
    image = pixels(png)
    rows = np.floor(np.asarray(down) * image.shape[0]).astype(int)
    columns = np.floor(np.asarray(across) * image.shape[1]).astype(int)
    return image[rows, columns]


def cells_of(png, box, shape, spot=(0.5, 0.5)):
    """The colour of each cell of a map, at a spot inside the cell: (rows, columns, 3)."""
    (left, top, right, bottom), (rows, columns) = box, shape
    across = left + (np.arange(columns) + spot[0]) / columns * (right - left)
    down = top + (np.arange(rows) + spot[1]) / rows * (bottom - top)
    return at(png, *np.meshgrid(across, down))


def values_of(region):
    return np.frombuffer(region["values"], "<f4").reshape(region["shape"])


def viridis_of(weights, brightest):
    return np.asarray(VIRIDIS(np.sqrt(np.asarray(weights, dtype=float) / brightest)))[..., :3]


def box_of(artist, figure_):
    """Left, top, right, bottom of an artist as fractions of the figure, from the top left."""
    box = artist.get_window_extent().transformed(figure_.transFigure.inverted())
    return [box.x0, 1 - box.y1, box.x1, 1 - box.y0]


def box_of_word(words, number, figure_):
    """As `box_of`, for one of the texts of `Words`."""
    outline = words.get_paths()[number].get_extents().extents * figure_.dpi / 72
    x, y = words.get_offset_transform().transform(words.get_offsets()[number])
    corners = [[x + outline[0], y + outline[1]], [x + outline[2], y + outline[3]]]
    (left, low), (right, high) = figure_.transFigure.inverted().transform(corners)
    return [left, 1 - high, right, 1 - low]


def two_layers():
    """Two layers of eight heads, and their explorer."""
    layers = {"first": random_weights(8, 12, 12), "second": random_weights(8, 12, 12)}
    return layers, attention_explorer(layers, WORDS, query=4)


class Reader:
    """Reads letters; counts how often it was asked."""

    def __init__(self, heads=2):
        self.asked, self.heads = [], heads

    def __call__(self, text):
        self.asked.append(text)
        words = text.split()
        if "zebra" in words or not words:
            raise ValueError(
                f"{'zebra'!r} is not among the words" if words else "the text is empty"
            )
        numbers = torch.tensor([float(len(word)) for word in words])
        scores = (numbers[:, None] - numbers).abs() * torch.arange(1, self.heads + 1)[:, None, None]
        return {"only": AttentionMap(torch.softmax(-scores, dim=-1), words)}
