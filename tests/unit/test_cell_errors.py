"""A cell that is run before those above it, after a restart; and one that is stopped. In the kernel of `make lab`."""

import nbformat
import pytest
from jupyter_client.manager import start_new_kernel

from course_lib.lab.__main__ import environment
from course_lib.lab.cell_errors import comes_from_an_earlier_cell
from course_lib.lab.working_copy import NOTEBOOKS

CELLS = {
    "first": "import numpy as np, torch.nn\nfrom math import tau as turn\n%time early = 1\nsize: int = 3",
    "second": "for step in range(3):\n    if (double := 2 * step) > 9: pass\nwith open(__file__) as file: pass",
    "third": "def train():\n    inside = 1\nclass Model: pass\nprint(size)\nnot_finished(",
    "fourth": "def train():\n    inside = 1\nclass Model: pass\nprint(early_)",
    "here": "print(later, size)",
    "last": "later = 5",
}
EARLIER = "comes from an earlier cell of this notebook: choose Run > Run All Above Selected Cell."


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    cells = [nbformat.v4.new_code_cell(source, id=name) for name, source in CELLS.items()]
    cells.insert(1, nbformat.v4.new_markdown_cell("said = 1"))
    path = tmp_path_factory.mktemp("cell_errors") / "book.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


@pytest.fixture(scope="module")
def error_of(path):
    """Run code as the cell of an id; return the traceback that is shown, and stop it at a printed word."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_PATH", environment(NOTEBOOKS)["JUPYTER_PATH"])
        patch.setenv("JPY_SESSION_NAME", str(path))
        manager, client = start_new_kernel(kernel_name="python3")

    def run(code, which=None):
        content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False}
        message = client.session.msg("execute_request", content | {"user_expressions": {}})
        message["metadata"] = {"cellId": which} if which else {}
        client.shell_channel.send(message)
        shown = []
        while True:
            said = client.get_iopub_msg(timeout=60)
            if said["parent_header"].get("msg_id") != message["header"]["msg_id"]:
                continue
            content = said["content"]
            if said["msg_type"] == "error":
                shown.append((content["ename"], "\n".join(content["traceback"])))
            elif "interrupt me" in content.get("text", ""):
                manager.interrupt_kernel()
            elif content.get("execution_state") == "idle":
                return shown[0] if shown else None

    yield run
    client.stop_channels()
    manager.shutdown_kernel(now=True)


@pytest.mark.parametrize(
    "name", ["np", "torch", "turn", "size", "step", "double", "file", "train", "Model"]
)
def test_a_name_that_a_cell_above_makes(path, name):
    assert comes_from_an_earlier_cell(name, str(path), "here", "")
    assert not comes_from_an_earlier_cell(name, str(path), "first", CELLS["first"])


@pytest.mark.parametrize(
    "name", ["later", "inside", "early", "early_", "print", "said", "nump", None]
)
def test_a_name_that_no_cell_above_makes(path, name):
    assert not comes_from_an_earlier_cell(name, str(path), "here", "")


def test_the_cell_is_found_by_its_text_where_it_has_no_id_and_a_new_one_has_none_above(path):
    assert comes_from_an_earlier_cell("size", str(path), "", CELLS["here"])
    assert not comes_from_an_earlier_cell("size", str(path), "new", "print(size, 2)")
    assert not comes_from_an_earlier_cell("size", str(path.with_name("gone.ipynb")), "here", "")


def test_after_a_restart_the_kernel_says_where_a_name_comes_from_and_leaves_others_alone(error_of):
    kind, said = error_of("print(size)", "here")
    assert kind == "NameError" and f"size {EARLIER}" in said and "print(size)" in said
    for wrong in ("print(sise)", "print(later)", "def f():\n    size += 1\nf()"):
        kind, said = error_of(wrong, "here")
        assert kind in ("NameError", "UnboundLocalError") and EARLIER not in said
    assert error_of("size = 1\nprint(size)", "here") is None


def test_a_stopped_cell_says_where_without_the_lines_of_a_library(error_of):
    line = "print('interrupt me', flush=True); time.sleep(60)"
    made = f"import time, json\ndef slow(_):\n    {line}"
    kind, said = error_of(f"{made}\njson.loads('[{{}}]', object_hook=slow)")
    assert kind == "KeyboardInterrupt"
    assert said == f"You stopped this cell in line 3 of slow: {line}"
    kind, said = error_of(f"x = 1\n{line}")
    assert said == f"You stopped this cell in line 2: {line}"
