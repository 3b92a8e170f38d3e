"""A real JupyterHub with two users: each has a copy of the notebooks, and neither reaches the other's files or kernels."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import uuid

import pytest
import requests
import websocket

from course_lib.lab.__main__ import HERE
from course_lib.lab.hub.__main__ import copy_course
from course_lib.lab.working_copy import NOTEBOOKS

pytestmark = pytest.mark.classroom

PASSWORD = "a class of two"
FIRST = "notebooks/00_start_here.ipynb"


def free_ports(count):
    with contextlib.ExitStack() as probes:
        sockets = [probes.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def wait_for(answered, what, seconds=120):
    until = time.monotonic() + seconds
    while not answered():
        assert time.monotonic() < until, what()
        time.sleep(0.2)


class User:
    """A user who has logged in, and whose server runs."""

    def __init__(self, hub, folder, name):
        self.hub, self.name = hub, name
        self.home = folder / "users" / name
        self.session = requests.Session()
        login = f"{hub}/hub/login"
        self.session.get(login)
        form = {"username": name, "password": PASSWORD, "_xsrf": self.session.cookies["_xsrf"]}
        self.session.post(login, data=form)

    def get(self, owner, path):
        return self.session.get(f"{self.hub}/user/{owner}/{path}")

    def open(self, owner=None):
        """Open the first lesson as a browser does, which also brings the cookies for the server's API."""
        return self.get(owner or self.name, f"lab/tree/{FIRST}")

    def cookies(self):
        return [one for one in self.session.cookies if one.path in ("/", f"/user/{self.name}/")]

    def start_kernel(self):
        (token,) = [c.value for c in self.cookies() if c.name == "_xsrf"]
        asked = {"path": FIRST, "name": "", "type": "notebook", "kernel": {"name": "python3"}}
        sessions = f"{self.hub}/user/{self.name}/api/sessions"
        answer = self.session.post(sessions, json=asked, headers={"X-XSRFToken": token})
        return answer.json()["kernel"]["id"]

    def connect(self, owner, kernel):
        address = f"{self.hub}/user/{owner}/api/kernels/{kernel}/channels".replace("http", "ws", 1)
        header = "; ".join(f"{one.name}={one.value}" for one in self.cookies())
        return websocket.create_connection(address, cookie=header, timeout=120)

    def run(self, kernel, code):
        """Run code in a kernel; return what it printed or displayed."""
        header = {"msg_id": uuid.uuid4().hex, "msg_type": "execute_request", "version": "5.3"}
        header |= {"username": self.name, "session": "test", "date": "2025-01-01T00:00:00Z"}
        message = {"header": header, "parent_header": {}, "metadata": {}, "channel": "shell"}
        message["content"] = {"code": code, "silent": False, "store_history": True}
        connection, said = self.connect(self.name, kernel), ""
        connection.send(json.dumps(message))
        while True:
            reply = json.loads(connection.recv())
            if reply["parent_header"].get("msg_id") != header["msg_id"]:
                continue
            content = reply["content"]
            said += content.get("text", "") + content.get("data", {}).get("text/plain", "")
            said += "\n".join(content.get("traceback", []))
            if content.get("execution_state") == "idle":
                connection.close()
                return said


@pytest.fixture(scope="module")
def users(tmp_path_factory):
    """Ada and Bob, whose servers run."""
    folder = tmp_path_factory.mktemp("hub")
    public, api, internal = free_ports(3)
    hub, log = f"http://127.0.0.1:{public}", folder / "hub.log"
    command = [sys.executable, "-m", "jupyterhub", "-f", HERE / "hub" / "jupyterhub_config.py"]
    command += [f"--JupyterHub.bind_url={hub}", f"--JupyterHub.hub_port={internal}"]
    command += [f"--ConfigurableHTTPProxy.api_url=http://127.0.0.1:{api}"]
    names = {"COURSE_HUB_PASSWORD": PASSWORD, "COURSE_HUB_FOLDER": str(folder)}
    environment = {k: v for k, v in os.environ.items() if k != "COURSE_PROGRESS"} | names
    with open(log, "w") as file:
        server = subprocess.Popen(command, env=environment, cwd=folder, stdout=file, stderr=file)

    def healthy():
        assert server.poll() is None, log.read_text()
        with contextlib.suppress(requests.ConnectionError):
            return requests.get(f"{hub}/hub/health").ok

    try:
        wait_for(healthy, log.read_text)
        both = [User(hub, folder, name) for name in ("ada", "bob")]
        for user in both:
            wait_for(lambda user=user: "/user/" in user.open().url.split("/hub/")[0], log.read_text)
        yield both
    finally:
        server.terminate()
        server.wait(timeout=60)


def test_each_user_runs_the_first_lesson_in_a_folder_of_their_own(users):
    kernels = [user.start_kernel() for user in users]
    for user, kernel in zip(users, kernels, strict=True):
        lesson = user.get(user.name, f"api/contents/{FIRST}").json()["content"]
        first = next(cell["source"] for cell in lesson["cells"] if cell["cell_type"] == "code")
        assert "Ready" in user.run(kernel, first)
        assert str(user.home) in user.run(kernel, "import os; print(os.getcwd())")
    (ada, bob), (kernel, _) = users, kernels
    ada.run(kernel, "from course_lib.exercises import check")
    solved = "check('weighted_sum', lambda weights, values: weights @ values)"
    assert "Correct" in ada.run(kernel, solved)
    ada.run(kernel, "open('mine.txt', 'w').close()")
    assert ada.get("ada", "api/contents/notebooks/mine.txt").ok
    assert bob.get("bob", "api/contents/notebooks/mine.txt").status_code == 404
    assert list(ada.home.rglob("progress.json")) and not list(bob.home.rglob("progress.json"))


def test_the_reset_button_and_the_command_act_on_the_copy_of_the_user(users):
    ada, bob = users
    kernel = ada.start_kernel()
    shown = "from course_lib.exercises import progress\nprogress('00')"
    assert "ResetButton" in ada.run(kernel, shown)
    copies = [user.home / "attention-course" / "notebooks" for user in users]
    answered = json.loads((copies[0] / "00_start_here.ipynb").read_text(encoding="utf-8"))
    answered["cells"][0]["source"] = "my answer"
    (copies[0] / "00_start_here.ipynb").write_text(json.dumps(answered), encoding="utf-8")
    before = {path: path.stat().st_mtime_ns for path in NOTEBOOKS.parent.glob("*/**/*.ipynb")}
    pressed = "from course_lib.widgets.reset_button import ResetButton\nbutton = ResetButton()\n"
    ada.run(kernel, f"{pressed}button._answer(button, {{'path': {FIRST!r}}}, [])")
    (kept,) = copies[0].glob("00_old_*")
    assert "my answer" in kept.read_text(encoding="utf-8")
    assert (copies[0] / "00_start_here.ipynb").read_bytes() == (
        NOTEBOOKS / "00_start_here.ipynb"
    ).read_bytes()
    said = ada.run(kernel, f"!{sys.executable} -m course_lib.lab.working_copy --reset 01a")
    assert "Started again" in said and len([*copies[0].glob("studies/01a_old_*")]) == 1
    assert not [*copies[1].rglob("*_old_*")]
    assert before == {
        path: path.stat().st_mtime_ns for path in NOTEBOOKS.parent.glob("*/**/*.ipynb")
    }


def test_neither_reaches_the_files_or_the_kernels_of_the_other(users):
    for user, other in (users, users[::-1]):
        kernel = other.start_kernel()  # or the one that runs already
        assert kernel in other.get(other.name, "api/kernels").text
        assert user.open(other.name).status_code == 403
        for path in (f"api/contents/{FIRST}", "api/kernels", "api/sessions", f"files/{FIRST}"):
            assert user.get(other.name, path).status_code == 403, path
        with pytest.raises(websocket.WebSocketBadStatusException, match="403"):
            user.connect(other.name, kernel)


def test_a_copy_is_brought_up_to_date_and_answers_stay(tmp_path):
    def notebook(text):
        return json.dumps({"cells": [{"cell_type": "code", "source": text}]})

    course, folder = tmp_path / "course", tmp_path / "user"
    for path in ("notebooks/1.ipynb", "notebooks/studies/1a.ipynb", "img/1.svg"):
        (course / path).parent.mkdir(parents=True, exist_ok=True)
        (course / path).write_text(notebook("old"))
    copy_course(folder, course)
    (folder / "notebooks/1.ipynb").write_text(notebook("my answers"))
    for path in course.rglob("1*.*"):
        path.write_text(notebook("new"))
    copy_course(folder, course)
    found = {path.name: path.read_text() for path in folder.rglob("1*.*")}
    assert found.pop("1.ipynb") == notebook("my answers")
    assert len(found) == 3 and set(found.values()) == {notebook("new")}, "1a, 1.svg, 1 beside mine"
