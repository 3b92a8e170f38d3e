"""Explorers redraw only what has changed; the picture equals a full drawing."""

import random

import pytest
import torch

from course_lib.checkpoints import date_translator
from course_lib.widgets import (
    AttentionMap,
    attention_explorer,
    date_explorer,
    mask_explorer,
    reshape_explorer,
)
from course_lib.widgets.masks import CONVENTIONS, KINDS
from course_lib.widgets.reshape import VARIANTS
from tests.helpers.attention_explorers import Reader, facts, two_layers
from tests.helpers.explorers import moved_at_random


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
        {"step": (0.0, 0.3, 1.0, 1.5, 2.0, 3.9, 4.0), "heads": (2, 4), "variant": list(VARIANTS)},
    ),
    "dates": (
        lambda **settings: date_explorer(date_translator(), **{"text": "5/2/81"} | settings),
        {"text": ("5 maja 1980", "Tuesday, March 5, 2024", "7/4/87"), "step": range(1, 12)},
    ),
}


@pytest.mark.parametrize("name", MOVED)
def test_picture_after_random_moves_equals_a_full_drawing(name, request):
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


def test_other_weights_with_the_same_notes_are_redrawn():
    weights = torch.eye(3, 4).repeat(2, 1, 1)
    layers = {"one": weights, "other": weights.flip(-1)}
    explorer = attention_explorer(layers)
    notes = explorer.picture.figure.panels[2].notes
    explorer.controls["layer"].value = "other"
    assert explorer.picture.figure.panels[2].notes == notes
    assert explorer.picture.png == attention_explorer(layers, layer="other").picture.png


def test_new_background_is_drawn_when_announced():
    live = two_layers()[1].picture.figure
    before = live.png()
    live.panels[2].axes.set_title("another title")
    assert live.png() == before, "the background is kept until it is said to have changed"
    live.redraw_background()
    assert live.png() != before
