"""Every notebook opens with a picture that moves, a cell or two after its first, on a page that axe accepts."""

import pytest
from axe_playwright_python.sync_playwright import Axe

from course_lib.tools import normal_form
from tests.helpers.opening import open_and_move

NOTEBOOKS = [path.name for path in normal_form.paths() if not normal_form.is_study(path)]
#: Lessons that open with a plain picture, because their explorer needs the terms of the whole page.
EXPLORER_LAST = {"07_transformer_blocks.ipynb"}
#: The course's part of a page of JupyterLab: texts and outputs, without JupyterLab's menus and editors. An image in
#: an output is drawn by JupyterLab 4, which takes no alternative text; its caption stands beside it as text.
OURS = ".jp-MarkdownOutput, .jp-OutputArea-output:not(.jp-RenderedImage)"


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


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_the_first_explorer_moves_within_three_cells(lab, screen, notebook):
    opening = open_and_move(screen, lab, notebook)
    assert opening.cells <= 3 or notebook in EXPLORER_LAST
    assert opening.moved < 60, "it hangs: `make bench` measures about 10 s on two quiet cores"
    assert screen.complaints() == []
    assert violations_of_ours(screen.page) == []
