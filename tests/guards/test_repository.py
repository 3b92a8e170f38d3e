"""The repository is what its README says it is."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

#: From the ground up. A module imports from rooms to its left and from nothing to its right.
ROOMS = [
    "texts",
    "environment",
    "inputs",
    "measure",
    "pooling",
    "masks",
    "scoring",
    "attention",
    "data",
    "recurrent",
    "cache",
    "positions",
    "multihead",
    "blocks",
    "transformer",
    "training",
    "decoding",
    "bleu",
    "translator",
    "checkpoints",
    "experiments",
    "plots",
    "widgets",
    "notebook",
    "exercises",
    "lab",
    "workshop",
]
GROUND_FLOOR = [
    "pooling",
    "masks",
    "scoring",
    "attention",
    "data",
    "recurrent",
    "cache",
    "positions",
    "multihead",
    "blocks",
    "transformer",
    "training",
    "decoding",
    "bleu",
    "translator",
    "checkpoints",
    "measure",
]


def tracked():
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).exists()]


def pins(name):
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith(("#", "-"))]


def modules():
    return sorted((ROOT / "course_lib").rglob("*.py"))


# --- the two commands and what they install --------------------------------------------------


def test_the_first_two_commands_of_the_readme_are_lab_and_test_and_ci_runs_the_second():
    commands = re.findall(r"^make \w+", README, re.MULTILINE)
    assert commands[:2] == ["make lab", "make test"]
    ci = [line for line in (ROOT / ".ci/run").read_text().splitlines() if not line.startswith("#")]
    assert ci[-1] == "make test"


def test_every_make_target_in_the_readme_exists():
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(re.findall(r"(?:^|`)make ([a-z]+)", README, re.MULTILINE)) <= set(targets)


@pytest.mark.parametrize("name", ["requirements.txt", "tests/requirements.txt"])
def test_requirements_are_exact(name):
    for line in pins(name):
        assert re.fullmatch(r"[\w.-]+==[\w.]+", line), line


def test_the_pins_lie_inside_the_ranges_of_pyproject_and_none_is_missing():
    pinned = {Requirement(line).name: line.split("==")[1] for line in pins("requirements.txt")}
    for requirement in map(Requirement, PYPROJECT["project"]["dependencies"]):
        assert requirement.specifier.contains(pinned[requirement.name]), requirement.name


def test_conda_takes_its_versions_from_requirements():
    lines = (ROOT / "environment.yml").read_text().splitlines()
    listed = [line.strip() for line in lines if line.strip().startswith("- ")]
    assert "- -r requirements.txt" in listed
    assert not [line for line in listed if "==" in line]


def test_what_is_imported_is_required():
    """Every package that course_lib imports is a dependency in pyproject.toml, and none is there for nothing."""
    names = {"pillow": "PIL", "ipython": "IPython", "jupyterlab": None, "ipykernel": None}
    required = {Requirement(line).name for line in PYPROJECT["project"]["dependencies"]}
    allowed = (
        {names.get(name, name) for name in required} | set(sys.stdlib_module_names) | {"course_lib"}
    )
    used = set()
    for path in modules():
        if "workshop" not in path.parts:
            used |= {name.split(".")[0] for name, _ in imports(path)}
    assert used <= allowed, used - allowed
    assert allowed - set(sys.stdlib_module_names) - {"course_lib", None} <= used


# --- the structure ---------------------------------------------------------------------------


def imports(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "course_lib":
            yield from ((f"course_lib.{alias.name}", alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module, node.names[0].name


@pytest.mark.parametrize(
    "path", [pytest.param(path, id=str(path.relative_to(ROOT))) for path in modules()]
)
def test_no_floor_is_imported_from_below(path):
    room = path.relative_to(ROOT / "course_lib").parts[0].removesuffix(".py")
    if room == "__init__":
        return
    for module, _ in imports(path):
        if module.startswith("course_lib."):
            other = module.split(".")[1]
            assert ROOMS.index(other) <= ROOMS.index(room), f"{room} imports {other}"


def test_only_drawing_is_imported_on_the_drawing_floor():
    for path in (ROOT / "course_lib/plots").glob("*.py"):
        outside = {module.split(".")[0] for module, _ in imports(path)} - {"course_lib"}
        assert outside <= {"matplotlib", "numpy", "collections", "math"}, path.name


def test_nothing_but_what_is_agreed_lies_at_the_top():
    tops = {path.relative_to(ROOT).parts[0] for path in tracked()}
    assert tops == {
        "notebooks", "course_lib", "img", "tests", "environment.yml", "requirements.txt", "README.md",
        "pyproject.toml", "Makefile", "LICENSE", ".gitignore", ".ci",
    }  # fmt: skip


def test_the_code_is_formatted_and_documented():
    for command in (["check"], ["format", "--check"]):
        result = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "course_lib", "tests"],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        assert result.returncode == 0, result.stdout


def test_no_path_of_one_machine_is_committed():
    for path in tracked():
        if path.suffix in {".py", ".md", ".toml", ".txt", ".yml", ".ipynb", ".js", ".css", ".svg"}:
            text = path.read_text(encoding="utf-8")
            found = re.search(r"/(work|home/\w+|root|Users/\w+)/", text)
            assert not found or path.name == "test_repository.py", f"{path.name}: {found}"


def test_importing_course_lib_loads_no_room():
    code = "import sys, course_lib; print(sorted(m for m in sys.modules if m.startswith('course_lib')))"
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert printed.strip() == "['course_lib']"


def test_a_room_loads_when_it_is_used_and_an_unknown_one_is_named():
    code = """
import course_lib
print(course_lib.pooling.KERNELS.keys())
try:
    course_lib.poling
except AttributeError as error:
    print(error)
"""
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert "gaussian" in printed and "has no attribute 'poling'; it has attention" in printed


# --- the ledger ------------------------------------------------------------------------------


def verified():
    """(name, oracle) of every mark in the unit tests."""
    for path in sorted((ROOT / "tests/unit").glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "verifies":
                (against,) = [
                    keyword.value.value for keyword in node.keywords if keyword.arg == "against"
                ]
                yield node.args[0].value, against


def public_names():
    import importlib

    for room in GROUND_FLOOR:
        module = importlib.import_module(f"course_lib.{room}")
        yield from (f"course_lib.{room}.{name}" for name in module.__all__)


def test_every_public_name_is_held_against_something_independent():
    missing = set(public_names()) - {name for name, _ in verified()}
    assert not missing, f"no test is marked verifies(...) for {sorted(missing)}"


def test_every_mark_names_something_that_exists():
    assert {name for name, _ in verified()} <= set(public_names())


def test_the_readme_shows_the_ledger_as_it_is():
    table = README.split("<!-- ledger -->")[1].split("<!-- end of ledger -->")[0]
    shown = {
        tuple(cell.strip() for cell in row.split("|")[1:3])
        for row in table.splitlines()
        if row.startswith("| `")
    }
    wanted = {(f"`{name.removeprefix('course_lib.')}`", against) for name, against in verified()}
    assert shown == wanted, "run: make verified"
