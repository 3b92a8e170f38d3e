"""A real JupyterLab and a real browser, shut off from the network."""

import contextlib
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from course_lib.lab.__main__ import NOTEBOOKS, command, environment

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
CHROMIUM_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
ALL_RUN = """() => {
    const prompts = [...document.querySelectorAll('.jp-CodeCell .jp-InputArea-prompt')];
    return prompts.length > 0 && prompts.every((p) => /\\d/.test(p.textContent))
        && document.querySelector('.jp-NotebookPanel [data-status=idle]') !== null;
}"""


@contextlib.contextmanager
def running_lab(folder: Path) -> Iterator[str]:
    """Serve a copy of the notebooks from `folder` with the course's own launcher; yield the address."""
    notebooks = folder / "notebooks"
    shutil.copytree(NOTEBOOKS, notebooks, ignore=shutil.ignore_patterns(".*"))
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
    ]
    with open(folder / "lab.log", "w") as log:
        server = subprocess.Popen(
            command(notebooks, further),
            env=environment() | places | {"COURSE_PROGRESS": str(folder / "progress.json")},
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

    def open(self, address: str, notebook: str) -> None:
        """Open a notebook and wait until its kernel is there."""
        self.page.goto(f"{address}/lab/tree/{notebook}?reset")
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
        """Run every cell, and wait until the last has a number."""
        self.command("notebook:run-all-cells")
        self.page.wait_for_timeout(500)
        self.page.wait_for_function(ALL_RUN, timeout=1000 * timeout)


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
