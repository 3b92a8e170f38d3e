"""The explorers of a language model in a real JupyterLab, on a small random one: tokens arrive, a head is opened."""

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.helpers.gestures import ask, click_at, point_at, regions, says, settled
from tests.helpers.lab import Explorer

NOTEBOOK, CELL = "00_start_here.ipynb", "import torch\n\nfrom course_lib import plots"
CODE = f"""import sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from tests.helpers.tiny_language_model import tiny_language_model
from course_lib.widgets import generation_explorer, heads_explorer, logit_lens_explorer
model, tokenizer = tiny_language_model(pause=0.05)
"""
HEADS = CODE + 'explorer = heads_explorer(model, tokenizer, "a cat. the cat. a cat")\nexplorer'
LENS = CODE + 'explorer = logit_lens_explorer(model, tokenizer, "a cat")\nexplorer'
FOCUSED = "() => document.activeElement.textContent"
THEME = "(theme) => window.jupyterapp.commands.execute('apputils:change-theme', { theme })"
TEXT = (
    CODE + 'explorer = generation_explorer(model, tokenizer, "a cat", top_k=5, length=40)\nexplorer'
)


@pytest.fixture(scope="module")
def page(lab, screen):
    """A notebook whose first cell is to be replaced."""
    screen.open(lab, NOTEBOOK)
    return screen


def generated(explorer):
    return explorer.root.get_by_role("group", name="the text and its continuation").inner_text()


def wait_for_text(explorer, longer):
    explorer.page.wait_for_function(
        "([root, longer]) => root.querySelector('p[role=group]').innerText.length > longer",
        arg=[explorer.root.element_handle(), longer],
    )


def test_tokens_arrive_one_by_one_and_stop_is_heard(page):
    page.edit_and_run(CELL, TEXT)
    explorer = Explorer(page.page, "Text, token by token")
    explorer.type("text", "the dog")
    assert generated(explorer) == "the dog"
    button = {
        name: explorer.root.get_by_role("button", name=name, exact=True)
        for name in ("Generate", "Next token", "Stop")
    }
    button["Generate"].press("Enter")
    wait_for_text(explorer, len("the dog") + 1)
    picture, top = explorer.picture(), explorer.image.bounding_box()["y"]
    assert len(generated(explorer)) < len("the dog") + 40, "they arrive one by one"
    wait_for_text(explorer, len("the dog") + 4)
    assert explorer.picture() != picture
    assert explorer.image.bounding_box()["y"] == top, "the text moves no picture"
    assert page.page.evaluate(FOCUSED) == "Generate", "a key goes on where it was pressed"
    button["Stop"].press("Enter")
    settled(explorer, "generated")
    explorer.page.wait_for_timeout(400)
    stopped = generated(explorer)
    assert len(stopped) < len("the dog") + 40
    explorer.page.wait_for_timeout(400)
    assert generated(explorer) == stopped and page.page.evaluate(FOCUSED) == "Stop"
    count = len(stopped) - len("the dog")
    assert f"generated {count} tokens, " in explorer.summary()
    button["Next token"].press("Enter")
    settled(explorer, f"generated {count + 1} tokens, ")
    page.page.keyboard.press("Enter")  # the focus is still there
    settled(explorer, f"generated {count + 2} tokens, ")
    explorer.type("text", "", settled=False)
    settled(explorer, "text is empty")
    assert generated(explorer).startswith(stopped), "what was generated keeps its own beginning"
    for theme in ("Dark", "Light"):
        page.page.evaluate(THEME, f"JupyterLab {theme}")
        body = f"body[data-jp-theme-light={str(theme == 'Light').lower()}]"
        page.page.wait_for_selector(body, state="attached")
        assert Axe().run(page.page, context=".course-explorer").response["violations"] == []
    explorer.reset()
    settled(explorer, "generated nothing yet")
    assert generated(explorer) == "a cat"


def test_a_bar_is_taken_by_a_click_and_by_enter(page):
    page.edit_and_run("tiny_language_model", TEXT)
    explorer = Explorer(page.page, "Text, token by token")
    (bars,) = regions(page)
    probable = "explorer._continuation.session.logits[0].argsort(descending=True).tolist()"
    fourth, before = ask(page, f"{probable}[3]"), generated(explorer)
    click_at(explorer, bars, 3, 0, "generated 1 token, ")
    assert ask(page, "explorer._continuation.generated") == [fourth]
    assert generated(explorer).startswith(before) and len(generated(explorer)) > len(before)
    explorer.stage.focus()
    page.page.keyboard.press("ArrowDown")
    page.page.keyboard.press("ArrowUp")
    page.page.wait_for_timeout(300)
    assert "generated 1 token, " in explorer.summary(), "arrow keys only read"
    page.page.keyboard.press("Enter")
    settled(explorer, "generated 2 tokens, ")
    page.page.mouse.move(1, 1)


@pytest.mark.parametrize("width", [900, 1500])
def test_the_text_is_beside_the_picture_or_below_it(page, width):
    page.page.set_viewport_size({"width": width, "height": 1000})
    explorer = Explorer(page.page, "Text, token by token")
    text = explorer.root.get_by_role("group", name="the text and its continuation")
    picture, text = explorer.stage.bounding_box(), text.bounding_box()
    room = explorer.root.bounding_box()
    if width == 1500:
        assert text["x"] > picture["x"] + picture["width"] and text["y"] < picture["y"] + 40
    else:
        assert text["y"] > picture["y"] + picture["height"]
    for part in (picture, text):
        assert part["x"] + part["width"] <= room["x"] + room["width"]


def test_a_click_and_the_arrow_keys_open_a_head(page):
    page.edit_and_run("tiny_language_model", HEADS)
    explorer = Explorer(page.page, "Heads of a language model")
    scores, map_ = regions(page)
    assert scores["shape"] == [4, 3]
    point_at(explorer, scores, 2, 1)
    page.page.mouse.down()
    page.page.mouse.up()
    settled(explorer, "layer 2, head 1: previous token")
    weights = ask(
        page,
        "__import__('course_lib.topics.interpretability').interpretability.attention_weights(model, "
        "__import__('torch').tensor([tokenizer.encode(explorer.controls['text'].value)]))[2, 1].tolist()",
    )
    tip = point_at(explorer, map_, 5, 3)
    assert says(tip, "query 5 ., key 3 a", weights[5][3])
    page.page.mouse.down()
    page.page.mouse.up()
    settled(explorer, "query 5 .;")
    page.page.mouse.move(1, 1)
    explorer.stage.focus()
    page.page.keyboard.press("ArrowDown")  # to the cell that is open
    page.page.keyboard.press("ArrowDown")
    settled(explorer, "layer 3, head 1:")
    page.page.keyboard.press("ArrowLeft")
    settled(explorer, "layer 3, head 0:")
    assert explorer.tip().startswith("layer 3, head 0: ")


def test_the_whole_token_of_a_cell_is_read_off(page):
    page.edit_and_run("tiny_language_model", LENS)
    explorer = Explorer(page.page, "Logit lens")
    table, ranks = regions(page)
    best, rank = ask(page, "[one.texts for one in explorer.picture.figure.panels]")
    assert point_at(explorer, table, 1, 0).endswith(f" (token {best[1][0]})")
    assert point_at(explorer, ranks, 2, 3).endswith(f" (rank {rank[2][3]})")


def test_nothing_left_this_machine_and_nothing_complained(page):
    assert page.complaints() == []
