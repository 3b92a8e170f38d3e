"""The mask explorer against PyTorch's kernel and layer, in four conventions."""

import math
import re

import matplotlib
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.plots import GridPanel, figure
from course_lib.plots.style import COLOURS
from course_lib.widgets import mask_explorer
from course_lib.widgets.masks import CONVENTIONS, KINDS
from tests.helpers.attention_explorers import BLUE, ORANGE, VIRIDIS, cells_of, facts, values_of


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
    """What is written in each cell of a table, and in which colour; None where nothing is."""
    words = panel._words
    cells = np.full(panel.values.shape, None)
    for word, (column, row), colour in zip(
        words.words, words.get_offsets(), words.get_facecolor(), strict=True
    ):
        assert cells[int(row), int(column)] is None and (row % 1, column % 1) == (0, 0)
        cells[int(row), int(column)] = word, matplotlib.colors.to_hex(colour)
    return cells


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("length", "queries"), [(4, 5), (0, 3), (2, 2), (5, 1)])
def test_mask_explorer_conventions_and_weights(masks, kind, length, queries):
    for name, value in (("kind", kind), ("length", length), ("queries", queries)):
        masks.controls[name].value = value
    scores_panel, mask_panel, weights_panel = masks.picture.figure.panels
    allowed = torch.tensor(may_attend(kind, length, queries))
    every = torch.randn(5, 5, generator=torch.Generator().manual_seed(0))
    scores, eye = every[-queries:], torch.eye(5)
    assert np.allclose(scores_panel.values[-queries:], scores)
    for panel in masks.picture.figure.panels:
        assert np.isnan(panel.values[: 5 - queries]).all()
        shown = written_in(panel) != None  # noqa: E711 (cell by cell)
        assert not shown[: 5 - queries].any() and shown[5 - queries :].all()
    weights = weights_panel.values[-queries:]

    def written():
        return [[word for word, _ in row] for row in written_in(mask_panel)[5 - queries :]]

    # q kᵀ = scores and v = 1: what attention puts out is the weights
    masks.controls["convention"].value = "True = may attend"
    mask = torch.tensor(
        [[{"True": True, "False": False}[cell] for cell in row] for row in written()]
    )
    assert torch.equal(mask, allowed)
    theirs = F.scaled_dot_product_attention(scores[None], eye[None], eye[None], mask, scale=1.0)
    assert np.allclose(weights, theirs[0].nan_to_num(0.0), atol=1e-6)
    masks.controls["convention"].value = "True = masked"
    masked = torch.tensor(
        [[{"True": True, "False": False}[cell] for cell in row] for row in written()]
    )
    layer = nn.MultiheadAttention(5, 1, bias=False, batch_first=True)
    with torch.no_grad():
        layer.in_proj_weight.copy_(torch.cat([eye * math.sqrt(5), eye, eye]))
        layer.out_proj.weight.copy_(eye)
        theirs, _ = layer(scores[None], eye[None], eye[None], attn_mask=masked)
    assert np.allclose(weights, theirs[0].nan_to_num(0.0), atol=1e-5)
    masks.controls["convention"].value = "integer attention_mask"
    integers = torch.tensor([[int(cell) for cell in row] for row in written()])
    assert torch.equal(integers.bool(), allowed)
    masks.controls["convention"].value = "added to the scores"
    additive = torch.tensor(
        [[{"0": 0.0, "−∞": -math.inf}[cell] for cell in row] for row in written()]
    )
    theirs = torch.softmax(scores + additive, dim=-1)
    assert np.allclose(weights, theirs.nan_to_num(0.0), atol=1e-6)
    for cell, value in zip(written_in(weights_panel).flat, weights_panel.values.flat, strict=True):
        assert cell is None or cell[0] == f"{value:.2f}"

    said = facts(masks)
    assert said["mask"] == kind and said["convention"] == "added to the scores"
    assert said["allowed pairs"] == f"{allowed.sum()} of {5 * queries}"
    fully_masked = sum(not any(row) for row in allowed.tolist())
    assert said["fully masked rows"] == str(fully_masked)
    assert said["weights of the last query"] == " ".join(f"{one:.2f}" for one in weights[-1])
    # the colours: orange where it may attend, blue where not, white where there is no query
    png = masks.picture.png
    regions = masks.picture.hover
    for region in regions:
        assert region["rows"] == region["columns"] == "the old fox runs fast".split()
        assert (region["row_name"], region["column_name"]) == ("query", "key")
    colours = cells_of(png, regions[1]["box"], (5, 5), (0.12, 0.12))
    wanted = np.where(allowed[..., None], ORANGE, BLUE)
    assert np.abs(colours[-queries:] - wanted).max() < 0.02
    assert (colours[: 5 - queries] == 1).all()
    colours = cells_of(png, regions[2]["box"], (5, 5), (0.12, 0.12))
    assert np.abs(colours[-queries:] - VIRIDIS(weights)[..., :3]).max() < 0.02
    for region, panel in zip(regions, masks.picture.figure.panels, strict=True):
        assert np.array_equal(values_of(region), panel.values.astype("<f4"), equal_nan=True)


def test_mask_explorer_score_colours():
    explorer = mask_explorer(seed=3)
    scores = torch.randn(5, 5, generator=torch.Generator().manual_seed(3)).numpy()
    assert np.allclose(explorer.picture.figure.panels[0].values, scores)
    png, region = explorer.picture.png, explorer.picture.hover[0]
    colours = cells_of(png, region["box"], (5, 5), (0.12, 0.12))
    full = np.where(scores[..., None] > 0, ORANGE, BLUE)
    share = np.clip(np.abs(scores) / 3, 0, 1)[..., None]
    assert np.abs(colours - (1 - share * (1 - full))).max() < 0.02


def test_mask_explorer_initial_settings():
    explorer = mask_explorer(kind="padding", length=1, queries=2, seed=9)
    values = {name: one.value for name, one in explorer.controls.items()}
    assert values == {
        "kind": "padding",
        "length": 1,
        "queries": 2,
        "convention": "True = may attend",
    }
    assert facts(explorer)["weights of the last query"] == "1.00 0.00 0.00 0.00 0.00"
    default = {name: one.value for name, one in mask_explorer().controls.items()}
    assert (default["kind"], default["length"], default["queries"]) == ("both", 4, 5)
    limits = [(one.min, one.max) for one in map(explorer.controls.get, ("length", "queries"))]
    assert limits == [(0, 5), (1, 5)]
    assert CONVENTIONS.keys() == set(explorer.controls["convention"].options)


def test_grid_panel_text_colours_and_gaps():
    _, axes = figure()
    panel = GridPanel(axes, "ab", "xyz", title="t")
    panel.update([[0.0, 1.0, np.nan], [0.25, 0.5, 0.75]])
    white, ink = matplotlib.colors.to_hex("white"), matplotlib.colors.to_hex(COLOURS["ink"])
    assert written_in(panel).tolist() == [
        [("0.00", white), ("1.00", ink), None],
        [("0.25", white), ("0.50", white), ("0.75", ink)],
    ]
    panel.update(np.zeros((2, 3)), list("uvwxyz"))
    assert [word for word, _ in written_in(panel).flat] == list("uvwxyz")
    assert panel.data()["value"].shape == (2, 3)


@pytest.mark.usefixtures("without_annotations")
@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: mask_explorer(kind="cause"), "kind='cause' is unknown; it must be one of"),
        (lambda: mask_explorer(length=6), "length=6 must be at most 5"),
        (lambda: mask_explorer(length=-1), "length=-1 is below 0"),
        (lambda: mask_explorer(length=2.0), "length=2.0 is a float"),
        (lambda: mask_explorer(queries=0), "queries=0 is below 1"),
        (lambda: mask_explorer(queries=6), "queries=6 must be at most 5"),
        (lambda: mask_explorer(queries="2"), "queries='2' is a str"),
    ],
)
def test_invalid_mask_explorer_input_raises_value_error(call, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        call()
