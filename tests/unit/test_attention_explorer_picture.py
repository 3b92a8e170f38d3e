"""The attention explorer's picture: map, lines, thumbnails of the heads, long inputs, saved files."""

import base64
import io
import itertools
import math
import re

import matplotlib
import numpy as np
import pytest
import torch
from PIL import Image

from course_lib.plots.tokens import pooled, shortened
from course_lib.widgets import AttentionMap, attention_explorer
from tests.helpers.attention_explorers import (
    BLUE,
    ORANGE,
    VIRIDIS,
    WORDS,
    at,
    box_of_word,
    cells_of,
    facts,
    random_weights,
    two_layers,
    values_of,
    viridis_of,
)
from tests.helpers.explorers import pixels, written

# --- the map ---------------------------------------------------------------------------------


@pytest.mark.parametrize("single", [False, True])
def test_attention_map_pixels_and_hover_box(single):
    weights = random_weights(1 if single else 8, 12, 9)
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


def test_attention_map_frames_the_query():
    _, explorer = two_layers()
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
def test_small_attention_map_shows_its_numbers(shape):
    weights = random_weights(*shape)
    panel = attention_explorer(weights).picture.figure.panels[0]
    assert len(panel._numbers.words) == weights.numel()
    for number, colour in enumerate(panel._numbers.get_facecolor()[:, :3]):
        text, (x, y), _ = written(panel._numbers, number)
        row, column = int(y * shape[0]), int(x * shape[1])
        assert (x, y) == pytest.approx(((column + 0.5) / shape[1], (row + 0.5) / shape[0]))
        assert text == f"{weights[row, column]:.2f}"
        red, green, blue = viridis_of(weights[row, column], weights.max().item())
        light = 0.3 * red + 0.59 * green + 0.11 * blue
        white = colour.tolist() == [1, 1, 1]
        assert white or light > 0.4
        assert not white or light < 0.6
    one_more = attention_explorer(random_weights(1, 37)).picture.figure.panels[0]
    assert one_more._numbers.words == []


def labels(words, along):
    """Position along the side → what is written there."""
    positions = words.get_offsets()[:, along].tolist()
    return dict(zip(positions, words.words, strict=True))


@pytest.mark.parametrize("count", [1, 12, 40, 41, 100])
def test_attention_map_tokens_label_rows_and_columns(count):
    queries = [f"q{n}" for n in range(count)]
    keys = [f"k{n}" for n in range(count + 1)]
    map_, lines = attention_explorer(
        random_weights(count, count + 1), queries, keys
    ).picture.figure.panels
    for labelled, along, tokens in (
        (map_._rows, 1, queries),
        (map_._columns, 0, keys),
        (lines._left, 1, queries),
        (lines._right, 1, keys),
    ):
        found = labels(labelled, along)
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
def test_long_tokens_are_shortened_and_spaces_are_visible(token, most, written):
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
def test_attention_lines_are_as_strong_as_the_weights(single):
    weights = random_weights(1 if single else 3, 12, 9, sharpness=3.0)
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
            math.floor(y * 9): text
            for text, (_, y), _ in (
                written(panel._numbers, number) for number in range(len(panel._numbers.words))
            )
        }
        mine = weights[head, 7].tolist()
        most = sorted(range(9), key=lambda key: -mine[key])[:3]
        assert numbers == {key: f"{mine[key]:.2f}" for key in most if mine[key] >= 0.005}
        assert panel.data()["row"] == [7]


def test_only_the_strongest_of_many_attention_lines_are_drawn():
    weights = random_weights(40, 40)
    panel = attention_explorer(weights, query=3).picture.figure.panels[1]
    drawn = ends_of(panel._others, 40, 40)
    order = weights.flatten().argsort(descending=True)[: len(drawn)].tolist()
    assert len(drawn) == 250 and set(drawn) == {divmod(place, 40) for place in order}
    assert {i for i, _ in ends_of(panel._own, 40, 40)} == {3}


def test_hover_over_attention_lines_reads_the_weights_of_the_query():
    weights = random_weights(2, 12, 9)
    explorer = attention_explorer(weights, WORDS, list("abcdefghi"), view="lines", query=2, head=1)
    region = explorer.picture.hover[1]
    assert np.array_equal(values_of(region), weights[1, 2, :, None].numpy())
    assert region["rows"] == [f"{n} {letter}" for n, letter in enumerate("abcdefghi")]
    assert region["columns"] == ["2 did"]
    assert (region["row_name"], region["column_name"]) == ("key", "query")
    # each key's name is drawn in the middle of its cell
    left, top, right, bottom = region["box"]
    drawn = explorer.picture.figure.figure
    names = explorer.picture.figure.panels[1]._right
    for key in range(9):
        low, high = (top + (key + share) / 9 * (bottom - top) for share in (0.4, 0.6))
        x0, y0, x1, y1 = box_of_word(names, key, drawn)
        assert left < x0 < x1 < right and low < (y0 + y1) / 2 < high
    # the lines start at the box's left edge
    axes = explorer.picture.figure.panels[1].axes
    start = axes.transData.transform(explorer.picture.figure.panels[1]._own.get_segments()[0][0])
    assert drawn.transFigure.inverted().transform(start)[0] == pytest.approx(left, abs=1e-6)


# --- all heads -------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, 4, 5, 8, 16, 17, 64])
def test_framed_thumbnail_is_the_chosen_head(count):
    weights = random_weights(count, 12, 9)
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
            a, b, c, d = box_of_word(panel._words, head, live.figure)
            assert (a + c) / 2 == pytest.approx((tile[0] + tile[2]) / 2, abs=0.002)
            assert tile[3] < b < d < tile[3] + 0.1
            assert panel._words.words[head].startswith(f"{head}:  ")
        else:
            assert panel._words.words == []
        boxes.append(tile)
    low, high = panel.axes.get_position().min, panel.axes.get_position().max
    for left, top, right, bottom in boxes:
        assert low[0] <= left < right <= high[0] and 1 - high[1] <= top < bottom <= 1 - low[1]
    for one, other in itertools.combinations(boxes, 2):
        assert one[2] < other[0] or other[2] < one[0] or one[3] < other[1] or other[3] < one[1]


def test_layer_with_fewer_heads_shows_only_those():
    layers = {"many": random_weights(8, 5, 5), "few": random_weights(3, 5, 5)}
    explorer = attention_explorer(layers, head=7)
    many = explorer.picture.png
    explorer.controls["layer"].value = "few"
    assert facts(explorer)["head"] == "2 of 3"
    map_, _, heads = explorer.picture.figure.panels
    assert np.array_equal(map_.weights, layers["few"][2])
    assert heads.head == 2
    assert len(heads._words.words) == 3
    fresh = attention_explorer(layers, head=2, layer="few")
    assert fresh.picture.png == explorer.picture.png
    explorer.controls["layer"].value = "many"
    assert facts(explorer)["head"] == "7 of 8" and explorer.picture.png == many


def test_layers_of_equal_weights_and_other_tokens_have_their_own_notes():
    weights = random_weights(2, 3, 3)
    layers = {
        "self": AttentionMap(weights, list("abc")),
        "cross": AttentionMap(weights, list("abc"), list("xyz")),
    }
    explorer = attention_explorer(layers)
    explorer.controls["layer"].value = "cross"
    fresh = attention_explorer(layers, layer="cross")
    assert explorer.picture.figure.panels[2].notes == fresh.picture.figure.panels[2].notes


# --- long inputs -----------------------------------------------------------------------------


def test_pooled_weights_keep_the_largest_per_pixel():
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
def test_single_weight_in_a_long_sequence_is_visible(heads, spot):
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
    assert facts(explorer)["attends to"].startswith(f"{spot[1]} ")


def test_longest_sequence_is_drawn_and_saved(tmp_path):
    explorer = attention_explorer(random_weights(1024, 1024), query=1023)
    assert facts(explorer)["query"].startswith("1023")
    assert explorer.save(tmp_path / "long.svg").stat().st_size < 3e6


# --- files -----------------------------------------------------------------------------------


@pytest.mark.parametrize("single", [False, True])
def test_saved_png_and_svg_show_the_picture(tmp_path, single):
    weights = random_weights(1 if single else 8, 12, 9)
    explorer = attention_explorer(weights, query=5)
    png = explorer.save(tmp_path / "a.png").read_bytes()
    assert png == explorer.picture.png and pixels(png).shape == (559, 1352, 3)
    svg = explorer.save(tmp_path / "a.svg").read_text()
    assert "brightest colour" in svg and "attends to" in svg
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


def test_svg_omits_the_hidden_view():
    _, explorer = two_layers()
    live = explorer.picture.figure
    as_map = live.svg()
    assert as_map.count(b"<image ") == 2
    explorer.controls["view"].value = "lines"
    as_lines = live.svg()
    assert as_lines.count(b"<image ") == 1 and as_lines.count(b"LineCollection") == 2
    assert b"LineCollection" not in as_map
    explorer.controls["view"].value = "map"
    assert live.svg() == as_map
