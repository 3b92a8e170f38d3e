"""A report on the notebooks that a run of pytest has executed: ``pytest notebooks --report build``.

It writes `report.md` and `report.html` into the folder: what passed, what was compared and what not, time and memory,
explorers, and exercises with the mistakes that they name. nbval runs and compares the cells, as always; the exit status
stays pytest's.
"""

import ast
import html
import os
import platform
import re
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import mistune
import nbformat
import pytest

_MEMORY = "peak memory of the kernel, MB"
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
the numbers drawn in it are, in the sentence that describes it. Seconds are those of the whole notebook, its kernel's start
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


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """After each cell, read the peak memory of its kernel so far."""
    kernel = getattr(item.parent, "kernel", None)  # of nbval's notebooks alone
    if kernel is not None and kernel.is_alive():
        status = Path(f"/proc/{kernel.km.provisioner.pid}/status")
        if status.exists():
            peak = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
            item.user_properties.append((_MEMORY, int(peak[1]) / 1024))


@dataclass
class Run:
    """What pytest said about one notebook.

    Attributes:
        cells: how many were executed.
        failures: (number of the cell in the notebook, what nbval said).
        skipped: why, if a cell was.
    """

    cells: int = 0
    seconds: float = 0.0
    megabytes: float = 0.0
    failures: list[tuple[int, str]] = field(default_factory=list)
    skipped: str = ""

    @property
    def result(self) -> str:
        """Return one word."""
        return "**failed**" if self.failures else "passed" if self.cells else "skipped"


class Listener:
    """Collects the results of all cells, and writes the report at the end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs: dict[Path, Run] = defaultdict(Run)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the report of one cell: of its set-up, its call, or its end."""
        file, _, cell = report.nodeid.partition("::Cell ")
        if not file.endswith(".ipynb"):
            return
        run = self.runs[Path(file)]
        run.seconds += report.duration
        run.cells += report.when == "call" and not report.skipped
        run.megabytes = max([run.megabytes, *dict(report.user_properties).values()])
        if report.failed:
            said = re.sub(r"\x1b\[[\d;]*m", "", report.longreprtext)
            said = re.sub(r"\A.*\nCell \d+: ", "", said)  # nbval counts from 0
            run.failures.append((int(cell) + 1, said))
        elif report.skipped and not hasattr(report, "wasxfail"):  # as cells are after a time-out
            run.skipped = report.longrepr[2].removeprefix("Skipped: ")

    def pytest_terminal_summary(self, terminalreporter, config: pytest.Config) -> None:
        """Write the report."""
        processes = config.getoption("numprocesses", None) or 1
        text = report({config.rootpath / path: run for path, run in self.runs.items()}, processes)
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "report.md").write_text(text, encoding="utf-8")
        body = mistune.create_markdown(escape=False, plugins=["table"])(text)
        page = PAGE.format(title=text.splitlines()[0].strip("# "), style=STYLE, body=body)
        (self.folder / "report.html").write_text(page, encoding="utf-8")
        terminalreporter.write_line(f"report: {self.folder / 'report.html'}, and .md beside it")


class Notebook:
    """What a notebook file says about itself."""

    def __init__(self, path: Path) -> None:
        from course_lib.exercises import EXERCISES

        self.cells = [
            cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"
        ]
        self.exercises = [one for one in EXERCISES.values() if one.notebook == path.stem]
        self.mistakes = sum(len(exercise.mistakes) for exercise in self.exercises)
        calls = (
            node.func.id
            for cell in self.cells
            for node in ast.walk(ast.parse(cell.source))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        )
        self.explorers = [name for name in calls if name.endswith("_explorer")]
        #: Why a cell is not compared, or what of its output is not → the numbers of such cells.
        self.reasons: dict[str, list[int]] = defaultdict(list)
        self.compared = 0
        for number, cell in enumerate(self.cells, start=1):
            self._classify(number, cell)

    def _classify(self, number: int, cell: nbformat.NotebookNode) -> None:
        from nbval.plugin import find_comment_markers, find_metadata_tags

        options = dict(find_metadata_tags(cell.metadata)) | dict(find_comment_markers(cell.source))
        if options.get("skip") or not options.get("check", True):
            self.reasons["Not compared, as a tag or a comment in the cell says"].append(number)
        elif not cell.outputs:
            self.reasons["Without output, which is all there is to compare"].append(number)
        else:
            self.compared += 1
            text = str(cell.outputs)
            if "image/png" in text:
                self.reasons["With a picture, whose pixels are not compared"].append(number)
            if "≈" in text:
                self.reasons["With ≈, after which digits are not compared"].append(number)


def report(runs: dict[Path, Run], processes: int) -> str:
    """Return the report as Markdown.

    Args:
        runs: path of a notebook → what pytest said about it.
        processes: how many notebooks ran at a time.
    """
    order = sorted(runs, key=lambda path: path.stem)
    notebooks = {path: Notebook(path) for path in order}
    results = [run.result for run in runs.values()]
    counts = [f"{results.count(word)} {word.strip('*')}" for word in dict.fromkeys(results)]
    head = HEAD.format(
        title="Validation of the notebooks",
        verdict=f"{len(runs)} notebooks: {', '.join(counts)}.",
        when=datetime.now().strftime("%d %B %Y, %H:%M"),
        python=platform.python_version(),
        system=platform.system(),
        cores=os.cpu_count(),
        processes=processes,
    )
    rows = [_row(path.stem, runs[path], notebooks[path]) for path in order]
    failed = [
        f"### {path.stem}, cell {number}\n\n````\n{said}\n````\n"
        for path in order
        for number, said in runs[path].failures
    ]
    failures = [FAILURES, *failed] if failed else []
    details = [_details(path.stem, runs[path], notebooks[path]) for path in order]
    return "\n".join([head + "\n".join(rows), LEGEND, *failures, "\n## Each notebook\n", *details])


def _row(stem: str, run: Run, notebook: Notebook) -> str:
    count, executed = len(notebook.cells), run.cells
    cells = [
        stem,
        run.result,
        f"{count}" if executed in (0, count) else f"{executed} of {count} run",
        notebook.compared if executed else 0,
        f"{run.seconds:.0f}",
        f"{run.megabytes:.0f}" if run.megabytes else "–",
        len(notebook.explorers),
        len(notebook.exercises),
        notebook.mistakes,
    ]
    return f"| {' | '.join(map(str, cells))} |"


def _details(stem: str, run: Run, notebook: Notebook) -> str:
    lines = [f"### {stem}\n"]
    if run.skipped:
        lines.append(f"- Skipped: {run.skipped}")
    for reason, numbers in notebook.reasons.items():
        cells = "cell" if len(numbers) == 1 else "cells"
        lines.append(f"- {reason}: {cells} {', '.join(map(str, numbers))}.")
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
