"""The explorers of a language model in a real JupyterLab, on a small random one: tokens arrive, a head is opened."""

from pathlib import Path

import pytest

from tests.helpers.gestures import ask, point_at, regions, says, settled
from tests.helpers.lab import Explorer

NOTEBOOK, CELL = "00_start_here.ipynb", "import torch\n\nfrom course_lib import plots"
CODE = f"""import sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from tests.helpers.tiny_language_model import tiny_language_model
from course_lib.widgets import generation_explorer, heads_explorer
model, tokenizer = tiny_language_model(pause=0.05)
"""
HEADS = CODE + 'explorer = heads_explorer(model, tokenizer, "a cat. the cat. a cat")\nexplorer'
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
    assert button["Stop"].is_disabled()
    button["Generate"].click()
    wait_for_text(explorer, len("the dog") + 1)
    picture = explorer.picture()
    assert len(generated(explorer)) < len("the dog") + 40, "they arrive one by one"
    wait_for_text(explorer, len("the dog") + 4)
    assert explorer.picture() != picture
    button["Stop"].click()
    settled(explorer, "generated")
    explorer.page.wait_for_timeout(400)
    stopped = generated(explorer)
    assert len(stopped) < len("the dog") + 40
    explorer.page.wait_for_timeout(400)
    assert generated(explorer) == stopped and button["Stop"].is_disabled()
    count = len(stopped) - len("the dog")
    assert f"generated {count} tokens, " in explorer.summary()
    button["Next token"].press("Enter")
    wait_for_text(explorer, len(stopped))
    settled(explorer, f"generated {count + 1} tokens, ")
    explorer.reset()
    settled(explorer, "generated nothing yet")
    assert generated(explorer) == "a cat"


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
        "__import__('course_lib.interpretability').interpretability.attention_weights(model, "
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


def test_nothing_left_this_machine_and_nothing_complained(page):
    assert page.complaints() == []
