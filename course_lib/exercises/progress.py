"""The exercises tried and solved, kept from one session to the next.

Progress is a small JSON file in the user's data folder. The environment variable COURSE_PROGRESS
names another file, or is "off" to keep progress in memory only, as the tests do.
"""

import contextlib
import html
import itertools
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_data_path

from course_lib import messages
from course_lib.exercises.exercise import Exercise

#: Old name → new name of an exercise that asks for the same under another name: what is solved stays solved.
RENAMED = {
    "mix": "weighted_sum",
    "additive_scores": "decoder_step_scores",
    "hunt_new_norm": "hunt_add_norm",
    "hunt_peek": "hunt_validation",
    "hunt_turned": "hunt_cross",
    "looks_at": "attention_share",
}

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
        states = {name: state for name, state in known.items() if state in ("passed", "tried")}
    except (ValueError, AttributeError, RecursionError, TypeError):
        with contextlib.suppress(OSError):
            path.replace(path.with_suffix(".unreadable"))
        return {}
    for old, new in RENAMED.items():  # the old name stays, for who goes back to an older version
        if old in states and states.get(new) != "passed":
            states[new] = states[old]
    return states


@dataclass(frozen=True)
class Progress:
    """Which exercises are solved, tried, or neither: as text, and as a table with a bar for each notebook.

    Attributes:
        exercises: name → exercise, in the order of the course.
        states: name → "passed" or "tried".
    """

    exercises: Mapping[str, Exercise]
    states: Mapping[str, str]

    def _notebooks(self) -> Iterator[tuple[str, list[Exercise], int]]:
        """Yield each notebook with its exercises, and how many of them are solved."""
        for notebook, group in itertools.groupby(self.exercises.values(), lambda one: one.notebook):
            exercises = list(group)
            yield notebook, exercises, sum(self._state(one) == "passed" for one in exercises)

    def _state(self, exercise: Exercise) -> str:
        return self.states.get(exercise.name, "new")

    def _title(self) -> str:
        passed = sum(self._state(one) == "passed" for one in self.exercises.values())
        return messages.PROGRESS_TITLE.format(passed=passed, count=len(self.exercises))

    def __str__(self) -> str:
        lines = [self._title()]
        for notebook, exercises, _ in self._notebooks():
            lines += ["", notebook]
            for one in exercises:
                state = messages.PROGRESS_STATES[self._state(one)]
                lines.append(f"  {state:10} {one.name:22} {one.title}")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = []
        for notebook, exercises, passed in self._notebooks():
            bar = f'<progress value="{passed}" max="{len(exercises)}" aria-label="{notebook}"></progress>'
            folder = "studies/" if notebook[2].isalpha() else ""
            link = f'<a href="{folder}{notebook}.ipynb">{notebook.replace("_", " ")}</a>'
            rows.append((f"<b>{link}</b>", bar, f"{passed} / {len(exercises)}"))
            for one in exercises:
                state = messages.PROGRESS_STATES[self._state(one)]
                rows.append((f"<code>{one.name}</code>", html.escape(one.title), state))
        left = 'style="text-align: left"'  # JupyterLab drops a <style> until the cell is run
        body = "".join(
            f"<tr>{''.join(f'<td {left}>{cell}</td>' for cell in row)}</tr>" for row in rows
        )
        return f"<table><caption {left}>{self._title()}</caption>{body}</table>"
