"""What a notebook's first cell does, and what it says where something is missing."""

import http.server
import random
import re
import socket
import subprocess
import sys
import threading
import time
import types
from importlib import metadata

import matplotlib
import numpy as np
import pytest
import torch
from jupyter_client.manager import start_new_kernel

from course_lib import messages
from course_lib.lab import environment
from course_lib.lab.__main__ import command
from course_lib.lab.__main__ import environment as lab_environment
from course_lib.lab.working_copy import NOTEBOOKS
from course_lib.notebook import agree, run_changed, show, show_bars, show_maps, show_source, start
from course_lib.plots import figure
from course_lib.topics.pooling import NadarayaWatson


@pytest.fixture(autouse=True)
def _style_is_put_back():
    options = np.get_printoptions()
    with matplotlib.rc_context():
        yield
    np.set_printoptions(**options)
    torch.set_printoptions(profile="default")


def test_start_seeds_everything_and_says_that_all_is_there(capsys):
    draws = []
    for _ in range(2):
        start(seed=3)
        draws.append((random.random(), np.random.rand(), torch.rand(1).item()))
    assert draws[0] == draws[1]
    assert set(capsys.readouterr().out.splitlines()) == {messages.ENVIRONMENT_READY}


def test_start_says_in_plain_words_what_is_missing(monkeypatch, capsys):
    def version(name):
        if name == "anywidget":
            raise metadata.PackageNotFoundError
        return "1.0" if name == "torch" else "99"

    monkeypatch.setattr(metadata, "version", version)
    start()
    said = capsys.readouterr().out
    assert re.search(r"torch is version 1\.0; the course needs >=2\.\d+\.", said)
    assert "anywidget is not installed." in said and "make lab" in said


def test_a_course_that_is_not_installed_says_so(monkeypatch):
    def requires(_):
        raise metadata.PackageNotFoundError

    monkeypatch.setattr(metadata, "requires", requires)
    assert "The course itself is not installed" in environment.package_problems()[0]


def test_a_python_that_is_too_old_is_told_so(monkeypatch):
    monkeypatch.setattr(environment.sys, "version_info", (3, 9, 1))
    (problem,) = environment.python_problems()
    assert problem.startswith("This is Python 3.9; the course needs 3.11 or newer.")


def test_the_environment_check_runs_before_anything_is_installed():
    here = [sys.executable, "-S", "-E", environment.__file__]  # -S: without site-packages
    assert subprocess.run(here, capture_output=True, text=True).returncode == 0


@pytest.fixture
def index():
    """A stand-in for PyTorch's index on loopback: what it is asked, and its address."""
    asked = []

    class Index(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Index) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield asked, f"http://127.0.0.1:{server.server_port}/whl/cpu"
        server.shutdown()


@pytest.mark.parametrize(
    ("platform", "gpu", "taken"),
    [("linux", False, True), ("linux", True, False), ("darwin", False, False), ("win32", 0, False)],
)
def test_pytorch_without_cuda_is_for_linux_without_a_gpu(
    index, monkeypatch, capsys, platform, gpu, taken
):
    asked, address = index
    monkeypatch.setattr(environment.sys, "platform", platform)
    monkeypatch.setattr(environment, "_has_nvidia_gpu", lambda: gpu)
    assert environment.torch_options(address) == (["--extra-index-url", address] if taken else [])
    assert asked == (["/whl/cpu/torch/"] if taken else [])
    assert capsys.readouterr().err.count("\n") == taken


def test_an_index_that_does_not_answer_is_left_after_seconds(monkeypatch, capsys):
    monkeypatch.setattr(environment.sys, "platform", "linux")
    monkeypatch.setattr(environment, "_has_nvidia_gpu", lambda: False)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # connects, and says nothing
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert environment.torch_options(address, seconds=0.2) == []
    assert environment.torch_options(address) == []  # refuses
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2 and all("does not answer" in line for line in said)


def test_on_colab_the_first_cell_allows_the_course_s_widgets(monkeypatch, capsys):
    asked = []
    output = types.ModuleType("google.colab.output")
    output.enable_custom_widget_manager = lambda: asked.append("custom")
    colab = types.ModuleType("google.colab")
    colab.output = output
    start()
    assert asked == []
    monkeypatch.setitem(sys.modules, "google.colab", colab)
    start()
    assert asked == ["custom"]


def test_agree_prints_a_bound_that_does_not_depend_on_the_processor(capsys):
    for other in (3e-8, 0.25, float("nan")):
        agree("two", torch.zeros(3), torch.full((3,), other))
    assert capsys.readouterr().out.splitlines() == [
        "two: agree, largest difference below 1e-06",
        "two: DIFFER by up to 0.25",
        "two: DIFFER by up to nan",
    ]
    with pytest.raises(ValueError, match=r"ours has shape \(3,\) but theirs has \(2,\)"):
        agree("two", torch.zeros(3), torch.zeros(2))


def test_a_source_is_shown_whole_but_for_its_docstrings(capsys):
    show_source(NadarayaWatson)
    shown = capsys.readouterr().out
    assert '"""' not in shown and "self.log_bandwidth.exp()" in shown
    compile(shown, "shown", "exec", flags=__import__("__future__").annotations.compiler_flag)


def test_a_changed_cell_is_run_beside_the_one_that_stays(tmp_path, monkeypatch, capsys):
    lines = "scale = 3", "def scaled(x):", "    return scale * x", "if __name__ == '__main__':"
    (tmp_path / "a_cell.py").write_text("\n".join((*lines, "    print('ran')\n")), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    scaled = __import__("a_cell").scaled
    assert run_changed(scaled, "scale * x", "scale + x")["scaled"](4) == 7
    assert run_changed(scaled, "", "")["scaled"](4) == scaled(4) == 12
    assert capsys.readouterr().out == ""
    with pytest.raises(ValueError, match="'x / scale' is not in the cell that defines scaled"):
        run_changed(scaled, "x / scale", "x")


@pytest.mark.parametrize("approximate", [False, True])
def test_bars_say_their_numbers_unless_these_are_approximate(displayed, approximate):
    show_bars({"one": 0.25, "two": 1.0}, "Two of 2.", approximate=approximate)
    said = displayed[0]._repr_mimebundle_()[0]["text/plain"]
    assert "Two of 2." in said and ("value 0.25 to 1, mean 0.625" in said) is not approximate


@pytest.mark.parametrize("limits", [None, (-1, 5)])
def test_maps_have_their_own_colours_unless_they_share_limits(displayed, limits):
    maps = {"small": [[0.0, 1.0, float("nan")]], "large": torch.tensor([[2.0], [4.0]])}
    show_maps(maps, "Two maps.", limits=limits)
    said = displayed[0]._repr_mimebundle_()[0]["text/plain"]
    assert "small: value 0 to 1, mean 0.5" in said and "large: value 2 to 4, mean 3" in said
    drawn = displayed[0].figure.figure
    images = [image for axes in drawn.axes for image in axes.images]
    assert [image.get_clim() for image in images] == [limits or (0, 1), limits or (2, 4)]
    assert len(drawn.axes) == (4 if limits is None else 3), "one colour bar, or one for each map"


@pytest.mark.parametrize(("shared", "pieces"), [(True, 1), (False, 3)])
def test_panels_that_share_an_axis_stay_in_one_piece(displayed, shared, pieces):
    drawn, panels = figure(9, 3, columns=3, sharey=shared)
    for axes in panels:
        axes.plot([0, 1], [0, 1])
    show(drawn, "Three lines.")
    assert len(displayed[0].cuts) + 1 == pieces


def test_the_launcher_opens_the_first_notebook_and_asks_the_network_nothing():
    line = command(NOTEBOOKS, ["--port=9000"])
    first = min(path.name for path in NOTEBOOKS.glob("*.ipynb"))
    assert f"--LabApp.default_url=/lab/tree/notebooks/{first}" in line and line[-1] == "--port=9000"
    assert "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate" in line
    assert lab_environment(NOTEBOOKS)["JUPYTER_CONFIG_PATH"].split(":")[0].endswith("lab/config")


def test_the_kernel_of_the_launcher_has_pytorch_and_then_what_the_first_cells_import(monkeypatch):
    monkeypatch.setenv("JUPYTER_PATH", lab_environment(NOTEBOOKS)["JUPYTER_PATH"])
    manager, client = start_new_kernel(kernel_name="python3")
    printed = []

    def loaded():
        printed.clear()
        client.execute_interactive(
            "import sys\nprint('torch' in sys.modules, 'course_lib.exercises' in sys.modules, __name__)",
            output_hook=lambda message: printed.append(message["content"].get("text", "")),
            timeout=60,
        )
        return "".join(printed)

    try:
        assert loaded().startswith("True")
        for _ in range(100):  # imported once nothing else is to be done
            if (said := loaded()) == "True True __main__\n":
                break
            time.sleep(0.2)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert said == "True True __main__\n"
    assert "course_lib.lab.kernel" in manager.kernel_spec.argv
