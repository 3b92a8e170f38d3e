"""Which exercises were tried and solved, kept from one session to the next.

The record is a small JSON file in the user's data folder. The environment variable COURSE_PROGRESS
names another file, or is "off" to keep the record in memory only, as the tests do.
"""

import contextlib
import json
import os
import tempfile
from pathlib import Path

from platformdirs import user_data_path

_this_session: dict[str, str] = {}
_hints_shown: dict[str, int] = {}


def states() -> dict[str, str]:
    """Return exercise → "passed" or "tried", from the file and from this session."""
    known = _read(_path())
    for name, state in _this_session.items():
        if known.get(name) != "passed":
            known[name] = state
    return known


def note(name: str, state: str) -> None:
    """Record the outcome of a check. What was once passed stays passed."""
    if state not in ("tried", "passed") or states().get(name) == "passed":
        return
    _this_session[name] = state
    path = _path()
    if path is None:
        return
    with contextlib.suppress(
        OSError, ValueError
    ):  # a full or read-only disk must not stop a lesson
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=path.parent, prefix=path.name)
        with open(handle, "w", encoding="utf-8") as file:
            json.dump(states(), file, indent=1, sort_keys=True)
        os.replace(draft, path)


def next_hint(name: str, count: int) -> int | None:
    """Count up the hints shown for an exercise; None when all `count` have been."""
    number = _hints_shown.get(name, 0) + 1
    if number > count:
        return None
    _hints_shown[name] = number
    return number


def _path() -> Path | None:
    chosen = os.environ.get("COURSE_PROGRESS", "")
    if chosen == "off":
        return None
    return (
        Path(chosen).expanduser()
        if chosen
        else user_data_path("attention-course") / "progress.json"
    )


def _read(path: Path | None) -> dict[str, str]:
    """Read the record; a file whose content makes no sense is kept, under another name."""
    try:
        written = path.read_text(encoding="utf-8") if path is not None else "{}"
    except (OSError, ValueError):  # not there, a folder, not ours to read
        return {}
    try:
        known = json.loads(written)
        return {name: state for name, state in known.items() if state in ("passed", "tried")}
    except (ValueError, AttributeError, RecursionError, TypeError):
        with contextlib.suppress(OSError):
            path.replace(path.with_suffix(".unreadable"))
        return {}
