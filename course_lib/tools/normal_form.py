"""Bring notebooks to normal form: executed top to bottom, with reproducible bytes.

``python -m course_lib.tools.normal_form [NOTEBOOK …]`` executes and rewrites the named notebooks,
or all of them. One that cannot be read, that is not in Python or a cell of which raises stays as it is.
"""

import argparse
import os
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellControlSignal

from course_lib.lab import LANGUAGE
from course_lib.tools import cells

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": LANGUAGE,
}


def paths(names: list[str] | None = None) -> list[Path]:
    """Return lessons, each before its studies, in the order of the course; `names` are stems or file names.

    Raises:
        ValueError: for an unknown notebook.
    """
    found = [*NOTEBOOKS.glob("*.ipynb"), *NOTEBOOKS.glob("studies/*.ipynb")]
    every = {path.stem: path for path in sorted(found, key=lambda path: path.stem)}
    unknown = [name for name in names or [] if Path(name).stem not in every]
    if unknown:
        raise ValueError(f"there is no notebook {unknown[0]!r}; there are {', '.join(every)}")
    return [every[Path(name).stem] for name in names] if names else list(every.values())


def is_study(path: Path) -> bool:
    """Whether a notebook is a study beside a lesson."""
    return path.parent.name == "studies"


def execute(notebook: nbformat.NotebookNode, folder: Path = NOTEBOOKS) -> None:
    """Run every cell in a fresh kernel.

    Raises:
        CellControlSignal, RuntimeError: at the first cell that raises or takes too long; that ends the kernel.
    """
    os.environ["COURSE_PROGRESS"] = "off"
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources).execute()


def normalise(notebook: nbformat.NotebookNode) -> None:
    """Remove from an executed notebook whatever differs between runs or machines."""
    notebook.metadata = nbformat.from_dict(METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    executed = 0
    for position, cell in enumerate(notebook.cells):
        cell.id = f"{cell.cell_type}-{position:03d}"
        tags = cell.metadata.get("tags")
        cell.metadata = nbformat.from_dict({"tags": tags} if tags else {})
        cell.source = cell.source.rstrip()
        if cell.cell_type != "code":
            continue
        executed += 1
        cell.execution_count = executed
        cell.outputs = _joined(cell.outputs)
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = executed
            output.get("data", {}).pop(WIDGET_VIEW, None)


def _joined(outputs: list) -> list:
    """Join the chunks of a stream, whose boundaries depend on timing."""
    joined: list = []
    for output in outputs:
        last = joined[-1] if joined else {}
        if output.output_type == "stream" and output.name == last.get("name"):
            last.text += output.text
        else:
            joined.append(output)
    return joined


def text(notebook: nbformat.NotebookNode) -> str:
    """Return the notebook as a JSON text."""
    return nbformat.writes(notebook) + "\n"


def in_normal_form(path: Path) -> bool:
    """Whether a file is in normal form."""
    written = path.read_text(encoding="utf-8")
    notebook = nbformat.reads(written, as_version=4)
    normalise(notebook)
    return text(notebook) == written


def renew(path: Path) -> None:
    """Execute a notebook and rewrite it.

    Raises:
        ValueError: for one that cannot be read or run.
    """
    notebook = cells.read(path)
    if not (named := cells.language(notebook)).startswith(("python", "ipython")):
        raise ValueError(f"{path.name} is written in {named}")
    try:
        execute(notebook, path.parent)
    except (CellControlSignal, RuntimeError) as error:
        raise ValueError(f"{path.name} does not run:\n{error}") from error
    normalise(notebook)
    path.write_text(text(notebook), encoding="utf-8")


def main() -> None:
    """Execute and rewrite; exit with 1 where a notebook could not be."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="*", help="stems or file names; all where left out")
    try:
        chosen = paths(parser.parse_args().notebooks)
    except ValueError as error:
        parser.error(str(error))
    left = []
    for path in chosen:
        try:
            renew(path)
            print(path.relative_to(NOTEBOOKS.parent))
        except (OSError, ValueError) as error:
            left.append(path.stem)
            print(error, file=sys.stderr)
    if left:
        sys.exit(f"Left as they were: {', '.join(left)}.")


if __name__ == "__main__":
    main()
