"""The exercises as an nbgrader course: right submissions score full, known mistakes score zero and are told why.

Whatever one learner does to a notebook, the others are graded.
"""

import contextlib
import copy
import html
import inspect
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from course_lib.exercises import EXERCISES
from course_lib.tools import normal_form
from course_lib.tools.nbgrader import assignment, main

pytestmark = pytest.mark.classroom

SET_IN = {exercise.notebook for exercise in EXERCISES.values()}
WITH_EXERCISES = [pytest.param(p, id=p.stem) for p in normal_form.paths() if p.stem in SET_IN]
SOLUTION = re.compile("### BEGIN SOLUTION\n.*### END SOLUTION", re.DOTALL)
LESSON = "02_scoring_functions"


@pytest.mark.parametrize("path", WITH_EXERCISES)
def test_the_solutions_of_an_assignment_pass_and_its_stubs_do_not(path):
    cells = assignment(path).cells
    texts = [cell.source for cell in cells if cell.cell_type == "markdown"]
    assert all(texts) and len(set(texts)) == len(texts)
    code = [cell for cell in cells if cell.cell_type == "code"]
    graded = {cell.metadata.nbgrader.grade_id for cell in code if cell.metadata.nbgrader.grade}
    assert graded == {f"{name}_test" for name, e in EXERCISES.items() if e.notebook == path.stem}
    for wanted, states in ((SOLUTION.pattern, {"passed"}), ("", {"new", "given"})):
        results = []
        names = {"_display": results.append}
        for cell in code:
            source = cell.source.replace("seconds=20", "seconds=120")
            source = source.replace("from IPython.display import display as _display", "")
            source = source if wanted else SOLUTION.sub("", source)
            with contextlib.suppress(AssertionError):
                exec(source, names)
        assert len(results) == len(graded) and {one.state for one in results} <= states, results


def test_an_assignment_that_is_there_stays_and_unknown_notebooks_are_named(
    tmp_path, monkeypatch, capsys
):
    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["nbgrader", str(tmp_path), *arguments])
        main()

    run("00_start_here")
    (written,) = tmp_path.glob("source/*/*.ipynb")
    written.write_text("changed by an instructor")
    run("00_start_here")
    assert written.read_text() == "changed by an instructor"
    for name, says in (("15_more", "no notebook '15_more'"), ("11b_memory", "has no exercise")):
        with pytest.raises(SystemExit) as stopped:
            run(name)
        assert says in capsys.readouterr().err + str(stopped.value.code)


#: What an instructor, or the README's advice for Colab, adds to a lesson.
ADDED = ["%pip install -q x", "!ls", "%%bash\nls", "files = !ls", "this is no Python", "%%R\nx <- 5", "%time x = 1",
    "check('no_such_exercise', print)", "\x00"]  # fmt: skip


def test_an_assignment_is_that_of_the_lesson_whatever_else_stands_in_it(tmp_path):
    (path,) = normal_form.paths([LESSON])
    book = nbformat.read(path, as_version=4)
    for cell in [one for one in book.cells if one.cell_type == "code"]:
        if cell.source.startswith("def ") and "\ncheck(" in cell.source:
            cell.source = f"%%time\n{cell.source}"
            book.cells.insert(book.cells.index(cell) + 1, copy.deepcopy(cell))  # checked again
    for number, source in enumerate(ADDED):
        book.cells.insert(3 * number, nbformat.v4.new_code_cell(source))
        book.cells.append(nbformat.v4.new_code_cell(source))
    nbformat.write(book, tmp_path / path.name)
    same, wanted = assignment(tmp_path / path.name), assignment(path)
    assert [cell.source for cell in same.cells] == [cell.source for cell in wanted.cells]


def test_lessons_that_cannot_be_exported_are_named_and_the_others_are_written(
    tmp_path, monkeypatch
):
    folder = tmp_path / "notebooks"
    folder.mkdir()
    for path in normal_form.paths(["01_kernel_regression", LESSON, "04_self_and_cross_attention"]):
        shutil.copy(path, folder)
    (folder / "01_kernel_regression.ipynb").write_text("")
    book = nbformat.read(folder / f"{LESSON}.ipynb", as_version=4)
    book.cells = book.cells[:3]
    nbformat.write(book, folder / f"{LESSON}.ipynb")
    (folder / "15_mine.ipynb").write_text("{")
    monkeypatch.setattr(normal_form, "NOTEBOOKS", folder)
    monkeypatch.setattr(sys, "argv", ["nbgrader", str(tmp_path / "grading")])
    with pytest.raises(SystemExit) as stopped:
        main()
    said = stopped.value.code
    assert "01_kernel_regression.ipynb cannot be read as a notebook: it is empty" in said
    assert f"{LESSON} has no exercise with a check" in said and "15_mine" not in said
    written = [path.stem for path in tmp_path.rglob("source/*/*.ipynb")]
    assert written == ["04_self_and_cross_attention"]
    config = tmp_path / "grading" / "nbgrader_config.py"
    config.write_text("c = get_config()")
    with pytest.raises(SystemExit) as stopped:
        main()
    assert f"{config} is of an older version" in stopped.value.code


def mistake_of(exercise):
    """The first mistake that is one edit of one line."""
    return next(
        one
        for one in exercise.mistakes
        if len(one.edits) == 1 and not one.edits[0][2] and r"\n" not in "".join(one.edits[0][:2])
    )


def wrong(exercise):
    right, wrong, _ = mistake_of(exercise).edits[0]
    return inspect.getsource(exercise.solution).replace(right, wrong)


def solved(released, answer=lambda exercise: inspect.getsource(exercise.solution)):
    """A submission with these answers."""
    submitted = copy.deepcopy(released)
    for cell in submitted.cells:
        role = cell.metadata.get("nbgrader")
        if role and role.solution:
            cell.source = answer(EXERCISES[role.grade_id])
    return submitted


def marked(book, role):
    """The places of the cells with a role to nbgrader."""
    places = enumerate(book.cells)
    return [n for n, cell in places if cell.metadata.get("nbgrader", {}).get(role)]


def copied(released):
    """An answer, a test and the imports occur twice."""
    book = solved(released)
    for n in (marked(book, "grade")[0], marked(book, "solution")[1], marked(book, "locked")[0]):
        book.cells.insert(n, copy.deepcopy(book.cells[n]))
    book.cells.append(copy.deepcopy(book.cells[marked(book, "grade")[0]]))
    return book


def deleted(released):
    """A test is gone, an answer has become text, and a mark is of an older nbgrader."""
    book = solved(released)
    book.cells.pop(marked(book, "grade")[1])
    first, second, *_ = marked(book, "solution")
    cell = book.cells[first]
    book.cells[first] = nbformat.v4.new_markdown_cell(cell.source, metadata=cell.metadata)
    book.cells[second].metadata.nbgrader.schema_version = 1
    return book


def unmarked(released):
    """Pasted into a notebook of their own, in which nbgrader knows nothing."""
    book = solved(released)
    for cell in book.cells:
        cell.metadata.pop("nbgrader", None)
        cell.pop("id")
    book.nbformat_minor = 4
    return book


def noisy(released):
    """Each answer writes to stderr in four ways."""
    said = """print("debug", file=sys.stderr)
    logging.warning("debug")
    warnings.warn("debug")
    os.write(2, b"debug")"""

    def answer(exercise):
        source, name = inspect.getsource(exercise.solution), exercise.solution.__name__
        inner = f"import logging, os, sys, warnings\n{source}\n_{name} = {name}\n"
        return f"{inner}def {name}(*inputs):\n    {said}\n    return _{name}(*inputs)"

    return solved(released, answer)


def names(released):
    """Words of the subject, and what the locked cells call, are names of the learner's own; cells that exit."""
    book = solved(released)
    own = "grade = result = check = hint = display = course_lib = print = 5"
    for source in (own, "exit()", "quit()"):
        book.cells.insert(marked(book, "solution")[0], nbformat.v4.new_code_cell(source))
    return book


SUBMITTED = {
    "broken": lambda released: None,
    "copied": copied,
    "deleted": deleted,
    "names": names,
    "noisy": noisy,
    "right": solved,
    "unmarked": unmarked,
    "wrong": lambda released: solved(released, wrong),
}


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """An nbgrader course with the graded submissions of a class."""
    folder = tmp_path_factory.mktemp("nbgrader")
    bin = str(Path(sys.executable).parent)  # nbgrader calls alembic
    environment = os.environ | {
        "PATH": os.pathsep.join([bin, os.environ["PATH"]]),
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
    }

    def run(*command, status=0):
        done = subprocess.run(
            [sys.executable, "-m", *command], cwd=folder, env=environment, capture_output=True
        )
        said = done.stderr.decode()
        assert done.returncode == status, said
        return said

    run("course_lib.tools.nbgrader", str(folder), LESSON)
    run("nbgrader", "generate_assignment", LESSON)
    released = nbformat.read(folder / f"release/{LESSON}/{LESSON}.ipynb", as_version=4)
    for student, submit in SUBMITTED.items():
        path = folder / f"submitted/{student}/{LESSON}/{LESSON}.ipynb"
        path.parent.mkdir(parents=True)
        if submitted := submit(released):
            nbformat.write(submitted, path)
        else:
            path.touch()
    said = run("nbgrader", "autograde", LESSON, status=1)
    last = f"There was an error processing assignment '{LESSON}' for student "
    assert re.findall(f"{last}'(.+)'", said) == ["broken"]
    run("nbgrader", "generate_feedback", LESSON)
    return folder


def test_the_released_assignment_holds_the_stubs_and_no_solution(course):
    released = (course / f"release/{LESSON}/{LESSON}.ipynb").read_text(encoding="utf-8")
    assert "scores = ..." in released and "SOLUTION" not in released
    for exercise in (one for one in EXERCISES.values() if one.notebook == LESSON):
        last = inspect.getsource(exercise.solution).splitlines()[-2:]
        assert "\n".join(last) not in released


def test_whatever_learners_do_right_scores_full_and_a_mistake_scores_zero_with_its_diagnosis_as_feedback(
    course, monkeypatch
):
    from nbgrader.api import Gradebook

    monkeypatch.setenv(
        "PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    )
    exercises = [one for one in EXERCISES.values() if one.notebook == LESSON]
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        submissions = gradebook.assignment_submissions(LESSON)
        scores = {one.student.id: (one.score, one.max_score) for one in submissions}
    full = float(len(exercises))
    wanted = dict.fromkeys(SUBMITTED, (full, full))
    assert scores == wanted | {"wrong": (0.0, full), "broken": (0.0, full)}
    page = course / f"feedback/wrong/{LESSON}/{LESSON}.html"
    feedback = html.unescape(page.read_text(encoding="utf-8"))
    for exercise in exercises:
        assert mistake_of(exercise).message in feedback, exercise.name
