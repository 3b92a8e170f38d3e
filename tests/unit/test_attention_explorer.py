"""The attention explorer: every form of weights, the summary, its controls, and which inputs it refuses."""

import math
import re

import numpy as np
import pytest
import scipy.stats
import torch
from torch import nn

from course_lib.checkpoints import letter_lookup, pronoun_reader
from course_lib.topics.attention_maps import record_attention
from course_lib.transformer.multihead import MultiHeadAttention
from course_lib.widgets import AttentionMap, attention_explorer
from course_lib.widgets.attention import VIEWS
from tests.helpers.attention_explorers import WORDS, Reader, random_weights, two_layers
from tests.helpers.explorers import box_of_word, fact, move, panels, values_of

# --- forms of weights ------------------------------------------------------------------------


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(MultiHeadAttention(8, 4) for _ in range(2))

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x).output
        return x


def recorded():
    """What `record_attention` collects of a model that is called twice, and the last weights of its layers."""
    model, x = Model(), torch.randn(2, 12, 8)
    with record_attention(model) as maps:
        model(torch.randn(2, 5, 8))
        model(x)
    for layer, found in zip(model.layers, maps.values(), strict=True):
        assert torch.allclose(found[-1], layer(x, need_weights=True).weights, atol=1e-6)
        x = x + layer(x).output
    return maps, {name: one[-1][1] for name, one in maps.items()}


UNANNOTATED = ("a map", "a list of maps")  # `Weights` does not name them; they work all the same


def forms():
    """Name → (what is given, settings, layer name → (heads, query, key) that must be drawn)."""
    one, three = random_weights(12, 12), random_weights(3, 12, 12)
    batch, cross = random_weights(2, 3, 12, 12), random_weights(2, 12, 5)
    keys, maps = list("vwxyz"), recorded()
    mixed = {
        "inside": AttentionMap(three, WORDS),
        "across": AttentionMap(cross, WORDS, keys),
        "batch": AttentionMap(batch, WORDS),
    }
    drawn = {"inside": three, "across": cross, "batch": batch[0]}
    return {
        "(query, key)": (one, {}, {"0": one[None]}),
        "(batch, heads, query, key)": (batch, {}, {"0": batch[0]}),
        "a list": ([three, batch], {"example": 1}, {"0": three, "1": batch[1]}),
        "a tuple": ((one, three), {}, {"0": one[None], "1": three}),
        "the last call": ({"a": [one, three], "": (three,)}, {}, {"a": three, "model": three}),
        "recorded": (maps[0], {"example": 1}, maps[1]),
        "a map": (AttentionMap(three, list("abcdefghijkl")), {}, {"0": three}),
        "maps": (mixed, {"example": 1}, drawn | {"batch": batch[1]}),
        "a list of maps": ([*mixed.values()][:2], {}, {"0": three, "1": cross}),
        "a function": (lambda text: mixed, {"text": "x"}, drawn),
        "other keys": (cross, {"keys": keys}, {"0": cross}),
        "bfloat16": (three.bfloat16(), {}, {"0": three.bfloat16()}),
        "float64": (three.double(), {}, {"0": three.double()}),
        "with a gradient": (three.clone().requires_grad_(), {}, {"0": three}),
        "not contiguous": (batch.mT.mT.transpose(1, 0)[1], {}, {"0": batch[:, 1]}),
    }


@pytest.mark.parametrize("form", forms().keys())
def test_weights_of_every_form_are_drawn(form, request):
    if form in UNANNOTATED:
        request.getfixturevalue("without_annotations")
    torch.manual_seed(1)
    given, settings, wanted = forms()[form]
    settings = settings if form == "a function" else {"queries": WORDS} | settings
    explorer = attention_explorer(given, **settings)
    map_, lines, *thumbnails = panels(explorer)
    for name, weights in wanted.items():
        weights = weights.detach().float().numpy()
        move(explorer, **({"layer": name} if len(wanted) > 1 else {}))
        for head in range(len(weights)):
            move(explorer, **({"head": head} if "head" in explorer.controls else {}))
            assert np.array_equal(map_.values, weights[head])
            assert np.array_equal(values_of(explorer.picture.hover[0]), weights[head])
            assert fact(explorer, "head") == f"{head} of {len(weights)}"
        for panel in thumbnails:
            assert np.array_equal(panel.weights, weights)
        assert map_.rows == (list("abcdefghijkl") if form == "a map" else WORDS)
        assert map_.columns == (list("vwxyz") if weights.shape[-1] == 5 else map_.rows)


# --- the summary -----------------------------------------------------------------------------


@pytest.mark.parametrize("layer", ["first", "second"])
def test_the_summary_equals_the_weights(layer):
    layers, explorer = two_layers()
    weights = layers[layer].double().numpy()
    far = np.abs(np.subtract.outer(range(12), range(12)))
    for head in range(8):
        row = (5 * head + 3) % 12
        move(explorer, layer=layer, head=head, query=row)
        nats = scipy.stats.entropy(weights[head], axis=-1).mean()
        said, unit = fact(explorer, "entropy").split()
        assert float(said) == pytest.approx(nats, abs=0.00501) and unit == "nats"
        distance = (weights[head] * far).sum() / 12
        said, unit = fact(explorer, "distance").split()
        assert float(said) == pytest.approx(distance, abs=0.0501) and unit == "positions"
        note = f"{head}:  {fact(explorer, 'entropy')}"
        assert panels(explorer)[2]._words.words[head] == note
        assert fact(explorer, "query") == f"{row} {WORDS[row]}"
        three = np.argsort(-weights[head, row])[:3]
        words = [f"{key} {WORDS[key]} ({weights[head, row, key]:.2f})" for key in three]
        assert fact(explorer, "attends to") == ", ".join(words)
        assert fact(explorer, "brightest colour") == f"{weights.max():.2f}"


def test_two_sequences_have_no_distance():
    for weights, tokens in (
        (random_weights(2, 3, 5), (list("abc"), list("vwxyz"))),
        (random_weights(2, 3, 3), (None, list("abc"))),
    ):
        explorer = attention_explorer(weights, *tokens, query=2, head=1)
        assert "distance" not in explorer.summary
        most = weights[1, 2].argmax().item()
        assert fact(explorer, "attends to").startswith(f"{most} {tokens[1][most]} (")


def test_of_equal_weights_the_first_are_named():
    explorer = attention_explorer(torch.full((1, 4, 10), 0.1))
    named = [int(part.split()[0]) for part in fact(explorer, "attends to").split(",")]
    places = panels(explorer)[1]._numbers.get_offsets()
    assert named == [math.floor(y * 10) for _, y in places] == [0, 1, 2]


def test_a_space_is_named_visibly():
    explorer = attention_explorer(torch.eye(3), list("a b"), query=1)
    assert fact(explorer, "query") == "1 ␣"
    assert fact(explorer, "attends to").startswith("1 ␣ (1.00)")


def test_the_answer_to_the_typed_text_is_said():
    explorer = attention_explorer(Reader(), text="a bb", answer=str.upper)
    assert fact(move(explorer, text="c dd"), "answer") == "'C DD'"


# --- controls --------------------------------------------------------------------------------


def test_what_is_hidden_cannot_be_read_off():
    _, explorer = two_layers()
    for view, first in (("map", ["query"]), ("lines", ["query", "key"])):
        move(explorer, view=view)
        visible = [one["row_name"] for one in explorer.picture.hover]
        assert visible == [*first, "largest", "largest"]


def test_controls_are_those_that_have_a_choice():
    layers = [random_weights(5, 5), random_weights(1, 4, 6)]
    for weights, settings, names in (
        (layers, {}, ["layer", "query"]),
        (random_weights(2, 3, 3), {}, ["head", "query", "view"]),
        (Reader(), {"text": "a b c"}, ["text", "layer", "head", "query", "view"]),
        (random_weights(1, 3), {}, []),
    ):
        assert list(attention_explorer(weights, **settings).controls) == names


def test_a_single_head_has_map_and_lines_side_by_side():
    weights = random_weights(12, 12)
    explorer = attention_explorer(weights, WORDS, query=3)
    map_, lines = panels(explorer)
    assert map_.axes.get_visible() and lines.axes.get_visible()
    assert map_.axes.get_position().x1 <= lines.axes.get_position().x0
    one, _, other = explorer.picture.hover
    assert np.array_equal(values_of(one), weights.numpy())
    assert np.array_equal(values_of(other), weights[3, :, None].numpy())


def test_a_typed_text_is_read_once():
    reader = Reader()
    explorer = attention_explorer(reader, text="a bb ccc dddd eeeee", query=4)
    move(explorer, query=2, head=1, view="lines", text="one three a")
    move(explorer, head=0, view="map", layer="second")
    assert reader.asked == ["a bb ccc dddd eeeee", "one three a"]
    assert panels(explorer)[0].rows == ["one", "three", "a"]
    weights = reader("one three a")["second"].weights
    assert np.array_equal(panels(explorer)[0].values, weights[0])


def test_a_text_with_other_layers_is_refused():
    explorer = attention_explorer(
        lambda text: {one: AttentionMap(torch.eye(2), "ab") for one in text.split()}, text="a b"
    )
    move(explorer, layer="b", text="a")
    assert "layer='b' is unknown; it must be one of 'a'" in explorer.picture.problem


@pytest.mark.parametrize("count", [2, 5, 17])
def test_a_click_on_a_thumbnail_chooses_the_head(count):
    weights = random_weights(count, 6, 7)
    explorer = attention_explorer(weights)
    rows = [one for one in explorer.picture.hover if one.get("chooses") == [None, "head"]]
    numbers = np.concatenate([values_of(one)[0] for one in rows])
    assert np.array_equal(numbers, weights.flatten(1).max(dim=-1).values.numpy())
    frame, figure_, clicked = panels(explorer)[2]._frame, explorer.picture.figure.figure, []
    for region in rows:
        (left, top, right, bottom), (_, columns) = region["box"], region["shape"]
        for column in range(columns):
            clicked.append(region["first"][1] + column)
            assert region["columns"][column] == str(clicked[-1])
            explorer.choose(head=clicked[-1])
            box = frame.get_window_extent().transformed(figure_.transFigure.inverted())
            middle = left + (column + 0.5) / columns * (right - left)
            assert (box.x0 + box.x1) / 2 == pytest.approx(middle, abs=1e-3)
            assert top <= 1 - (box.y0 + box.y1) / 2 <= bottom
    assert clicked == list(range(count))


@pytest.mark.parametrize("view", VIEWS)
def test_a_click_on_a_row_chooses_the_query(view):
    explorer = attention_explorer(
        random_weights(3, 5, 9), list("abcde"), list("fghijklmn"), view=view, query=3
    )
    region = explorer.picture.hover[0]
    assert region["chooses"] == ["query", None] and region["shape"][0] == 5
    assert region["at"][0] == 3, "arrow keys begin there"
    panel = panels(explorer)[VIEWS.index(view)]
    names = panel._row_names if view == "map" else panel._left
    left, top, right, bottom = region["box"]
    for row in range(5):
        y = top + (row + 0.5) / 5 * (bottom - top)
        name = box_of_word(names, row, explorer.picture.figure.figure)
        assert name[1] < y < name[3]
        assert view == "map" or left <= name[0] < name[2] <= right
    explorer.choose(query=1)
    assert fact(explorer, "query") == "1 b" and explorer.picture.hover[0]["at"][0] == 1


def test_where_each_head_has_one_query_the_rows_are_heads():
    letters = [f"{n} {letter}" for n, letter in enumerate("ABC")]
    heads = [f"head {n}" for n in range(4)]
    explorer = attention_explorer(random_weights(4, 3), heads, letters, rows="head", query=2)
    assert explorer.controls["query"].description == "head" and fact(explorer, "head") == "2"
    assert "query" not in explorer.summary
    assert all(re.match(r"\d [ABC] \(", one) for one in fact(explorer, "attends to").split(", "))
    map_, left, right = explorer.picture.hover
    assert [one["row_name"] for one in (map_, left, right)] == ["head", "head", "key"]
    assert map_["rows"] == ["0", "1", "2", "3"] and map_["columns"] == letters == right["rows"]


# --- invalid input ---------------------------------------------------------------------------

W = torch.full((2, 3, 3), 1 / 3)


INVALID = [
    ([W.numpy()], {}, "weights is a ndarray; it must be a tensor of"),
    ([{}], {}, "weights is empty; was the model called inside"),
    ([{"a": []}], {}, "layer 'a' has no weights"),
    ([torch.rand(3)], {}, "weights of layer '0' has shape (3,); it must be"),
    ([[W, W / 0]], {}, "weights of layer '1' holds inf at index (0, 0, 0)"),
    ([W - 1], {}, "weights of layer '0' holds negative numbers"),
    ([{"a": AttentionMap(W, "ab")}], {}, "queries holds 2 tokens, but the weights of layer 'a' have 3"),
    ([torch.rand(2, 1025)], {}, "layer '0' has 1025 tokens; at most 1024"),
    ([torch.rand(65, 2, 2)], {}, "layer '0' has 65 heads; at most 64"),
    ([W[None]], {"example": 1}, "example=1 must be from 0 to 0"),
    ([W], {"text": "a"}, "text needs weights to be a function"),
    ([Reader()], {}, "give a text to start with"),
    ([W], {"answer": str.upper}, "answer needs a text"),
]  # fmt: skip


@pytest.mark.usefixtures("without_annotations")
@pytest.mark.parametrize(("given", "settings", "says"), INVALID)
def test_invalid_input_raises_value_error(given, settings, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        attention_explorer(*given, **settings)


def test_the_largest_and_the_smallest_weights_are_accepted():
    explorer = attention_explorer(random_weights(64, 2, 3), head=63)
    assert fact(explorer, "head") == "63 of 64"
    assert fact(attention_explorer(torch.ones(1, 1)), "attends to") == "0  (1.00)"
    assert fact(attention_explorer(torch.zeros(2, 3, 3), list("abc")), "entropy") == "0.00 nats"


# --- the answer, and what can be typed --------------------------------------------------------


def read(text):
    """Weights of two heads over the words of a text."""
    words = text.split()
    return {"first": AttentionMap(random_weights(2, len(words), len(words)), words, words)}


@pytest.mark.parametrize("length", [1, 4, 9, 14, 40])
def test_the_answer_stands_large_above_the_map_and_inside_the_picture(length):
    said = " ".join(["Eine", "Frau", "unter", "Bäumen"][n % 4] for n in range(length))
    explorer = attention_explorer(read, text="a b c", answer=lambda text: said)
    headline, figure_ = panels(explorer)[-1], explorer.picture.figure.figure
    lines = headline._words.words
    assert len(lines) <= 2
    whole = " ".join(lines)
    assert whole == said if length < 20 else whole.endswith("…") and said.startswith(whole[:-1])
    column = panels(explorer)[0].axes.get_position()
    boxes = [box_of_word(headline._words, n, figure_) for n in range(len(lines))]
    for left, top, right, bottom in boxes:
        assert 0 <= left < right <= column.x1 + 0.01 and 0 < top < bottom < 1 - column.y1
        # as high as a small letter of 12 points, at least
        assert (bottom - top) * figure_.get_size_inches()[1] * 72 > 6
    assert all(one[3] <= other[1] for one, other in zip(boxes, boxes[1:], strict=False))
    assert fact(explorer, "answer") == repr(said)


def test_a_blank_text_is_refused_before_any_model_sees_it():
    asked = []

    def weights(text):
        asked.append(text)
        return read(text)

    explorer = attention_explorer(weights, text="a b c")
    for blank in ("", "   ", "\t"):
        move(explorer, text=blank)
        assert "the text is empty" in explorer.picture.problem
    assert set(asked) == {"a b c"}


def test_what_can_be_typed_stands_below_the_box():
    rules = [
        "".join(one.value for one in explorer.children[1:-2] if "course-rule" in one.value)
        for explorer in (
            attention_explorer(letter_lookup().maps, text="ABCDEFGHABCD 3 0 7 5"),
            attention_explorer(pronoun_reader().maps, text="the horse was tired"),
            attention_explorer(read, text="a b c"),
        )
    ]
    assert "twelve letters from A to H" in rules[0] and "HGFEDCBAHGFE 5 7 0 3" in rules[0]
    assert "horse" in rules[1] and "hen" in rules[1]
    assert "any text" in rules[2]
    assert letter_lookup()("hgfedcbahgfe 5 7 0 3") == letter_lookup()("HGFEDCBAHGFE 5 7 0 3")
