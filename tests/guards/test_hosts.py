"""What the hosts read: GitHub's workflows, the Dev Container, Binder. None of them runs here; their files are checked."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
CONTAINER = ROOT / ".devcontainer/devcontainer.json"
BINDER = ROOT / ".binder/postBuild"


def jobs():
    for path in WORKFLOWS:
        yield from yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values()


def commands():
    """Every command that a host runs."""
    for job in jobs():
        yield from (step["run"] for step in job["steps"] if "run" in step)
    yield json.loads(CONTAINER.read_text(encoding="utf-8"))["postCreateCommand"]
    yield from BINDER.read_text(encoding="utf-8").splitlines()


def test_the_workflows_are_what_github_reads():
    check = [
        sys.executable,
        "-m",
        "check_jsonschema",
        "--builtin-schema",
        "vendor.github-workflows",
    ]
    done = subprocess.run([*check, *WORKFLOWS], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_hosts_run_make_targets_and_files_that_exist():
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    every = list(commands())
    assert {"make lowest", "make html", "make install", "bash .ci/run"} <= set(every)
    for command in every:
        assert set(re.findall(r"^make (\w+)", command)) <= set(targets), command
        for file in re.findall(r"[\w./]+\.(?:txt|ipynb|py)\b", command):
            assert (ROOT / file).exists(), command
        for module in re.findall(r"-m (course_lib[\w.]*)", command):
            assert (ROOT / (module.replace(".", "/") + ".py")).exists(), command


def test_the_oldest_python_that_is_promised_is_tested_everywhere():
    oldest = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    for job in jobs():
        if "strategy" in job:
            assert f">={job['strategy']['matrix']['python'][0]}" == oldest


def test_the_container_opens_what_its_command_makes():
    container = json.loads(CONTAINER.read_text(encoding="utf-8"))["customizations"]
    interpreter = container["vscode"]["settings"]["python.defaultInterpreterPath"]
    assert interpreter == "${containerWorkspaceFolder}/.venv/bin/python"
    (opened,) = container["codespaces"]["openFiles"]
    assert (ROOT / "notebooks" / Path(opened).name).exists() and opened.startswith("work/")


@pytest.mark.skipif(os.name == "nt", reason="needs bash")
def test_binder_installs_the_course_and_makes_the_copy(tmp_path):
    """With a Python that only says what it is asked."""
    fake = tmp_path / "python"
    fake.write_text('#!/bin/sh\necho "$@" >> "$ASKED"\ncase $1 in *.py) echo --extra;; esac\n')
    fake.chmod(0o755)
    asked = tmp_path / "asked"
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "ASKED": str(asked)}
    subprocess.run([BINDER], cwd=ROOT, env=environment, check=True)
    lines = asked.read_text().splitlines()
    assert lines[1].endswith("-r requirements.txt --extra")
    assert lines[-1] == "-m course_lib.lab.working_copy"
