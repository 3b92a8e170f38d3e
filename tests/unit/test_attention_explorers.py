"""The explorers of notebooks 04 and 05: what the pictures show is what the model says."""

import base64
import io
import itertools
import math
import random
import re

import matplotlib
import numpy as np
import pytest
import scipy.stats
import torch
import torch.nn.functional as F
from PIL import Image
from torch import nn

from course_lib.attention import record_attention
from course_lib.checkpoints import date_translator
from course_lib.multihead import MultiHeadAttention
from course_lib.plots import GridPanel, figure
from course_lib.plots.cells import Cells
from course_lib.plots.style import COLOURS
from course_lib.plots.tokens import pooled, shortened
from course_lib.widgets import (
    AttentionMap,
    attention_explorer,
    date_explorer,
    mask_explorer,
    reshape_explorer,
)
from course_lib.widgets.masks import CONVENTIONS, KINDS
from course_lib.widgets.reshape import WAYS
from tests.unit.explorers import moved_at_random, pixels

WORDS = "the horse did not cross the river because it was too tired".split()
VIRIDIS = matplotlib.colormaps["viridis"]
ORANGE, BLUE = (matplotlib.colors.to_rgb(COLOURS[name]) for name in ("second", "main"))


def drawn_at_random(*shape, sharpness=2.0):
    return torch.softmax(sharpness * torch.randn(*shape), dim=-1)


def facts(explorer):
    """The summary, taken apart: name → what is said of it."""
    names = (
        "head 0 gets|text|layer|head|entropy|distance|query|looks at|brightest colour|"
        "mask|convention|pairs that may attend|queries that may attend to nothing|"
        "weights of the last query|way|step|shape|strides|the split is|the way back gives x"
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


@pytest.fixture
def two_layers():
    """Two layers of eight heads, and their explorer."""
    layers = {"first": drawn_at_random(8, 12, 12), "second": drawn_at_random(8, 12, 12)}
    return layers, attention_explorer(layers, WORDS, query=4)


# --- any form of weights ---------------------------------------------------------------------


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(MultiHeadAttention(8, 4) for _ in range(2))

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x).output
        return x


def recorded():
    """What `record_attention` collects of a model that is called twice, and its last weights."""
    model, x = Model(), torch.randn(2, 12, 8)
    with record_attention(model) as maps, torch.no_grad():
        model(torch.randn(2, 5, 8))
        model(x)
        last = {}
        for number, layer in enumerate(model.layers):
            last[f"layers.{number}"] = layer(x, need_weights=True).weights[1]
            x = x + layer(x).output
    with record_attention(model) as maps:
        model(torch.randn(2, 5, 8))
        model(x)
    return maps, {name: one[-1][1] for name, one in maps.items()}


UNANNOTATED = ("a map", "a list of maps")  # `Weights` does not name them; they work all the same


def forms():
    """Name → (what is given, settings, layer name → (heads, query, key) that must be drawn)."""
    one, three = drawn_at_random(12, 12), drawn_at_random(3, 12, 12)
    batch, cross = drawn_at_random(2, 3, 12, 12), drawn_at_random(2, 12, 5)
    keys, maps = list("vwxyz"), recorded()
    mixed = {
        "inside": AttentionMap(three, WORDS),
        "across": AttentionMap(cross, WORDS, keys),
        "batch": AttentionMap(batch, WORDS),
    }
    return {
        "(query, key)": (one, {}, {"0": one[None]}),
        "(heads, query, key)": (three, {}, {"0": three}),
        "(batch, heads, query, key)": (batch, {}, {"0": batch[0]}),
        "another example": (batch, {"example": 1}, {"0": batch[1]}),
        "a list": ([three, batch], {"example": 1}, {"0": three, "1": batch[1]}),
        "a tuple": ((one, three), {}, {"0": one[None], "1": three}),
        "a mapping": ({"a": one, "b": three}, {}, {"a": one[None], "b": three}),
        "the last call": ({"a": [one, three], "": (three,)}, {}, {"a": three, "model": three}),
        "recorded": (maps[0], {"example": 1}, maps[1]),
        "a map": (AttentionMap(three, list("abcdefghijkl")), {}, {"0": three}),
        "maps": (mixed, {"example": 1}, {"inside": three, "across": cross, "batch": batch[1]}),
        "a list of maps": ([*mixed.values()][:2], {}, {"0": three, "1": cross}),
        "a function": (lambda text: mixed, {"text": "x"}, mixed | {"batch": mixed["batch"]}),
        "other keys": (cross, {"keys": keys}, {"0": cross}),
        "bfloat16": (three.bfloat16(), {}, {"0": three.bfloat16()}),
        "float16": (three.half(), {}, {"0": three.half()}),
        "float64": (three.double(), {}, {"0": three.double()}),
        "with a gradient": (three.clone().requires_grad_(), {}, {"0": three}),
        "not contiguous": (batch.mT.mT.transpose(1, 0)[1], {}, {"0": batch[:, 1]}),
    }


@pytest.mark.parametrize("form", forms().keys())
def test_any_form_of_weights_is_drawn_as_it_was_handed_in(form, request):
    if form in UNANNOTATED:
        request.getfixturevalue("without_annotations")
    torch.manual_seed(1)
    given, settings, wanted = forms()[form]
    if form == "a function":
        wanted = {
            name: one.weights[0] if one.weights.dim() == 4 else one.weights
            for name, one in wanted.items()
        }
    else:
        settings = {"queries": WORDS} | settings
    explorer = attention_explorer(given, **settings)
    if len(wanted) > 1:
        assert list(explorer.controls["layer"].options) == list(wanted)
    else:
        assert "layer" not in explorer.controls
    map_, lines, *thumbnails = explorer.picture.figure.panels
    for name, weights in wanted.items():
        weights = weights.detach().float().numpy()
        if len(wanted) > 1:
            explorer.controls["layer"].value = name
        for head in range(len(weights)):
            if "head" in explorer.controls:
                explorer.controls["head"].value = head
            assert np.array_equal(map_.weights, weights[head])
            assert np.array_equal(values_of(explorer.picture.hover[0]), weights[head])
            said = facts(explorer)
            assert said["layer"] == name and said["head"] == f"{head} of {len(weights)}"
            assert float(said["brightest colour"]) == pytest.approx(weights.max(), abs=0.00501)
        for panel in thumbnails:
            assert np.array_equal(panel.weights, weights)
        assert map_.queries == (list("abcdefghijkl") if form == "a map" else WORDS)
        across = name == "across" or weights.shape[-1] == 5
        assert map_.keys == (list("vwxyz") if across else map_.queries)


def test_tokens_that_are_left_out_are_their_places():
    explorer = attention_explorer(drawn_at_random(2, 3, 4))
    region = explorer.picture.hover[0]
    assert [name.strip() for name in region["rows"]] == ["0", "1", "2"]
    assert [name.strip() for name in region["columns"]] == ["0", "1", "2", "3"]
    assert "distance" not in facts(explorer), "three queries and four keys are two sequences"
    explorer = attention_explorer(drawn_at_random(2, 3, 3), keys=list("abc"))
    assert "distance" not in facts(explorer)
    assert explorer.picture.hover[0]["columns"] == ["0 a", "1 b", "2 c"]


# --- what is said ----------------------------------------------------------------------------


def distance_by_hand(weights):
    total = 0.0
    for i, row in enumerate(weights.tolist()):
        for j, weight in enumerate(row):
            total += weight * abs(i - j)
    return total / len(weights)


@pytest.mark.parametrize("layer", ["first", "second"])
def test_entropy_distance_and_the_largest_are_those_of_the_weights(two_layers, layer):
    layers, explorer = two_layers
    explorer.controls["layer"].value = layer
    weights = layers[layer]
    notes = explorer.picture.figure.panels[2]._texts
    for head in range(8):
        explorer.controls["head"].value = head
        explorer.controls["query"].value = row = (5 * head + 3) % 12
        said = facts(explorer)
        nats = scipy.stats.entropy(weights[head].double(), axis=-1).mean()
        assert float(said["entropy"]) == pytest.approx(nats, abs=0.00501)
        far = distance_by_hand(weights[head])
        assert float(said["distance"]) == pytest.approx(far, abs=0.0501)
        assert notes[head].get_text() == f"{head}:  {said['entropy']},  {said['distance']}"
        assert said["query"] == f"{row} {WORDS[row]}"
        three = sorted(range(12), key=lambda key: -weights[head, row, key])[:3]
        assert said["looks at"] == ", ".join(
            f"{key} {WORDS[key]} ({weights[head, row, key]:.2f})" for key in three
        )
        assert said["brightest colour"] == f"{weights.max():.2f}"
    assert "distance" not in attention_explorer(drawn_at_random(2, 3, 5)).summary


def test_two_sequences_have_no_distance_and_their_names_are_their_own():
    weights = drawn_at_random(2, 3, 5)
    explorer = attention_explorer(weights, list("abc"), list("vwxyz"), query=2, head=1)
    said = facts(explorer)
    assert "distance" not in said and said["query"] == "2 c"
    most = weights[1, 2].argmax().item()
    assert said["looks at"].startswith(f"{most} {'vwxyz'[most]} (")
    assert explorer.picture.figure.panels[2].notes == [
        f"{n}:  {scipy.stats.entropy(one.double(), axis=-1).mean():.2f}"
        for n, one in enumerate(weights)
    ]


def test_a_model_that_looks_at_nothing_can_be_explored():
    explorer = attention_explorer(torch.zeros(2, 3, 3), list("abc"))
    said = facts(explorer)
    assert said["entropy"] == "0.00" and said["distance"] == "0.0"
    drawn = cells_of(explorer.picture.png, explorer.picture.hover[0]["box"], (3, 3), (0.2, 0.2))
    assert np.allclose(drawn, VIRIDIS(0.0)[:3], atol=0.01)


def test_of_equal_weights_the_first_are_named():
    explorer = attention_explorer(torch.full((1, 4, 10), 0.1))
    assert [int(part.split()[0]) for part in facts(explorer)["looks at"].split(",")] == [0, 1, 2]


def test_the_numbers_beside_the_lines_stand_at_the_keys_that_the_summary_names():
    explorer = attention_explorer(torch.full((1, 4, 10), 0.1))
    named = [int(part.split()[0]) for part in facts(explorer)["looks at"].split(",")]
    lines = explorer.picture.figure.panels[1]
    assert [math.floor(text.get_position()[1] * 10) for text in lines._numbers] == named


# --- the map ---------------------------------------------------------------------------------


@pytest.mark.parametrize("single", [False, True])
def test_the_pixels_of_the_map_are_the_weights_and_the_hover_box_lies_over_it(single):
    weights = drawn_at_random(1 if single else 8, 12, 9)
    explorer = attention_explorer(weights, WORDS, list("abcdefghi"), query=5)
    for head in range(len(weights)):
        if not single:
            explorer.controls["head"].value = head
        png, region = explorer.picture.png, explorer.picture.hover[0]
        assert (region["row_name"], region["column_name"]) == ("query", "key")
        assert region["rows"] == [f"{n} {word}" for n, word in enumerate(WORDS)]
        assert region["columns"] == [f"{n} {letter}" for n, letter in enumerate("abcdefghi")]
        drawn = cells_of(png, region["box"], (12, 9))
        assert np.abs(drawn - viridis_of(weights[head], weights.max().item())).max() < 0.02
    left, top, right, bottom = region["box"]
    wide, high = 1 / 1352, 1 / 559  # a pixel
    for x, inside_x in ((left, 1), (right, -1)):
        for y, inside_y in ((top, 1), (bottom, -1)):
            inside = at(png, x + 2 * inside_x * wide, y + 2 * inside_y * high)
            assert inside.max() < 0.995 and np.ptp(inside) > 0.05, "inside the box is the map"
            for dx, dy in ((-2, 2), (2, -2), (-2, -2)):
                outside = at(png, x + dx * inside_x * wide, y + dy * inside_y * high)
                assert outside.min() > 0.97, "outside is paper"


def test_the_framed_row_is_the_query(two_layers):
    _, explorer = two_layers
    box = explorer.picture.hover[0]["box"]
    for query in (0, 6, 11):
        explorer.controls["query"].value = query
        spots = [(x, y) for x in (0.05, 0.95) for y in (0.0, 1.0)]
        colours = {spot: cells_of(explorer.picture.png, box, (12, 1), spot) for spot in spots}
        for row in range(12):
            hits = [
                np.abs(colours[spot][row, 0] - ORANGE).max() < 0.03
                for spot in spots
                if not (row == 11 and spot[1] == 1.0)
            ]
            if row == query:
                assert all(hits)
            elif abs(row - query) > 1:
                assert not any(hits)
        assert explorer.picture.figure.panels[0].data()["row"] == [query]


@pytest.mark.parametrize("shape", [(6, 6), (4, 9), (1, 36), (2, 3)])
def test_a_small_map_has_its_numbers_in_its_cells_and_a_larger_one_none(shape):
    weights = drawn_at_random(*shape)
    panel = attention_explorer(weights).picture.figure.panels[0]
    shown = [text for text in panel._numbers if text.get_visible()]
    assert len(shown) == weights.numel()
    for text in shown:
        x, y = text.get_position()
        row, column = int(y * shape[0]), int(x * shape[1])
        assert (x, y) == pytest.approx(((column + 0.5) / shape[1], (row + 0.5) / shape[0]))
        assert text.get_text() == f"{weights[row, column]:.2f}"
        red, green, blue = viridis_of(weights[row, column], weights.max().item())
        light = 0.3 * red + 0.59 * green + 0.11 * blue
        assert (text.get_color() == "white") or light > 0.4
        assert (text.get_color() != "white") or light < 0.6
    one_more = attention_explorer(drawn_at_random(1, 37)).picture.figure.panels[0]
    assert not any(text.get_visible() for text in one_more._numbers)


def labels(texts, along):
    """Place along the side → what stands there."""
    return {text.get_position()[along]: text.get_text() for text in texts if text.get_visible()}


@pytest.mark.parametrize("count", [1, 12, 40, 41, 100])
def test_tokens_stand_at_their_rows_and_columns(count):
    queries = [f"q{n}" for n in range(count)]
    keys = [f"k{n}" for n in range(count + 1)]
    map_, lines = attention_explorer(
        drawn_at_random(count, count + 1), queries, keys
    ).picture.figure.panels
    for labelled, along, tokens in (
        (map_._rows, 1, queries),
        (map_._columns, 0, keys),
        (lines._left, 1, queries),
        (lines._right, 1, keys),
    ):
        found = labels(labelled.texts, along)
        step = math.ceil(len(tokens) / 40)
        assert sorted(found.items()) == [
            (pytest.approx((n + 0.5) / len(tokens)), tokens[n]) for n in range(0, len(tokens), step)
        ]
        assert 1 <= len(found) <= 40


@pytest.mark.parametrize(
    ("token", "most", "written"),
    [
        ("horse", 5, "horse"),
        ("horses", 5, "hors…"),
        (" ", 5, "␣"),
        ("\n", 5, "␣"),
        ("", 5, ""),
        ("a b", 5, "a b"),
    ],
)
def test_a_long_token_is_cut_and_a_space_can_be_seen(token, most, written):
    assert shortened(token, most) == written


# --- the lines -------------------------------------------------------------------------------


def ends_of(lines, rows, keys):
    """(query, key) → (width, opacity, colour) of every line, read off where the lines end."""
    found = {}
    for segment, width, colour in zip(
        lines.get_segments(), lines.get_linewidths(), lines.get_colors(), strict=True
    ):
        (x0, y0), (x1, y1) = segment
        assert x0 < x1
        pair = y0 * rows - 0.5, y1 * keys - 0.5
        query, key = (round(number) for number in pair)
        assert pair == pytest.approx((query, key), abs=1e-6)
        assert (query, key) not in found
        found[query, key] = width, colour[3], tuple(colour[:3])
    return found


@pytest.mark.parametrize("single", [False, True])
def test_lines_are_as_strong_as_the_weights(single):
    weights = drawn_at_random(1 if single else 3, 12, 9, sharpness=3.0)
    explorer = attention_explorer(weights, view="lines", query=7)
    for head in range(len(weights)):
        if not single:
            explorer.controls["head"].value = head
        panel, brightest = explorer.picture.figure.panels[1], weights.max().item()
        share = (weights[head] / brightest).tolist()
        others, own = ends_of(panel._others, 12, 9), ends_of(panel._own, 12, 9)
        assert set(others) == {
            (i, j) for i in range(12) for j in range(9) if 0.4 * share[i][j] > 0.01
        }
        assert set(own) == {(7, j) for j in range(9) if share[7][j] > 0.01}
        for (i, j), (width, opacity, colour) in others.items():
            assert opacity == pytest.approx(0.4 * share[i][j], rel=1e-4)
            assert width == pytest.approx(0.4 + 3.6 * opacity) and colour == BLUE
        for (i, j), (width, opacity, colour) in own.items():
            assert opacity == pytest.approx(share[i][j], rel=1e-4)
            assert width == pytest.approx(0.4 + 3.6 * opacity) and colour == ORANGE
        assert panel._mark.get_ydata() == [pytest.approx(7.5 / 12)]
        numbers = {
            math.floor(text.get_position()[1] * 9): text.get_text()
            for text in panel._numbers
            if text.get_visible()
        }
        mine = weights[head, 7].tolist()
        most = sorted(range(9), key=lambda key: -mine[key])[:3]
        assert numbers == {key: f"{mine[key]:.2f}" for key in most if mine[key] >= 0.005}
        assert panel.data()["row"] == [7]


def test_of_many_lines_the_strongest_are_drawn():
    weights = drawn_at_random(40, 40)
    panel = attention_explorer(weights, query=3).picture.figure.panels[1]
    drawn = ends_of(panel._others, 40, 40)
    order = weights.flatten().argsort(descending=True)[: len(drawn)].tolist()
    assert len(drawn) == 250 and set(drawn) == {divmod(place, 40) for place in order}
    assert {i for i, _ in ends_of(panel._own, 40, 40)} == {3}


def test_the_pointer_reads_the_weights_of_the_stressed_query_beside_its_keys():
    weights = drawn_at_random(2, 12, 9)
    explorer = attention_explorer(weights, WORDS, list("abcdefghi"), view="lines", query=2, head=1)
    (region,) = explorer.picture.hover
    assert np.array_equal(values_of(region), weights[1, 2, :, None].numpy())
    assert region["rows"] == [f"{n} {letter}" for n, letter in enumerate("abcdefghi")]
    assert region["columns"] == ["2 did"]
    assert (region["row_name"], region["column_name"]) == ("key", "query")
    # each key's name is drawn in the middle of its cell
    left, top, right, bottom = region["box"]
    drawn = explorer.picture.figure.figure
    for key, text in enumerate(explorer.picture.figure.panels[1]._right.texts[:9]):
        low, high = (top + (key + share) / 9 * (bottom - top) for share in (0.4, 0.6))
        x0, y0, x1, y1 = box_of(text, drawn)
        assert left < x0 < x1 < right and low < (y0 + y1) / 2 < high
    # the lines start at the box's left edge
    axes = explorer.picture.figure.panels[1].axes
    start = axes.transData.transform(explorer.picture.figure.panels[1]._own.get_segments()[0][0])
    assert drawn.transFigure.inverted().transform(start)[0] == pytest.approx(left, abs=1e-6)


# --- all heads -------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, 4, 5, 8, 16, 17, 64])
def test_the_framed_thumbnail_is_the_chosen_head(count):
    weights = drawn_at_random(count, 12, 9)
    explorer = attention_explorer(weights)
    live = explorer.picture.figure
    panel, boxes = live.panels[2], []
    wanted = viridis_of(weights, weights.max().item())
    for head in sorted({0, 1, count // 2, count - 1}):
        explorer.controls["head"].value = head
        x0, y0, x1, y1 = panel._frame.get_bbox().extents
        box = matplotlib.transforms.Bbox([[x0, y0], [x1, y1]])
        in_pixels = box.transformed(panel.axes.transData).transformed(
            live.figure.transFigure.inverted()
        )
        (left, low), (right, high) = in_pixels.min, in_pixels.max
        tile = [left, 1 - high, right, 1 - low]
        drawn = cells_of(explorer.picture.png, tile, (12, 9))[1:-1, 1:-1]  # the frame is thick
        assert np.abs(drawn - wanted[head, 1:-1, 1:-1]).max() < 0.02
        assert panel.data()["head"] == [head]
        if count <= 16:
            note = panel._texts[head]
            a, b, c, d = box_of(note, live.figure)
            assert (a + c) / 2 == pytest.approx((tile[0] + tile[2]) / 2, abs=0.002)
            assert tile[3] < b < d < tile[3] + 0.1 and note.get_visible()
            assert note.get_text().startswith(f"{head}:  ")
        else:
            assert not any(text.get_visible() for text in panel._texts)
        boxes.append(tile)
    low, high = panel.axes.get_position().min, panel.axes.get_position().max
    for left, top, right, bottom in boxes:
        assert low[0] <= left < right <= high[0] and 1 - high[1] <= top < bottom <= 1 - low[1]
    for one, other in itertools.combinations(boxes, 2):
        assert one[2] < other[0] or other[2] < one[0] or one[3] < other[1] or other[3] < one[1]


def test_a_layer_with_fewer_heads_shows_only_those():
    layers = {"many": drawn_at_random(8, 5, 5), "few": drawn_at_random(3, 5, 5)}
    explorer = attention_explorer(layers, head=7)
    many = explorer.picture.png
    explorer.controls["layer"].value = "few"
    assert facts(explorer)["head"] == "2 of 3"
    map_, _, heads = explorer.picture.figure.panels
    assert np.array_equal(map_.weights, layers["few"][2])
    assert heads.head == 2
    assert [text.get_visible() for text in heads._texts] == [True] * 3 + [False] * 5
    fresh = attention_explorer(layers, head=2, layer="few")
    assert fresh.picture.png == explorer.picture.png
    explorer.controls["layer"].value = "many"
    assert facts(explorer)["head"] == "7 of 8" and explorer.picture.png == many


def test_a_layer_of_the_same_weights_between_other_tokens_has_its_own_notes():
    weights = drawn_at_random(2, 3, 3)
    layers = {
        "self": AttentionMap(weights, list("abc")),
        "cross": AttentionMap(weights, list("abc"), list("xyz")),
    }
    explorer = attention_explorer(layers)
    explorer.controls["layer"].value = "cross"
    fresh = attention_explorer(layers, layer="cross")
    assert explorer.picture.figure.panels[2].notes == fresh.picture.figure.panels[2].notes


# --- what moves what -------------------------------------------------------------------------


def changed(before, after):
    assert before.keys() == after.keys()
    return {name for name in before if before[name] != after[name]}


def test_each_control_changes_what_it_should_and_nothing_else(two_layers):
    _, explorer = two_layers
    map_, lines, heads = explorer.picture.figure.panels
    left = slice(0, round(1352 * heads.axes.get_position().x0) - 8)
    right = slice(left.stop, None)

    def move(control, value):
        before, was = facts(explorer), pixels(explorer.picture.png)
        hover = explorer.picture.hover
        explorer.controls[control].value = value
        now = pixels(explorer.picture.png)
        return (
            changed(before, facts(explorer)),
            (was[:, left] != now[:, left]).any(),
            (was[:, right] != now[:, right]).any(),
            hover != explorer.picture.hover,
        )

    for view in ("map", "lines"):
        if view == "lines":
            assert move("view", view) == (set(), True, False, True)
        assert [map_.axes.get_visible(), lines.axes.get_visible()] == [
            view == "map",
            view == "lines",
        ]
        assert len(explorer.picture.hover) == 1, "what is hidden cannot be read off"
        assert move("query", 9) == ({"query", "looks at"}, True, False, view == "lines")
        of_head = {"head", "entropy", "distance", "looks at"}
        assert move("head", 6) == (of_head, True, True, True)
        of_layer = {"layer", "entropy", "distance", "looks at", "brightest colour"}
        assert move("layer", "second") == (of_layer, True, True, True)
        explorer.reset()
    assert explorer.controls["view"].value == "map" and facts(explorer)["layer"] == "first"
    # another head only moves the frame among the thumbnails
    explorer.controls["head"].value = 0
    was = pixels(explorer.picture.png)
    explorer.controls["head"].value = 7
    differ = (was != pixels(explorer.picture.png)).any(-1)[:, right]
    assert 0 < differ.mean() < 0.03


def test_where_it_starts_can_be_said(two_layers):
    layers, explorer = two_layers
    for name, value in (("layer", "second"), ("head", 5), ("query", 11), ("view", "lines")):
        explorer.controls[name].value = value
    other = attention_explorer(layers, WORDS, layer="second", head=5, query=11, view="lines")
    assert other.summary == explorer.summary and other.picture.png == explorer.picture.png
    assert {name: one.value for name, one in other.controls.items()} == {
        "layer": "second",
        "head": 5,
        "query": 11,
        "view": "lines",
    }


def test_controls_go_as_far_as_there_is_something_to_show(two_layers):
    _, explorer = two_layers
    controls = explorer.controls
    assert list(controls) == ["layer", "head", "query", "view"]
    assert (controls["head"].min, controls["head"].max) == (0, 7)
    assert (controls["query"].min, controls["query"].max) == (0, 11)
    assert list(controls["view"].options) == ["map", "lines"]


def test_a_single_head_is_map_and_lines_side_by_side_without_their_controls():
    weights = drawn_at_random(12, 12)
    explorer = attention_explorer(weights, WORDS, query=3)
    assert list(explorer.controls) == ["query"]
    map_, lines = explorer.picture.figure.panels
    assert map_.axes.get_visible() and lines.axes.get_visible()
    assert map_.axes.get_title("left") != lines.axes.get_title("left")
    assert map_.axes.get_position().x1 <= lines.axes.get_position().x0
    one, other = explorer.picture.hover
    assert np.array_equal(values_of(one), weights.numpy())
    assert np.array_equal(values_of(other), weights[3, :, None].numpy())
    was = explorer.picture.png
    explorer.controls["query"].value = 8
    assert np.array_equal(values_of(explorer.picture.hover[1]), weights[8, :, None].numpy())
    assert explorer.picture.png != was
    assert explorer._repr_mimebundle_()[0]["text/plain"].count(": weight 0") == 2
    same = attention_explorer(weights, WORDS, query=8, view="lines")
    assert same.picture.png == explorer.picture.png, "with one head there is only one view"


def test_several_layers_of_one_head_have_a_layer_control_and_no_other():
    explorer = attention_explorer([drawn_at_random(5, 5), drawn_at_random(1, 4, 6)])
    assert list(explorer.controls) == ["layer", "query"]
    explorer.controls["query"].value = 4
    explorer.controls["layer"].value = "1"
    assert facts(explorer)["query"].split()[0] == "3", "a shorter sequence has no fifth query"


def test_one_layer_of_several_heads_has_no_layer_control():
    assert list(attention_explorer(drawn_at_random(2, 3, 3)).controls) == ["head", "query", "view"]


def test_what_is_described_is_what_can_be_seen(two_layers):
    _, explorer = two_layers
    said = explorer._repr_mimebundle_()[0]["text/plain"].split("\n")[-2:]
    assert re.fullmatch(r".*: weight .*; row 4", said[0])
    assert re.fullmatch(r"each head.*: weight .*; head 0", said[1])
    assert (
        attention_explorer(torch.eye(2), measured=True, title="Mine")._repr_mimebundle_()[0][
            "text/plain"
        ]
        == "Mine."
    )


# --- a text that can be typed ----------------------------------------------------------------


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


@pytest.fixture
def typed():
    reader = Reader()
    return reader, attention_explorer(reader, text="a bb ccc dddd eeeee", query=4, title="Reads")


def test_another_text_is_read_once_and_drawn(typed):
    reader, explorer = typed
    assert list(explorer.controls) == ["text", "head", "query", "view"]
    assert explorer.controls["query"].max == 23, "there is room to type"
    for name, value in (("query", 2), ("head", 1), ("view", "lines"), ("view", "map")):
        explorer.controls[name].value = value
    assert reader.asked == ["a bb ccc dddd eeeee"]
    explorer.controls["text"].value = "one three a"
    explorer.controls["head"].value = 0
    assert reader.asked[1:] == ["one three a"]
    said = facts(explorer)
    assert said["text"] == "'one three a'" and said["query"] == "2 a"
    weights = reader("one three a")["only"].weights
    map_ = explorer.picture.figure.panels[0]
    assert np.array_equal(map_.weights, weights[0])
    assert map_.queries == map_.keys == ["one", "three", "a"]
    fresh = attention_explorer(reader, text="one three a", query=2, title="Reads")
    assert fresh.picture.png == explorer.picture.png


def test_a_shorter_text_shows_its_last_query_and_a_longer_one_the_old_place(typed):
    reader, explorer = typed
    explorer.controls["text"].value = "a bb"
    said = facts(explorer)
    assert said["query"] == "1 bb" and explorer.controls["query"].value == 4
    weights = reader("a bb")["only"].weights[0, 1].tolist()
    assert said["looks at"] == f"1 bb ({weights[1]:.2f}), 0 a ({weights[0]:.2f})"
    assert explorer.picture.figure.panels[0].data()["row"] == [1]
    explorer.controls["text"].value = "a bb ccc dddd eeeee ffffff"
    assert facts(explorer)["query"] == "4 eeeee"


@pytest.mark.parametrize(("text", "says"), [("a zebra", "zebra"), ("", "the text is empty")])
def test_a_word_that_the_model_does_not_know_is_said_and_the_picture_stays(typed, text, says):
    _, explorer = typed
    before = explorer.picture.png, explorer.summary, explorer.picture.hover
    explorer.controls["text"].value = text
    assert says in explorer._words.value and "cannot be drawn" in explorer._words.value
    assert (explorer.picture.png, explorer.summary, explorer.picture.hover) == before
    explorer.controls["query"].value = 1  # still the text that cannot be read
    assert says in explorer._words.value and explorer.picture.png == before[0]
    explorer.controls["text"].value = "a bb ccc dddd eeeee"
    assert facts(explorer)["query"] == "1 bb" and "cannot" not in explorer._words.value


@pytest.mark.parametrize("token", ["_{", "^", r"\alpha", "$5", *("$x$", r"$\foo$")])
def test_any_token_is_written_as_it_is(token):
    explorer = attention_explorer(
        lambda text: {"a": AttentionMap(torch.ones(1, 1, 1), [text])}, text="x"
    )
    explorer.controls["text"].value = token
    label = explorer.picture.figure.panels[0]._rows.texts[0]
    assert label.get_text() == token
    assert label._preprocess_math(token)[1] is False or not label.get_parse_math()


# --- long inputs -----------------------------------------------------------------------------


def test_pooling_keeps_the_largest_of_what_each_pixel_stands_for():
    for rows, columns, most in ((7, 5, 3), (100, 72, 72), (73, 1024, 72), (5, 5, 5), (1, 9, 4)):
        weights = np.random.default_rng(rows).random((rows, columns))
        small = pooled(weights, most)
        assert small.shape == (min(rows, most), min(columns, most))
        r = [int(n * rows / small.shape[0]) for n in range(small.shape[0])] + [rows]
        c = [int(n * columns / small.shape[1]) for n in range(small.shape[1])] + [columns]
        for i, j in np.ndindex(small.shape):
            assert small[i, j] == weights[r[i] : r[i + 1], c[j] : c[j + 1]].max()


@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("spot", [(0, 0), (137, 299), (299, 4), (211, 211)])
def test_in_a_long_sequence_a_single_weight_can_still_be_seen(heads, spot):
    weights = torch.full((heads, 300, 300), 1e-4)
    weights[-1][spot] = 1.0
    explorer = attention_explorer(weights, head=heads - 1, query=150)
    region = explorer.picture.hover[0]
    assert region["shape"] == [300, 300] and values_of(region)[spot] == 1
    bright = np.abs(pixels(explorer.picture.png) - VIRIDIS(1.0)[:3]).max(-1) < 0.01
    rows, columns = np.nonzero(bright)
    left, top, right, bottom = region["box"]
    wanted = (
        559 * (top + (spot[0] + 0.5) / 300 * (bottom - top)),
        1352 * (left + (spot[1] + 0.5) / 300 * (right - left)),
    )
    assert min(np.hypot(rows + 0.5 - wanted[0], columns + 0.5 - wanted[1])) < 2.5
    if heads > 1:  # and in the thumbnail, in the other half
        explorer.controls["head"].value = 0
        bright = np.abs(pixels(explorer.picture.png) - VIRIDIS(1.0)[:3]).max(-1) < 0.01
        _, columns = np.nonzero(bright)
        explorer.controls["head"].value = heads - 1
        assert (columns > 1352 * explorer.picture.figure.panels[2].axes.get_position().x0).any()
    explorer.controls["query"].value = spot[0]
    assert facts(explorer)["looks at"].startswith(f"{spot[1]} ")


def test_the_longest_can_be_drawn_and_saved(tmp_path):
    explorer = attention_explorer(drawn_at_random(1024, 1024), query=1023)
    assert facts(explorer)["query"].startswith("1023")
    assert explorer.save(tmp_path / "long.svg").stat().st_size < 3e6


# --- cells -----------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (12, 12), (20, 31), (150, 200)])
@pytest.mark.parametrize("dpi", [100, 130, 217])
def test_cells_are_drawn_as_imshow_draws_them(shape, dpi):
    shares = np.random.default_rng(0).random(shape)
    fine = max(shape) > 100  # cells of a pixel or two: neighbours must be alike to be compared
    if fine:
        y, x = np.indices(shape) / np.array(shape)[:, None, None]
        shares = (1 + np.sin(5 * x + 3 * y * y) * np.cos(4 * y - 2 * x)) / 2
    pictures = []
    for ours in (True, False):
        drawn, axes = figure(4, 3)
        axes.set(xlim=(-0.3, 1.1), ylim=(1.2, -0.1))
        axes.grid(False)
        if ours:
            Cells(axes, (0, 1, 1, 0)).show(shares)
        else:
            axes.imshow(
                shares,
                vmin=0,
                vmax=1,
                extent=(0, 1, 1, 0),
                aspect="auto",
                interpolation="nearest",
                cmap="viridis",
            )
        file = io.BytesIO()
        drawn.savefig(file, dpi=dpi)
        pictures.append(pixels(file.getvalue()))
    (left, top), (right, bottom) = axes.transData.transform([(0, 0), (1, 1)]) * dpi / drawn.dpi
    height, _, _ = pictures[0].shape
    x = left + (np.arange(shape[1]) + 0.5) / shape[1] * (right - left)
    y = height - top + (np.arange(shape[0]) + 0.5) / shape[0] * (top - bottom)
    ours, theirs = (one[np.ix_(y.astype(int), x.astype(int))] for one in pictures)
    near = 0.06 if fine else 0.02
    assert np.abs(theirs - VIRIDIS(shares)[..., :3]).max() < near, "the test looks elsewhere"
    assert np.abs(ours - theirs).max() < near
    # everywhere else too, but for a pixel at each edge of a cell
    apart = np.abs(pictures[0] - pictures[1]).max(-1) > near
    assert apart.mean() < 0.5 * (shape[0] / (top - bottom) + shape[1] / (right - left))
    outside = np.ones_like(apart)
    outside[int(height - top) - 1 : int(height - bottom) + 2, int(left) - 1 : int(right) + 2] = (
        False
    )
    assert not apart[outside].any()


def test_below_zero_is_white_and_above_one_is_the_brightest():
    drawn, axes = figure(3, 3)
    axes.set(xlim=(0, 1), ylim=(1, 0))
    axes.grid(False)
    Cells(axes, (0, 1, 1, 0)).show([[-1.0, 0.0], [1.0, 7.0]])
    file = io.BytesIO()
    drawn.savefig(file, dpi=100)
    box = axes.get_position()
    found = cells_of(file.getvalue(), (box.x0, 1 - box.y1, box.x1, 1 - box.y0), (2, 2))
    wanted = [[[1, 1, 1], VIRIDIS(0.0)[:3]], [VIRIDIS(1.0)[:3]] * 2]
    assert np.abs(found - np.array(wanted)).max() < 0.005


# --- files -----------------------------------------------------------------------------------


@pytest.mark.parametrize("single", [False, True])
def test_the_saved_png_is_the_picture_and_the_saved_svg_has_its_map_in_the_same_place(
    tmp_path, single
):
    weights = drawn_at_random(1 if single else 8, 12, 9)
    explorer = attention_explorer(weights, query=5)
    png = explorer.save(tmp_path / "a.png").read_bytes()
    assert png == explorer.picture.png and pixels(png).shape == (559, 1352, 3)
    svg = explorer.save(tmp_path / "a.svg").read_text()
    assert "brightest colour" in svg and "looks at" in svg
    width, height = map(float, re.search(r'viewBox="0 0 (\S+) (\S+)"', svg).groups())
    images = re.findall(r"<image [^>]*>", svg)
    assert len(images) == (1 if single else 2)
    image = next(one for one in images if "base64" in one)
    tag = dict(re.findall(r'([\w:]+)="([^"]*)"', image.replace("\n", "")))
    bytes_ = base64.b64decode(tag["xlink:href"].split(",")[1])
    flipped = "scale(1 -1)" in tag.get("transform", "")
    shift = 0.0
    if match := re.search(r"translate\(0 (-?[\d.]+)\)", tag.get("transform", "")):
        shift = float(match[1])
    x, y, w, h = (float(tag[name]) for name in ("x", "y", "width", "height"))
    top = -(y + h) - shift if flipped else y + shift
    top = abs(top)
    left, up, right, down = explorer.picture.hover[0]["box"]
    assert (x / width, w / width) == pytest.approx((left, right - left), abs=0.002)
    assert (top / height, h / height) == pytest.approx((up, down - up), abs=0.004)
    embedded = Image.open(io.BytesIO(bytes_))
    if flipped:
        embedded = embedded.transpose(Image.Transpose.FLIP_TOP_BOTTOM)
    file = io.BytesIO()
    embedded.save(file, "PNG")
    drawn = cells_of(file.getvalue(), (0, 0, 1, 1), (12, 9))
    assert np.abs(drawn - viridis_of(weights[0], weights.max().item())).max() < 0.02
    explorer.refresh()
    assert explorer.picture.png == png, "saving disturbed the live picture"
    with pytest.raises(ValueError, match=r"must end in \.png or \.svg"):
        explorer.save(tmp_path / "a.pdf")


def test_an_svg_shows_what_is_chosen_and_nothing_of_the_hidden_view(two_layers):
    _, explorer = two_layers
    live = explorer.picture.figure
    as_map = live.svg()
    assert as_map.count(b"<image ") == 2
    explorer.controls["view"].value = "lines"
    as_lines = live.svg()
    assert as_lines.count(b"<image ") == 1 and as_lines.count(b"LineCollection") == 2
    assert b"LineCollection" not in as_map
    explorer.controls["view"].value = "map"
    assert live.svg() == as_map


# --- a picture that is only moved ------------------------------------------------------------


def read_at_random(text):
    """Two layers, of three heads and of one, for any text: its letters are the seed."""
    words = text.split()
    draw = torch.Generator().manual_seed(sum(map(ord, text)))
    first = torch.softmax(2 * torch.randn(3, len(words), len(words), generator=draw), dim=-1)
    second = torch.softmax(2 * torch.randn(1, len(words), 4, generator=draw), dim=-1)
    return {"first": AttentionMap(first, words), "second": AttentionMap(second, words, "wxyz")}


SENTENCES = ("a horse is tired", "it was too tired so the goat stayed", "it", "a bird sat still")
MOVED = {
    "attention": (
        lambda **settings: attention_explorer(read_at_random, **{"text": SENTENCES[0]} | settings),
        {
            "text": SENTENCES,
            "layer": ("first", "second"),
            "head": range(3),
            "query": range(8),
            "view": ("map", "lines"),
        },
    ),
    "a single head": (
        lambda **settings: attention_explorer(Reader(1), **{"text": SENTENCES[0]} | settings),
        {"text": SENTENCES, "query": range(8)},
    ),
    "masks": (
        lambda convention=None, **settings: mask_explorer(**settings),
        {
            "kind": KINDS,
            "length": range(6),
            "queries": range(1, 6),
            "convention": list(CONVENTIONS),
        },
    ),
    "reshape": (
        reshape_explorer,
        {"step": (0.0, 0.3, 1.0, 1.5, 2.0, 3.9, 4.0), "heads": (2, 4), "way": list(WAYS)},
    ),
    "dates": (
        lambda **settings: date_explorer(date_translator(), **{"text": "5/2/81"} | settings),
        {"text": ("5 maja 1980", "Tuesday, March 5, 2024", "7/4/87"), "step": range(1, 12)},
    ),
}


@pytest.mark.parametrize("name", MOVED)
def test_after_any_moves_the_picture_is_that_of_a_full_drawing(name, request):
    request.getfixturevalue("without_annotations")
    make, positions = MOVED[name]
    moved, pictures = moved_at_random(make, positions, random.Random(name), turns=7)
    assert len(pictures) > 2, "the test shows too little"
    settings = {control: moved.controls[control].value for control in positions}
    if "query" in settings:
        settings["query"] = int(facts(moved)["query"].split()[0])
    if "head" in settings:
        settings["head"] = int(facts(moved)["head"].split()[0])
    if name != "masks" or settings["convention"] == next(iter(CONVENTIONS)):
        assert make(**settings).picture.png == moved.picture.png


def test_other_weights_under_the_same_notes_are_drawn_anew():
    weights = torch.eye(3, 4).repeat(2, 1, 1)
    layers = {"one": weights, "other": weights.flip(-1)}
    explorer = attention_explorer(layers)
    notes = explorer.picture.figure.panels[2].notes
    explorer.controls["layer"].value = "other"
    assert explorer.picture.figure.panels[2].notes == notes
    assert explorer.picture.png == attention_explorer(layers, layer="other").picture.png


def test_a_new_background_is_seen_although_no_panel_has_changed(two_layers):
    live = two_layers[1].picture.figure
    before = live.png()
    live.panels[2].axes.set_title("another title")
    assert live.png() == before, "the background is kept until it is said to have changed"
    live.redraw_background()
    assert live.png() != before


# --- masks -----------------------------------------------------------------------------------


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
def test_masks_in_three_conventions_and_the_weights_they_leave(masks, kind, length, queries):
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
    masks.controls["convention"].value = "True = hidden"
    hidden = torch.tensor(
        [[{"True": True, "False": False}[cell] for cell in row] for row in written()]
    )
    layer = nn.MultiheadAttention(5, 1, bias=False, batch_first=True)
    with torch.no_grad():
        layer.in_proj_weight.copy_(torch.cat([eye * math.sqrt(5), eye, eye]))
        layer.out_proj.weight.copy_(eye)
        theirs, _ = layer(scores[None], eye[None], eye[None], attn_mask=hidden)
    assert np.allclose(weights, theirs[0].nan_to_num(0.0), atol=1e-5)
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
    assert said["pairs that may attend"] == f"{allowed.sum()} of {5 * queries}"
    lonely = sum(not any(row) for row in allowed.tolist())
    assert said["queries that may attend to nothing"] == str(lonely)
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


def test_scores_are_blue_below_zero_and_orange_above():
    explorer = mask_explorer(seed=3)
    scores = torch.randn(5, 5, generator=torch.Generator().manual_seed(3)).numpy()
    assert np.allclose(explorer.picture.figure.panels[0].values, scores)
    png, region = explorer.picture.png, explorer.picture.hover[0]
    colours = cells_of(png, region["box"], (5, 5), (0.12, 0.12))
    full = np.where(scores[..., None] > 0, ORANGE, BLUE)
    share = np.clip(np.abs(scores) / 3, 0, 1)[..., None]
    assert np.abs(colours - (1 - share * (1 - full))).max() < 0.02


def test_a_mask_explorer_starts_where_it_is_told():
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


def test_a_table_writes_in_white_on_dark_and_leaves_gaps_empty():
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


# --- splitting heads -------------------------------------------------------------------------


def spot(way, heads, step, number):
    """Block, row, column of a number at a whole step, and how many columns a block has."""
    d = 8 // heads
    token, column = divmod(number, 8)
    flat = (0, token, column, 8)
    by_token = (token, column // d, column % d, d)
    by_head = (column // d, token, column % d, d)
    if step == 0:
        return flat
    if way == "split and merge":
        return {1: by_token, 2: by_head, 3: by_token, 4: flat}[step]
    if way == "merge without transpose":
        place = (column // d) * 3 * d + token * d + column % d  # in memory, head by head
        return {1: by_token, 2: by_head, 3: by_head, 4: (0, place // 8, place % 8, 8)}[step]
    block, row, inner = number // (3 * d), number // d % 3, number % d  # cut as it lies
    return {
        1: (block, row, inner, d),
        2: (block, row, inner, d),
        3: (row, block, inner, d),
        4: (0, row, block * d + inner, 8),
    }[step]


def where(way, heads, step):
    spots = [spot(way, heads, step, number) for number in range(24)]
    return np.array([(block * (wide + 0.7) + column, row) for block, row, column, wide in spots])


@pytest.fixture
def reshape(without_annotations):
    return reshape_explorer()


@pytest.mark.parametrize("heads", [2, 4])
@pytest.mark.parametrize("way", WAYS)
def test_every_number_stands_where_index_arithmetic_puts_it(reshape, way, heads):
    reshape.controls["heads"].value, reshape.controls["way"].value = heads, way
    (panel,) = reshape.picture.figure.panels
    d = 8 // heads
    low, high = sorted(panel.axes.get_xlim()), sorted(panel.axes.get_ylim())
    for step in (0, 1, 2, 3, 4, 0.5, 1.5, 2.5, 3.5, 0.2, 3.7):
        reshape.controls["step"].value = step
        before, after = math.floor(step), math.ceil(step)
        share = step - before
        wanted = (1 - share) * where(way, heads, before) + share * where(way, heads, after)
        assert np.allclose(panel.places, wanted)
        for number, text in enumerate(panel._texts):
            assert text.get_text() == str(number)
            assert text.get_position() == pytest.approx(tuple(wanted[number]))
        paths = panel._tiles.get_paths()
        centres = [path.vertices[:4].mean(axis=0) for path in paths]
        assert np.allclose(centres, wanted)
        assert (wanted > (low[0], high[0])).all() and (wanted < (low[1], high[1])).all()
        if step == before:
            assert len(set(map(tuple, wanted.round(6).tolist()))) == 24
        said, what = facts(reshape), WAYS[way][after - 1] if after else None
        assert said["step"] == f"{step:.1f}, {what.code if what else 'x'}"
        axes = what.axes if what else "length, d_model"
        sizes = [
            {"length": 3, "heads": heads, "d_head": d, "d_model": 8}[a] for a in axes.split(", ")
        ]
        assert said["shape"] == f"({axes}) = ({', '.join(map(str, sizes))})"
        assert panel._caption.get_text() == f"{what.code if what else 'x'}:  {said['shape']}"
    colours = panel._tiles.get_facecolors()
    names = ("main", "second", "third", "truth")
    for number in range(24):
        owner = number % 8 // d
        assert np.allclose(colours[number][:3], matplotlib.colors.to_rgb(COLOURS[names[owner]]))
    said = facts(reshape)
    assert said["way"] == way
    assert said["the split is"] == ("wrong" if way == "split without transpose" else "right")
    # a cut and a transpose that undoes nothing: only the right way gives x back
    merged = where(way, heads, 4)
    right = np.array_equal(merged, where("split and merge", heads, 0))
    assert said["the way back gives x"] == ("yes" if right else "no")
    assert right == (way == "split and merge")
    split = [spot(way, heads, 2, number) for number in range(24)]
    head_0 = sorted(
        (row, column, n) for n, (block, row, column, _) in enumerate(split) if block == 0
    )
    assert said["head 0 gets"] == " ".join(str(n) for _, _, n in head_0)


@pytest.mark.parametrize("heads", [2, 4])
def test_strides_are_those_of_numpy(reshape, heads):
    reshape.controls["heads"].value, reshape.controls["way"].value = heads, "split and merge"
    x = np.arange(24, dtype=np.int64).reshape(3, 8)
    tokens = x.reshape(3, heads, -1)
    for step, array in enumerate([x, tokens, tokens.swapaxes(0, 1), tokens, x]):
        reshape.controls["step"].value = step
        assert facts(reshape)["strides"] == str(tuple(stride // 8 for stride in array.strides))


def test_a_head_keeps_its_colour_on_the_picture(reshape):
    reshape.controls["heads"].value, reshape.controls["way"].value = 4, "split and merge"
    (panel,) = reshape.picture.figure.panels
    to_figure = reshape.picture.figure.figure.transFigure.inverted()
    for step in (0, 2):
        reshape.controls["step"].value = step
        for number, place in enumerate(where("split and merge", 4, step)):
            x, y = to_figure.transform(panel.axes.transData.transform(place + (-0.36, -0.36)))
            colour = at(reshape.picture.png, x, 1 - y)
            name = ("main", "second", "third", "truth")[number % 8 // 2]
            assert np.abs(colour - matplotlib.colors.to_rgb(COLOURS[name])).max() < 0.02


@pytest.mark.usefixtures("without_annotations")
def test_a_step_that_is_a_hair_off_is_that_step():
    """A slider in a browser counts in tenths: 0.1 + 0.2 is 0.30000000000000004."""
    explorer = reshape_explorer(step=4)
    assert facts(explorer)["step"] == "4.0, .flatten(-2)"
    explorer.controls["step"].value = 1.0
    assert facts(explorer)["step"].startswith("1.0, x.unflatten")


@pytest.mark.usefixtures("without_annotations")
def test_a_reshape_explorer_starts_where_it_is_told():
    explorer = reshape_explorer(heads=4, way="merge without transpose", step=2.5)
    values = {name: one.value for name, one in explorer.controls.items()}
    assert values == {"step": 2.5, "heads": 4, "way": "merge without transpose"}
    step = explorer.controls["step"]
    assert (step.min, step.max, step.step) == (0, 4, 0.1)


def test_the_reshape_explorer_keeps_to_the_annotations():
    assert reshape_explorer().summary


# --- bad input -------------------------------------------------------------------------------

W = torch.full((2, 3, 3), 1 / 3)


def broken(index, value):
    weights = W.clone()
    weights[index] = value
    return weights


@pytest.mark.usefixtures("without_annotations")
@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: attention_explorer([[0.5, 0.5]]), "weights of layer '0' is a float; a tensor"),
        (lambda: attention_explorer(W.numpy()), "weights is a ndarray; it must be a tensor of"),
        (lambda: attention_explorer("abc"), "weights is a str; it must be a tensor of attention"),
        (lambda: attention_explorer(None), "weights is a NoneType"),
        (lambda: attention_explorer({}), "weights is empty; was the model called inside `with"),
        (lambda: attention_explorer([]), "weights is empty"),
        (lambda: attention_explorer((W > 0).int()), "weights of layer '0' has dtype int32"),
        (lambda: attention_explorer({"a": W > 0}), "weights of layer 'a' has dtype bool"),
        (
            lambda: attention_explorer(torch.rand(3)),
            "weights of layer '0' has shape (3,); it must be",
        ),
        (
            lambda: attention_explorer({"x": torch.rand(1, 1, 2, 3, 3)}),
            "weights of layer 'x' has shape (1, 1, 2, 3, 3); it must be (query, key), (heads, query, key)",
        ),
        (lambda: attention_explorer(torch.rand(2, 0, 3)), "weights of layer '0' is empty"),
        (
            lambda: attention_explorer(broken((1, 0, 2), math.nan)),
            "weights of layer '0' holds nan at index (1, 0, 2)",
        ),
        (
            lambda: attention_explorer([W, broken((0, 0, 0), math.inf)]),
            "weights of layer '1' holds inf at index (0, 0, 0)",
        ),
        (
            lambda: attention_explorer(broken((0, 1, 1), -0.1)),
            "weights of layer '0' holds negative numbers; are these scores?",
        ),
        (
            lambda: attention_explorer(W, ["a", "b"]),
            "queries holds 2 tokens, but the weights of layer '0' have 3",
        ),
        (
            lambda: attention_explorer(W, keys=list("abcd")),
            "keys holds 4 tokens, but the weights of layer '0' have 3",
        ),
        (
            lambda: attention_explorer({"a": AttentionMap(W, "ab")}),
            "queries holds 2 tokens, but the weights of layer 'a' have 3",
        ),
        (
            lambda: attention_explorer(torch.rand(2, 3, 4), list("abc"), list("abc")),
            "keys holds 3 tokens, but the weights of layer '0' have 4",
        ),
        (
            lambda: attention_explorer(torch.rand(1025, 2)),
            "layer '0' has 1025 tokens; there is room for 1024",
        ),
        (lambda: attention_explorer(torch.rand(2, 1025)), "layer '0' has 1025 tokens"),
        (
            lambda: attention_explorer(torch.rand(65, 2, 2)),
            "layer '0' has 65 heads; there is room for 64",
        ),
        (lambda: attention_explorer(W, layer="1"), "layer='1' is unknown; it must be one of '0'"),
        (
            lambda: attention_explorer({"layers.0": W}, layer="layer.0"),
            "layer='layer.0' is unknown; it must be one of 'layers.0'. Did you mean 'layers.0'?",
        ),
        (lambda: attention_explorer(W, head=2), "head=2 must be below 2"),
        (lambda: attention_explorer(W, head=-1), "head=-1 is below 0"),
        (lambda: attention_explorer(W, head=0.0), "head=0.0 is a float"),
        (
            lambda: attention_explorer([torch.rand(4, 3, 3), W], layer="1", head=3),
            "head=3 must be below 2",
        ),
        (lambda: attention_explorer(W, query=3), "query=3 must be below 3"),
        (lambda: attention_explorer(W, query=-1), "query=-1 is below 0"),
        (lambda: attention_explorer(W, query=True), "query=True is a bool"),
        (
            lambda: attention_explorer(W, view="maps"),
            "view='maps' is unknown; it must be one of 'map', 'lines'",
        ),
        (lambda: attention_explorer(W[None], example=1), "example=1 must be below 1"),
        (lambda: attention_explorer(W[None], example=-1), "example=-1 is below 0"),
        (
            lambda: attention_explorer(W, text="a"),
            "text needs weights to be a function from a text",
        ),
        (
            lambda: attention_explorer(lambda text: {"a": AttentionMap(W, "abc")}),
            "give a text to start with",
        ),
        (lambda: attention_explorer(nn.Linear(2, 2)), "give a text to start with"),
        (lambda: attention_explorer(lambda text: None, text="a"), "weights is a NoneType"),
        (lambda: attention_explorer(Reader(), text="zebra"), "'zebra' is not among the words"),
        (lambda: attention_explorer(Reader(), text="a", query=1), "query=1 must be below 1"),
        (lambda: mask_explorer(kind="cause"), "kind='cause' is unknown; it must be one of"),
        (lambda: mask_explorer(length=6), "length=6 must be at most 5"),
        (lambda: mask_explorer(length=-1), "length=-1 is below 0"),
        (lambda: mask_explorer(length=2.0), "length=2.0 is a float"),
        (lambda: mask_explorer(queries=0), "queries=0 is below 1"),
        (lambda: mask_explorer(queries=6), "queries=6 must be at most 5"),
        (lambda: mask_explorer(queries="2"), "queries='2' is a str"),
        (lambda: reshape_explorer(heads=3), "heads=3 must be one of 2, 4"),
        (lambda: reshape_explorer(heads=8), "heads=8 must be one of 2, 4"),
        (lambda: reshape_explorer(way="split"), "way='split' is unknown; it must be one of"),
        (lambda: reshape_explorer(step=4.1), "step=4.1 must be from 0 to 4"),
        (lambda: reshape_explorer(step=-0.1), "step=-0.1 must be from 0 to 4"),
        (lambda: reshape_explorer(step=math.nan), "step=nan must be from 0 to 4"),
    ],
)
def test_what_cannot_be_explored_is_refused_by_name(call, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        call()


@pytest.mark.usefixtures("without_annotations")
def test_a_layer_without_a_call_is_refused_by_name():
    with pytest.raises(ValueError, match="'a'"):
        attention_explorer({"a": []})


def test_as_much_as_there_is_room_for_is_not_refused():
    explorer = attention_explorer(drawn_at_random(64, 2, 3), head=63)
    assert facts(explorer)["head"] == "63 of 64"
    assert facts(attention_explorer(torch.ones(1, 1)))["looks at"] == "0  (1.00)"
