"""The attention explorer: every form of weights, the summary, and which inputs it refuses."""

import math
import re

import numpy as np
import pytest
import scipy.stats
import torch
from torch import nn

from course_lib.inspection import record_attention
from course_lib.multihead import MultiHeadAttention
from course_lib.widgets import AttentionMap, attention_explorer
from tests.helpers.attention_explorers import (
    VIRIDIS,
    WORDS,
    Reader,
    cells_of,
    facts,
    random_weights,
    two_layers,
    values_of,
)

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
    one, three = random_weights(12, 12), random_weights(3, 12, 12)
    batch, cross = random_weights(2, 3, 12, 12), random_weights(2, 12, 5)
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
def test_attention_explorer_draws_weights_of_every_form(form, request):
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


def test_attention_explorer_names_tokens_by_position_by_default():
    explorer = attention_explorer(random_weights(2, 3, 4))
    region = explorer.picture.hover[0]
    assert [name.strip() for name in region["rows"]] == ["0", "1", "2"]
    assert [name.strip() for name in region["columns"]] == ["0", "1", "2", "3"]
    assert "distance" not in facts(explorer), "three queries and four keys are two sequences"
    explorer = attention_explorer(random_weights(2, 3, 3), keys=list("abc"))
    assert "distance" not in facts(explorer)
    assert explorer.picture.hover[0]["columns"] == ["0 a", "1 b", "2 c"]


# --- the summary -----------------------------------------------------------------------------


def distance_by_hand(weights):
    total = 0.0
    for i, row in enumerate(weights.tolist()):
        for j, weight in enumerate(row):
            total += weight * abs(i - j)
    return total / len(weights)


@pytest.mark.parametrize("layer", ["first", "second"])
def test_attention_explorer_summary_equals_the_weights(layer):
    layers, explorer = two_layers()
    explorer.controls["layer"].value = layer
    weights = layers[layer]
    notes = explorer.picture.figure.panels[2]._words
    for head in range(8):
        explorer.controls["head"].value = head
        explorer.controls["query"].value = row = (5 * head + 3) % 12
        said = facts(explorer)
        nats = scipy.stats.entropy(weights[head].double(), axis=-1).mean()
        assert float(said["entropy"]) == pytest.approx(nats, abs=0.00501)
        far = distance_by_hand(weights[head])
        assert float(said["distance"]) == pytest.approx(far, abs=0.0501)
        assert notes.words[head] == f"{head}:  {said['entropy']},  {said['distance']}"
        assert said["query"] == f"{row} {WORDS[row]}"
        three = sorted(range(12), key=lambda key: -weights[head, row, key])[:3]
        assert said["attends to"] == ", ".join(
            f"{key} {WORDS[key]} ({weights[head, row, key]:.2f})" for key in three
        )
        assert said["brightest colour"] == f"{weights.max():.2f}"
    assert "distance" not in attention_explorer(random_weights(2, 3, 5)).summary


def test_attention_explorer_of_two_sequences_has_no_distance():
    weights = random_weights(2, 3, 5)
    explorer = attention_explorer(weights, list("abc"), list("vwxyz"), query=2, head=1)
    said = facts(explorer)
    assert "distance" not in said and said["query"] == "2 c"
    most = weights[1, 2].argmax().item()
    assert said["attends to"].startswith(f"{most} {'vwxyz'[most]} (")
    assert explorer.picture.figure.panels[2].notes == [
        f"{n}:  {scipy.stats.entropy(one.double(), axis=-1).mean():.2f}"
        for n, one in enumerate(weights)
    ]


def test_attention_explorer_of_zero_weights():
    explorer = attention_explorer(torch.zeros(2, 3, 3), list("abc"))
    said = facts(explorer)
    assert said["entropy"] == "0.00" and said["distance"] == "0.0"
    drawn = cells_of(explorer.picture.png, explorer.picture.hover[0]["box"], (3, 3), (0.2, 0.2))
    assert np.allclose(drawn, VIRIDIS(0.0)[:3], atol=0.01)


def test_attention_explorer_names_the_first_of_equal_weights():
    explorer = attention_explorer(torch.full((1, 4, 10), 0.1))
    assert [int(part.split()[0]) for part in facts(explorer)["attends to"].split(",")] == [0, 1, 2]


def test_attention_lines_label_the_keys_of_the_summary():
    explorer = attention_explorer(torch.full((1, 4, 10), 0.1))
    named = [int(part.split()[0]) for part in facts(explorer)["attends to"].split(",")]
    lines = explorer.picture.figure.panels[1]
    assert [math.floor(y * 10) for _, y in lines._numbers.get_offsets()] == named


# --- invalid input ---------------------------------------------------------------------------

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
            "layer '0' has 1025 tokens; at most 1024 can be shown",
        ),
        (lambda: attention_explorer(torch.rand(2, 1025)), "layer '0' has 1025 tokens"),
        (
            lambda: attention_explorer(torch.rand(65, 2, 2)),
            "layer '0' has 65 heads; at most 64 can be shown",
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
    ],
)
def test_invalid_attention_explorer_input_raises_value_error(call, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        call()


@pytest.mark.usefixtures("without_annotations")
def test_layer_without_a_call_raises_value_error():
    with pytest.raises(ValueError, match="'a'"):
        attention_explorer({"a": []})


def test_largest_number_of_heads_is_accepted():
    explorer = attention_explorer(random_weights(64, 2, 3), head=63)
    assert facts(explorer)["head"] == "63 of 64"
    assert facts(attention_explorer(torch.ones(1, 1)))["attends to"] == "0  (1.00)"
