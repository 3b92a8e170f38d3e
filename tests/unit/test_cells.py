"""Cells and files that are no Python and no notebooks."""

import ast

import pytest
from IPython.core import inputtransformer2
from IPython.core.interactiveshell import InteractiveShell

from course_lib.tools import cells, normal_form

NOT_PYTHON = [
    "%%bash\nls",
    "%%html\n<b>x</b>",
    "%%R\nx <- 5",
    "if (x) {\n  y\n}",
    "x = (",
    "\x00",
    "(" * 300,
]


@pytest.mark.parametrize("source", NOT_PYTHON)
def test_what_is_no_python_is_nothing(source):
    assert cells.python(source) == ""


def test_a_cell_with_more_shell_lines_than_ipython_transforms_is_nothing(monkeypatch):
    monkeypatch.setattr(inputtransformer2, "TRANSFORM_LOOP_LIMIT", 5)  # 500, which takes seconds
    assert cells.python("!a\n" * 6) == "" != cells.python("!a\n" * 4)


@pytest.mark.parametrize(
    "source",
    [
        *("%time x = small_explorer()", "!echo hi", "files = !ls", "%pip install -q x", "len?"),
        *("", "# a comment", "x = 1\n%matplotlib inline\ny = 2", "for n in 1, 2:\n    !echo $n"),
    ],
)
def test_magics_are_read_as_ipython_reads_them(source):
    assert cells.python(source) == InteractiveShell.instance().transform_cell(source)
    ast.parse(cells.python(source))


def test_the_text_below_a_magic_that_measures_is_python():
    assert cells.python("%%time\nx = small_explorer()") == "x = small_explorer()\n"
    assert cells.python("\n%%capture out\n%%timeit -n 1\nf()") == "f()\n"
    assert cells.python("%%debug\n%%memit -r 1\nf()") == "f()\n"


@pytest.mark.parametrize("content", ["", "{", "[]", "null", "5", "{}",
    '{"cells": [{"cell_type": "code"}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}',
    "<<<<<<< HEAD\n{}", "\udcff"])  # fmt: skip
def test_a_file_that_is_no_notebook_is_named_in_a_line(tmp_path, content):
    path = tmp_path / "15_mine.ipynb"
    path.write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(ValueError, match="^15_mine.ipynb cannot be read as a notebook: .+") as said:
        cells.read(path)
    assert "\n" not in str(said.value)


def test_make_notebooks_leaves_what_it_cannot_run_and_does_the_rest(tmp_path, monkeypatch, capsys):
    def written(name, source, **metadata):
        book = normal_form.nbformat.v4.new_notebook(metadata=metadata)
        book.cells = [normal_form.nbformat.v4.new_code_cell(source)]
        normal_form.nbformat.write(book, tmp_path / name)

    written("1_raises.ipynb", "1 / 0")
    written(
        "2_in_r.ipynb", "x <- 5", kernelspec={"name": "ir", "language": "R", "display_name": "R"}
    )
    (tmp_path / "3_empty.ipynb").touch()
    written("4_good.ipynb", "!echo hi\nprint(2 * 3)")
    monkeypatch.setattr(normal_form, "NOTEBOOKS", tmp_path / "notebooks")
    monkeypatch.setattr(normal_form, "paths", lambda _: sorted(tmp_path.glob("*.ipynb")))
    monkeypatch.setattr("sys.argv", ["normal_form"])
    before = {path.name: path.read_bytes() for path in tmp_path.glob("*.ipynb")}
    with pytest.raises(SystemExit, match="Left as they were: 1_raises, 2_in_r, 3_empty."):
        normal_form.main()
    after = {path.name: path.read_bytes() for path in tmp_path.glob("*.ipynb")}
    assert {name for name in before if before[name] != after[name]} == {"4_good.ipynb"}
    said = capsys.readouterr().err
    assert "ZeroDivisionError" in said and "written in r" in said and "it is empty" in said
    (cell,) = cells.read(tmp_path / "4_good.ipynb").cells
    assert cell.execution_count == 1 and cell.outputs[0].text.split() == ["hi", "6"]
