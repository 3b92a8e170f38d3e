"""The exercises as an nbgrader course: right submissions score full, known mistakes score zero and are told why."""

import contextlib
import copy
import html
import inspect
import os
import re
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
        names = {"display": results.append}
        for cell in code:
            source = cell.source.replace("seconds=20", "seconds=120")
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
        with pytest.raises(SystemExit):
            run(name)
        assert says in capsys.readouterr().err


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


ANSWERS = {"right": lambda exercise: inspect.getsource(exercise.solution), "wrong": wrong}


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """An nbgrader course with two graded submissions."""
    folder = tmp_path_factory.mktemp("nbgrader")
    bin = str(Path(sys.executable).parent)  # nbgrader calls alembic
    environment = os.environ | {
        "PATH": os.pathsep.join([bin, os.environ["PATH"]]),
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
    }

    def run(*command):
        done = subprocess.run(
            [sys.executable, "-m", *command], cwd=folder, env=environment, capture_output=True
        )
        assert done.returncode == 0, done.stderr.decode()

    run("course_lib.tools.nbgrader", str(folder), LESSON)
    run("nbgrader", "generate_assignment", LESSON)
    released = nbformat.read(folder / f"release/{LESSON}/{LESSON}.ipynb", as_version=4)
    for student, answer in ANSWERS.items():
        submitted = copy.deepcopy(released)
        for cell in submitted.cells:
            role = cell.metadata.get("nbgrader")
            if role and role.solution:
                cell.source = answer(EXERCISES[role.grade_id])
        path = folder / f"submitted/{student}/{LESSON}/{LESSON}.ipynb"
        path.parent.mkdir(parents=True)
        nbformat.write(submitted, path)
    run("nbgrader", "autograde", LESSON)
    run("nbgrader", "generate_feedback", LESSON)
    return folder


def test_the_released_assignment_holds_the_stubs_and_no_solution(course):
    released = (course / f"release/{LESSON}/{LESSON}.ipynb").read_text(encoding="utf-8")
    assert "scores = ..." in released and "SOLUTION" not in released
    for exercise in (one for one in EXERCISES.values() if one.notebook == LESSON):
        last = inspect.getsource(exercise.solution).splitlines()[-2:]
        assert "\n".join(last) not in released


def test_right_scores_full_and_a_mistake_scores_zero_with_its_diagnosis_as_feedback(
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
    assert scores == {"right": (full, full), "wrong": (0.0, full)}
    page = course / f"feedback/wrong/{LESSON}/{LESSON}.html"
    feedback = html.unescape(page.read_text(encoding="utf-8"))
    for exercise in exercises:
        assert mistake_of(exercise).message in feedback, exercise.name
