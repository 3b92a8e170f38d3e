"""Changing the data behind a figure by one per cent makes the notebook fail."""

import subprocess
import sys

import nbformat
import pytest

from course_lib.workshop import normal_form

LESSON = normal_form.NOTEBOOKS / "01_kernel_regression.ipynb"


def nbval(path):
    config = ["-c", "pyproject.toml", "--rootdir", "."]
    command = [
        sys.executable,
        "-m",
        "pytest",
        *config,
        "-p",
        "no:cacheprovider",
        "-n",
        "0",
        "--no-header",
        "-q",
        str(path),
    ]
    return subprocess.run(command, capture_output=True, text=True, cwd=normal_form.NOTEBOOKS.parent)


def shortened(path, change):
    """The lesson up to its last figure of a kind, with one replacement in the source."""
    notebook = nbformat.read(LESSON, as_version=4)
    kept = []
    for cell in notebook.cells:
        kept.append(cell)
        if "shapes = LinesPanel" in cell.source:
            break
    notebook.cells = kept
    old, new = change
    assert sum(old in cell.source for cell in kept) == 1 or old == new
    for cell in kept:
        if old in cell.source:
            cell.source = cell.source.replace(old, new)
    path.write_text(normal_form.text(notebook), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("change", "passes"),
    [
        (("", ""), True),
        (("{name: K(u) for", "{name: 1.01 * K(u) for"), False),
        (("bandwidth=5.0, query=1899.0", "bandwidth=5.05, query=1899.0"), False),
        (('controls["bandwidth"].value = 1.66', 'controls["bandwidth"].value = 1.68'), False),
    ],
    ids=["unchanged", "figure", "explorer", "slider-moved-by-code"],
)
def test_a_changed_number_is_noticed(tmp_path, change, passes):
    result = nbval(shortened(tmp_path / "lesson.ipynb", change))
    assert (result.returncode == 0) == passes, result.stdout
