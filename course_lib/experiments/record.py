"""The record of an experiment: JSON in a file beside its module."""

import json
from pathlib import Path
from typing import Any


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
