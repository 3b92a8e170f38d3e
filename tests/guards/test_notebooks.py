"""Every committed notebook is in the form that makes its claims checkable."""

import ast
import functools
import importlib
import re
import subprocess
import sys

import nbformat
import pytest

from course_lib import MODULES
from course_lib.exercises import EXERCISES
from course_lib.tools import normal_form, run_times

NOTEBOOKS = [pytest.param(path, id=path.stem) for path in normal_form.paths()]
LESSONS = [one for one in NOTEBOOKS if not normal_form.is_study(one.values[0])]
STUDIES = [one for one in NOTEBOOKS if normal_form.is_study(one.values[0])]
RHYTHM = "See it,Say it,Build it,Verify it,Use it,Exercises and bug hunts,Recap".split(",")
#: What the one complete listing of a lesson begins with; it needs torch and nothing else.
COMPLETE = "# Complete: "
#: What the parts of a listing begin with that stand below their formulas; in order they are one program.
PART = re.compile(r"# Part (\d) of (\d): ")
BANNED = set("interact interactive interactive_output Output clear_output update_display".split())
WIDGET_KEYS = {f"application/vnd.jupyter.widget-{kind}+json" for kind in ("view", "state")}


@functools.cache
def read(path):
    return nbformat.read(path, as_version=4)


def code_cells(path):
    return [cell for cell in read(path).cells if cell.cell_type == "code"]


def prose(path):
    return "\n\n".join(cell.source for cell in read(path).cells if cell.cell_type == "markdown")


@pytest.mark.parametrize("path", NOTEBOOKS)
def test_it_is_in_normal_form(path):
    assert normal_form.in_normal_form(path), f"run: make notebooks NAMES={path.stem}"


@pytest.mark.parametrize("path", NOTEBOOKS)
def test_every_code_cell_was_run_and_is_compared(path):
    for number, cell in enumerate(code_cells(path), start=1):
        assert cell.execution_count == number
        assert not cell.metadata.get("tags"), f"cell {number} has a tag without a reason on record"
        assert not re.search(r"NBVAL|nbval", cell.source), f"cell {number} is not compared"
        for output in cell.outputs:
            assert output.output_type != "error"
            assert output.get("name") != "stderr", f"cell {number} warns: {output.get('text')}"
            assert not WIDGET_KEYS & set(output.get("data", {}))


@pytest.mark.parametrize("path", NOTEBOOKS)
def test_every_picture_has_a_summary_that_is_compared_and_fits_into_a_window_of_1500_pixels(path):
    for number, cell in enumerate(code_cells(path), start=1):
        for output in cell.outputs:
            if "image/png" in output.get("data", {}):
                summary = output.data["text/plain"]
                assert re.search(r"\d", summary), f"cell {number}: no number in the summary"
                assert not re.search(r"<Figure|0x[0-9a-f]{6}", summary)
                assert output.metadata.get("image/png", {}).get("width", 0) <= 1068


VERDICT = re.compile(r"\bat (?:least|most) [^:;()]+: (?:yes|no)\b")
TIME = re.compile(
    r"\b(?:times?|[mnµ]s|(?:milli|micro)?seconds?|minutes?|hours?|faster|slower|speed\w*)\b|\d s\b"
)
#: A measured number, not whether it keeps a threshold.
BOOLEAN = re.compile(r"(?:at least|above|below|more than|less than)[^\n]{0,50}: (?:True|False)\b")
CLOCK = re.compile(r"\b(?:milliseconds|seconds|\w+_time|perf_counter)\(|\btimes\[")


def text_of(output):
    return output.get("text") or output.get("data", {}).get("text/plain", "")


@pytest.mark.parametrize("path", NOTEBOOKS)
def test_no_verdict_on_a_time_is_compared(path):
    """A busy machine may give another one."""
    for number, cell in enumerate(code_cells(path), start=1):
        said = "\n".join(map(text_of, cell.outputs))
        for line in said.splitlines():
            assert not (VERDICT.search(line) and TIME.search(line)), f"cell {number}: {line}"
        assert not (VERDICT.search(said) and CLOCK.search(cell.source)), f"cell {number} takes time"
        assert not BOOLEAN.search(said), f"print the number after ≈, in cell {number}"


@pytest.mark.parametrize("path", NOTEBOOKS)
def test_no_call_whose_output_cannot_be_compared(path):
    for number, cell in enumerate(code_cells(path), start=1):
        nodes = list(ast.walk(ast.parse(cell.source)))
        names = {node.id for node in nodes if isinstance(node, ast.Name)}
        names |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
        assert not names & BANNED, f"cell {number}"
        assert not re.search(r"^\s*[%!]", cell.source, re.MULTILINE), f"cell {number} has a magic"


@pytest.mark.parametrize("path", NOTEBOOKS)
def test_nothing_is_loaded_from_outside(path):
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"(src|href)=\\?[\"']?https?:|!\[[^\]]*\]\(https?:|@import|cdn\.", text)
    for target in re.findall(r"!?\[[^\]]*\]\((?!https?:|#)([^)]+)\)", prose(path)):
        assert (path.parent / target).exists(), f"broken link to {target}"


@pytest.mark.parametrize("path", LESSONS)
def test_it_has_the_rhythm_of_the_course(path):
    headings = re.findall(r"^## (.+)$", prose(path), re.MULTILINE)
    places = [headings.index(step) for step in RHYTHM if step in headings]
    assert places == sorted(places)
    assert set(RHYTHM) <= set(headings), set(RHYTHM) - set(headings)


@pytest.mark.parametrize("path", NOTEBOOKS)
def test_it_is_as_short_as_a_lesson_or_a_study(path):
    words = 2000 if normal_form.is_study(path) else 1500 if path.stem.startswith("00") else 2800
    lines = (
        220 if normal_form.is_study(path) else 320 if path.stem[:2] in ("13", "14", "15") else 260
    )
    code = "\n".join(cell.source for cell in code_cells(path)).splitlines()
    assert len(prose(path).split()) <= words
    assert sum(bool(line.strip()) for line in code) <= lines
    assert len(read(path).cells) <= 70


@pytest.mark.parametrize("path", STUDIES)
def test_a_study_asks_a_question_answers_it_and_leads_back_to_its_lesson(path):
    first, last = read(path).cells[0].source, read(path).cells[-1].source
    assert re.match(rf"# {int(path.stem[:2])}{path.stem[2]} · .+\?\n", first)
    (lesson,) = [one.id for one in LESSONS if one.id.startswith(path.stem[:2])]
    assert f"](../{lesson}.ipynb)" in first and f"](../{lesson}.ipynb)" in last
    assert f"](studies/{path.name})" in prose(path.parents[1] / f"{lesson}.ipynb")


def complete_listings(path):
    """In one cell, or in parts: all of them in their order, and the cell after the last, which uses them."""
    sources = [cell.source for cell in code_cells(path)]
    whole = [source for source in sources if source.startswith(COMPLETE)]
    parts = [number for number, source in enumerate(sources) if PART.match(source)]
    if parts:
        numbers = [PART.match(sources[number]).groups() for number in parts]
        count = str(len(parts))
        assert numbers == [(str(number), count) for number in range(1, len(parts) + 1)]
        whole.append("\n\n\n".join(sources[number] for number in (*parts, parts[-1] + 1)))
    return whole


def test_every_complete_listing_runs_in_an_empty_file(tmp_path):
    """Each in a namespace of its own; one process imports PyTorch for all of them."""
    files = []
    for path in (one.values[0] for one in LESSONS):
        for number, listing in enumerate(complete_listings(path)):
            assert number == 0 and "course_lib" not in listing, path.stem
            files.append(tmp_path / f"{path.stem}.py")
            files[-1].write_text(listing, encoding="utf-8")
    assert len(files) > 8
    run = "import runpy, sys\nfor file in sys.argv[1:]: runpy.run_path(file, run_name='__main__')"
    subprocess.run([sys.executable, "-I", "-c", run, *files], cwd=tmp_path, check=True)


def test_what_several_pages_write_out_is_written_alike():
    """`masked_softmax` has one text, and attention takes the same arguments from lesson 4 to lesson 8."""
    softmaxes, signatures, pages = set(), set(), 0
    classes = ("SingleHead", "MultiHeadAttention")  # lesson 6 has self-attention only
    for path in (one.values[0] for one in LESSONS if one.id[:2] <= "08"):
        for listing in complete_listings(path):
            for node in ast.walk(ast.parse(listing)):
                if isinstance(node, ast.FunctionDef) and node.name == "masked_softmax":
                    softmaxes.add(ast.unparse(node))
                if isinstance(node, ast.ClassDef) and node.name in classes:
                    own = {one.name: one for one in node.body if isinstance(one, ast.FunctionDef)}
                    signatures.add(ast.unparse(own["forward"].args))
                    pages += 1
    assert pages == 4 and signatures == {"self, x, memory, mask"}
    assert len(softmaxes) == 1


def counted(source):
    """The lines of a cell. A statement counts as one, however many lines it needs; comments count as none."""
    spread = sum(
        node.end_lineno - node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.stmt) and not hasattr(node, "body")
    )
    comments = sum(line.lstrip().startswith("# ") for line in source.splitlines())
    return len(source.splitlines()) - spread - comments


@pytest.mark.parametrize("path", NOTEBOOKS)
def test_cells_are_short_and_no_line_scrolls_sideways(path):
    """The page is 80 columns wide beside the file browser."""
    for number, cell in enumerate(code_cells(path), start=1):
        lines = cell.source.splitlines()
        assert max(map(len, lines)) <= 80, f"cell {number}"
        if not (cell.source.startswith(COMPLETE) or PART.match(cell.source)):
            assert counted(cell.source) <= 15, f"cell {number}"
            assert len(lines) <= 26, f"cell {number} is longer than a screen"


@pytest.mark.parametrize("path", NOTEBOOKS)
def test_imports_do_not_fill_the_screen(path):
    for number, cell in enumerate(code_cells(path), start=1):
        body = ast.parse(cell.source).body
        nodes = [node for node in body if isinstance(node, ast.Import | ast.ImportFrom)]
        lines = sum(node.end_lineno - node.lineno + 1 for node in nodes)
        assert lines <= 12, f"cell {number} has {lines} lines of imports"
        modules = [node.module for node in nodes if isinstance(node, ast.ImportFrom)]
        ours = [module for module in modules if module.startswith("course_lib")]
        assert ours == sorted(ours), f"cell {number}: the imports are not sorted"


@pytest.mark.parametrize("path", LESSONS)
def test_it_ends_with_a_link_to_the_next_notebook(path):
    paths = [one.values[0] for one in LESSONS]
    wanted = (paths + paths[:1])[paths.index(path) + 1]  # the last one leads back to the first
    link = r"^\*\*Next:\*\* .*?\[([^\]]+)\]\(([^)]+)\)"
    found = re.search(link, read(path).cells[-1].source, re.M)
    assert found and found[2] == wanted.name
    title = re.match(r"# (.+)", prose(wanted))[1]
    assert title.startswith(found[1] + ":"), f"the title of {wanted.name} is {title!r}"


def introduced(module, name):
    """The number of the notebook that introduces what `from module import name` imports."""
    place = f"{module}.{name}".removeprefix("course_lib.")
    for one, about in MODULES.items():
        in_it = f"{place}.".startswith(f"{one}.")
        through_its_folder = f"course_lib.{one}".startswith(f"{module}.")
        if in_it or (
            through_its_folder
            and name in getattr(importlib.import_module(f"course_lib.{one}"), "__all__", ())
        ):
            return about.notebook
    raise LookupError(f"from {module} import {name}")


@pytest.mark.parametrize("path", NOTEBOOKS)
def test_it_uses_only_what_the_learner_knows_by_then(path):
    now = int(path.stem[:2]) or 99  # the first shows what the others explain
    for cell in code_cells(path):
        for node in ast.walk(ast.parse(cell.source)):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("course_lib"):
                for name in node.names:
                    assert introduced(node.module, name.name) <= now, (node.module, name.name)


@pytest.mark.parametrize("path", NOTEBOOKS)
def test_every_exercise_of_the_notebook_is_set_in_it_and_every_bug_hunt_unmended(path):
    cells = code_cells(path)
    checked = re.findall(r'check\("(\w+)"', "\n".join(cell.source for cell in cells))
    assert checked == [name for name, one in EXERCISES.items() if one.notebook == path.stem]
    for cell in cells:
        for name in re.findall(r'check\("(hunt_\w+)"', cell.source):
            assert EXERCISES[name].given_message in "".join(map(text_of, cell.outputs)), name


@pytest.mark.parametrize("path", NOTEBOOKS)
def test_its_run_time_is_measured_and_the_readme_says_the_same(path):
    said = run_times.said_in(path)
    assert said is not None and said[0] > 0, "run: make times"
    assert said == run_times.said_in_readme(path.stem), "run: make times"


@pytest.mark.parametrize("path", LESSONS[1:])
def test_the_map_of_the_first_notebook_says_what_the_readme_says(path):
    said = run_times.said_in_map(path.stem, prose(normal_form.paths()[0]))
    assert said is not None and said == run_times.said_in_readme(path.stem), "run: make times"


@pytest.mark.parametrize("path", NOTEBOOKS)
def test_the_prose_keeps_the_house_rules(path):
    words = re.sub(r"\$[^$]*\$|`[^`]*`", "", prose(path))
    assert not re.search(r"\w!", words), "no exclamation marks"
    assert not re.search(r"\bsimply\b|\bobviously\b|\bof course\b", words, re.I)
