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
    explorer.root.get_by_role("textbox", name="English").click()
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


def test_an_english_word_and_the_names_of_rows_and_columns_are_clicked(screen, explorer):
    explorer.reset()
    map_, *words, _ = regions(screen)
    side = explorer._control("word of").locator("select")
    click_at(explorer, words[9 + 4], 0, 0, "word 4 not; attended to by 6 pas (1.00), 3 ne (1.00)")
    explorer.stands_at("word", 4)
    assert side.input_value() == "English"
    picture, (left, top, right, bottom) = explorer.image.bounding_box(), map_["box"]

    def click(across, down, words):
        x, y = picture["x"] + across * picture["width"], picture["y"] + down * picture["height"]
        screen.page.mouse.click(x, y)
        settled(explorer, words)
        return explorer.tip()

    row = top + 5.5 / 9 * (bottom - top)
    assert "query 5 voit, key 5 see: 0.6987" in click(
        left - 0.02, row, "word 5 voit; attends to 5 see"
    )
    assert side.input_value() == "French"
    mark = explorer.root.locator(".course-picture-mark").bounding_box()
    assert mark["x"] + mark["width"] <= picture["x"] + left * picture["width"] + 1, "on the name"
    column = left + 1.5 / 8 * (right - left)
    assert "query 2 noir, key 1 black" in click(column, bottom + 0.03, "attended to by 2 noir")
    explorer.stands_at("word", 1)
    screen.page.mouse.move(1, 1)


def test_words_are_chosen_by_keyboard_alone(screen, explorer):
    explorer.reset()
    explorer.stage.focus()
    for _ in range(
        8
    ):  # from the largest weight of "noir" over the edge of the map, to the first French word
        screen.page.keyboard.press("ArrowRight")
    settled(explorer, "word 0 le; attends to")
    for _ in range(9):
        screen.page.keyboard.press("ArrowRight")
        screen.page.wait_for_timeout(150)
    settled(explorer, "word 0 the; attended to by")
    assert explorer.tip().startswith("key 0 the, attended most by query 0 le: ")
    screen.page.keyboard.press("Escape")
    explorer.reset()


def test_a_weight_is_read_with_the_digits_of_the_words_beside_it(screen, explorer):
    explorer.reset()
    map_, *_ = regions(screen)
    weights = ask(
        screen, f"phrase_translator().maps({SENTENCE!r})['decoder 1: cross'].weights[1].tolist()"
    )
    small = [(r, c) for r in range(9) for c in range(8) if 0 < weights[r][c] < 0.00005]
    assert point_at(explorer, map_, *small[0]).endswith(": <0.0001")
    assert point_at(explorer, map_, 5, 3).endswith(f": {weights[5][3]:.4f}")
    screen.page.mouse.move(1, 1)


def test_nothing_left_this_machine_and_nothing_complained(screen):
    assert screen.complaints() == []
