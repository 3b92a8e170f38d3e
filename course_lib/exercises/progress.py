"""The exercises tried and solved, kept from one session to the next.

Progress is a small JSON file in the user's data folder. The environment variable COURSE_PROGRESS
names another file, or is "off" to keep progress in memory only, as the tests do.
"""

import contextlib
import json
import os
import tempfile
from pathlib import Path

from platformdirs import user_data_path

_session_states: dict[str, str] = {}
_hints_shown: dict[str, int] = {}


def recorded_states() -> dict[str, str]:
    """Return exercise → "passed" or "tried", from the file and from this session."""
    known = _read_file(_path())
    for name, state in _session_states.items():
        if known.get(name) != "passed":
            known[name] = state
    return known


def record_state(name: str, state: str) -> None:
    """Record the state of an exercise after a check. "passed" is never taken back."""
    if state not in ("tried", "passed") or recorded_states().get(name) == "passed":
        return
    _session_states[name] = state
    path = _path()
    if path is None:
        return
    # a full or read-only disk must not interrupt the learner
    with contextlib.suppress(OSError, ValueError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
        with open(handle, "w", encoding="utf-8") as file:
            json.dump(recorded_states(), file, indent=1, sort_keys=True)
        os.replace(temporary, path)


def next_hint(name: str, count: int) -> int | None:
    """Count up the hints shown for an exercise; None when all `count` have been."""
    number = _hints_shown.get(name, 0) + 1
    if number > count:
        return None
    _hints_shown[name] = number
    return number


def _path() -> Path | None:
    setting = os.environ.get("COURSE_PROGRESS", "")
    if setting == "off":
        return None
    if setting:
        return Path(setting).expanduser()
    return user_data_path("attention-course") / "progress.json"


def _read_file(path: Path | None) -> dict[str, str]:
    """Read the file; one that cannot be parsed is kept under another name."""
    try:
        content = path.read_text(encoding="utf-8") if path is not None else "{}"
    except (OSError, ValueError):  # missing, a folder, or not readable
        return {}
    try:
        known = json.loads(content)
        return {name: state for name, state in known.items() if state in ("passed", "tried")}
    except (ValueError, AttributeError, RecursionError, TypeError):
        with contextlib.suppress(OSError):
            path.replace(path.with_suffix(".unreadable"))
        return {}
