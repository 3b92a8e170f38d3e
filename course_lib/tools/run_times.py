"""Measure time and memory of each notebook, and write them into the notebook and the README.

``python -m course_lib.tools.run_times`` runs every notebook in its own process, and writes
seconds and megabytes into its first cell and into the table of the README.
"""

import argparse
import re
import subprocess
import sys
import time
from math import ceil
from pathlib import Path

import nbformat

from course_lib.tools import normal_form

README = normal_form.NOTEBOOKS.parent / "README.md"
IN_NOTEBOOK = re.compile(r"\*\*It runs in\*\* (\d+) s on two CPU cores, with (\d+) MB of memory")
# \s: the spaces are no-break spaces.
IN_MAP = r"(\((?:notebooks/)?(?:studies/)?{stem}\.ipynb\).*\| )(\d+)\ss,\s(\d+)\sMB \|"


def measure(path: Path) -> tuple[int, int]:
    """Run a notebook in this process's own kernel; return seconds and the kernel's peak memory in MB. On Linux."""
    import resource

    notebook = nbformat.read(path, as_version=4)
    started = time.perf_counter()
    normal_form.execute(notebook, path.parent)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return ceil(seconds), 10 * ceil(peak / 10)


def said_in(path: Path) -> tuple[int, int] | None:
    """Return the seconds and megabytes that a notebook's first cell states."""
    found = IN_NOTEBOOK.search(nbformat.read(path, as_version=4).cells[0].source)
    return (int(found[1]), int(found[2])) if found else None


def said_in_readme(stem: str) -> tuple[int, int] | None:
    """Return the seconds and megabytes that the README states for a notebook."""
    return said_in_map(stem, README.read_text(encoding="utf-8"))


def said_in_map(stem: str, text: str) -> tuple[int, int] | None:
    """Return the seconds and megabytes that a table of notebooks states for one of them."""
    found = re.search(IN_MAP.format(stem=stem), text)
    return (int(found[2]), int(found[3])) if found else None


def write(path: Path, seconds: int, megabytes: int) -> None:
    """Write the numbers into the notebook, and into the maps in the README and the first notebook."""
    notebook = nbformat.read(path, as_version=4)
    words = f"**It runs in** {seconds} s on two CPU cores, with {megabytes} MB of memory"
    notebook.cells[0].source = IN_NOTEBOOK.sub(words, notebook.cells[0].source)
    path.write_text(normal_form.text(notebook), encoding="utf-8")
    pattern = re.compile(IN_MAP.format(stem=path.stem))
    said = f"{seconds} s, {megabytes} MB".replace(" ", "\N{NO-BREAK SPACE}")
    row = rf"\g<1>{said} |"
    README.write_text(pattern.sub(row, README.read_text(encoding="utf-8")), encoding="utf-8")
    front = normal_form.paths()[0]
    notebook = nbformat.read(front, as_version=4)
    for cell in notebook.cells:
        cell.source = pattern.sub(row, cell.source)
    front.write_text(normal_form.text(notebook), encoding="utf-8")


def main() -> None:
    """Measure each notebook in a fresh process, or the one that is named in this one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebook", nargs="?")
    chosen = parser.parse_args().notebook
    if chosen:
        print(*measure(*normal_form.paths([chosen])))
        return
    for path in normal_form.paths():
        here = [sys.executable, "-m", "course_lib.tools.run_times", path.stem]
        printed = subprocess.run(here, capture_output=True, text=True, check=True).stdout
        seconds, megabytes = map(int, printed.split()[-2:])
        write(path, seconds, megabytes)
        print(f"{path.name}: {seconds} s, {megabytes} MB")


if __name__ == "__main__":
    main()
