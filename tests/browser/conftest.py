"""One server for all files, one window per file; skipped, saying so, where there is no chromium."""

import os
import shutil

import pytest

from course_lib.lab.working_copy import NOTEBOOKS
from tests.helpers.lab import CHROMIUM, running_lab, window

REQUIRED = os.environ.get("COURSE_BROWSER") == "required"
SHUT_DOWN = "() => window.jupyterapp?.serviceManager.sessions.shutdownAll()"


def pytest_collection_modifyitems(items):
    for item in items:
        if "tests/browser/" in item.nodeid:
            item.add_marker(pytest.mark.browser)
            if CHROMIUM is None and not REQUIRED:
                item.add_marker(pytest.mark.skip(reason="no chromium: apt-get install chromium"))


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """What the lab serves, in its `notebooks`."""
    return tmp_path_factory.mktemp("lab")


@pytest.fixture(scope="session")
def lab(folder):
    """The address of a JupyterLab that serves a copy of the notebooks."""
    if CHROMIUM is None:
        pytest.fail("COURSE_BROWSER=required, and chromium is not installed")
    with running_lab(folder) as address:
        yield address


@pytest.fixture(scope="module")
def screen(lab, folder):
    """A browser window that nothing but loopback is admitted to, and the notebooks as they are committed."""
    shutil.copytree(NOTEBOOKS, folder / "notebooks", dirs_exist_ok=True)
    with window() as opened:
        yield opened
        opened.page.evaluate(SHUT_DOWN)
