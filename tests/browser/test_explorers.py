"""What every explorer does in a real JupyterLab: saved and opened again, by keyboard, typed into, narrow, dark."""

import base64
import io
import json
import re

import numpy as np
import pytest
from PIL import Image

from tests.helpers.gestures import ask, point_at, says, settled
from tests.helpers.lab import Explorer, Window, write_notebook

NOTEBOOK = "explorers.ipynb"
CELLS = (
    """
import torch
from course_lib.data import wave_series
from course_lib.topics.attention_maps import AttentionMap
from course_lib.notebook import show_lines, show_table
from course_lib.widgets import (
    attention_explorer, kernel_regression_explorer, mask_explorer, pattern_explorer
)

KNOWN = "the a old red fox dog runs sleeps fast well".split()


def read(text):
    for word in text.split():
        if word not in KNOWN:
            raise ValueError(f"{word!r} is unknown")
    numbers = torch.tensor([float(KNOWN.index(word)) for word in text.split()])
    weights = torch.softmax(-(numbers[:, None] - numbers[None]).abs(), dim=-1)
    return {"only": AttentionMap(torch.stack([weights, weights**2]), text.split())}
""",
    'reader = attention_explorer(read, text="the old fox runs", title="Reader")\nreader',
    "masks = mask_explorer()\nmasks",
    "masks",
    "fit = kernel_regression_explorer(wave_series())\nfit",
    'show_lines([0, 1, 2], {"a": [0, 1, 4]}, "Squares: 0, 1, 4")',
    'show_table(["model", "score"], [["mine", 0.93]], "Scores of one model.")',
    """
torch.manual_seed(0)
weights = torch.randn(16, 16).softmax(-1)
pattern = pattern_explorer(weights, window=2)
pattern
""",
)


@pytest.fixture(scope="module")
def opened(lab, screen, folder):
    """The notebook after Run All."""
    write_notebook(folder, NOTEBOOK, CELLS)
    screen.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    screen.open(lab, NOTEBOOK)
    screen.run_all()
    return screen


@pytest.fixture
def masks(opened):
    found = Explorer(opened.page, "Masks")
    found.reset()
    return found


@pytest.fixture
def reader(opened):
    found = Explorer(opened.page, "Reader")
    found.reset()
    return found


# --- the first view after Run All -------------------------------------------------------------


def test_a_second_display_is_refused_and_leaves_the_first_alone(opened):
    assert (
        "already shown in another cell" in opened.page.locator(".jp-OutputArea").nth(3).inner_text()
    )
    assert opened.page.locator('.course-picture-image[alt^="Masks"]').count() == 1
    assert "allowed pairs 14 of 25" in Explorer(opened.page, "Masks").summary()


# --- keys -------------------------------------------------------------------------------------

STATE = """() => {
    const notebook = window.jupyterapp.shell.currentWidget.content;
    return [notebook.activeCellIndex, notebook.widgets.length];
}"""
INSIDE = "(root) => root.contains(document.activeElement)"


@pytest.mark.parametrize(
    ("place", "keys"),
    [
        ("select", ["ArrowDown", "ArrowUp", "a", "b", "x"]),
        (
            ".noUi-handle",
            ["ArrowUp", "ArrowDown", "x", "a", "b", "d", "d", "z", "Enter", "Shift+M"],
        ),
        (".course-picture-stage", ["ArrowDown", "ArrowUp", "x", "a", "b", "c", "v"]),
        (".course-picture-button", ["ArrowDown", "x", "a", "b"]),
    ],
)
def test_the_notebook_does_not_take_the_keys_of_an_explorer(opened, masks, place, keys):
    element = masks.root.locator(place).first
    opened.page.evaluate(
        "() => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = 2; }"
    )
    element.focus()
    before = opened.page.evaluate(STATE)
    for key in keys:
        opened.page.keyboard.press(key)
        assert opened.page.evaluate(STATE) == before, key
    assert element.evaluate("(element) => element === document.activeElement")


@pytest.mark.parametrize("place", ["select", ".noUi-handle", ".course-picture-stage"])
def test_tab_and_escape_leave(opened, masks, place):
    element = masks.root.locator(place).first
    element.focus()
    opened.page.keyboard.press("Tab")
    assert not element.evaluate("(element) => element === document.activeElement")
    element.focus()
    opened.page.keyboard.press("Escape")
    assert not masks.root.evaluate(INSIDE), "Escape goes back to the notebook"


# --- text boxes -------------------------------------------------------------------------------

WATCH = """(root) => {
    window.told = [];
    window.drawn = 0;
    const note = () => {
        const said = ['alert', 'status'].map((role) => root.querySelector(`.widget-html p[role=${role}]`)?.textContent);
        const words = said.find(Boolean) ?? '';
        if (words && words !== window.told.at(-1)) window.told.push(words);
    };
    note();
    new MutationObserver(note).observe(root, { subtree: true, childList: true, characterData: true });
    new MutationObserver(() => window.drawn++)
        .observe(root.querySelector('.course-picture-image'), { attributeFilter: ['src'] });
}"""


def watched(explorer):
    """What is told and how often a picture comes, from now on."""
    explorer.root.evaluate(WATCH)
    return lambda: explorer.page.evaluate("() => [window.told.slice(1), window.drawn]")


def test_a_text_is_read_once_after_a_pause(reader):
    seen = watched(reader)
    box = reader._control("text").locator("input")
    box.click()
    reader.page.keyboard.press("Control+A")
    reader.page.keyboard.type("the red dog sleeps well", delay=40)
    settled(reader, "text 'the red dog sleeps well'")
    reader.page.wait_for_timeout(600)
    told, drawn = seen()
    assert drawn == 1 and len(told) == 1, told


def test_enter_reads_a_text_at_once(reader):
    box = reader._control("text").locator("input")
    box.fill("a red dog")
    reader.page.keyboard.press("Enter")
    reader.page.wait_for_function("() => window.drawn >= 0")
    settled(reader, "text 'a red dog'")


def test_an_unknown_word_is_named_once(reader):
    seen = watched(reader)
    box = reader._control("text").locator("input")
    box.click()
    reader.page.keyboard.press("Control+A")
    reader.page.keyboard.type("the old zebra", delay=40)
    reader.root.locator("p[role=alert]").wait_for()
    reader.page.wait_for_timeout(600)
    told, drawn = seen()
    assert drawn == 0 and len(told) == 1
    assert told[0].count("zebra") == 1


def test_a_problem_stands_beside_the_box_and_the_picture_is_dimmed(reader):
    reader.type("text", "the old zebra", settled=False)
    box, alert = (reader.root.locator(part) for part in ("input[type=text]", "p[role=alert]"))
    assert "cannot be drawn" in reader.problem() and box.get_attribute("aria-invalid") == "true"
    distance = alert.bounding_box()["y"] - box.bounding_box()["y"]
    assert 0 < distance < 150, "pixels"
    opacity = "(strips) => getComputedStyle(strips).opacity"
    strips = reader.root.locator(".course-picture-strips").first
    assert float(strips.evaluate(opacity)) < 0.5
    reader.type("text", "a red dog")
    assert alert.count() == 0 and box.get_attribute("aria-invalid") == "false"
    assert float(strips.evaluate(opacity)) == 1


def test_what_can_be_typed_is_said_before_anything_is_wrong(reader):
    rule = reader.root.locator(".course-rule")
    assert rule.inner_text() == "any text" and reader.root.locator("p[role=alert]").count() == 0
    described = reader.root.locator("input[type=text]").get_attribute("aria-describedby")
    assert rule.get_attribute("id") == described


def test_a_problem_with_a_long_word_stays_inside_the_pane(reader):
    before = reader.root.evaluate("(root) => root.scrollWidth")
    box = reader._control("text").locator("input")
    box.fill(3000 * "x")
    reader.page.keyboard.press("Enter")
    alert = reader.root.locator("p[role=alert]")
    alert.wait_for()
    assert alert.evaluate("(one) => one.scrollWidth <= one.clientWidth + 1")
    assert reader.root.evaluate("(root) => root.scrollWidth") <= before + 1
    reader.reset()


def test_a_blank_text_is_refused_like_an_empty_one(reader):
    for blank in ("", "   "):
        box = reader._control("text").locator("input")
        box.fill(blank)
        reader.page.keyboard.press("Enter")
        settled(reader, "the text is empty; type any text")
    reader.reset()


# --- the pointer ------------------------------------------------------------------------------


def test_the_pointer_reads_the_numbers_and_the_texts_of_cells(opened):
    pattern = Explorer(opened.page, "Sparse pattern")
    which, kept = ask(
        opened, "[{k: one[k] for k in ('box', 'shape')} for one in pattern.picture.hover[:2]]"
    )
    weights = ask(opened, "weights.tolist()")
    for row, column in ((0, 0), (5, 7), (15, 2), (9, 6)):
        sign, cell = 1 if abs(row - column) <= 2 else -1, f"query {row}, key {column}"
        assert says(point_at(pattern, which, row, column), cell, sign)
        tip, side = point_at(pattern, kept, row, column).split(" (")
        assert says(tip, cell, weights[row][column])
        assert side == f"weight {'kept' if sign > 0 else 'lost'})"


def test_the_pointer_reads_a_logarithmic_axis_in_whole_numbers(opened):
    pattern = Explorer(opened.page, "Sparse pattern")
    cost = ask(opened, "pattern.picture.hover[2]")
    (left, top, right, bottom), limits = cost["box"], np.log(cost["limits"])
    picture = pattern.image.bounding_box()
    for length in (2048, 8192, 65536):
        share = (np.log(length) - limits[0]) / (limits[1] - limits[0])
        x = picture["x"] + (left + share * (right - left)) * picture["width"]
        opened.page.mouse.move(x, picture["y"] + (top + bottom) / 2 * picture["height"])
        assert pattern.tip().startswith(f"length of the sequence {length}: ")
    opened.page.mouse.move(1, 1)


def test_a_slider_that_moves_nothing_is_not_shown(masks):
    masks.choose("mask", "causal")
    assert not masks._handle("length").is_visible() and masks._handle("queries").is_visible()
    masks.choose("mask", "both")
    assert masks._handle("length").is_visible()


# --- narrow windows ---------------------------------------------------------------------------


@pytest.fixture
def narrow(opened):
    opened.page.set_viewport_size({"width": 900, "height": 1000})
    yield opened
    opened.page.set_viewport_size({"width": 1500, "height": 1000})
    opened.page.wait_for_timeout(300)


@pytest.mark.parametrize(
    ("title", "width"),
    [("Masks", 1040), ("Kernel regression", 1040), ("Reader", 1040), ("Squares", 640)],
)
def test_labels_can_be_read_in_a_narrow_window(narrow, title, width):
    explorer = Explorer(narrow.page, title)
    narrow.page.wait_for_timeout(300)
    scale = explorer.image.bounding_box()["width"] / width
    assert 10 * scale >= 7, "labels of 10 points have at least 7 on screen"
    for part in (explorer.root, explorer.root.locator(".course-picture-strips").first):
        assert part.evaluate("(part) => part.scrollWidth <= part.clientWidth + 1"), "nothing is cut"


def test_panels_stand_below_one_another_and_can_still_be_read_off(narrow):
    fit = Explorer(narrow.page, "Kernel regression")
    narrow.page.wait_for_timeout(300)
    strips = [one.bounding_box() for one in fit.root.locator(".course-picture-strip").all()]
    assert len(strips) == 3
    assert strips[0]["y"] < strips[1]["y"], "stacked"
    room = fit.stage.bounding_box()
    assert all(one["x"] + one["width"] <= room["x"] + room["width"] + 1 for one in strips)
    left, top, right, bottom = ask(narrow, "fit.picture.hover[1]['box']")
    sheet = fit.root.locator(".course-picture-sheet").nth(1)
    sheet.scroll_into_view_if_needed()
    box = sheet.bounding_box()
    narrow.page.mouse.move(
        box["x"] + (left + right) / 2 * box["width"], box["y"] + (top + bottom) / 2 * box["height"]
    )
    assert re.match("x .*: weight ", fit.tip())
    mark = fit.root.locator(".course-picture-mark").bounding_box()
    assert abs(mark["y"] - (box["y"] + top * box["height"])) < 2
    narrow.page.mouse.move(1, 1)


def test_in_a_wide_window_the_panels_stand_side_by_side(opened):
    fit = Explorer(opened.page, "Kernel regression")
    strips = [one.bounding_box() for one in fit.root.locator(".course-picture-strip").all()]
    assert len({round(one["y"]) for one in strips}) == 1
    for one, other in zip(strips, strips[1:], strict=False):
        assert one["x"] + one["width"] == pytest.approx(other["x"], abs=0.5)


# --- dense screens ----------------------------------------------------------------------------


def test_a_moving_picture_is_coarse_and_a_resting_one_as_fine_as_the_screen(lab, opened, folder):
    write_notebook(
        folder, "dense.ipynb", [f"{CELLS[0]}fit = kernel_regression_explorer(wave_series())\nfit"]
    )
    context = opened.page.context.browser.new_context(device_scale_factor=2)
    dense = Window(context.new_page())
    dense.open(lab, "dense.ipynb")
    dense.run_all()
    fit = Explorer(dense.page, "Kernel regression")
    fit.image.evaluate(
        "(one) => { window.widths = []; one.addEventListener('load', () => window.widths.push(one.naturalWidth)); }"
    )
    dense.page.wait_for_function("() => window.widths.at(-1) === 2080")
    fit.press("query", "ArrowRight")
    dense.page.wait_for_function("() => window.widths.length === 3")
    assert dense.page.evaluate("() => window.widths") == [2080, 1040, 2080]
    assert fit._handle("query").get_attribute("aria-valuenow") == "2.52", "as shown"
    context.close()


# --- play, compare, code ----------------------------------------------------------------------


def test_play_sweeps_a_slider_until_pause(masks):
    masks._handle("queries").focus()
    masks.root.get_by_role("button", name="Play queries").click()
    masks.page.wait_for_function(
        "(handle) => Number(handle.ariaValueNow) === 3",
        timeout=15_000,
        arg=masks._handle("queries").element_handle(),
    )
    masks.root.get_by_role("button", name="Pause queries").click()
    masks.page.wait_for_timeout(400)
    value, picture = masks.value("queries"), masks.picture()
    masks.page.wait_for_timeout(600)
    assert (masks.value("queries"), masks.picture()) == (value, picture)
    assert value in (3, 4)


def test_with_reduced_motion_play_takes_one_step(masks):
    masks.page.emulate_media(reduced_motion="reduce")
    try:
        masks._handle("length").focus()
        masks.root.get_by_role("button", name="Step length").click()
        masks.page.wait_for_timeout(900)
        assert masks.value("length") == 5
    finally:
        masks.page.emulate_media(reduced_motion="no-preference")


def boxes(masks, width):
    """The boxes of the live and the pinned picture in a window of this width."""
    masks.page.set_viewport_size({"width": width, "height": 1000})
    masks.page.wait_for_timeout(500)
    return {
        name: masks.root.locator(selector).bounding_box()
        for name, selector in (
            ("live", ".course-picture-stage"),
            ("pinned", ".course-picture-pinned"),
        )
    }


def test_compare_pins_the_picture_below_the_live_one_on_one_screen(masks):
    before = masks.image.get_attribute("alt")
    masks.root.get_by_role("button", name="Compare").click()
    masks.press("length", "ArrowLeft", times=2)
    pinned = masks.root.locator(".course-picture-pinned")
    copy = pinned.locator("img").first
    assert copy.get_attribute("alt") == before != masks.image.get_attribute("alt")
    assert copy.evaluate("(image) => image.complete && image.naturalWidth > 1000")
    assert "allowed pairs 14 of 25" in pinned.inner_text(), "what differs"
    assert "convention" not in pinned.inner_text(), "what is the same stands below once"
    assert pinned.inner_text().startswith("Pinned")
    assert masks.stage.inner_text().startswith("Live")
    controls = masks.root.locator(".widget-hbox").first.bounding_box()
    for width in (1500, 900):
        below = boxes(masks, width)
        assert below["live"]["x"] == pytest.approx(below["pinned"]["x"], abs=2)
        assert below["live"]["y"] + below["live"]["height"] <= below["pinned"]["y"]
        if width == 1500:
            end = below["pinned"]["y"] + below["pinned"]["height"]
            assert end - controls["y"] < 870, "the height of a window of 1000 without its bars"
    masks.page.set_viewport_size({"width": 1500, "height": 1000})
    masks.root.get_by_role("button", name="End comparison").click()
    assert pinned.count() == 0


def test_where_both_have_no_room_compare_shows_one_picture_in_the_place_of_the_other(masks):
    masks.page.set_viewport_size({"width": 1366, "height": 768})
    masks.root.get_by_role("button", name="Compare").click()
    masks.press("length", "ArrowLeft")
    pinned = masks.root.locator(".course-picture-pinned")
    assert not pinned.is_visible()
    masks.root.get_by_role("button", name="Show pinned").click()
    assert pinned.is_visible() and "allowed pairs 14 of 25" in pinned.inner_text()
    images = [masks.image.bounding_box(), pinned.locator("img").first.bounding_box()]
    assert images[0] == pytest.approx(images[1], abs=1)
    top, bar = (
        masks.root.locator(one).first.bounding_box()
        for one in (".widget-hbox", ".course-picture-bar")
    )
    assert bar["y"] + bar["height"] - top["y"] < 645, "the pane of a laptop"
    masks.press("length", "ArrowLeft")
    assert not pinned.is_visible(), "what moves is seen"
    masks.root.get_by_role("button", name="End comparison").click()
    masks.page.set_viewport_size({"width": 1500, "height": 1000})


def test_a_line_of_code_is_copied_and_recreates_the_state(opened, masks):
    masks.press("length", "ArrowLeft", times=2)
    masks.choose("mask", "padding")
    masks.root.get_by_role("button", name="Copy code").click()
    shown = masks.root.locator(".course-picture-code").inner_text()
    assert shown == "mask_explorer(kind='padding', length=2)"
    opened.page.wait_for_timeout(200)
    assert opened.page.evaluate("() => navigator.clipboard.readText()") == shown
    assert ask(opened, f"{shown}.summary == masks.summary")


# --- saved, and opened again ------------------------------------------------------------------

SHUT_DOWN = "() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()"


def outputs_of(path):
    book = json.loads(path.read_text(encoding="utf-8"))
    assert "widgets" not in book["metadata"]
    return [
        output["data"] for cell in book["cells"] for output in cell["outputs"] if "data" in output
    ]


def test_a_saved_notebook_shows_its_pictures_as_last_seen(lab, opened, masks, folder):
    masks.press("length", "ArrowLeft", times=3)
    seen = ask(opened, "__import__('base64').b64encode(masks.picture.png).decode()")
    opened.command("docmanager:save")
    path = folder / "notebooks" / NOTEBOOK
    opened.page.wait_for_function(
        "() => !window.jupyterapp.shell.currentWidget.context.model.dirty"
    )
    saved = outputs_of(path)
    assert not any("application/vnd.jupyter.widget-view+json" in one for one in saved)
    pictures = [one for one in saved if "image/png" in one]
    assert len(pictures) == 5
    mine = next(one for one in pictures if one["text/plain"][0].startswith("Masks"))
    stored, shown = (
        np.asarray(Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB"))
        for png in (mine["image/png"], seen)
    )
    assert np.array_equal(stored[: len(shown)], shown)
    assert stored[len(shown) :].min() < 120, "a line says that it does not move"
    words = "".join(mine["text/plain"])
    assert words.startswith(ask(opened, "masks.summary")) and "weight" in words
    assert masks.image.is_visible(), "the page keeps the widget"

    opened.page.evaluate(SHUT_DOWN)
    opened.open(lab, NOTEBOOK)
    opened.page.wait_for_timeout(1000)
    assert "Error displaying widget" not in opened.page.content()
    images = opened.page.locator(".jp-OutputArea-output img")
    assert images.count() == 5
    for image in images.all():
        image.scroll_into_view_if_needed()
        assert image.evaluate("(image) => image.complete && image.naturalWidth > 600")
    table = opened.page.get_by_role("table", name="Scores of one model.")
    assert "0.93" in table.inner_text()
    assert opened.errors == []

    opened.run("import torch")
    opened.run("masks = mask_explorer()")
    again = Explorer(opened.page, "Masks")
    again.press("length", "ArrowLeft")
    assert "allowed pairs 12 of 25" in again.summary()


def test_nothing_left_this_machine_and_nothing_complained(opened):
    assert opened.complaints() == []
