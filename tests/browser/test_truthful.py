"""What is shown is so: after Run All, without a kernel, while the kernel works, in a dark theme."""

import io

import numpy as np
import pytest
from PIL import Image

from tests.helpers.gestures import ask
from tests.helpers.lab import Explorer, write_notebook

NOTEBOOK = "truthful.ipynb"
CELLS = (
    "import time\n\nfrom course_lib.widgets import mask_explorer",
    """
masks = mask_explorer()
update = masks._update


def slow():
    def once(**values):
        time.sleep(2)
        masks._update = update
        return update(**values)

    masks._update = once


masks
""",
)


@pytest.fixture(scope="module")
def opened(lab, screen, folder):
    """The notebook after Run All."""
    write_notebook(folder, NOTEBOOK, CELLS)
    screen.open(lab, NOTEBOOK)
    screen.run_all()
    return screen


@pytest.fixture
def masks(opened):
    return Explorer(opened.page, "Masks")


# --- dark theme -------------------------------------------------------------------------------

THEME = """async (theme) => {
    await window.jupyterapp.commands.execute('apputils:change-theme', { theme });
}"""


def on_screen(explorer):
    """The picture as painted."""
    explorer.page.wait_for_timeout(500)
    return np.asarray(Image.open(io.BytesIO(explorer.stage.screenshot())).convert("RGB")).astype(
        int
    )


def test_a_dark_theme_darkens_the_paper_and_keeps_the_colours_of_numbers(opened, masks):
    light, png = on_screen(masks), ask(opened, "masks.picture.png.hex()")
    try:
        opened.page.evaluate(THEME, "JupyterLab Dark")
        opened.page.wait_for_selector('body[data-jp-theme-light="false"]', state="attached")
        dark = on_screen(masks)
    finally:
        opened.page.evaluate(THEME, "JupyterLab Light")
    assert ask(opened, "masks.picture.png.hex()") == png, "a saved picture stays light"
    height, width, _ = light.shape
    for left, top, right, bottom in ask(opened, "masks.picture.maps"):
        rows = slice(round(top * height) + 2, round(bottom * height) - 2)
        columns = slice(round(left * width) + 2, round(right * width) - 2)
        assert np.abs(light[rows, columns] - dark[rows, columns]).mean() < 2  # of 255
        light[rows, columns] = dark[rows, columns] = 0
    assert light[3, 3].min() == 255 and dark[3, 3].max() < 40
    ink = light.max(axis=2) < 60  # of titles and labels
    outside = ink & (light.sum(axis=2) > 0)
    assert outside.sum() > 100 and dark[outside].min() > 150


# --- long work --------------------------------------------------------------------------------


def test_long_work_says_that_it_works(opened, masks):
    working = masks.root.locator(".course-picture-working")
    masks.press("length", "ArrowLeft")
    masks.press("length", "ArrowRight")
    ask(opened, "slow()")
    opened.page.keyboard.press("ArrowLeft")
    working.wait_for(state="visible", timeout=1500)
    assert masks.image.evaluate("(image) => getComputedStyle(image).cursor") == "progress"
    working.wait_for(state="hidden", timeout=10_000)
    assert "allowed pairs 12 of 25" in masks.summary()
    masks.reset()


# --- without a kernel; last, because it ends the kernel ---------------------------------------

RESTART = "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()"


def test_after_a_restart_of_the_kernel_the_explorer_says_so(lab, opened, masks):
    dead = masks.root.locator(".course-picture-dead")
    assert not dead.is_visible()
    opened.command("docmanager:save")
    opened.page.evaluate(RESTART)
    dead.wait_for(state="visible")
    assert "Run this cell again" in dead.inner_text()
    strips = masks.root.locator(".course-picture-strips").first
    assert float(strips.evaluate("(strips) => getComputedStyle(strips).opacity")) < 0.5
    icons = "(root) => [...root.querySelectorAll('*')].map((one) => getComputedStyle(one, '::before').content)"
    assert not any(icon not in ("none", "normal") for icon in masks.root.evaluate(icons)), (
        "no broken chains"
    )


def test_a_saved_picture_says_that_it_does_not_move(lab, opened):
    opened.open(lab, NOTEBOOK)
    image = opened.page.locator(".jp-RenderedImage img")
    assert image.get_attribute("height") == "342", "320 pixels, and a line below them"
    assert opened.complaints() == []
