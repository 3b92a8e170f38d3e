"""A training that is stopped while one watches it, and a kernel that is restarted: what the next cells do."""

import pytest

from tests.helpers.lab import write_notebook

NOTEBOOK = "training.ipynb"
CELLS = [
    """
import time
from course_lib.notebook import show_lines, start
from course_lib.widgets import watch

start()
""",
    """
def train():
    for step in range(1, 100_001):
        time.sleep(0.01)
        yield 2 / step**0.5


losses = list(watch(train(), steps=100_000, answer=lambda: "a sentence"))
""",
    """
caption = f"Loss of {len(losses)} steps."
show_lines(range(1, len(losses) + 1), {"loss": losses}, caption)
""",
    "print(lossses)",
]
IMAGE = ".jp-OutputArea-output .course-picture-image"
OUTPUTS = "() => window.jupyterapp.shell.currentWidget.content.widgets.map((cell) => cell.model.toJSON().outputs)"
SAVED = "() => window.jupyterapp.shell.currentWidget.content.model.toJSON()"
RESTART = "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()"


@pytest.fixture(scope="module")
def stopped(lab, screen, folder):
    """The notebook after Run All, stopped once the picture of the losses has grown twice."""
    write_notebook(folder, NOTEBOOK, CELLS[:3])
    screen.open(lab, NOTEBOOK)
    screen.command("notebook:run-all-cells")
    image = screen.page.locator(IMAGE).first
    image.wait_for(timeout=60_000)
    for _ in range(2):
        before = image.get_attribute("src")
        screen.page.wait_for_function(
            "([image, before]) => image.src !== before",
            arg=[image.element_handle(), before],
            timeout=60_000,
        )
    screen.page.get_by_text("a sentence").first.wait_for()
    screen.saved = screen.page.evaluate(SAVED)["cells"][1]["outputs"]
    screen.command("notebook:interrupt-kernel")
    screen.page.locator(f'{IMAGE}[alt^="Loss of"]').wait_for(timeout=60_000)
    return screen


def test_a_file_saved_meanwhile_has_the_picture_so_far_and_no_widget_that_nobody_can_show(stopped):
    (output,) = stopped.saved
    assert output["data"].keys() == {"image/png", "text/plain"}
    assert output["data"]["text/plain"].startswith("Training loss, ")


def test_the_losses_so_far_are_kept_and_the_next_cell_runs(stopped):
    page = stopped.page
    first, training, then = page.evaluate(OUTPUTS)
    assert not [one for one in (*training, *then) if one["output_type"] in ("error", "stream")]
    assert page.locator(".jp-OutputArea-output .widget-html").count() == 0, "what grew is gone"
    assert page.locator(f'{IMAGE}[alt^="Training loss, stopped after"]').count() == 1
    assert "of 100,000 steps." in "".join(training[0]["data"]["text/plain"])
    said = page.locator(f'{IMAGE}[alt^="Loss of"]').get_attribute("alt")
    count = int(said.split()[2])
    assert 16 <= count < 100_000
    shown = "".join(training[2]["data"]["text/html"])
    assert f">{count:,}</th>" in shown and "a sentence" in shown
    assert stopped.complaints() == []


def test_after_a_restart_a_cell_says_that_an_earlier_one_must_run_first(stopped):
    stopped.page.evaluate(RESTART)
    stopped.run("caption =")
    (error,) = stopped.page.evaluate(OUTPUTS)[2]
    assert error["ename"] == "NameError"
    said = "\n".join(error["traceback"])
    assert "losses comes from an earlier cell of this notebook: choose Run > Run All" in said
    stopped.edit_and_run("caption =", CELLS[3])
    (error,) = stopped.page.evaluate(OUTPUTS)[2]
    assert error["evalue"] == "name 'lossses' is not defined"
    assert "earlier cell" not in "\n".join(error["traceback"])
