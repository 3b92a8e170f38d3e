"""What is shown is so: after Run All, without a kernel, while the kernel works, in a dark theme."""

import pytest

from tests.helpers.lab import Explorer, running_lab, write_notebook

NOTEBOOK = "truthful.ipynb"
CELLS = (
    "from course_lib.widgets import mask_explorer",
    "masks = mask_explorer()\nmasks",
)


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lab")
    with running_lab(folder) as address:
        write_notebook(folder, NOTEBOOK, CELLS)
        yield address


@pytest.fixture(scope="module")
def opened(lab, screen):
    """The notebook after Run All."""
    screen.open(lab, NOTEBOOK)
    screen.run_all()
    return screen


@pytest.fixture
def masks(opened):
    return Explorer(opened.page, "Masks")


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
