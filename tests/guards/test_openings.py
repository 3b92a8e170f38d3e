"""A notebook's first picture comes quickly: what takes a second or more to import comes after it."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").rglob("*.ipynb"))
#: Each takes 0.5 to 2 seconds to import, and no first picture needs it.
SLOW = {"matplotlib.pyplot", "pandas", "scipy", "seaborn", "sklearn", "statsmodels", "transformers"}


def imports_before_the_first_picture(path: Path) -> str:
    """The import statements of all code cells up to the first one that shows a picture."""
    found = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        nodes = ast.walk(ast.parse("".join(cell["source"])))
        found += [
            ast.unparse(node) for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)
        ]
        if any("image/png" in output.get("data", {}) for output in cell["outputs"]):
            return "\n".join(found)
    pytest.fail(f"{path.name} shows no picture")


def test_slow_imports_come_after_the_first_picture():
    imports = map(imports_before_the_first_picture, NOTEBOOKS)
    code = f"{chr(10).join(imports)}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not SLOW & set(done.stdout.split()), "look for the notebook that imports it too early"
