"""Changing the data behind a figure by two per cent makes the notebook fail."""

import copy
import re
import subprocess
import sys

import nbformat

from course_lib.tools import normal_form

LESSON = normal_form.NOTEBOOKS / "01_kernel_regression.ipynb"
STUDY = normal_form.NOTEBOOKS / "studies" / "01a_which_average.ipynb"
WAVE = "wave = wave_series(count=50, noise=0.4, seed=0)\n"
#: Words of a cell that stands on its own, what comes before it, what is replaced in it.
CELLS = [
    ("start(seed=1)", "", "seed=1", "seed=1"),
    ("def errors_at_the_keys", WAVE, "s.values).square()", "1.01 * s.values).square()"),
    ("curves = {", "", "curves = {", "curves = {"),  # shows the figure
    ("nile = nile_series()", "", "query=1899.0", "query=1899.5"),
    ("wave_explorer =", "", "noise=0.4", "noise=0.408"),
    ("wave_explorer =", "", 'kernel="boxcar"', 'kernel="epanechnikov"'),
]


def failed(folder):
    """The cells of the notebooks in a folder that nbval finds changed, each as "notebook number"."""
    command = [sys.executable, "-m", "pytest", "-c", "pyproject.toml", "--rootdir", ".", "-n", "0"]
    command += ["-p", "no:cacheprovider", "-q", "-rfp", str(folder)]
    root = normal_form.NOTEBOOKS.parent
    said = subprocess.run(command, capture_output=True, text=True, cwd=root).stdout
    found = re.findall(r"^(PASSED|FAILED) .*?(\w+)\.ipynb::Cell (\d+)", said, re.MULTILINE)
    assert len(found) == 2 * len(CELLS), said
    return sorted(f"{stem} {number}" for verdict, stem, number in found if verdict == "FAILED")


def test_a_changed_number_is_noticed(tmp_path):
    cells = nbformat.read(LESSON, as_version=4).cells
    cells += [c for c in nbformat.read(STUDY, as_version=4).cells if "wave_explorer =" in c.source]
    kept, changed = [], []
    for number, (words, before, old, new) in enumerate(CELLS):
        (cell,) = (copy.deepcopy(cell) for cell in cells if words in cell.source)
        cell.id, cell.source = f"code-{number}", before + cell.source
        assert cell.source.count(old) == 1
        kept.append(cell)
        changed.append(copy.deepcopy(cell))
        changed[-1].source = cell.source.replace(old, new)
    for name, book_cells in {"kept": kept, "changed": changed}.items():
        book = nbformat.v4.new_notebook(cells=book_cells, metadata=normal_form.METADATA)
        (tmp_path / f"{name}.ipynb").write_text(normal_form.text(book), encoding="utf-8")
    assert failed(tmp_path) == [f"changed {number}" for number in (2, 3, 4, 5)]
