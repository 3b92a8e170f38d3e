"""Notebook 00 in a real JupyterLab: type a sentence, click a word, read its weights."""

import pytest

from tests.helpers.gestures import ask, click_at, point_at, regions, says, settled
from tests.helpers.lab import Explorer

SENTENCE = "the black cat does not see him ."


@pytest.fixture(scope="module")
def explorer(lab, screen):
    """The first explorer, after the first two cells have run."""
    screen.open(lab, "00_start_here.ipynb")
    screen.run("start(seed=0)")
    screen.run("explorer = translation_explorer(")
    return Explorer(screen.page, "Translation")


def test_a_click_on_a_french_word_or_on_its_row_lights_its_english_words(screen, explorer):
    explorer._control("English").locator("input").click()
    explorer.page.keyboard.press("Control+A")
    explorer.page.keyboard.type(SENTENCE, delay=20)
    settled(explorer, f"English '{SENTENCE}'; French 'Le chat noir ne le voit pas.'")
    map_, *words, heads = regions(screen)
    assert map_["shape"] == [9, 8] and len(words) == 9 + 8
    click_at(explorer, words[5], 0, 0, "word 5 voit; attends to 5 see")
    explorer.stands_at("word", 5)
    maps = f"phrase_translator().maps({SENTENCE!r})['decoder 1: cross']"
    weight = ask(screen, f"{maps}.weights[1, 5, 3].item()")
    assert says(point_at(explorer, words[9 + 3], 0, 0), "query 5 voit, key 3 does", weight)
    click_at(explorer, map_, 2, 6, "word 2 noir; attends to 1 black")
    explorer.stands_at("word", 2)
    click_at(explorer, heads, 0, 0, "layer decoder 1: cross, head 0 of 4; word 2 noir;")
    explorer.choose("layer", "decoder 0: cross")
    explorer.press("head", "ArrowRight", times=2)
    assert "word 2 noir; attends to 6 him (1.00)" in explorer.summary()


def test_nothing_left_this_machine_and_nothing_complained(screen):
    assert screen.complaints() == []
