"""The record of an experiment: JSON in a file beside its module."""

import argparse
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch

from course_lib.validation import require_one_of


def read(path: Path) -> dict[str, Any]:
    """Return what is recorded; an empty dictionary where nothing is."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def rounded(result: Any, spec: str) -> Any:
    """Return a result as JSON gives it back, with every fraction rounded as by `format(number, spec)`."""
    return json.loads(
        json.dumps(result), parse_float=lambda number: float(f"{float(number):{spec}}")
    )


def write(path: Path, result: dict[str, Any], *, indent: int | None = 1) -> None:
    """Write the record; without an indent, on one line."""
    text = json.dumps(result, indent=indent, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def chosen_arms(arms: Iterable[str], description: str) -> list[str]:
    """Return the arms named on the command line, all where none is; the rest runs in one thread.

    Args:
        arms: their names.
        description: of the experiment, for ``--help``.

    Raises:
        ValueError: for a name that is not among them.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("arms", nargs="*", help=f"of {', '.join(map(repr, arms))}; or all")
    chosen = parser.parse_args().arms or list(arms)
    for arm in chosen:
        require_one_of(arms, arm=arm)
    torch.set_num_threads(1)
    return chosen


def run_arms(
    path: Path,
    arms: Iterable[str],
    run: Callable[[str], Any],
    description: str,
    *,
    indent: int | None = 1,
) -> None:
    """Run the arms named on the command line, all where none is, and record each as soon as it is done.

    Args:
        path: of the record, in which the arms keep this order.
        arms: their names.
        run: arm → its result.
        description: as for `chosen_arms`.
        indent: as for `write`.
    """
    for arm in chosen_arms(arms, description):
        new = run(arm)
        print(arm, new, flush=True)
        result = read(path) | {arm: new}
        write(path, {name: result[name] for name in arms if name in result}, indent=indent)
