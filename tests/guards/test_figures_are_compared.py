"""Changing the data behind a figure by two per cent makes the notebook fail."""

import subprocess
import sys

import nbformat
import pytest

from course_lib.tools import normal_form

LESSON = normal_form.NOTEBOOKS / "01_kernel_regression.ipynb"


def nbval(path):
    options = ["-c", "pyproject.toml", "--rootdir", ".", "-p", "no:cacheprovider", "-n", "0", "-q"]
    command = [sys.executable, "-m", "pytest", *options, "--no-header", str(path)]
    return subprocess.run(command, capture_output=True, text=True, cwd=normal_form.NOTEBOOKS.parent)


#: Cells that stand on their own: the imports, an explorer, a still figure, an explorer moved by code.
CELLS = [
    "start(seed=1)",
    "nile = nile_series()",
    "by_h = torch.softmax(",
    "wave_explorer.controls",
]


def shortened(path, old, new):
    """A few cells of the lesson, with one replacement in the source."""
    notebook = nbformat.read(LESSON, as_version=4)
    kept = [cell for cell in notebook.cells if any(part in cell.source for part in CELLS)]
    kept[-1].source = "wave = wave_series(count=50, noise=0.4, seed=0)\n" + kept[-1].source
    assert len(kept) == len(CELLS) and sum(old in cell.source for cell in kept) == 1
    for cell in kept:
        cell.source = cell.source.replace(old, new)
    notebook.cells = kept
    path.write_text(normal_form.text(notebook), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("old", "new", "passes"),
    [
        ("seed=1)", "seed=1)", True),
        ("by_h[:, n] for n", "1.02 * by_h[:, n] for n", False),
        ("query=1899.0", "query=1899.5", False),
        ("noise=0.4", "noise=0.408", False),
        ('"kernel"].value = "boxcar"', '"kernel"].value = "epanechnikov"', False),
    ],
    ids=["unchanged", "figure", "explorer", "data-of-an-explorer", "slider-moved-by-code"],
)
def test_a_changed_number_is_noticed(tmp_path, old, new, passes):
    result = nbval(shortened(tmp_path / "lesson.ipynb", old, new))
    assert (result.returncode == 0) == passes, result.stdout
