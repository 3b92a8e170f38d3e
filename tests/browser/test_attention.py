"""The attention explorer in a real JupyterLab: step through layers, heads and queries, click them, read the weights."""

import pytest

from tests.helpers.gestures import ask, attends_to, click_at, point_at, regions, says, settled
from tests.helpers.lab import Explorer, write_notebook

NOTEBOOK = "attention.ipynb"
WORDS = "the horse did not cross the river because it was too tired".split()
CELLS = (
    f"""
import torch
from course_lib.topics.attention_maps import AttentionMap
from course_lib.widgets import attention_explorer, reshape_explorer

torch.manual_seed(0)
weights = torch.softmax(2 * torch.randn(2, 8, 12, 12), dim=-1)
maps = {{f"layers.{{n}}": AttentionMap(layer, {WORDS}) for n, layer in enumerate(weights)}}
""",
    'explorer = attention_explorer(maps, layer="layers.1", query=8, title="2 layers of 8 heads")\nexplorer',
    "reshape = reshape_explorer()\nreshape",
)


@pytest.fixture(scope="module")
def explorer(lab, screen, folder):
    """The first explorer, after Run All."""
    write_notebook(folder, NOTEBOOK, CELLS)
    screen.open(lab, NOTEBOOK)
    screen.run_all()
    return Explorer(screen.page, "2 layers of 8 heads")


def test_layers_and_heads_show_the_weights_of_the_model(screen, explorer):
    explorer.choose("layer", "layers.0")
    explorer.press("head", "ArrowRight", times=5)
    weights = ask(screen, "weights[0, 5].tolist()")
    assert "layer layers.0; head 5 of 8;" in explorer.summary()
    assert f"query 8 it; {attends_to(WORDS, weights[8])};" in explorer.summary()
    map_, *heads = regions(screen)
    for row, column in ((0, 0), (8, 1), (11, 6), (3, 11)):
        tip = point_at(explorer, map_, row, column)
        cell = f"query {row} {WORDS[row]}, key {column} {WORDS[column]}"
        assert says(tip, cell, weights[row][column])
    screen.page.mouse.move(1, 1)
    explorer.choose("layer", "layers.1")
    explorer.choose("view", "lines")
    explorer.press("query", "ArrowRight", times=3)
    weights = ask(screen, "weights[1, 5].tolist()")
    assert f"query 11 {WORDS[11]}; {attends_to(WORDS, weights[11])};" in explorer.summary()
    lines = regions(screen)[1]
    for key in (0, 6, 11):
        tip = point_at(explorer, lines, key, 0)
        assert says(tip, f"key {key} {WORDS[key]}, query 11 {WORDS[11]}", weights[11][key])


def test_heads_rows_and_tokens_are_chosen_where_they_are_drawn(screen, explorer):
    explorer.reset()
    map_, above, below = regions(screen)
    assert above["shape"] == below["shape"] == [1, 4]
    click_at(explorer, below, 0, 2, "head 6 of 8;")
    click_at(explorer, above, 0, 3, "head 3 of 8;")
    explorer.stands_at("head", 3)
    click_at(explorer, map_, 2, 7, "query 2 ")
    explorer.stands_at("query", 2)
    explorer.choose("view", "lines")
    tokens = regions(screen)[0]
    click_at(explorer, tokens, 9, 0, "query 9 ")
    explorer.stands_at("query", 9)
    assert "head 3 of 8;" in explorer.summary()
    explorer.page.keyboard.press("ArrowUp")  # the picture has the focus
    settled(explorer, "query 8 ")
    screen.page.mouse.move(1, 1)
    explorer.reset()


def test_a_pointer_that_rests_on_the_picture_reads_what_is_drawn_after_a_change(screen, explorer):
    explorer.reset()
    try:
        map_, *_ = regions(screen)
        point_at(explorer, map_, 3, 11)
        explorer.choose("view", "lines")
        assert screen.errors == []
        assert "query 3" not in explorer.tip()
    finally:
        screen.errors.clear()
        screen.page.mouse.move(1, 1)


def test_a_slider_in_tenths_comes_to_rest_on_whole_steps(screen, explorer):
    reshape = Explorer(screen.page, "Splitting heads")
    for number, code in enumerate((".unflatten(-1, (heads, d_head))", ".transpose(0, 1)"), 1):
        reshape.press("step", "ArrowRight", times=10)
        assert f"step {number}, " in reshape.summary() and code in reshape.summary()
    reshape.press("step", "ArrowRight", times=10)
    assert "step 3, .transpose(0, 1);" in reshape.summary()
    assert "merging gives x again yes" in reshape.summary()


def test_nothing_left_this_machine_and_nothing_complained(screen):
    assert screen.complaints() == []
