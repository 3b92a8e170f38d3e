"""The attention explorer's picture: map, lines, thumbnails of the heads, long inputs, saved files."""

import base64
import io
import itertools
import math
import re

import numpy as np
import pytest
import torch
from PIL import Image

from course_lib.plots.tokens import pooled
from course_lib.plots.words import width as width_of
from course_lib.widgets import AttentionMap, attention_explorer
from tests.helpers.attention_explorers import WORDS, random_weights, viridis_of
from tests.helpers.explorers import (
    BLUE,
    ORANGE,
    VIRIDIS,
    at,
    box_of_word,
    cells_of,
    fact,
    move,
    panels,
    pixels,
    values_of,
)

# --- the map ---------------------------------------------------------------------------------


@pytest.mark.parametrize("heads", [1, 3])
def test_the_map_has_the_colours_of_the_weights_inside_its_hover_box(heads):
    weights = random_weights(heads, 12, 9)
    explorer = attention_explorer(weights, WORDS, list("abcdefghi"), query=5)
    for head in range(heads):
        move(explorer, **({"head": head} if heads > 1 else {}))
        png, region = explorer.picture.figure.png(), explorer.picture.hover[0]
        drawn = cells_of(png, region["box"], (12, 9))
        assert np.abs(drawn - viridis_of(weights[head], weights.max().item())).max() < 0.02
    assert (region["row_name"], region["column_name"]) == ("query", "key")
    assert region["rows"] == [f"{n} {word}" for n, word in enumerate(WORDS)]
    assert region["columns"] == [f"{n} {letter}" for n, letter in enumerate("abcdefghi")]
    left, top, right, bottom = region["box"]
    wide, high = 1 / 1352, 1 / 559  # a pixel
    for x, across in ((left, wide), (right, -wide)):
        for y, down in ((top, high), (bottom, -high)):
            assert at(png, x + 2 * across, y + 2 * down).max() < 0.995, "inside the box is the map"
            for dx, dy in ((-2, 2), (2, -2), (-2, -2)):
                assert at(png, x + dx * across, y + dy * down).min() > 0.97, "outside is paper"


@pytest.mark.parametrize("shape", [(6, 6), (4, 9), (3, 12)])
def test_a_small_map_shows_its_numbers(shape):
    weights = random_weights(*shape)
    numbers = panels(attention_explorer(weights))[0]._words
    places = [((c + 0.5) / shape[1], (r + 0.5) / shape[0]) for r, c in np.ndindex(shape)]
    np.testing.assert_allclose(numbers.get_offsets(), places)
    assert numbers.words == [f"{weight:.2f}" for weight in weights.flatten()]
    light = viridis_of(weights, weights.max().item()).reshape(-1, 3) @ (0.3, 0.59, 0.11)
    white = (numbers.get_facecolor()[:, :3] == 1).all(-1)
    assert (white | (light > 0.4)).all() and (~white | (light < 0.6)).all()
    for large in ((1, 37), (2, 13)):
        assert panels(attention_explorer(random_weights(*large)))[0]._words.words == []


@pytest.mark.parametrize("count", [1, 40, 41])
def test_tokens_label_rows_and_columns(count):
    queries, keys = [f"q{n}" for n in range(count)], [f"k{n}" for n in range(count + 1)]
    map_, lines = panels(attention_explorer(random_weights(count, count + 1), queries, keys))
    labelled = ((map_._row_names, 1, queries), (map_._column_names, 0, keys))
    for words, along, tokens in (*labelled, (lines._left, 1, queries), (lines._right, 1, keys)):
        numbers = range(0, len(tokens), math.ceil(len(tokens) / 40))
        assert words.words == [tokens[n] for n in numbers]
        places = [(n + 0.5) / len(tokens) for n in numbers]
        np.testing.assert_allclose(words.get_offsets()[:, along], places)


@pytest.mark.parametrize("token", ["_{", "^", r"\alpha", "$5", "$x$", r"$\foo$"])
def test_tokens_are_not_parsed_as_formulas(token):
    explorer = attention_explorer(lambda text: {"a": AttentionMap(torch.eye(1), [text])}, text="x")
    assert panels(move(explorer, text=token))[0]._row_names.words == [token]
    alone = [width_of(letter, 9) for letter in token]  # letter by letter
    assert width_of(token, 9) == pytest.approx(sum(alone), rel=0.15)


# --- the lines -------------------------------------------------------------------------------


def ends_of(lines, rows, keys):
    """(query, key) → (width, opacity, colour) of every line, read off where the lines end."""
    found = {}
    for segment, width, colour in zip(
        lines.get_segments(), lines.get_linewidths(), lines.get_colors(), strict=True
    ):
        (x0, y0), (x1, y1) = segment
        pair = y0 * rows - 0.5, y1 * keys - 0.5
        query, key = (round(number) for number in pair)
        assert x0 < x1 and pair == pytest.approx((query, key), abs=1e-6)
        assert (query, key) not in found
        found[query, key] = width, colour[3], tuple(colour[:3])
    return found


def test_lines_are_as_strong_as_the_weights():
    weights = random_weights(3, 12, 9, sharpness=3.0)
    explorer = attention_explorer(weights, view="lines", query=7)
    panel, own_row = panels(explorer)[1], (np.arange(12) == 7)[:, None]
    for head in range(3):
        move(explorer, head=head)
        share = (weights[head] / weights.max()).numpy()
        for lines, wanted, colour in (
            (panel._others, 0.4 * share, BLUE),
            (panel._own, share * own_row, ORANGE),
        ):
            drawn = ends_of(lines, 12, 9)
            assert set(drawn) == set(map(tuple, np.argwhere(wanted > 0.01).tolist()))
            for pair, (width, opacity, shade) in drawn.items():
                assert opacity == pytest.approx(wanted[pair], rel=1e-4) and shade == colour
                assert width == pytest.approx(0.4 + 3.6 * opacity)
        assert panel._mark.get_ydata() == [pytest.approx(7.5 / 12)]
        mine = weights[head, 7].tolist()
        most = [key for key in np.argsort(mine)[:-4:-1].tolist() if mine[key] >= 0.005]
        assert panel._numbers.words == [f"{mine[key]:.2f}" for key in most]
        assert [math.floor(y * 9) for _, y in panel._numbers.get_offsets()] == most
        assert np.array_equal(panel.data()["weight"], weights[head]) and panel.data()["row"] == [7]


def test_only_the_strongest_of_many_lines_are_drawn():
    weights = random_weights(40, 40)
    panel = panels(attention_explorer(weights, query=3))[1]
    drawn = ends_of(panel._others, 40, 40)
    order = weights.flatten().argsort(descending=True)[: len(drawn)].tolist()
    assert len(drawn) == 250 and set(drawn) == {divmod(place, 40) for place in order}
    assert {i for i, _ in ends_of(panel._own, 40, 40)} == {3}


# --- all heads -------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, 5, 16, 17])
def test_the_framed_thumbnail_is_the_chosen_head(count):
    weights = random_weights(count, 12, 9)
    explorer = attention_explorer(weights)
    figure_, panel, boxes = explorer.picture.figure.figure, panels(explorer)[2], []
    wanted = viridis_of(weights, weights.max().item())
    for head in sorted({0, 1, count // 2, count - 1}):
        move(explorer, head=head)
        box = panel._frame.get_bbox().transformed(panel.axes.transData)
        (left, low), (right, high) = box.transformed(figure_.transFigure.inverted()).get_points()
        tile = [left, 1 - max(low, high), right, 1 - min(low, high)]
        drawn = cells_of(explorer.picture.figure.png(), tile, (12, 9))[
            1:-1, 1:-1
        ]  # the frame is thick
        assert np.abs(drawn - wanted[head, 1:-1, 1:-1]).max() < 0.02
        assert panel.data()["head"] == [head]
        size = np.tile([figure_.bbox.width, figure_.bbox.height], 2) / figure_.dpi * 100
        shown = np.array(explorer.picture.maps) * size
        assert np.allclose(shown, shown.round(), atol=1e-3), (
            "whole pixels: no light line in the dark"
        )
        assert (np.abs(shown - tile * size).max(-1) <= 0.501).any(), "dark gaps"
        boxes.append(tile)
        if count <= 16:  # its note is below it
            a, b, c, _ = box_of_word(panel._words, head, figure_)
            assert (a + c) / 2 == pytest.approx((tile[0] + tile[2]) / 2, abs=0.002) and b > tile[3]
    assert len(panel._words.words) == (count if count <= 16 else 0)
    for one, other in itertools.combinations(boxes, 2):
        assert one[2] < other[0] or other[2] < one[0] or one[3] < other[1] or other[3] < one[1]


def test_layers_with_the_same_weights_or_the_same_notes_are_told_apart():
    weights, eye = random_weights(2, 3, 3), torch.eye(3, 4).repeat(2, 1, 1)
    tokens = list("abc"), list("xyz")
    same_weights = {"a": AttentionMap(weights, tokens[0]), "b": AttentionMap(weights, *tokens)}
    for layers in (same_weights, {"a": eye, "b": eye.flip(-1)}):
        moved, fresh = move(attention_explorer(layers), layer="b"), attention_explorer(layers, layer="b")  # fmt: skip
        assert panels(moved)[2].notes == panels(fresh)[2].notes
        assert moved.picture.png == fresh.picture.png


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


@pytest.mark.parametrize("spot", [(0, 0), (137, 299), (299, 4)])
def test_a_single_weight_in_a_long_sequence_is_visible_in_the_map_and_in_its_thumbnail(spot):
    weights = torch.full((3, 300, 300), 1e-4)
    weights[(2, *spot)] = 1.0
    explorer = attention_explorer(weights, head=2, query=150)
    left, top, right, bottom = explorer.picture.hover[0]["box"]
    assert values_of(explorer.picture.hover[0])[spot] == 1

    def bright():
        return np.abs(pixels(explorer.picture.figure.png()) - VIRIDIS(1.0)[:3]).max(-1) < 0.01

    row = 559 * (top + (spot[0] + 0.5) / 300 * (bottom - top))
    column = 1352 * (left + (spot[1] + 0.5) / 300 * (right - left))
    assert min(np.hypot(*(np.argwhere(bright()) + 0.5 - (row, column)).T)) < 2.5
    move(explorer, head=0)
    assert bright()[:, round(1352 * panels(explorer)[2].axes.get_position().x0) :].any()
    move(explorer, head=2, query=spot[0])
    assert fact(explorer, "attends to").startswith(f"{spot[1]} ")


# --- files -----------------------------------------------------------------------------------


def test_a_saved_svg_holds_the_map_where_the_picture_has_it(tmp_path):
    weights = random_weights(12, 9)
    explorer = attention_explorer(weights, query=5)
    svg = explorer.save(tmp_path / "a.svg").read_text()
    assert "attends to" in svg
    width, height = map(float, re.search(r'viewBox="0 0 (\S+) (\S+)"', svg).groups())
    (image,) = re.findall(r"<image [^>]*>", svg)
    tag = dict(re.findall(r'([\w:]+)="([^"]*)"', image.replace("\n", "")))
    flip = tag.get("transform", "")
    shift = float((re.search(r"translate\(0 (-?[\d.]+)\)", flip) or [0, 0])[1])
    x, y, w, h = (float(tag[name]) for name in ("x", "y", "width", "height"))
    top = abs(-(y + h) - shift if "scale(1 -1)" in flip else y + shift)
    left, up, right, down = explorer.picture.hover[0]["box"]
    assert (x / width, w / width) == pytest.approx((left, right - left), abs=0.002)
    assert (top / height, h / height) == pytest.approx((up, down - up), abs=0.004)
    embedded = Image.open(io.BytesIO(base64.b64decode(tag["xlink:href"].split(",")[1])))
    if "scale(1 -1)" in flip:
        embedded = embedded.transpose(Image.Transpose.FLIP_TOP_BOTTOM)
    file = io.BytesIO()
    embedded.save(file, "PNG")
    drawn = cells_of(file.getvalue(), (0, 0, 1, 1), (12, 9))
    assert np.abs(drawn - viridis_of(weights, weights.max().item())).max() < 0.02


def test_a_saved_svg_omits_the_hidden_view_and_is_small(tmp_path):
    explorer = attention_explorer(random_weights(2, 1024, 1024), query=1023)
    live = explorer.picture.figure
    as_map = live.svg()
    assert as_map.count(b"<image ") == 2 and b"LineCollection" not in as_map
    assert len(as_map) < 3e6
    as_lines = (move(explorer, view="lines"), live.svg())[1]
    assert as_lines.count(b"<image ") == 1 and as_lines.count(b"LineCollection") == 2
    move(explorer, view="map")
    assert live.svg() == as_map
