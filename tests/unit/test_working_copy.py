"""Updates of the course never collide with a learner's answers: tried with git itself."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from course_lib import messages
from course_lib.lab import working_copy
from course_lib.lab.working_copy import is_beside, reset, update

LESSON, STUDY = "01_kernel_regression.ipynb", "studies/01a_which_average.ipynb"


def git(folder, *words):
    identity = ["-c", "user.name=A", "-c", "user.email=a@b.c"]
    return subprocess.run(
        ["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True
    ).stdout


def edit(path, text, cell=0, output=False):
    """Change the source of a cell, as one does in JupyterLab, or only its output."""
    book = nbformat.read(path, as_version=4)
    if output:
        book.cells[cell].outputs = [nbformat.v4.new_output("stream", text=text)]
    else:
        book.cells[cell].source = text
    nbformat.write(book, path)


def texts(path):
    return [cell["source"] for cell in nbformat.read(path, as_version=4).cells]


@pytest.fixture
def course(tmp_path):
    """The course's repository, and a learner's clone with its working copy; the two tools that pull and update."""
    origin, clone = tmp_path / "origin", tmp_path / "clone"
    (origin / "notebooks/studies").mkdir(parents=True)
    (origin / ".gitignore").write_text("work/\n")
    for name in (LESSON, STUDY):
        cells = [nbformat.v4.new_code_cell(text, id=text) for text in ("first", "second")]
        nbformat.write(nbformat.v4.new_notebook(cells=cells), origin / "notebooks" / name)
    git(tmp_path, "init", "-q", "-b", "main", "origin")
    git(origin, "add", ".")
    git(origin, "commit", "-qm", "one")
    git(tmp_path, "clone", "-q", "origin", "clone")

    def publish(text, name=LESSON):
        edit(origin / "notebooks" / name, text, cell=1)
        git(origin, "commit", "-qam", text)

    def pulled():
        git(clone, "pull", "-q")
        assert git(clone, "status", "--porcelain") == ""
        return update(clone / "notebooks", clone / "work")

    assert pulled() == []
    return clone, publish, pulled


def test_a_pull_that_collides_keeps_the_answer_and_puts_the_new_version_beside_it(course):
    clone, publish, pulled = course
    edit(clone / "work" / LESSON, "my answer", cell=1)
    publish("improved")
    (said,) = pulled()
    assert texts(clone / "work" / LESSON) == ["first", "my answer"]
    (new,) = (clone / "work").glob("*_new_*")
    assert new.name == LESSON.replace("01_", "01_new_1_") and new.name in said and LESSON in said
    assert texts(new) == ["first", "improved"]
    assert pulled() == [], "said once"
    edit(new, "begun in the new one", cell=0)
    publish("once more")
    assert len(pulled()) == 1
    assert texts(new) == ["begun in the new one", "improved"], (
        "work in the new version is kept, too"
    )
    assert len([*(clone / "work").glob("*_new_*")]) == 2


def test_what_the_learner_only_ran_is_updated_silently(course):
    clone, publish, pulled = course
    edit(clone / "work" / LESSON, "a result", output=True)
    publish("improved")
    publish("improved", STUDY)
    assert pulled() == []
    assert texts(clone / "work" / LESSON) == texts(clone / "work" / STUDY) == ["first", "improved"]


def test_a_file_cut_short_counts_as_the_learners(course):
    clone, publish, pulled = course
    (clone / "work" / LESSON).write_text('{"cells": [')
    (clone / "work" / ".versions.json").write_text("{")
    publish("improved")
    assert len(pulled()) == 1
    assert (clone / "work" / LESSON).read_text() == '{"cells": ['


def test_answers_of_a_course_begun_in_place_are_never_replaced(course):
    clone, publish, pulled = course
    shutil.rmtree(clone / "work")
    edit(clone / "notebooks" / LESSON, "my answer", cell=1)
    for _ in range(2):
        assert update(clone / "notebooks", clone / "work") == []
    git(clone, "checkout", "-q", "notebooks")
    publish("improved")
    assert len(pulled()) == 1
    assert texts(clone / "work" / LESSON) == ["first", "my answer"]


@pytest.mark.parametrize(
    "content",
    [b"", b'{"cells": [', b"[]", b"null", b'{"cells": [{}]}', b"<<<<<<< HEAD", b"\xff", None],
)
def test_a_file_that_is_no_notebook_any_more_is_named_with_the_way_back(course, content):
    clone, publish, pulled = course
    mine = clone / "work" / LESSON
    mine.unlink()
    mine.mkdir() if content is None else mine.write_bytes(content)
    publish("improved")
    for _ in range(2):  # as long as it lasts
        (said,) = pulled()
        assert LESSON in said and "--reset 01`" in said
    assert [*(clone / "work").glob("01*")] == [mine], "nothing beside it, which nobody asked for"
    kept = reset("01", clone / "notebooks", clone / "work")
    assert kept.is_dir() if content is None else kept.read_bytes() == content
    assert texts(mine) == ["first", "improved"] and pulled() == []


@pytest.mark.parametrize("new", ["01_smoothing.ipynb", None])
@pytest.mark.parametrize("edited", [True, False])
def test_a_notebook_that_the_course_renames_or_removes_stays_and_is_named_once(course, new, edited):
    clone, _, pulled = course
    if edited:
        edit(clone / "work" / LESSON, "my answer")
    before = (clone / "work" / LESSON).read_bytes()
    folder = clone.parent / "origin" / "notebooks"
    git(folder, *(["mv", LESSON, new] if new else ["rm", LESSON]))
    git(folder, "commit", "-qm", "moved")
    (said,) = pulled()
    assert LESSON in said and (f"calls {LESSON} {new} now" in said if new else "has no" in said)
    assert (clone / "work" / LESSON).read_bytes() == before
    assert new is None or (clone / "work" / new).exists()
    assert pulled() == []


@pytest.mark.parametrize(
    ("moves", "wanted"),
    [
        ({"01_one.ipynb": "03_one.ipynb"}, ["calls 01_one.ipynb 03_one.ipynb"]),
        ({"01_one.ipynb": "studies/01_one.ipynb"}, ["calls 01_one.ipynb studies/01_one.ipynb"]),
        ({"studies/01a_two.ipynb": "studies/05b_two.ipynb"}, ["calls studies/01a_two.ipynb studies/05b_two.ipynb"]),
        ({"01_one.ipynb": "02_one.ipynb", "02_three.ipynb": "01_three.ipynb"},
            ["calls 01_one.ipynb 02_one.ipynb", "calls 02_three.ipynb 01_three.ipynb"]),
        ({"01_one.ipynb": "01_uno.ipynb"}, ["calls 01_one.ipynb 01_uno.ipynb"]),
        ({"01_one.ipynb": "04_uno.ipynb"}, ["has no 01_one.ipynb"]),
    ],
)  # fmt: skip
def test_a_renamed_notebook_is_known_by_its_title_before_its_number(tmp_path, moves, wanted):
    course, work = tmp_path / "notebooks", tmp_path / "work"
    (course / "studies").mkdir(parents=True)
    for name in ("01_one.ipynb", "02_three.ipynb", "studies/01a_two.ipynb"):
        (course / name).write_text(json.dumps({"cells": [{"cell_type": "code", "source": name}]}))
    assert update(course, work) == []
    kept = {old: (course / old).read_bytes() for old in moves}
    for old in moves:
        (course / old).unlink()
    for old, new in moves.items():
        (course / new).write_bytes(kept[old])
    said = update(course, work)
    assert len(said) == len(wanted) and all(a in b for a, b in zip(wanted, said, strict=True)), said


def test_the_copy_of_a_hub_is_the_one_that_the_environment_names(tmp_path):
    work = tmp_path / "attention-course" / "notebooks"
    update(working_copy.NOTEBOOKS, work)
    (tmp_path / "link").symlink_to(tmp_path / "attention-course")
    named = os.environ | {"COURSE_WORK": str(tmp_path / "link" / "notebooks")}
    said = subprocess.run(
        [sys.executable, "-m", "course_lib.lab.working_copy", "--reset", "notebooks/" + LESSON],
        env=named, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    (kept,) = work.glob("*_old_*")
    assert kept.name in said
    shown = "from pathlib import Path; from course_lib.lab import working_copy as w; print([w.holds(Path(p)) for p in"
    places = [str(work), str(work / "studies"), str(work / "mine"), str(working_copy.WORK)]
    found = subprocess.run(
        [sys.executable, "-c", f"{shown} {places}])"], env=named, capture_output=True, text=True
    ).stdout
    assert found.strip() == "[True, True, False, False]"


@pytest.mark.parametrize("name", ["01", "01_kernel_regression", f"work/{LESSON}"])
def test_a_reset_keeps_the_old_one(course, name):
    clone, publish, pulled = course
    folders = clone / "notebooks", clone / "work"
    mine = clone / "work" / LESSON
    for number, answer in enumerate(("my answer", "another"), start=1):
        edit(mine, answer, cell=1)
        kept = reset(name, *folders)
        assert texts(kept) == ["first", answer] and texts(mine) == ["first", "second"]
        assert kept.name == LESSON.replace("01_", f"01_old_{number}_")
        assert is_beside(kept) and not is_beside(mine)
    publish("improved")
    assert pulled() == [] and texts(mine) == ["first", "improved"]


def test_an_unknown_notebook_is_not_reset(course):
    clone, *_ = course
    with pytest.raises(ValueError, match="no notebook '02'; there are 01, 01a"):
        reset("02", clone / "notebooks", clone / "work")


def test_every_relative_link_and_picture_of_a_notebook_works_in_the_copy(tmp_path):
    """The copy lies as deep as the original."""
    assert working_copy.WORK.parent == working_copy.NOTEBOOKS.parent
    work = tmp_path / "work"
    update(working_copy.NOTEBOOKS, work)
    shutil.copytree(working_copy.NOTEBOOKS.parent / "img", tmp_path / "img")
    found = 0
    for path in work.rglob("*.ipynb"):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            text = "".join(cell["source"]) if cell["cell_type"] == "markdown" else ""
            for link in re.findall(r'(?:\]\(|src=")([^)":#]+\.(?:ipynb|svg))', text):
                assert (path.parent / link).is_file(), f"{path.name}: {link}"
                found += 1
    assert found > 100


def test_the_button_resets_the_notebook_that_shows_it(monkeypatch):
    from course_lib.widgets.reset_button import ResetButton

    button, sent, asked = ResetButton(), [], []
    monkeypatch.setattr(button, "send", sent.append)
    kept = Path("work/01_old_1_a.ipynb")
    monkeypatch.setattr(working_copy, "reset", lambda path: asked.append(path) or kept)
    button._answer(button, {"path": f"work/{LESSON}"}, [])
    said = "Your version is 01_old_1_a.ipynb, in the same folder; the list on the left shows it."
    assert asked == [f"work/{LESSON}"] and sent == [{"done": said}]
    monkeypatch.undo()
    monkeypatch.setattr(button, "send", sent.append)
    button._answer(button, {"path": "work/mine.ipynb"}, [])
    numbers = sent[-1]["problem"].rpartition("there are ")[2]
    assert "no notebook 'work/mine.ipynb'" in sent[-1]["problem"] and numbers.startswith("00, 01")
    assert button.words == messages.RESET_BUTTON
