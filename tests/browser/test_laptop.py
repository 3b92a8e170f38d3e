"""Every explorer of every lesson is seen whole on a laptop, with the file list open as the lab opens."""

import re

import nbformat
import pytest

from course_lib.tools import normal_form
from tests.helpers.lab import write_notebook

LESSONS = {path.stem[:2]: path for path in normal_form.paths() if not normal_form.is_study(path)}
SETUP = """
from functools import cache

import torch

from course_lib.checkpoints import (
    date_translator, letter_lookup, phrase_translator, pronoun_reader, sentence_translator
)
from course_lib.data import nile_series
from course_lib.topics import pretrained
from course_lib.widgets import (
    anatomy_explorer, attention_explorer, beam_explorer, bleu_explorer, date_explorer, depth_explorer, generation_explorer,
    heads_explorer, kernel_regression_explorer, logit_lens_explorer, mask_explorer, next_token_explorer, pattern_explorer,
    reshape_explorer, rotary_explorer, scaling_explorer, score_explorer, similarity_explorer, sinusoid_explorer,
    translation_explorer
)

load_smollm2 = cache(pretrained.load_smollm2)


def random_weights(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0)).softmax(-1)
"""
#: Lesson → the explorers on its page, in order; random weights stand in for those that a page trains.
EXPLORERS = {
    "00": (
        'translation_explorer(phrase_translator(), "the black cat does not see him .", word=2)',
        'translation_explorer(phrase_translator(), "does she often read this old book ?")',
    ),
    "01": ("kernel_regression_explorer(nile_series(), bandwidth=5.0, query=1899.0, error=False)",),
    "02": ("similarity_explorer()", 'score_explorer(d=64, scale="1", query=5)'),
    "03": (
        'date_explorer(date_translator(), "Tuesday, March 5, 2024")',
        'attention_explorer(random_weights(7, 6), [*"314159∎"], [*"314159"])',
        'date_explorer(date_translator(), "23. September 1987", step=6)',
    ),
    "04": (
        'attention_explorer(pronoun_reader().maps, text="the horse did not cross the street because it was too tired",'
        " query=11, answer=pronoun_reader())",
        "mask_explorer()",
        'attention_explorer(random_weights(1, 11, 18), [*"1987-09-23", "∎"], [*"23. September 1987"], query=1)',
    ),
    "05": (
        'attention_explorer(letter_lookup().maps, text="ABCDEFGHABCD 3 0 7 5", answer=letter_lookup(), rows="head")',
        "reshape_explorer(step=4.0)",
    ),
    "06": ("sinusoid_explorer()", "rotary_explorer()"),
    "07": ("depth_explorer()",),
    "08": (
        'attention_explorer(phrase_translator().maps, text="the black cats do not see him .", query=3,'
        ' layer="decoder 1: cross", head=1, answer=phrase_translator())',
    ),
    "09": (
        'beam_explorer({(): {"a": 0.5, "the": 0.5}, ("a",): {"<eos>": 1}, ("the",): {"cat": 0.6, "<eos>": 0.4}},'
        " beam_size=2)",
        'next_token_explorer(phrase_translator(), "the old dog a small white bird .", position=5, temperature=2.0)',
        'bleu_explorer("the cat the cat on the mat", "the cat sat on the mat")',
    ),
    "10": ("pattern_explorer(random_weights(12, 12))",),
    "11": ("scaling_explorer(flops=3e10)",),
    "12": (
        'attention_explorer(sentence_translator().maps, text="A woman in a yellow dress is reading a book under a big'
        ' tree.", answer=sentence_translator(), head=3, layer="decoder 2: cross")',
    ),
    "13": ("generation_explorer(*load_smollm2(), top_p=0.85)",),
    "14": (
        'heads_explorer(*load_smollm2(), "Zora Quill plays the theremin. Her brother sings. Zora Quill plays the",'
        ' score="induction", layer=18, head=6, query=18)',
        'logit_lens_explorer(*load_smollm2(), "The capital of France is")',
    ),
    "15": ('anatomy_explorer(model="Qwen3-Next-80B-A3B", context=100_000)',),
}
NAMES = [f"{lesson}-{number}" for lesson, row in EXPLORERS.items() for number in range(len(row))]
CALLED = re.compile(r"\w+_explorer\(")


#: What a picture keeps of its size at the least: labels of 9 points then have 9 pixels on screen.
SMALLEST = 0.72
SIZES = {"1366": (1366, 768), "1280": (1280, 720)}
PANE = "document.getElementsByClassName('jp-WindowedPanel-outer')[0].getBoundingClientRect()"
MEASURE = f"""(root) => {{
    const [pane, box] = [{PANE}, (selector) => root.querySelector(selector).getBoundingClientRect()];
    const strips = [...root.querySelectorAll('.course-picture-stage .course-picture-strip')];
    return {{
        room: pane.height, right: pane.right,
        columns: strips.length, rows: new Set(strips.map((one) => Math.round(one.getBoundingClientRect().top))).size,
        scale: box('.course-picture-sheet').width / root.querySelector('.course-picture-image').naturalWidth,
        height: box('.course-picture-bar').bottom - root.getBoundingClientRect().top,
        end: box('.course-picture-stage').right,
    }};
}}"""


@pytest.fixture(scope="module")
def opened(lab, screen, folder):
    """The explorers of all lessons, one below the other, after Run All."""
    write_notebook(folder, "laptop.ipynb", (SETUP, *sum(EXPLORERS.values(), ())))
    screen.open(lab, "laptop.ipynb")
    screen.run_all(300)
    return screen


def test_the_table_has_every_explorer_of_every_lesson():
    called = {}
    for lesson, path in LESSONS.items():
        code = [one.source for one in nbformat.read(path, 4).cells if one.cell_type == "code"]
        called[lesson] = CALLED.findall("\n".join(code))
    shown = {lesson: [CALLED.match(one)[0] for one in row] for lesson, row in EXPLORERS.items()}
    assert shown == called


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("number", range(len(NAMES)), ids=NAMES)
def test_an_explorer_is_whole_beside_the_file_list(opened, number, size):
    width, height = SIZES[size]
    opened.page.set_viewport_size({"width": width, "height": height})
    assert opened.page.locator("#jp-left-stack").is_visible(), "the file list"
    explorer = opened.page.locator(".course-explorer").nth(number)
    explorer.scroll_into_view_if_needed()  # what is out of sight is not laid out
    explorer.locator(".noUi-handle").first.wait_for()
    opened.page.wait_for_timeout(300)
    seen = explorer.evaluate(MEASURE)
    assert seen["rows"] == 1, f"{seen['columns']} panels stand side by side"
    assert seen["scale"] >= SMALLEST - 0.001, "its letters can be read"
    assert seen["height"] <= seen["room"] + 1, "from its controls to its buttons"
    assert seen["end"] <= seen["right"]


@pytest.mark.parametrize("number", range(len(NAMES)), ids=NAMES)
def test_letters_can_be_read_in_a_narrow_window(opened, number):
    opened.page.set_viewport_size({"width": 900, "height": 768})
    explorer = opened.page.locator(".course-explorer").nth(number)
    explorer.scroll_into_view_if_needed()
    explorer.locator(".noUi-handle").first.wait_for()
    opened.page.wait_for_timeout(300)
    seen = explorer.evaluate(MEASURE)
    assert seen["scale"] >= SMALLEST - 0.001 and seen["end"] <= seen["right"] + 1


PLACE = f"""(root) => {{
    const [pane, inside] = [{PANE}, root.getBoundingClientRect()];
    return [inside.top - pane.top, pane.bottom - root.querySelector('.course-picture-bar').getBoundingClientRect().bottom];
}}"""


@pytest.mark.parametrize(("width", "height", "cleared"), [(1500, 950, False), (1366, 768, True)])
def test_after_shift_and_enter_the_first_picture_is_in_view(lab, screen, width, height, cleared):
    screen.page.set_viewport_size({"width": width, "height": height})
    screen.open(lab, "00_start_here.ipynb")
    if cleared:
        screen.command("notebook:clear-all-cell-outputs")
    screen.page.locator(".jp-Cell").first.click()
    for _ in range(4):  # title, imports, text, explorer
        screen.page.keyboard.press("Shift+Enter")
        screen.page.wait_for_timeout(1500)
    explorer = screen.page.locator(".course-explorer")
    explorer.locator(".noUi-handle").first.wait_for()
    screen.page.wait_for_timeout(1500)
    above, below = explorer.evaluate(PLACE)
    assert above >= 0 and below >= 0, "pixels inside the pane"


def test_whoever_scrolls_while_the_picture_comes_is_left_alone(lab, screen):
    screen.page.set_viewport_size({"width": 1500, "height": 950})
    screen.open(lab, "00_start_here.ipynb")
    screen.page.locator(".jp-Cell").first.click()
    for _ in range(4):
        screen.page.keyboard.press("Shift+Enter")
    screen.page.locator(".course-explorer .noUi-handle").first.wait_for()
    screen.page.mouse.move(800, 600)
    screen.page.mouse.wheel(0, 1500)
    screen.page.wait_for_timeout(1500)
    above, _ = screen.page.locator(".course-explorer").evaluate(PLACE)
    assert above < -300


def test_nothing_left_this_machine_and_nothing_complained(opened):
    assert opened.complaints() == []
