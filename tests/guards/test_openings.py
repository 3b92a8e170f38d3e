"""A notebook's first picture comes quickly: what takes a second or more to import comes after it."""

import ast
import subprocess
import sys

import nbformat

from course_lib.tools import normal_form

#: Each takes 0.5 to 2 seconds to import, and no first picture needs it.
SLOW = {"matplotlib.pyplot", "pandas", "scipy", "seaborn", "sklearn", "statsmodels", "transformers"}


def imports_before_the_first_picture(path):
    """The import statements of all code cells up to the first one that shows a picture; none on a page without one."""
    imports = []
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            nodes = ast.walk(ast.parse(cell.source))
            imports += [ast.unparse(n) for n in nodes if isinstance(n, ast.Import | ast.ImportFrom)]
            if any("image/png" in output.get("data", {}) for output in cell.outputs):
                return imports
    return []


def test_slow_imports_come_after_the_first_picture():
    code = ["import sys"]
    for path in normal_form.paths():
        code += [*imports_before_the_first_picture(path), f"print({path.stem!r}, *sys.modules)"]
    command = [sys.executable, "-c", "\n".join(code)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        stem, *loaded = line.split()
        assert not SLOW & set(loaded), stem
