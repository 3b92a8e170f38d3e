"""The mask explorer against PyTorch's kernel and layer, in four conventions."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.widgets import mask_explorer
from course_lib.widgets.masks import KINDS
from tests.helpers.explorers import BLUE, ORANGE, VIRIDIS, cells_of, fact, move, panels, values_of


def may_attend(kind, length, queries):
    """Query by key, from the definition: the queries are the last of five places."""
    return [
        [
            (kind in ("none", "causal") or key < length)
            and (kind in ("none", "padding") or key <= place)
            for key in range(5)
        ]
        for place in range(5 - queries, 5)
    ]


@pytest.fixture(scope="module")
def masks():
    return mask_explorer()


def written_in(panel):
    """What is written in each cell of a table; None where nothing is."""
    cells = np.full(panel.values.shape, None)
    places = np.floor(panel._words.get_offsets() * cells.shape[::-1]).astype(int)
    for word, (column, row) in zip(panel._words.words, places, strict=True):
        cells[row, column] = word or None
    return cells


def weights_of_layer(scores, masked):
    """Of `nn.MultiheadAttention`, with weights that make q kᵀ / √d = scores."""
    layer, eye = nn.MultiheadAttention(5, 1, bias=False, batch_first=True), torch.eye(5)
    with torch.no_grad():
        layer.in_proj_weight.copy_(torch.cat([eye * math.sqrt(5), eye, eye]))
        layer.out_proj.weight.copy_(eye)
        return layer(scores[None], eye[None], eye[None], attn_mask=masked)[0][0]


def weights_of_kernel(scores, mask):
    eye = torch.eye(5)
    return F.scaled_dot_product_attention(scores[None], eye[None], eye[None], mask, scale=1.0)[0]


CONVENTIONS = {  # name → what is written, as a number; and how PyTorch uses it
    "True = may attend": ({"True": True, "False": False}, weights_of_kernel),
    "True = masked": ({"True": True, "False": False}, weights_of_layer),
    "integer attention_mask": ({"1": True, "0": False}, weights_of_kernel),
    "added to the scores": ({"0": 0.0, "−∞": -math.inf}, lambda x, y: torch.softmax(x + y, -1)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("length", "queries"), [(4, 5), (0, 3), (2, 2), (5, 1)])
def test_conventions_and_weights(masks, kind, length, queries):
    masks.choose(kind=kind, length=length, queries=queries)
    scores_panel, mask_panel, weights_panel = panels(masks)
    scores = torch.randn(5, 5, generator=torch.Generator().manual_seed(0))[-queries:]
    assert np.allclose(scores_panel.values[-queries:], scores)
    weights = weights_panel.values[-queries:]
    for name, (numbers, theirs) in CONVENTIONS.items():
        written = written_in(panels(move(masks, convention=name))[1])[-queries:]
        mask = torch.tensor([[numbers[cell] for cell in row] for row in written.tolist()])
        assert np.allclose(weights, theirs(scores, mask).nan_to_num(0.0), atol=1e-5)
    allowed = torch.tensor(may_attend(kind, length, queries))
    assert torch.equal(mask == 0, allowed)
    assert fact(masks, "allowed pairs") == f"{allowed.sum()} of {5 * queries}"
    assert fact(masks, "fully masked rows") == str((~allowed.any(-1)).sum().item())
    numbers = fact(masks, "weights of the last query")
    assert numbers == " ".join(written_in(weights_panel)[-1])
    assert numbers == " ".join(f"{one:.2f}" for one in weights[-1])
    for panel, region in zip(panels(masks), masks.picture.hover, strict=True):
        assert np.isnan(panel.values[: 5 - queries]).all(), "the queries are the last places"
        assert (written_in(panel)[: 5 - queries] == None).all()  # noqa: E711 (cell by cell)
        assert np.array_equal(values_of(region), panel.values.astype("<f4"), equal_nan=True)
    # the colours: orange where it may attend, blue where not, white where there is no query
    for number, wanted in ((1, np.where(allowed[..., None], ORANGE, BLUE)), (2, VIRIDIS(weights)[..., :3])):  # fmt: skip
        box = masks.picture.hover[number]["box"]
        colours = cells_of(masks.picture.figure.png(), box, (5, 5), (0.12, 0.12))
        assert np.abs(colours[-queries:] - wanted).max() < 0.02
        assert (colours[: 5 - queries] == 1).all()
