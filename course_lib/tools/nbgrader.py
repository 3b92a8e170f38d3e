"""Write the exercises of notebooks as an nbgrader course.

``python -m course_lib.tools.nbgrader FOLDER [NOTEBOOK …]`` writes an assignment for each named lesson or study, or for
every lesson. In FOLDER, `nbgrader generate_assignment NAME`, `nbgrader autograde NAME` and
`nbgrader generate_feedback NAME` then work as in any nbgrader course.

An assignment holds the text, the stub and the check of each exercise, and not the lesson around them: what is graded
takes seconds to run and does not depend on what a learner changed in the lesson.
"""

import argparse
import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from course_lib.exercises import EXERCISES, Exercise
from course_lib.tools import cells, normal_form

CONFIG = '''"""Settings of nbgrader for this course."""

from course_lib.tools.grading import Marks, Noise

c = get_config()
c.Autograde.sanitize_preprocessors.prepend([Marks])  # copied and deleted cells cost nobody a point
c.Autograde.autograde_preprocessors.insert(1, Noise)  # what is written to stderr costs no points
c.CourseDirectory.course_id = "attention"
c.ClearSolutions.code_stub = {"python": ""}  # the stub stands above the solution
c.ExecutePreprocessor.timeout = 120
# exit() in a cell ends that cell, as sys.exit() does, and not the kernel
c.ExecutePreprocessor.extra_arguments = ["--IPKernelApp.exec_lines=import sys; exit = quit = sys.exit"]
'''
INTRODUCTION = """# {title}: exercises

Write each function where its `...` stands, or repair it, and run the cell below it: it says that the function is right,
or what is wrong with it. `hint("name")`, with the name in that cell, helps in steps. The lesson is `{stem}.ipynb`.
"""
#: Under names of its own, so that an answer may use every other. A check has more time than in a lesson: a busy machine
#: must cost nobody a point.
TEST = """from IPython.display import display as _display
from course_lib.exercises import grade as _grade

_result = _grade("{name}", {function}, seconds=20)
_display(_result)
assert _result.state == "passed", _result.message"""
#: What stands before the text of an exercise: the lesson up to a heading and what it says of hints. And what is folded,
#: which is an answer or a derivation.
_BESIDE = re.compile(
    r"\A.*^## .+?\n\n(?:`(?:check|hint).+?\n\n)?|<details>.*?</details>", re.MULTILINE | re.DOTALL
)


def assignment(path: Path) -> nbformat.NotebookNode:
    """Return the instructor's version of an assignment: with solutions, each between nbgrader's two marks.

    Args:
        path: of the lesson or study whose exercises it holds; what in it is no Python is left out.

    Raises:
        ValueError: for a file that is no notebook, or has no exercise.
    """
    lesson = cells.read(path)
    graded = [cell for found in _exercises(lesson) for cell in _graded(*found)]
    if not graded:
        raise ValueError(f"{path.stem} has no exercise with a check")
    prose = "\n".join(cell.source for cell in lesson.cells if cell.cell_type == "markdown")
    title = re.search(r"^# +(.+?) *(?:[:?]|$)", prose, re.MULTILINE)
    name = title[1] if title else path.stem
    introduction = new_markdown_cell(INTRODUCTION.format(title=name, stem=path.stem))
    answers = [cell.source for cell in graded if "### BEGIN SOLUTION" in cell.source]
    given = _marked(new_code_cell(_given(lesson, answers)), "given", locked=True)
    return new_notebook(cells=[introduction, given, *graded], metadata=normal_form.METADATA)


def _exercises(lesson: nbformat.NotebookNode) -> Iterator[tuple[Exercise, str, str]]:
    """Yield each exercise with the text that sets it, and its stub: what is defined between that text and the check.

    An exercise that is checked again, as in a copy of its cell, is the one before.
    """
    text, code, seen = "", "", set()
    for cell in lesson.cells:
        if cell.cell_type == "markdown":
            text, code = _BESIDE.sub("", cell.source).strip(), ""
            continue
        source = cells.python(cell.source) if cell.cell_type == "code" else ""
        code += source + "\n\n\n"
        for name in dict.fromkeys(filter(EXERCISES.get, _checked(source))):
            if name in seen:
                continue
            seen.add(name)
            stub = [definition for _, definition in _definitions(code)]
            yield EXERCISES[name], text, "\n\n\n".join(stub)


def _checked(source: str) -> list[str]:
    """Return the names of the exercises that a cell checks."""
    calls = (
        node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call) and node.args
    )
    checks = (call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "check")
    return [call.args[0].value for call in checks if isinstance(call.args[0], ast.Constant)]


def _definitions(code: str) -> list[tuple[str, str]]:
    """Return the name and the source of each function and class at the top level, with its decorators."""
    lines, found = code.splitlines(), []
    for node in ast.parse(code).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            first = min(one.lineno for one in (node, *node.decorator_list))
            found.append((node.name, "\n".join(lines[first - 1 : node.end_lineno])))
    return found


def _graded(exercise: Exercise, text: str, stub: str) -> list[nbformat.NotebookNode]:
    """Return the cells of one exercise."""
    solution = textwrap.dedent(inspect.getsource(exercise.solution)).strip()
    answer = f"{stub}\n### BEGIN SOLUTION\n{solution}\n### END SOLUTION"
    test = TEST.format(name=exercise.name, function=exercise.solution.__name__)
    return [
        new_markdown_cell(text),
        _marked(new_code_cell(answer), exercise.name, solution=True),
        _marked(new_code_cell(test), f"{exercise.name}_test", grade=True, locked=True, points=1),
    ]


def _marked(cell: nbformat.NotebookNode, grade_id: str, **roles) -> nbformat.NotebookNode:
    """Say in a cell's metadata what it is to nbgrader."""
    roles = {"grade": False, "solution": False, "locked": False, "task": False} | roles
    cell.metadata["nbgrader"] = {"schema_version": 3, "grade_id": grade_id, **roles}
    return cell


def _given(lesson: nbformat.NotebookNode, answers: list[str]) -> str:
    """Return the lesson's imports of PyTorch, and its imports and functions that a stub or a solution uses."""
    nodes = [node for source in answers for node in ast.walk(ast.parse(source))]
    used = {node.id for node in nodes if isinstance(node, ast.Name)}
    used -= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    used -= {node.arg for node in nodes if isinstance(node, ast.arg)}
    sources = (cell.source for cell in lesson.cells if cell.cell_type == "code")
    code = "\n".join(map(cells.python, sources))
    imports = {"import torch", "from course_lib.exercises import hint"}
    functions = [source for name, source in _definitions(code) if name in used]
    for node in ast.parse(code).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                module = getattr(node, "module", alias.name)
                if (alias.asname or alias.name) in used or module.startswith("torch"):
                    node.names = [alias]
                    imports.add(ast.unparse(node))

    def place(line: str) -> tuple:
        return "course_lib" in line, line.split()[1], line.startswith("from"), line

    return "\n\n\n".join(["\n".join(sorted(imports, key=place)), *functions])


def main() -> None:
    """Write the course; an assignment that is already there is left as it is. Exit with 1 where one cannot be written."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "folder", type=Path, help="of the nbgrader course; made where it is missing"
    )
    parser.add_argument("notebooks", nargs="*", help="stems or file names; all lessons by default")
    given = parser.parse_args()
    try:
        paths = normal_form.paths(given.notebooks)
    except ValueError as error:
        parser.error(str(error))
    set_in = {exercise.notebook for exercise in EXERCISES.values()}
    if not given.notebooks:
        paths = [path for path in paths if path.stem in set_in and not normal_form.is_study(path)]
    problems = [message for path in paths if (message := _write(path, given.folder))]
    config = given.folder / "nbgrader_config.py"
    if not config.exists():
        given.folder.mkdir(parents=True, exist_ok=True)
        config.write_text(CONFIG, encoding="utf-8")
    elif "course_lib.tools.grading" not in config.read_text(encoding="utf-8"):
        problems.append(f"{config} is of an older version; delete it to have it written anew")
    if problems:
        sys.exit("\n".join(problems))


def _write(path: Path, folder: Path) -> str:
    """Write one assignment; return why not, if there is a reason."""
    file = folder / "source" / path.stem / path.name
    if file.exists():
        print(f"{file} is already there; delete it to have it written anew")
        return ""
    try:
        book = assignment(path)
    except (OSError, ValueError) as error:
        return str(error)
    file.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(book, file)
    print(file)
    return ""


if __name__ == "__main__":
    main()
