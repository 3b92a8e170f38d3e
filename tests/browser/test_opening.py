"""Every lesson opens with a picture that moves, a cell or two after its first, on a page that axe accepts."""

import re

import nbformat
import pytest
from axe_playwright_python.sync_playwright import Axe

from course_lib.tools import normal_form
from tests.helpers.lab import write_cells

NOTEBOOK = "openings.ipynb"
LESSONS = [path for path in normal_form.paths() if not normal_form.is_study(path)]
#: The lesson that opens with a plain picture, because its explorer needs the terms of the whole page.
EXPLORER_LAST = "07_transformer_blocks"
#: The course's part of a page of JupyterLab: texts and outputs, without JupyterLab's menus and editors. An image in
#: an output is drawn by JupyterLab 4, which takes no alternative text; its caption stands beside it as text.
OURS = ".jp-MarkdownOutput, .jp-OutputArea-output:not(.jp-RenderedImage)"
CHANGED = "([image, before]) => image.src !== before && image.complete"


def opening(path):
    """The cells of a lesson up to its first explorer."""
    cells = nbformat.read(path, as_version=4).cells
    for cell in cells:
        cell.id = f"{path.stem[:2]}-{cell.id}"
    if path.stem == EXPLORER_LAST:
        cells = [cell for cell in cells if re.search(r"start\(|_explorer\(", cell.source)]
    return cells[: 1 + next(n for n, cell in enumerate(cells) if "_explorer(" in cell.source)]


@pytest.fixture(scope="module")
def opened(lab, screen, folder):
    """The openings of all lessons one below the other, after Run All."""
    write_cells(folder, NOTEBOOK, sum(map(opening, LESSONS), []))
    screen.open(lab, NOTEBOOK)
    screen.run_all()
    return screen


def violations_of_ours(page) -> list:
    """What axe finds on the whole page, as far as it lies in a text or an output of the notebook."""
    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    nodes = [(each["id"], node) for each in found for node in each["nodes"]]
    inside = f"(selector) => document.querySelector(selector)?.closest('{OURS}') !== null"
    return [
        (rule, node["html"][:200])
        for rule, node in nodes
        if page.evaluate(inside, node["target"][0])
    ]


def test_the_first_explorer_comes_within_three_cells():
    for path in LESSONS:
        assert sum(cell.cell_type == "code" for cell in opening(path)) <= 3, path.stem


@pytest.mark.parametrize("number", range(len(LESSONS)), ids=[path.stem for path in LESSONS])
def test_its_first_slider_moves_the_picture(opened, number):
    explorer = opened.page.locator(".course-explorer").nth(number)
    image, slider = explorer.locator(".course-picture-image"), explorer.locator(".noUi-handle")
    image.scroll_into_view_if_needed()
    before = image.get_attribute("src")
    value, least = (float(slider.first.get_attribute(f"aria-value{one}")) for one in ("now", "min"))
    slider.first.focus()
    opened.page.keyboard.press("Home" if value > least else "End")
    opened.page.wait_for_function(CHANGED, arg=[image.element_handle(), before])


def test_axe_finds_nothing_and_nothing_complained(opened):
    assert opened.page.locator(".course-explorer").count() == len(LESSONS)
    assert violations_of_ours(opened.page) == []
    assert opened.complaints() == []
