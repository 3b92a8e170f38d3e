"""One server and one window per file; skipped, saying so, where there is no chromium."""

import os

import pytest

from tests.helpers.lab import CHROMIUM, running_lab, window

REQUIRED = os.environ.get("COURSE_BROWSER") == "required"


def pytest_collection_modifyitems(items):
    for item in items:
        if "tests/browser/" in item.nodeid:
            item.add_marker(pytest.mark.browser)
            if CHROMIUM is None and not REQUIRED:
                item.add_marker(pytest.mark.skip(reason="no chromium: apt-get install chromium"))


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """The address of a JupyterLab that serves a copy of the notebooks."""
    if CHROMIUM is None:
        pytest.fail("COURSE_BROWSER=required, and chromium is not installed")
    with running_lab(tmp_path_factory.mktemp("lab")) as address:
        yield address


@pytest.fixture(scope="module")
def screen(lab):
    """A browser window that nothing but loopback is admitted to."""
    with window() as opened:
        yield opened
