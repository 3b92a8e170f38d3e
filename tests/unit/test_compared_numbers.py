"""A number in a compared output is compared as a number, and the text around it exactly."""

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
        ("mean 0.0312", "mean 0.0313"),
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
        ("mean 0.0312", "means 0.0312"),
        ("mean 0.0312", "mean 0.0312 "),
        ("0.98 (at least 0.9: yes)", "0.98 (at least 0.9: no)"),
        ("mean 0.5", "mean 0.5, 0.5"),
        ("loss 0.0002", "loss 0.0004"),
        ("tokens 3", "tokens 4"),
        ("token 20,001", "token 20,002"),
        ("token 20001.", "token 20002."),
        ("shape (2, 500)", "shape (2, 501)"),
        ("H100", "H101"),
        ("rows   3", "rows  3"),
        ("version 2.13.0", "version 2.14.0"),
        ("loss 1.5", "loss nan"),
    ],
)
def test_all_else_stays_as_it_is(stored, now):
    assert as_stored(now, stored) == now
    assert as_stored(stored, now) == stored


def test_nbval_compares_numbers_as_numbers(tmp_path):
    stored = {
        "close": "mean 0.0312 of 3, score ≈ 0.5 (at least 0.1: yes)",
        "far": "mean 0.0330 of 3, score ≈ 0.5 (at least 0.1: yes)",
        "count": "mean 0.0313 of 4, score ≈ 0.5 (at least 0.1: yes)",
        "verdict": "mean 0.0313 of 3, score ≈ 0.5 (at least 0.1: no)",
        "words": "the mean 0.0313 of 3, score ≈ 0.5 (at least 0.1: yes)",
    }
    shows = [
        ("print(text)", lambda text: v4.new_output("stream", text=text + "\n")),
        (
            "from IPython.display import display\n"
            "display({'text/plain': text, 'text/html': text}, raw=True)",
            lambda text: v4.new_output("display_data", {"text/plain": text, "text/html": text}),
        ),
    ]
    for name, text in stored.items():
        cells = [
            v4.new_code_cell(
                f"text = 'mean 0.0313 of 3, score ≈ 0.25 (at least 0.1: yes)'\n{source}",
                outputs=[output(text)],
                execution_count=number,
            )
            for number, (source, output) in enumerate(shows, start=1)
        ]
        book = v4.new_notebook(cells=cells, metadata=normal_form.METADATA)
        (tmp_path / f"{name}.ipynb").write_text(normal_form.text(book), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-c", "pyproject.toml", "--rootdir", ".", "-n", "0"]
    command += ["-p", "no:cacheprovider", "-q", "-rfp", str(tmp_path)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    said = ran.stdout
    for name in stored:
        for cell in (0, 1):
            verdict = "PASSED" if name == "close" else "FAILED"
            assert any(
                line.startswith(verdict) and f"{name}.ipynb::Cell {cell}" in line
                for line in said.splitlines()
            ), said
