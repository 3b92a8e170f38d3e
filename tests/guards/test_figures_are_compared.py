"""Changing the data behind a figure by two per cent makes the notebook fail."""

import subprocess
import sys
from xml.etree import ElementTree

import nbformat

from course_lib.tools import normal_form

LESSON = normal_form.NOTEBOOKS / "01_kernel_regression.ipynb"
#: Name → a cell of the lesson, and a replacement in it.
CHANGES = {
    "explorer": ("nile = nile_series()", "query=1899.0", "query=1899.5"),
    "figure": ("def error_at_the_keys", "s.values).square()", "1.01 * s.values).square()"),
    "data": ("wave_explorer =", "    wave,", "    wave_series(count=50, noise=0.408, seed=0),"),
    "argument": ("wave_explorer =", 'kernel="boxcar"', 'kernel="epanechnikov"'),
}


def write(path, kept, old="", new=""):
    """The imports, the data and a few cells of the lesson, with one replacement."""
    notebook = nbformat.read(LESSON, as_version=4)
    first, *cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    cells = [cell for cell in cells if any(part in cell.source for part in kept)]
    assert len(cells) == len(kept) and all(old in cell.source for cell in cells)
    for cell in cells:
        cell.source = cell.source.replace(old, new)
    first.source += "\nwave = wave_series(count=50, noise=0.4, seed=0)"
    notebook.cells = [first, *cells]
    path.write_text(normal_form.text(notebook), encoding="utf-8")


def test_a_changed_number_is_noticed(tmp_path):
    write(tmp_path / "unchanged.ipynb", sorted({cell for cell, *_ in CHANGES.values()}))
    for name, (cell, old, new) in CHANGES.items():
        write(tmp_path / f"{name}.ipynb", [cell], old, new)
    options = ["-c", "pyproject.toml", "--rootdir", ".", "-p", "no:cacheprovider", "-n", "0", "-q"]
    command = [sys.executable, "-m", "pytest", *options, f"--junitxml={tmp_path}/found.xml"]
    subprocess.run([*command, str(tmp_path)], cwd=normal_form.NOTEBOOKS.parent, text=True)
    cases = ElementTree.parse(tmp_path / "found.xml").iter("testcase")
    failed = {case.get("classname") for case in cases if case.find("failure") is not None}
    assert {name for name in [*CHANGES, "unchanged"] if any(name in one for one in failed)} == {
        *CHANGES
    }
