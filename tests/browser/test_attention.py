"""Notebooks 04 and 05 in a real JupyterLab: type a sentence, step through layers, heads and queries."""

import pytest

from tests.helpers.gestures import ask, attends_to, click_at, point_at, regions, says, settled
from tests.helpers.lab import Explorer

FOUR, FIVE = "04_self_and_cross_attention.ipynb", "05_multi_head_attention.ipynb"
WIDE = "the horse did not cross the river because it was too wide"


def model_says(screen, text, layer, head, maps="read"):
    """The weights of one head, (query, key), from the function of the notebook that gives the maps."""
    return ask(screen, f"{maps}({text!r})[{layer!r}].weights[{head}].tolist()")


@pytest.fixture(scope="module")
def four(lab, screen):
    """Notebook 04, and its first explorer, after the first cells and that of the masks have run."""
    screen.open(lab, FOUR)
    screen.run("start(seed=4)")
    screen.run("reader = pronoun_reader()")
    return screen, Explorer(screen.page, "One layer of self-attention")


def test_a_typed_sentence_is_read_and_the_weights_are_those_of_the_model(four):
    screen, explorer = four
    explorer.type("text", WIDE)
    settled(explorer, "too wide'")
    words = WIDE.split()
    weights = model_says(screen, WIDE, "self-attention", 0, maps="reader.maps")
    said = explorer.summary()
    assert f"text '{WIDE}'; answer 'river'; layer self-attention; head 0 of 1;" in said
    assert f"query 11 wide; {attends_to(words, weights[11])};" in said
    assert f"brightest colour {max(map(max, weights)):.2f}" in said
    explorer.press("query", "ArrowLeft", times=3)
    assert f"query 8 it; {attends_to(words, weights[8])};" in explorer.summary()
    map_, _, lines = regions(screen)
    for row, column in ((0, 0), (11, 6), (11, 1), (4, 11)):
        tip = point_at(explorer, map_, row, column)
        cell = f"query {row} {words[row]}, key {column} {words[column]}"
        assert says(tip, cell, weights[row][column])
    for key in (0, 6, 11):
        tip = point_at(explorer, lines, key, 0)
        assert says(tip, f"key {key} {words[key]}, query 8 it", weights[8][key])


def test_a_word_that_the_model_does_not_know_is_said_and_the_picture_stays(four):
    _, explorer = four
    explorer.reset()
    settled(explorer, "too tired'")
    explorer.type("text", "the zebra", settled=False)
    settled(explorer, "'zebra' at position 1")
    assert "cannot be drawn" in explorer.problem()
    before = explorer.picture()
    explorer.page.wait_for_timeout(300)
    assert explorer.picture() == before
    explorer.type("text", "the horse was tired")
    settled(explorer, "text 'the horse was tired'")
    assert "query 3 tired;" in explorer.summary(), "a shorter sentence shows its last word"


def test_a_mask_is_shown_in_another_convention(four):
    screen, _ = four
    screen.run("masks = mask_explorer()")
    masks = Explorer(screen.page, "Masks")
    masks.choose("convention", "added to the scores")
    masks.choose("mask", "causal")
    said = masks.summary()
    assert "mask causal; convention added to the scores; allowed pairs 15 of 25;" in said
    masks.press("queries", "ArrowLeft", times=4)
    assert "allowed pairs 5 of 5;" in masks.summary()


def test_nothing_left_this_machine_and_nothing_complained_in_notebook_04(four):
    screen, _ = four
    assert screen.complaints() == []


@pytest.fixture(scope="module")
def five(lab, screen):
    """Notebook 05, and its last explorer, after all cells have run."""
    screen.open(lab, FIVE)
    screen.run_all(timeout=240)
    return screen, Explorer(screen.page, "2 layers of 8 heads read")


def test_layers_and_heads_show_the_weights_of_the_model(five):
    screen, explorer = five
    text = ask(screen, "text")
    words = text.split()
    explorer.choose("layer", "layers.0")
    explorer.press("head", "ArrowRight", times=5)
    weights = model_says(screen, text, "layers.0", 5)
    assert "layer layers.0; head 5 of 8;" in explorer.summary()
    assert f"query 8 it; {attends_to(words, weights[8])};" in explorer.summary()
    map_, *heads = regions(screen)
    for row, column in ((0, 0), (8, 1), (11, 6), (3, 11)):
        tip = point_at(explorer, map_, row, column)
        cell = f"query {row} {words[row]}, key {column} {words[column]}"
        assert says(tip, cell, weights[row][column])
    screen.page.mouse.move(1, 1)
    explorer.choose("layer", "layers.1")
    explorer.choose("view", "lines")
    explorer.press("query", "ArrowRight", times=3)
    weights = model_says(screen, text, "layers.1", 5)
    assert f"query 11 {words[11]}; {attends_to(words, weights[11])};" in explorer.summary()
    lines = regions(screen)[1]
    for key in (0, 6, 11):
        tip = point_at(explorer, lines, key, 0)
        assert says(tip, f"key {key} {words[key]}, query 11 {words[11]}", weights[11][key])


def test_heads_rows_and_tokens_are_chosen_where_they_are_drawn(five):
    screen, explorer = five
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


def test_the_rows_of_heads_that_have_one_query_each_are_called_heads(five):
    screen, _ = five
    heads = Explorer(screen.page, "4 heads look up 4 letters")
    settled(heads, "; head 0; attends to 5 F (1.00)")
    heads.press("head", "ArrowRight")
    assert "; head 1; " in heads.summary() and "query" not in heads.summary()


def test_a_pointer_that_rests_on_the_picture_reads_what_is_drawn_after_a_change(five):
    screen, explorer = five
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


def test_a_slider_in_tenths_comes_to_rest_on_whole_steps(five):
    screen, _ = five
    screen.run("reshape = reshape_explorer()")
    reshape = Explorer(screen.page, "Splitting heads")
    for number, code in enumerate((".unflatten(-1, (heads, d_head))", ".transpose(0, 1)"), 1):
        reshape.press("step", "ArrowRight", times=10)
        assert f"step {number}, " in reshape.summary() and code in reshape.summary()
    reshape.press("step", "ArrowRight", times=10)
    assert "step 3, .transpose(0, 1);" in reshape.summary()
    assert "merging gives x again yes" in reshape.summary()


def test_nothing_left_this_machine_and_nothing_complained_in_notebook_05(five):
    screen, _ = five
    assert screen.complaints() == []
