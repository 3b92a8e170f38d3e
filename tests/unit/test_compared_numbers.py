"""A number in a compared output is compared as a number, and the text around it exactly."""

import re
import subprocess
import sys
from pathlib import Path

import nbformat.v4 as v4
import pytest

from course_lib.tools import normal_form
from course_lib.tools.compared_numbers import as_stored

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("stored", "now"),
    [
        ("mean -0.00, most 2.5", "mean 0.00, most 2.51"),
        ("below 1e-05", "below 2e-05"),
        ("share 1.00", "share 0.99"),
        ("share 0.999", "share 1"),
        ("height 1,234.5 of 3.16e+10.", "height 1,233.5 of 3.17e+10."),
        ("[[ 0.50], [-0.00]]", "[[0.50], [0.00]]"),
        ("<td>0.0312</td><td>0.1-0.2</td>", "<td>0.0313</td><td>0.1-0.201</td>"),
        ("width  9.99\nwidth 10.50", "width 10.00\nwidth 10.50"),
    ],
)
def test_numbers_within_the_tolerance_are_written_as_stored(stored, now):
    assert as_stored(now, stored) == stored
    assert as_stored(stored, now) == now


@pytest.mark.parametrize(
    ("stored", "now"),
    [
        ("mean 0.0312", "mean 0.0330"),
        ("mean 0.0312", "mean -0.0312"),
        ("mean 0.0312", "mean 0.0312 "),
        ("mean 0.5", "mean 0.5, 0.5"),
        ("loss 0.0002", "loss 0.0004"),
        ("tokens 3", "tokens 4"),
        ("token 20001.", "token 20002."),
        ("shape (2, 500)", "shape (2, 501)"),
        ("H100", "H101"),
        ("rows   3", "rows  3"),
        ("version 2.13.0", "version 2.14.0"),
        ("loss 1.5", "loss nan"),
        ("1e9999999", "2e9999999"),
    ],
)
def test_all_else_stays_as_it_is(stored, now):
    assert as_stored(now, stored) == now
    assert as_stored(stored, now) == stored


NOW = "mean 0.0313 of 3, score ≈ 0.25 (at least 0.1: yes)"
STORED = {
    "mean 0.0312 of 3, score ≈ 0.5 (at least 0.1: yes)": "PASSED",
    "mean 0.0330 of 3, score ≈ 0.5 (at least 0.1: yes)": "FAILED",
    "mean 0.0313 of 4, score ≈ 0.5 (at least 0.1: yes)": "FAILED",
    "mean 0.0313 of 3, score ≈ 0.5 (at least 0.1: no)": "FAILED",
    "the mean 0.0313 of 3, score ≈ 0.5 (at least 0.1: yes)": "FAILED",
}


def test_nbval_compares_numbers_as_numbers(tmp_path):
    shown = f"{{'text/plain': {NOW!r}, 'text/html': {NOW!r}}}"
    display = f"from IPython.display import display\ndisplay({shown}, raw=True)"
    cells = []
    for text in STORED:
        data = {"text/plain": text, "text/html": text}
        for source, output in (
            (f"print({NOW!r})", v4.new_output("stream", text=text + "\n")),
            (display, v4.new_output("display_data", data)),
        ):
            cells.append(v4.new_code_cell(source, outputs=[output], execution_count=len(cells) + 1))
    book = v4.new_notebook(cells=cells, metadata=normal_form.METADATA)
    (tmp_path / "lesson.ipynb").write_text(normal_form.text(book), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-c", "pyproject.toml", "--rootdir", ".", "-n", "0"]
    command += ["-p", "no:cacheprovider", "-q", "-rfp", str(tmp_path)]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout
    found = dict(map(reversed, re.findall(r"^(PASSED|FAILED) .*::Cell (\d+)", said, re.M)))
    wanted = [verdict for verdict in STORED.values() for _ in range(2)]
    assert [found.get(str(n)) for n in range(len(cells))] == wanted, said
