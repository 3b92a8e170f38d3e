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
import textwrap
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from course_lib.exercises import EXERCISES, Exercise
from course_lib.tools import normal_form

CONFIG = '''"""Settings of nbgrader for this course."""

c = get_config()
c.CourseDirectory.course_id = "attention"
c.ClearSolutions.code_stub = {"python": ""}  # the stub stands above the solution
c.ExecutePreprocessor.timeout = 120
'''
INTRODUCTION = """# {title}: exercises

Write each function where its `...` stands, or repair it, and run the cell below it: it says that the function is right,
or what is wrong with it. `hint("name")`, with the name in that cell, helps in steps. The lesson is `{stem}.ipynb`.
"""
#: A check has more time than in a lesson: a busy machine must cost nobody a point.
TEST = """result = grade("{name}", {function}, seconds=20)
display(result)
assert result.state == "passed", result.message"""
_CHECK = re.compile(r'^check\("(\w+)"', re.MULTILINE)
#: What stands before the text of an exercise: the lesson up to a heading and what it says of hints. And what is folded,
#: which is an answer or a derivation.
_BESIDE = re.compile(
    r"\A.*^## .+?\n\n(?:`(?:check|hint).+?\n\n)?|<details>.*?</details>", re.MULTILINE | re.DOTALL
)


def assignment(path: Path) -> nbformat.NotebookNode:
    """Return the instructor's version of an assignment: with solutions, each between nbgrader's two marks.

    Args:
        path: of the lesson or study whose exercises it holds.
    """
    lesson = nbformat.read(path, as_version=4)
    graded = [cell for found in _exercises(lesson) for cell in _graded(*found)]
    title = re.match("# (.+?)[:?\n]", lesson.cells[0].source)[1]
    introduction = new_markdown_cell(INTRODUCTION.format(title=title, stem=path.stem))
    answers = [cell.source for cell in graded if "### BEGIN SOLUTION" in cell.source]
    given = _marked(new_code_cell(_given(lesson, answers)), "given", locked=True)
    return new_notebook(cells=[introduction, given, *graded], metadata=normal_form.METADATA)


def _exercises(lesson: nbformat.NotebookNode) -> Iterator[tuple[Exercise, str, str]]:
    """Yield each exercise with the text that sets it, and its stub: what is defined between that text and the check."""
    text, code = "", ""
    for cell in lesson.cells:
        if cell.cell_type == "markdown":
            text, code = _BESIDE.sub("", cell.source).strip(), ""
            continue
        code += cell.source + "\n\n\n"
        if found := _CHECK.search(cell.source):
            definitions = [one for one in ast.parse(code).body if hasattr(one, "body")]
            stub = [ast.get_source_segment(code, one) for one in definitions]
            yield EXERCISES[found[1]], text, "\n\n\n".join(stub)


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
    code = "\n".join(cell.source for cell in lesson.cells if cell.cell_type == "code")
    imports = {"import torch", "from course_lib.exercises import grade, hint"}
    functions = []
    for node in ast.parse(code).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                module = getattr(node, "module", alias.name)
                if (alias.asname or alias.name) in used or module.startswith("torch"):
                    node.names = [alias]
                    imports.add(ast.unparse(node))
        elif getattr(node, "name", "") in used:
            functions.append(ast.get_source_segment(code, node))

    def place(line: str) -> tuple:
        return "course_lib" in line, line.split()[1], line.startswith("from"), line

    return "\n\n\n".join(["\n".join(sorted(imports, key=place)), *functions])


def main() -> None:
    """Write the course; an assignment that is already there is left as it is."""
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
    for path in paths:
        if not given.notebooks and normal_form.is_study(path):
            continue
        if path.stem not in set_in:
            parser.error(f"{path.stem} has no exercise with a check")
        file = given.folder / "source" / path.stem / path.name
        if file.exists():
            print(f"{file} is already there; delete it to have it written anew")
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(assignment(path), file)
        print(file)
    config = given.folder / "nbgrader_config.py"
    if not config.exists():
        config.write_text(CONFIG, encoding="utf-8")


if __name__ == "__main__":
    main()
