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
    assert "as a tag, a comment or an option says: cells 4, 7." in text
    assert "digits are not compared: cell 2." in text and "Without output, which is all" in text
    assert all(html.escape(mistake.message) in text for mistake in mistakes)


def code(source, output=None, count=1, **metadata):
    """A cell; with what it printed, if it was run."""
    cell = nbformat.v4.new_code_cell(source, execution_count=count, metadata=metadata)
    if output is not None:
        cell.outputs = [nbformat.v4.new_output("stream", text=output)]
    return cell


#: What people leave beside the lessons: file → its cells or its text, and what the report says of it.
SECOND = code("print(2)", "2\n")
MESSY = {
    "a_magics": ([code("%time x = 1\n%time", **{"tags": ["nbval-ignore-output"]}), code("files = !echo a\nprint(files)", "['a']\n"), code("%%bash\necho hi", "hi\n")], "passed"),
    "b_cleared": ([code(f"print({n})", count=None) for n in range(3)], "**not compared**"),
    "c_half": ([code("print(1)", "1\n"), code("print(2)", count=None), code("", count=None)], "**in part**"),
    "d_wrong": ([code("this is no Python"), code("print('`' * 6)", "stored\n"), code("print('1e9999999')", "2e9999999\n")], "**failed**"),
    "f_in_r": ([code("x <- c(1, 2)\nprint(x)", "[1] 1 2\n")], "skipped"),
    "g_none": ("", "**failed**"),
    "h_cut": ('{"cells": [', "**failed**"),
    "i_list": ("[]", "**failed**"),
    "j_fields": ('{"cells": [{"cell_type": "code"}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}', "**failed**"),
    "k_tagged": ([code("1 / 0", **{"tags": ["nbval-skip"]})], "skipped"),
    "l_silent": ([code("x = 1")], "passed"),
    "m a|b <i>x": ([SECOND], "passed"),
    "n_ends": ([code("import os; os._exit(1)"), SECOND], "**failed**"),
    "studies/c_half": ([SECOND], "passed"),
    "o::two": ([code("print(1)", "2\n")], "**failed**"),
}  # fmt: skip


def validate(folder, files, *options):
    """Write the notebooks, run pytest on them as `make validate` does; return what it returned, and the report."""
    for name, cells in files.items():
        path = folder / f"{name}.ipynb"
        path.parent.mkdir(exist_ok=True)
        if isinstance(cells, str):
            path.write_text(cells)
            continue
        book = nbformat.v4.new_notebook(cells=cells)
        if "in_r" in name:
            book.metadata["kernelspec"] = {"name": "ir", "language": "R", "display_name": "R"}
        nbformat.write(book, path)
    (folder / "pytest.ini").write_text("[pytest]")
    plugins = ["-p", "course_lib.tools.notebook_report", "-p", "course_lib.tools.pytest_plugin"]
    command = [sys.executable, "-m", "pytest", *plugins, "--nbval", "--nbval-current-env", *options]
    command += ["--nbval-cell-timeout", "30", "-p", "no:cacheprovider", "--report", "build", "."]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return done, (folder / "build/report.md").read_text(encoding="utf-8")


def results(text):
    """Name → what the table says of it."""
    rows = [list(map(str.strip, line.split("|"))) for line in text.splitlines() if line[:2] == "| "]
    return {row[1]: row[2:-1] for row in rows[1:]}


@pytest.fixture(scope="module")
def messy(tmp_path_factory):
    files = {name: cells for name, (cells, _) in MESSY.items()}
    folder = tmp_path_factory.mktemp("messy")
    return folder, *validate(folder, files, "-n", "2", "--dist", "loadfile")


def test_a_report_is_written_whatever_lies_beside_the_lessons(messy):
    folder, done, text = messy
    found = {name: said[0] for name, said in results(text).items()}
    wanted = {
        name: said for name, (_, said) in MESSY.items() if "c_half" not in name and name[0] != "m"
    }
    wanted["o&#58;&#58;two"] = wanted.pop("o::two")
    wanted |= {"studies/c_half": "passed", f"{folder.name}/c_half": "**in part**"}
    assert found == wanted | {"m a&#124;b &#60;i&#62;x": "passed"}, done.stdout
    assert done.returncode == 1 and "INTERNALERROR" not in done.stdout
    assert "15 notebooks: 4 passed, 1 not compared, 1 in part, 7 failed, 2 skipped." in text
    page = (folder / "build/report.html").read_text(encoding="utf-8")
    assert "m a|b &lt;i&gt;x" in page and "<i>" not in page


def test_what_was_not_compared_is_said_with_its_reason(messy):
    _, _, text = messy
    details = {
        part.split("\n")[0]: part for part in text.split("## Each notebook")[1].split("\n### ")
    }
    assert (
        "never run before the notebook was saved (`make notebooks` runs and saves it): cells 1, 2, 3."
        in details["b_cleared"]
    )
    assert results(text)["b_cleared"][2] == "0"
    assert (
        "Skipped: it is written in r, and the kernel of the course runs Python" in details["f_in_r"]
    )
    for name, why in (("g_none", "it is empty"), ("h_cut", "JSON"), ("i_list", "no attribute")):
        assert f"{name}.ipynb cannot be read as a notebook: " in text and why in text
    assert "a tag, a comment or an option says: cell 1." in details["k_tagged"]
    assert "### d_wrong, cell 1" in text and "### d_wrong, cell 3" in text
    assert "[gw" not in text and "Cell 0: " not in text and "Cell 1: " not in text
    fences = text.split("### d_wrong, cell 2")[1]
    assert (
        fences.lstrip().startswith("```````\n") and "+  ``````" not in fences.split("```````\n")[0]
    )


def test_a_run_that_stops_or_compares_nothing_says_so(tmp_path):
    cell = code("print(1)", "2\n")
    done, text = validate(tmp_path, {"a_first": [cell, SECOND], "b_second": [SECOND]}, "-x")
    assert {name: said[0] for name, said in results(text).items()} == {"a_first": "**failed**", "b_second": "**not run**"}  # fmt: skip
    assert "- Not run: cell 2." in text
    done, text = validate(tmp_path, {}, "--nbval-lax", "--deselect", "a_first.ipynb::Cell 1")
    assert {said[0] for said in results(text).values()} == {
        "**not compared**"
    } and done.returncode == 0
    done, text = validate(tmp_path, {}, "-k", "nothing")
    assert "**Nothing was compared: no notebook was found.**" in text and results(text) == {}
    assert done.returncode == 5 and "nothing" not in text
