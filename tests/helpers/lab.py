"""A real JupyterLab and a real browser, shut off from the network."""

import contextlib
import json
import re
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterable, Iterator
from pathlib import Path

import nbformat

from course_lib.lab.__main__ import command, environment
from course_lib.lab.working_copy import NOTEBOOKS
from course_lib.tools.normal_form import METADATA

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
CHROMIUM_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
#: Extensions that the tests install and learners do not have: of JupyterLab, and of its server.
BESIDE = {"@jupyter/nbgrader": "nbgrader", "@jupyter-notebook/lab-extension": "notebook"}
CUT_OFF = """() => [...document.querySelectorAll('.course-explorer .widget-label')]
    .filter((label) => label.scrollWidth > label.clientWidth).map((label) => label.textContent)"""
KERNEL_STATUS = "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status"
ALL_RUN = """() => {
    const prompts = [...document.querySelectorAll('.jp-CodeCell .jp-InputArea-prompt')];
    return prompts.length > 0 && prompts.every((p) => /\\d/.test(p.textContent))
        && document.querySelector('.jp-NotebookPanel [data-status=idle]') !== null;
}"""


def write_cells(folder: Path, name: str, cells: list[nbformat.NotebookNode]) -> None:
    """Add a notebook of these cells to those that the lab in `folder` serves."""
    book = nbformat.v4.new_notebook(cells=cells, metadata=METADATA)
    nbformat.write(book, folder / "notebooks" / name)


def write_notebook(folder: Path, name: str, sources: Iterable[str]) -> None:
    """Add a notebook of these code cells to those that the lab in `folder` serves."""
    write_cells(folder, name, [nbformat.v4.new_code_cell(source.strip()) for source in sources])


@contextlib.contextmanager
def running_lab(folder: Path) -> Iterator[str]:
    """Serve a copy of the notebooks from `folder` with the course's own launcher; yield the address."""
    notebooks = folder / "notebooks"
    shutil.copytree(NOTEBOOKS, notebooks, ignore=shutil.ignore_patterns(".*"))
    shutil.copytree(NOTEBOOKS.parent / "img", folder / "img")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    places = {
        f"JUPYTER_{kind}_DIR": str(folder / kind.lower()) for kind in ("CONFIG", "DATA", "RUNTIME")
    } | {"JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces")}
    further = [
        "--no-browser",
        "--expose-app-in-browser",
        "--IdentityProvider.token=",
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.port={port}",
        f"--ServerApp.jpserver_extensions={dict.fromkeys(BESIDE.values(), False)}",
    ]
    settings = folder / "config" / "labconfig" / "page_config.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"disabledExtensions": dict.fromkeys(BESIDE, True)}))
    with open(folder / "lab.log", "w") as log:
        server = subprocess.Popen(
            command(notebooks, further),
            env=environment(notebooks)
            | places
            | {"COURSE_PROGRESS": str(folder / "progress.json")},
            stdout=log,
            stderr=log,
        )
    address = f"http://127.0.0.1:{port}"
    try:
        _wait_for(f"{address}/api", server, folder / "lab.log")
        yield address
    finally:
        server.terminate()
        server.wait(timeout=20)


def _wait_for(address: str, server: subprocess.Popen, log: Path) -> None:
    for _ in range(300):
        if server.poll() is not None:
            break
        with contextlib.suppress(OSError):
            urllib.request.urlopen(address, timeout=2)
            return
        time.sleep(0.2)
    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text()}")


class Window:
    """One browser page, with what it asked of the network and what it complained about."""

    def __init__(self, page) -> None:
        self.page = page
        self.refused: list[str] = []
        self.errors: list[str] = []
        page.route("**/*", self._admit)
        page.on(
            "console", lambda message: message.type == "error" and self.errors.append(message.text)
        )
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _admit(self, route) -> None:
        if route.request.url.startswith(("http://127.0.0.1", "data:", "blob:")):
            return route.continue_()
        self.refused.append(route.request.url)
        route.abort()

    def complaints(self) -> list[str]:
        """What was asked of the network, complained about, and written where it has no room."""
        cut = [f"cut off: {label}" for label in self.page.evaluate(CUT_OFF)]
        return self.refused + self.errors + cut

    def open(self, address: str, notebook: str) -> None:
        """Open a notebook and wait until its kernel is there."""
        self.page.goto(f"{address}/lab/tree/notebooks/{notebook}?reset")
        self.page.wait_for_function("() => window.jupyterapp")
        self.page.wait_for_selector(".jp-NotebookPanel .jp-Cell", timeout=60_000)
        self.page.wait_for_selector(
            ".jp-NotebookPanel .jp-Notebook-ExecutionIndicator[data-status=idle]", timeout=60_000
        )
        self.page.wait_for_function(
            "() => window.jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel"
            "?.connectionStatus === 'connected'",
            timeout=60_000,
        )

    def command(self, name: str) -> None:
        """Run a command of JupyterLab's, without waiting for it."""
        self.page.evaluate("(name) => { window.jupyterapp.commands.execute(name); }", name)

    def run_all(self, timeout: float = 120) -> None:
        """Run every cell, and wait until the last has run."""
        self.page.evaluate(
            """() => {
                window.finished = false;
                window.jupyterapp.commands.execute('notebook:run-all-cells').then(() => { window.finished = true; });
            }"""
        )
        self.page.wait_for_function("() => window.finished", timeout=1000 * timeout)
        self.page.wait_for_function(ALL_RUN, timeout=1000 * timeout)

    def edit_and_run(self, marker: str, source: str, timeout: float = 30) -> None:
        """Replace the source of the cell that contains `marker`, run it, and wait until it has finished."""
        self.page.evaluate(
            """([marker, source]) => {
                const notebook = window.jupyterapp.shell.currentWidget.content;
                const index = notebook.widgets.findIndex((cell) => cell.model.sharedModel.source.includes(marker));
                notebook.activeCellIndex = index;
                notebook.widgets[index].model.sharedModel.setSource(source);
                window.finished = false;
                window.jupyterapp.commands.execute('notebook:run-cell').then(() => { window.finished = true; });
            }""",
            [marker, source],
        )
        self.page.wait_for_function("() => window.finished", timeout=1000 * timeout)

    def run(self, marker: str, timeout: float = 60.0) -> None:
        """Run the cell that contains `marker` as it stands."""
        source = self.page.evaluate(
            """(marker) => window.jupyterapp.shell.currentWidget.content.widgets
                .map((cell) => cell.model.sharedModel.source).find((source) => source.includes(marker))""",
            marker,
        )
        self.edit_and_run(marker, source, timeout)

    def output(self, marker: str) -> str:
        """The plain text of what the cell that contains `marker` has put out."""
        return self.page.evaluate(
            """(marker) => {
                const cell = window.jupyterapp.shell.currentWidget.content.widgets
                    .find((cell) => cell.model.sharedModel.source.includes(marker));
                return cell.model.toJSON().outputs.map((o) => o.text ?? o.data['text/plain']).flat().join('');
            }""",
            marker,
        )


class Explorer:
    """One explorer on the page, found by the first words of its description."""

    def __init__(self, page, title: str) -> None:
        self.page = page
        image = page.locator(f'.course-picture-image[alt^="{title}"]')
        self.root = page.locator(".jp-OutputArea-output", has=image).first
        self.root.scroll_into_view_if_needed()
        self.image = self.root.locator(".course-picture-image")
        self.stage = self.root.locator(".course-picture-stage")

    def _control(self, name: str):
        return self.root.locator(
            ".jupyter-widgets", has=self.page.get_by_text(name, exact=True)
        ).last

    def _handle(self, name: str):
        return self.root.get_by_role("slider", name=name, exact=True)

    def _settled(self, before: str) -> None:
        """Wait until another picture has come and the kernel has nothing more to send."""
        self.page.wait_for_function(
            "([image, before]) => image.src !== before && image.complete",
            arg=[self.image.element_handle(), before],
        )
        still, last = 0, ""
        while still < 3:
            self.page.wait_for_timeout(80)
            now = self.picture()
            quiet = now == last and self.page.evaluate(KERNEL_STATUS) == "idle"
            still, last = (still + 1, now) if quiet else (0, now)

    def picture(self) -> str:
        """The address of the picture that is shown; each picture has its own."""
        return self.image.get_attribute("src")

    def summary(self) -> str:
        """The words below the picture."""
        return self.root.locator("p[role=status]").inner_text()

    def problem(self) -> str:
        """What is said beside the controls, where they cannot be drawn."""
        return self.root.locator("p[role=alert]").inner_text()

    def value(self, name: str) -> float:
        """Where a slider stands (the exponent, for a logarithmic one)."""
        return float(self._handle(name).get_attribute("aria-valuenow"))

    def stands_at(self, name: str, value: int) -> None:
        """Wait until a slider stands at a whole number; its message may come after that of the picture."""
        from playwright.sync_api import expect

        expect(self._handle(name)).to_have_attribute(
            "aria-valuenow", re.compile(rf"^{value}(\.0)?$")
        )

    def press(self, name: str, key: str, times: int = 1) -> None:
        """Press a key on a slider."""
        before = self.picture()
        self._handle(name).focus()
        for _ in range(times):
            self.page.keyboard.press(key)
        self._settled(before)

    def drag(self, name: str, pixels: int) -> None:
        """Drag a slider's handle to the right."""
        before, box = self.picture(), self._handle(name).bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        self.page.mouse.move(x, y)
        self.page.mouse.down()
        self.page.mouse.move(x + pixels, y, steps=6)
        self.page.mouse.up()
        self._settled(before)

    def choose(self, name: str, option: str) -> None:
        """Choose from a drop-down."""
        before = self.picture()
        self._control(name).locator("select").select_option(option)
        self._settled(before)

    def type(self, name: str, text: str, *, settled: bool = True) -> None:
        """Put other words into a text box, as if typed."""
        before = self.picture()
        box = self._control(name).locator("input")
        box.fill("")
        box.press_sequentially(text)
        if settled:
            self._settled(before)

    def reset(self) -> None:
        """Press Reset."""
        self.root.get_by_role("button", name="Reset").click()
        self.page.wait_for_timeout(400)

    def point_at(self, region: dict, x: float) -> None:
        """Move the pointer to `x` in a panel, where `region` (an entry of `Picture.hover`) says it is."""
        box = self.image.bounding_box()
        (left, top, right, bottom), (low, high) = region["box"], region["limits"]
        across = left + (x - low) / (high - low) * (right - left)
        down = (top + bottom) / 2
        self.page.mouse.move(box["x"] + across * box["width"], box["y"] + down * box["height"])

    def tip(self) -> str:
        """The exact values that the pointer reads off."""
        return self.stage.locator(".course-picture-tip").inner_text()


@contextlib.contextmanager
def window(width: int = 1500, height: int = 1000) -> Iterator[Window]:
    """Open chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_ARGUMENTS)
        context = browser.new_context(
            viewport={"width": width, "height": height}, accept_downloads=True
        )
        try:
            yield Window(context.new_page())
        finally:
            browser.close()
