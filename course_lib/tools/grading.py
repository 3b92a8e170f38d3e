"""What nbgrader needs to grade a class whatever its learners did: preprocessors that `nbgrader_config.py` names.

By itself nbgrader 0.9.6 stops at the first notebook in which a cell was copied, and nobody after it is graded; it gives no
points where a cell to grade was deleted; and it takes any text on stderr for a failed test.
"""

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell
from nbgrader.api import Gradebook
from nbgrader.preprocessors import NbGraderPreprocessor
from nbgrader.utils import is_grade


class Marks(NbGraderPreprocessor):
    """Marks the cells of a submission anew as those of the assignment.

    Of several copies of a cell the last one is graded, as nbgrader means it. A locked cell that is missing is added: at
    the end if it is a test, else at the top.
    """

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        """Replace the marks."""
        place = resources["nbgrader"]
        with Gradebook(place["db_url"]) as gradebook:
            source = gradebook.find_notebook(place["notebook"], place["assignment"])
            graded = {cell.name: cell.max_score for cell in source.grade_cells}
            tasks = {cell.name: cell.max_score for cell in source.task_cells}
            solutions = {cell.name for cell in source.solution_cells}
            marks, missing = {}, {}
            for cell in source.source_cells:
                name = cell.name
                marks[name] = {
                    "schema_version": 3, "grade_id": name, "cell_type": cell.cell_type,
                    "grade": name in graded, "solution": name in solutions, "task": name in tasks,
                    "locked": cell.locked, "checksum": cell.checksum,
                }  # fmt: skip
                if name in graded | tasks:
                    marks[name]["points"] = (graded | tasks)[name]
                if cell.locked and cell.cell_type == "code":
                    missing[name] = cell.source
        for cell in reversed(nb.cells):
            mark = cell.metadata.pop("nbgrader", None)
            name = str(mark.get("grade_id")) if isinstance(mark, dict) else ""
            if name in marks:
                cell.metadata["nbgrader"] = marks.pop(name)
                missing.pop(name, None)
        for name, text in missing.items():
            cell = new_code_cell(text, metadata={"nbgrader": marks[name]})
            if nb.nbformat_minor < 5:  # a format without ids
                del cell["id"]
            nb.cells.insert(len(nb.cells) if name in graded else 0, cell)
        return nb, resources


class Noise(NbGraderPreprocessor):
    """Shows as ordinary output what a test wrote to stderr: logging, warnings, `print(…, file=sys.stderr)`."""

    def preprocess_cell(
        self, cell: NotebookNode, resources: dict, index: int
    ) -> tuple[NotebookNode, dict]:
        """Change the outputs of a graded cell."""
        for output in cell.outputs if is_grade(cell) else ():
            if output.output_type == "stream":
                output.name = "stdout"
        return cell, resources
