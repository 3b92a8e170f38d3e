"""A report on the notebooks that a run of pytest has executed: ``pytest notebooks --report build``.

It writes `report.md` and `report.html` into the folder, however the run ends: what passed, what was compared and what not,
time and memory, explorers, and exercises with the mistakes that they name. nbval runs and compares the cells, as always;
the exit status stays pytest's. A file that cannot be read fails on its own, and a notebook in another language is skipped.
"""

import ast
import html
import os
import platform
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import mistune
import nbformat
import pytest

from course_lib.tools import cells

_NEVER_RUN = (
    "Not compared: never run before the notebook was saved (`make notebooks` runs and saves it)"
)
_MEMORY, _COMPARES = "peak memory of the kernel, MB", "whether nbval compares the cell"
STYLE = """body { max-width: 76rem; margin: 2rem auto; padding: 0 1rem; font: 16px/1.5 system-ui, sans-serif; color: #1f2937; }
table { display: block; overflow-x: auto; border-collapse: collapse; }
td, th { padding: .25rem .6rem; border-bottom: 1px solid #d1d5db; text-align: left; vertical-align: top; }
pre { padding: .6rem; background: #f3f4f6; overflow-x: auto; }
code { font-size: .9em; }
"""
PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title><style>{style}</style></head>
<body>{body}</body></html>
"""
HEAD = """# {title}

**{verdict}** {when}, Python {python}, {system}, {cores} cores, {processes} notebooks at a time.

| notebook | result | cells | compared | seconds | MB | explorers | exercises | mistakes named |
|---|---|--:|--:|--:|--:|--:|--:|--:|
"""
LEGEND = """
Cells are numbered as in the notebook. A cell is **compared** where its output is the stored one: text exactly, numbers with
a decimal point to 1 %. Not compared are digits after ≈, which differ from machine to machine, and the pixels of a picture;
the numbers drawn in it are, in the sentence that describes it. **In part**: some cells were not run, or have no stored output
to be compared with, because they were never run before the notebook was saved. Seconds are those of the whole notebook, its kernel's start
included; MB are the peak of its kernel (Linux only).
"""
FAILURES = """
## What failed

In a difference, `+` is the stored output and `-` is what came now.
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --report."""
    words = "write report.md and report.html about the notebooks of this run into FOLDER"
    parser.addoption("--report", metavar="FOLDER", type=Path, help=words)


def pytest_configure(config: pytest.Config) -> None:
    """Listen to the results, in the process that hears of all of them."""
    folder = config.getoption("report")
    if folder is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Listener(folder))


class Unreadable(pytest.Item):
    """Stands for all cells of a file that nbval cannot read."""

    def runtest(self) -> None:
        """Fail."""
        cells.read(self.path)
        raise ValueError(f"{self.path.name} cannot be read by nbval")

    def repr_failure(self, excinfo, style=None) -> str:
        """Say why in a line."""
        return str(excinfo.value)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector):
    """Let a file that is no notebook be a test that fails; an error here would end the run before it began."""
    found = yield
    if found.failed and collector.nodeid.endswith(".ipynb"):
        collector.setup = lambda: None  # no kernel
        one = Unreadable.from_parent(collector, name="the file")
        found = pytest.CollectReport(collector.nodeid, "passed", None, [one])
    return found


def pytest_itemcollected(item: pytest.Item) -> None:
    """Note whether nbval compares a cell; skip cells in another language than Python."""
    if not hasattr(item, "cell_num"):  # which nbval's cells alone have
        return
    item.user_properties.append((_COMPARES, bool(item.options["check"])))
    if not (named := cells.language(item.parent.nb)).startswith(("python", "ipython")):
        reason = f"it is written in {named}, and the kernel of the course runs Python"
        item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """After each cell, read the peak memory of its kernel so far."""
    kernel = getattr(item.parent, "kernel", None)  # of nbval's notebooks alone
    if kernel is not None and kernel.is_alive():
        status = Path(f"/proc/{kernel.km.provisioner.pid}/status")
        if status.exists() and (peak := re.search(r"VmHWM:\s+(\d+) kB", status.read_text())):
            item.user_properties.append((_MEMORY, int(peak[1]) / 1024))


@dataclass
class Run:
    """What pytest said about one notebook.

    Attributes:
        cells: number in the notebook → whether nbval compared it, of each that was executed.
        failures: (number of the cell in the notebook, what nbval said); 0 where it is about the whole file.
        left_out: numbers of the cells that are not executed because a tag says so.
        skipped: why, if the notebook was.
    """

    cells: dict[int, bool] = field(default_factory=dict)
    seconds: float = 0.0
    megabytes: float = 0.0
    failures: list[tuple[int, str]] = field(default_factory=list)
    left_out: set[int] = field(default_factory=set)
    skipped: str = ""


class Listener:
    """Collects the results of all cells, and writes the report at the end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs: dict[Path, Run] = defaultdict(Run)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Expect these notebooks: a run that stops early has not run them all."""
        self._expect(item.nodeid for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Expect these notebooks, which a process of pytest-xdist has found."""
        self._expect(ids)

    def _expect(self, ids: Iterable[str]) -> None:
        for file, _, _ in (each.rpartition("::") for each in ids):
            if file.endswith(".ipynb"):
                _ = self.runs[Path(file)]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the report of one cell: of its set-up, its call, or its end."""
        file, _, cell = report.nodeid.rpartition("::")
        if not file.endswith(".ipynb"):
            return
        run, said = self.runs[Path(file)], dict(report.user_properties)
        number = int(cell.removeprefix("Cell ")) + 1 if cell.startswith("Cell ") else 0
        run.seconds += report.duration
        run.megabytes = max(run.megabytes, said.get(_MEMORY, 0.0))
        if report.when == "call" and not report.skipped and number:
            run.cells[number] = said.get(_COMPARES, True)
        if report.failed:
            text = re.sub(r"\x1b\[[\d;]*m", "", report.longreprtext)
            # of pytest-xdist, and of nbval, which counts from 0
            text = re.sub(r"\A(?:\[gw\d+\].*\n)?(?:.*\nCell \d+: )?", "", text)
            if report.when == "call" or text not in [one for _, one in run.failures]:  # of a kernel
                run.failures.append((number, text))
        elif report.skipped and not hasattr(report, "wasxfail"):  # as cells are after a time-out
            if report.when == "call":
                run.left_out.add(number)
            else:
                run.skipped = report.longrepr[2].removeprefix("Skipped: ")

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the report."""
        config = session.config
        processes = config.getoption("numprocesses", None) or 1
        text = report({config.rootpath / path: run for path, run in self.runs.items()}, processes)
        body = mistune.create_markdown(escape=False, plugins=["table"])(text)
        page = PAGE.format(title=text.splitlines()[0].strip("# "), style=STYLE, body=body)
        self.folder.mkdir(parents=True, exist_ok=True)
        for name, content in (("report.md", text), ("report.html", page)):
            (self.folder / name).write_text(content, encoding="utf-8", errors="backslashreplace")

    def pytest_terminal_summary(self, terminalreporter) -> None:
        """Say where the report is."""
        terminalreporter.write_line(f"report: {self.folder / 'report.html'}, and .md beside it")


class Notebook:
    """What a notebook file says about itself, and how much of it a run has compared."""

    def __init__(self, path: Path, run: Run) -> None:
        from course_lib.exercises.catalogue import EXERCISES, NOTEBOOKS

        try:
            found = cells.read(path).cells
        except (OSError, ValueError):
            found = []  # as the run says
        self.run = run
        self.cells = [cell for cell in found if cell.cell_type == "code"]
        self.exercises = [EXERCISES[name] for name in NOTEBOOKS.get(path.stem, "").split()]
        self.mistakes = sum(len(exercise.mistakes) for exercise in self.exercises)
        calls = (
            node.func.id
            for cell in self.cells
            for node in ast.walk(ast.parse(cells.python(cell.source)))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        )
        self.explorers = [name for name in calls if name.endswith("_explorer")]
        #: Why a cell is not compared, or what of its output is not → the numbers of such cells.
        self.reasons: dict[str, list[int]] = defaultdict(list)
        #: How many cells have an output that was compared; have none, as before; were not run, now or when it was saved.
        self.compared = self.silent = self.missing = 0
        for number, cell in enumerate(self.cells, start=1):
            self._classify(number, cell)

    def _classify(self, number: int, cell: nbformat.NotebookNode) -> None:
        if number in self.run.left_out or self.run.cells.get(number) is False:
            self.reasons["Not compared, as a tag, a comment or an option says"].append(number)
        elif not cell.source.strip():
            return
        elif number not in self.run.cells:
            self.missing += 1
            if self.run.cells:
                self.reasons["Not run"].append(number)
        elif cell.execution_count is None:
            self.missing += 1
            self.reasons[_NEVER_RUN].append(number)
        elif not cell.outputs:
            self.silent += 1
            self.reasons["Without output, which is all there is to compare"].append(number)
        else:
            self.compared += 1
            text = str(cell.outputs)
            if "image/png" in text:
                self.reasons["With a picture, whose pixels are not compared"].append(number)
            if "≈" in text:
                self.reasons["With ≈, after which digits are not compared"].append(number)

    @property
    def result(self) -> str:
        """Say in a word or two how the run ended."""
        if self.run.failures:
            return "**failed**"
        if not self.run.cells:
            return "skipped" if self.run.skipped or self.run.left_out else "**not run**"
        if not self.compared + self.silent:
            return "**not compared**"
        return "**in part**" if self.missing else "passed"


def report(runs: dict[Path, Run], processes: int) -> str:
    """Return the report as Markdown.

    Args:
        runs: path of a notebook → what pytest said about it.
        processes: how many notebooks ran at a time.
    """
    order = sorted(runs, key=lambda path: (path.stem, path))
    notebooks = {path: Notebook(path, runs[path]) for path in order}
    names = _names(order)
    results = [notebook.result.strip("*") for notebook in notebooks.values()]
    counts = ", ".join(f"{results.count(word)} {word}" for word in dict.fromkeys(results))
    head = HEAD.format(
        title="Validation of the notebooks",
        verdict=f"{len(runs)} notebooks: {counts}."
        if runs
        else "Nothing was compared: no notebook was found.",
        when=datetime.now().strftime("%d %B %Y, %H:%M"),
        python=platform.python_version(),
        system=platform.system(),
        cores=os.cpu_count(),
        processes=processes,
    )
    rows = [_row(names[path], notebooks[path]) for path in order]
    failed = [_failure(names[path], *one) for path in order for one in runs[path].failures]
    failures = [FAILURES, *failed] if failed else []
    details = [_details(names[path], notebooks[path]) for path in order]
    return "\n".join([head + "\n".join(rows), LEGEND, *failures, "\n## Each notebook\n", *details])


def _names(paths: list[Path]) -> dict[Path, str]:
    """Return what to call each notebook, with its folder where two have one name; safe in a table."""
    stems = Counter(path.stem for path in paths)
    short = {p: p.stem if stems[p.stem] == 1 else f"{p.parent.name}/{p.stem}" for p in paths}
    safe = re.compile(r"[^\w .,()/-]")
    return {path: safe.sub(lambda sign: f"&#{ord(sign[0])};", name) for path, name in short.items()}


def _failure(name: str, number: int, said: str) -> str:
    longest = max(map(len, re.findall("`+", said)), default=0)
    fence = "`" * max(4, longest + 1)
    return f"### {name}{f', cell {number}' if number else ''}\n\n{fence}\n{said}\n{fence}\n"


def _row(name: str, notebook: Notebook) -> str:
    run, count = notebook.run, len(notebook.cells)
    executed = len(run.cells)
    columns = [
        name,
        notebook.result,
        f"{count}" if executed in (0, count) else f"{executed} of {count} run",
        notebook.compared,
        f"{run.seconds:.0f}",
        f"{run.megabytes:.0f}" if run.megabytes else "–",
        len(notebook.explorers),
        len(notebook.exercises),
        notebook.mistakes,
    ]
    return f"| {' | '.join(map(str, columns))} |"


def _details(name: str, notebook: Notebook) -> str:
    lines = [f"### {name}\n"]
    if notebook.run.skipped:
        lines.append(f"- Skipped: {html.escape(notebook.run.skipped)}")
    for reason, numbers in notebook.reasons.items():
        word = "cell" if len(numbers) == 1 else "cells"
        lines.append(f"- {reason}: {word} {', '.join(map(str, numbers))}.")
    if notebook.explorers:
        lines.append(f"- Explorers: {', '.join(f'`{name}`' for name in notebook.explorers)}.")
    lines.append("")
    for exercise in notebook.exercises:
        said = dict.fromkeys(mistake.message for mistake in exercise.mistakes)
        items = "".join(f"<li>{html.escape(message)}</li>" for message in said)
        title = f"<code>{exercise.name}</code>: {html.escape(exercise.title)}"
        summary = f"{title}; names {len(exercise.mistakes)} wrong answers in {len(said)} messages"
        lines.append(f"<details><summary>{summary}</summary><ul>{items}</ul></details>\n")
    return "\n".join(lines)
