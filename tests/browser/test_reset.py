"""The button below the table of exercises starts a notebook again, and what was on the screen is kept."""

import json

from axe_playwright_python.sync_playwright import Axe

from course_lib.lab.working_copy import NOTEBOOKS

NOTEBOOK = "00_start_here.ipynb"


def sources(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells]


def violations(page, selector):
    return [one["id"] for one in Axe().run(page, context=selector).response["violations"]]


def test_the_button_keeps_the_screen_and_brings_the_notebook_back(lab, screen, folder):
    screen.open(lab, NOTEBOOK)
    screen.run("start(seed=0)")
    screen.edit_and_run('check("one_query"', "'not saved yet'")
    screen.run('progress("00")')
    button = screen.page.get_by_role("button", name="Start this notebook again")
    button.click()
    dialog = screen.page.get_by_role("dialog", name="Start this notebook again?")
    dialog.get_by_role("button", name="Cancel").click()
    assert not dialog.count() and not list((folder / "notebooks").glob("00_old_*"))
    button.click()
    assert violations(screen.page, "dialog") == []
    dialog.get_by_role("button", name="Start again").click()
    screen.page.wait_for_function(
        "() => window.jupyterapp.shell.currentWidget.content.widgets"
        ".every((cell) => !cell.model.sharedModel.source.includes('not saved yet'))"
    )
    (kept,) = (folder / "notebooks").glob("00_old_*.ipynb")
    told = screen.page.get_by_role("dialog", name="The notebook is as at the beginning")
    assert "00_old_1_start_here.ipynb" == kept.name in told.inner_text()
    told.get_by_role("button", name="OK").click()
    assert "'not saved yet'" in sources(kept)
    assert "widget-view" not in kept.read_text(), "opened later, it would show a broken button"
    assert sources(folder / "notebooks" / NOTEBOOK) == sources(NOTEBOOKS / NOTEBOOK)
    assert screen.complaints() == []
