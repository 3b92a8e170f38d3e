"""What a learner does first: open a notebook, run its first cells, move the first slider."""

import time
from typing import NamedTuple

from tests.helpers.lab import Window

# Run the next code cell after the cell with this index; hand back its index.
RUN_NEXT = """async (after) => {
    const notebook = window.jupyterapp.shell.currentWidget.content;
    const next = notebook.widgets.findIndex((cell, n) => n > after && cell.model.type === 'code');
    notebook.activeCellIndex = next;
    await window.jupyterapp.commands.execute('notebook:run-cell');
    return next;
}"""
SHOWS_WIDGET = """(index) => window.jupyterapp.shell.currentWidget.content.widgets[index].model.toJSON()
    .outputs.some((output) => 'application/vnd.jupyter.widget-view+json' in (output.data ?? {}))"""
CHANGED = "([image, before]) => image.src !== before && image.complete"
SHUT_DOWN = "() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()"


class Opening(NamedTuple):
    """The way to the first explorer.

    `cells` is how many code cells ran. The rest are seconds since the browser asked for the notebook: until
    its kernel was ready, until an explorer with a slider was shown, until its picture had changed.
    """

    cells: int
    opened: float
    shown: float
    moved: float


def open_and_move(screen: Window, address: str, notebook: str) -> Opening:
    """Open a notebook in a fresh kernel, move the first slider of its first explorer, end the kernel."""
    started, page = time.perf_counter(), screen.page
    screen.open(address, notebook)
    opened = time.perf_counter() - started
    cells, index, sliders = 0, -1, page.locator(".course-explorer .noUi-handle")
    while sliders.count() == 0:
        index = page.evaluate(RUN_NEXT, index)
        assert index >= 0, f"{notebook} has no explorer with a slider"
        cells += 1
        if page.evaluate(SHOWS_WIDGET, index):
            page.locator(".course-picture-image").last.wait_for()
    explorer = page.locator(".course-explorer", has=page.locator(".noUi-handle")).first
    image, slider = (
        explorer.locator(".course-picture-image"),
        explorer.locator(".noUi-handle").first,
    )
    page.wait_for_function("(image) => image.complete", arg=image.element_handle())
    shown = time.perf_counter() - started
    before = image.get_attribute("src")
    value, least = (float(slider.get_attribute(f"aria-value{one}")) for one in ("now", "min"))
    slider.focus()
    page.keyboard.press("Home" if value > least else "End")
    page.wait_for_function(CHANGED, arg=[image.element_handle(), before])
    moved = time.perf_counter() - started
    page.evaluate(SHUT_DOWN)
    return Opening(cells, opened, shown, moved)
