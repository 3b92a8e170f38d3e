"""The record of an experiment that measures finished runs: JSON in a file beside its module."""

import argparse
import json
from pathlib import Path
from typing import Any

Record = dict[str, Any]


def read(path: Path) -> Record:
    """Return what is recorded; an empty dictionary where nothing is."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write(path: Path, result: Record, *, indent: int | None = 1) -> None:
    """Replace the record, whole or not at all; without an indent, by one line."""
    text, new = json.dumps(result, indent=indent, ensure_ascii=False), path.with_suffix(".partial")
    new.write_text(text + "\n", encoding="utf-8")
    new.replace(path)


def text_options(doc: str, record: Path) -> argparse.ArgumentParser:
    """Return the options of a command that measures translators on a text: the text, and where it is recorded."""
    options = argparse.ArgumentParser(description=doc.partition("\n")[0])
    options.add_argument("--data", default="multi30k", help="as for course_lib.train (multi30k)")
    options.add_argument("--record", type=Path, default=record, help="the file to write")
    return options
