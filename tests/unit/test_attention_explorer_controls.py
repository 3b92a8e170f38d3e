"""The attention explorer's controls, and a text that can be typed."""

import re

import numpy as np
import pytest
import torch

from course_lib.plots.words import _outline
from course_lib.widgets import AttentionMap, attention_explorer
from course_lib.widgets.attention import VIEWS
from tests.helpers.attention_explorers import (
    WORDS,
    Reader,
    box_of,
    box_of_word,
    facts,
    random_weights,
    two_layers,
    values_of,
)
from tests.helpers.explorers import pixels


def changed(before, after):
    assert before.keys() == after.keys()
    return {name for name in before if before[name] != after[name]}


def test_each_control_changes_what_it_should_and_nothing_else():
    _, explorer = two_layers()
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
        first = [one["row_name"] for one in explorer.picture.hover]
        shown = ["query"] if view == "map" else ["query", "key"]
        assert first == [*shown, "largest", "largest"], "what is hidden cannot be read off"
        assert move("query", 9) == ({"query", "attends to"}, True, False, True)
        of_head = {"head", "entropy", "distance", "attends to"}
        assert move("head", 6) == (of_head, True, True, True)
        of_layer = {"layer", "entropy", "distance", "attends to", "brightest colour"}
        assert move("layer", "second") == (of_layer, True, True, True)
        explorer.reset()
    assert explorer.controls["view"].value == "map" and facts(explorer)["layer"] == "first"
    # another head only moves the frame among the thumbnails
    explorer.controls["head"].value = 0
    was = pixels(explorer.picture.png)
    explorer.controls["head"].value = 7
    differ = (was != pixels(explorer.picture.png)).any(-1)[:, right]
    assert 0 < differ.mean() < 0.03


def test_attention_explorer_initial_settings():
    layers, explorer = two_layers()
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


def test_attention_explorer_control_ranges():
    _, explorer = two_layers()
    controls = explorer.controls
    assert list(controls) == ["layer", "head", "query", "view"]
    assert (controls["head"].min, controls["head"].max) == (0, 7)
    assert (controls["query"].min, controls["query"].max) == (0, 11)
    assert list(controls["view"].options) == ["map", "lines"]


def test_single_head_shows_map_and_lines_side_by_side():
    weights = random_weights(12, 12)
    explorer = attention_explorer(weights, WORDS, query=3)
    assert list(explorer.controls) == ["query"]
    map_, lines = explorer.picture.figure.panels
    assert map_.axes.get_visible() and lines.axes.get_visible()
    assert map_.axes.get_title("left") != lines.axes.get_title("left")
    assert map_.axes.get_position().x1 <= lines.axes.get_position().x0
    one, _, other = explorer.picture.hover
    assert np.array_equal(values_of(one), weights.numpy())
    assert np.array_equal(values_of(other), weights[3, :, None].numpy())
    was = explorer.picture.png
    explorer.controls["query"].value = 8
    assert np.array_equal(values_of(explorer.picture.hover[2]), weights[8, :, None].numpy())
    assert explorer.picture.png != was
    assert explorer._repr_mimebundle_()[0]["text/plain"].count(": weight 0") == 2
    same = attention_explorer(weights, WORDS, query=8, view="lines")
    assert same.picture.png == explorer.picture.png, "with one head there is only one view"


def test_layers_of_one_head_have_a_layer_control_only():
    explorer = attention_explorer([random_weights(5, 5), random_weights(1, 4, 6)])
    assert list(explorer.controls) == ["layer", "query"]
    explorer.controls["query"].value = 4
    explorer.controls["layer"].value = "1"
    assert facts(explorer)["query"].split()[0] == "3", "a shorter sequence has no fifth query"


def test_one_layer_of_several_heads_has_no_layer_control():
    assert list(attention_explorer(random_weights(2, 3, 3)).controls) == ["head", "query", "view"]


def test_attention_explorer_description_names_what_is_visible():
    _, explorer = two_layers()
    said = explorer._repr_mimebundle_()[0]["text/plain"].split("\n")[-2:]
    assert re.fullmatch(r".*: weight .*; row 4", said[0])
    assert re.fullmatch(r"each head.*: weight .*; head 0", said[1])
    assert (
        attention_explorer(torch.eye(2), approximate=True, title="Mine")._repr_mimebundle_()[0][
            "text/plain"
        ]
        == "Mine."
    )


@pytest.fixture
def typed():
    reader = Reader()
    return reader, attention_explorer(reader, text="a bb ccc dddd eeeee", query=4, title="Reads")


def test_typed_text_is_read_once_and_drawn(typed):
    reader, explorer = typed
    assert list(explorer.controls) == ["text", "head", "query", "view"]
    assert explorer.controls["query"].max == 4, "one position per word"
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


def test_typed_text_of_another_length_and_the_query(typed):
    reader, explorer = typed
    explorer.controls["text"].value = "a bb"
    said = facts(explorer)
    assert said["query"] == "1 bb" and explorer.controls["query"].value == 1
    weights = reader("a bb")["only"].weights[0, 1].tolist()
    assert said["attends to"] == f"1 bb ({weights[1]:.2f}), 0 a ({weights[0]:.2f})"
    assert explorer.picture.figure.panels[0].data()["row"] == [1]
    explorer.controls["text"].value = "a bb ccc dddd eeeee ffffff"
    assert facts(explorer)["query"] == "4 eeeee"


@pytest.mark.parametrize(("text", "says"), [("a zebra", "zebra"), ("", "the text is empty")])
def test_typed_text_with_an_unknown_word_keeps_the_picture(typed, text, says):
    _, explorer = typed
    before = explorer.picture.png, explorer.summary, explorer.picture.hover
    explorer.controls["text"].value = text
    assert says in explorer._problem.value and "cannot be drawn" in explorer._problem.value
    assert (explorer.picture.png, explorer.summary, explorer.picture.hover) == before
    explorer.controls["query"].value = 1  # still the text that cannot be read
    assert says in explorer._problem.value and explorer.picture.png == before[0]
    explorer.controls["text"].value = "a bb ccc dddd eeeee"
    assert facts(explorer)["query"] == "1 bb" and explorer._problem.value == ""


@pytest.mark.parametrize("token", ["_{", "^", r"\alpha", "$5", *("$x$", r"$\foo$")])
def test_tokens_are_not_parsed_as_formulas(token):
    explorer = attention_explorer(
        lambda text: {"a": AttentionMap(torch.ones(1, 1, 1), [text])}, text="x"
    )
    explorer.controls["text"].value = token
    label = explorer.picture.figure.panels[0]._rows
    assert label.words == [token]
    # letter by letter, as in a text without formulas
    alone = [_outline(letter)[1] for letter in token]
    assert _outline(token)[1] == pytest.approx(sum(alone), rel=0.15)


@pytest.mark.parametrize("count", [2, 5, 8, 16, 17])
def test_a_click_on_a_thumbnail_chooses_the_head(count):
    weights = random_weights(count, 6, 7)
    explorer = attention_explorer(weights)
    live = explorer.picture.figure
    rows = [one for one in explorer.picture.hover if one.get("chooses") == [None, "head"]]
    numbers = np.concatenate([values_of(one)[0] for one in rows])
    assert np.array_equal(numbers, weights.flatten(1).max(dim=-1).values.numpy())
    clicked = []
    for region in rows:
        (left, top, right, bottom), (_, columns) = region["box"], region["shape"]
        for column in range(columns):
            head = region["first"][1] + column
            clicked.append(head)
            assert region["columns"][column] == str(head)
            explorer.choose(head=head)
            frame = box_of(live.panels[2]._frame, live.figure)
            x = (frame[0] + frame[2]) / 2, left + (column + 0.5) / columns * (right - left)
            assert x[0] == pytest.approx(x[1], abs=1e-3)
            assert top <= (frame[1] + frame[3]) / 2 <= bottom
    assert clicked == list(range(count))


@pytest.mark.parametrize("view", ["map", "lines"])
def test_a_click_on_a_row_chooses_the_query(view):
    weights = random_weights(3, 5, 9)
    explorer = attention_explorer(weights, list("abcde"), list("fghijklmn"), view=view, query=3)
    region = explorer.picture.hover[0]
    assert region["chooses"] == ["query", None] and region["shape"][0] == 5
    assert region["at"][0] == 3, "arrow keys begin there"
    names = explorer.picture.figure.panels[VIEWS.index(view)]
    names = names._rows if view == "map" else names._left
    left, top, right, bottom = region["box"]
    for row in range(5):
        y = top + (row + 0.5) / 5 * (bottom - top)
        name = box_of_word(names, row, explorer.picture.figure.figure)
        assert name[1] < y < name[3]
        assert view == "map" or left <= name[0] < name[2] <= right
    explorer.choose(query=1)
    assert facts(explorer)["query"] == "1 b" and explorer.picture.hover[0]["at"][0] == 1


def test_where_each_head_has_one_query_the_rows_are_heads():
    letters = [f"{n} {letter}" for n, letter in enumerate("ABC")]
    heads = [f"head {n}" for n in range(4)]
    explorer = attention_explorer(random_weights(4, 3), heads, letters, rows="head", query=2)
    assert list(explorer.controls) == ["query"]
    assert explorer.controls["query"].description == "head"
    said = facts(explorer)
    assert said["head"] == "2" and "query" not in said
    assert all(re.match(r"\d [ABC] \(", one) for one in said["attends to"].split(", "))
    map_, left, right = explorer.picture.hover
    assert [one["row_name"] for one in (map_, left, right)] == ["head", "head", "key"]
    assert map_["rows"] == ["0", "1", "2", "3"] and map_["columns"] == letters == right["rows"]
