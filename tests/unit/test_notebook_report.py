"""The report of `make validate` says what nbval found, cell by cell."""

import html
import subprocess
import sys

import nbformat
import pytest

from course_lib.exercises import EXERCISES

CELLS = [
    ("print('the same')", "the same\n", []),
    ("print(f'loss ≈ {0.25}')", "loss ≈ 0.24\n", []),
    ("print('<b>now</b> | other')", "stored\n", []),
    ("import time; print(time.time())", "1.0\n", ["nbval-ignore-output"]),
    ("def small_explorer(): return\nsmall_explorer()", "", []),
    ("print(1 / 0)", "none\n", []),
    ("not run", "", ["nbval-skip"]),
]


@pytest.fixture(scope="module")
def validated(tmp_path_factory):
    """A run over a notebook with two faults: what pytest returned, and the two reports."""
    folder = tmp_path_factory.mktemp("validated")
    cells = []
    for number, (source, output, tags) in enumerate(CELLS, start=1):
        cell = nbformat.v4.new_code_cell(source, execution_count=number, metadata={"tags": tags})
        cell.outputs = [nbformat.v4.new_output("stream", text=output)] if output else []
        cells.append(cell)
    nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / "00_start_here.ipynb")
    (folder / "sanitize.cfg").write_text("[numbers]\nregex: ≈ ?[-+]?[\\d.]+\nreplace: ≈ #\n")
    (folder / "pytest.ini").write_text("[pytest]")
    plugins = ["-p", "course_lib.tools.notebook_report", "--nbval", "--nbval-current-env"]
    further = ["--nbval-sanitize-with", "sanitize.cfg", "--report", "build"]
    command = [sys.executable, "-m", "pytest", *plugins, *further, "00_start_here.ipynb"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    built = folder / "build"
    return done, *(
        (built / f"report.{kind}").read_text(encoding="utf-8") for kind in ("md", "html")
    )


def test_the_exit_status_is_that_of_pytest_and_the_failed_cells_are_shown(validated):
    done, text, page = validated
    assert done.returncode == 1 and "2 failed, 4 passed, 1 skipped" in done.stdout
    failures = text.split("## What failed")[1].split("## Each notebook")[0]
    first, second = failures.split("### 00_start_here, cell ")[1:]
    assert first.startswith("3\n") and "stored" in first and "<b>now</b> | other" in first
    assert second.startswith("6\n") and "ZeroDivisionError" in second
    assert "\x1b" not in failures and "Cell 2" not in failures
    assert "<b>now</b>" not in page and "stored" in page and "http" not in page


def test_the_row_of_a_notebook_says_what_was_compared_and_what_it_holds(validated):
    _, text, _ = validated
    (row,) = [line for line in text.splitlines() if line.startswith("| 00_start_here")]
    result, cells, compared, seconds, megabytes, *holds = map(str.strip, row.split("|")[2:-1])
    assert (result, cells, compared) == ("**failed**", "6 of 7 run", "4")
    assert float(seconds) > 0 and (not sys.platform.startswith("linux") or float(megabytes) > 20)
    exercises = [one for one in EXERCISES.values() if one.notebook == "00_start_here"]
    mistakes = [mistake for exercise in exercises for mistake in exercise.mistakes]
    assert [int(number) for number in holds] == [1, len(exercises), len(mistakes)]
    assert "as a tag or a comment in the cell says: cells 4, 7." in text
    assert "digits are not compared: cell 2." in text and "Without output, which is all" in text
    assert all(html.escape(mistake.message) in text for mistake in mistakes)
