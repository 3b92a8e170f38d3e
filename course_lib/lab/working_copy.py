"""The learner's own copy of the notebooks: `work/`, beside `notebooks/`, so that every relative link works in both.

An update of the course changes `notebooks/` only and never collides with answers. `make lab` then compares:

- A notebook that the learner has not changed is replaced by its new version.
- Where both have changed it, the learner's stays, and the new version lies beside it, with "new" after its number.
- One that the course has renamed or removed stays, and so does a file that is no notebook any more; a line says so.

A notebook counts as changed when the text of its cells has changed, so running cells changes nothing.

``python -m course_lib.lab.working_copy`` makes the copy, or brings it up to date; ``--reset 01`` starts one notebook again
and keeps the old one.
"""

import argparse
import hashlib
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from course_lib import messages

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
#: Where the copy is: on a hub, whatever starts the server of a user says it in `COURSE_WORK`.
WORK = Path(os.environ.get("COURSE_WORK") or NOTEBOOKS.parent / "work")


def update(notebooks: Path = NOTEBOOKS, work: Path = WORK) -> list[str]:
    """Bring the copy up to date; return what the learner should know, a line for each notebook."""
    known, edited = _read_record(work), _edited_in_place(notebooks)
    sources = {path.relative_to(notebooks).as_posix(): path for path in _sources(notebooks)}
    said = _left_behind(work, known, sources)
    for name, source in sources.items():
        mine, new = work / name, _fingerprint(source)
        if name in edited:  # as in courses begun before there was a copy: these are answers, too
            if not mine.exists():
                _copy(source, mine)
                known[name] = ""
            continue
        if not mine.exists():
            _copy(source, mine)
        elif _texts(mine) is None:
            said.append(messages.NO_NOTEBOOK.format(mine=mine.name, number=_number(name)))
            continue
        elif new not in (known.get(name), now := _fingerprint(mine)):
            if now == known.get(name):
                _copy(source, mine)
            else:
                beside = _beside(mine, "new")
                _copy(source, beside)
                said.append(messages.BOTH_CHANGED.format(mine=mine.name, new=beside.name))
        known[name] = new
    _write_record(work, known)
    return said


def _left_behind(work: Path, known: dict[str, str], sources: Iterable[str]) -> list[str]:
    """Forget what the course has renamed or removed; return a line for each copy of it, which stays.

    Its new name has the same title, or else the same number.
    """
    said = []
    added = [name for name in sources if name not in known]
    for name in sorted(known.keys() - sources):
        del known[name]
        if (work / name).exists():
            new = [one for part in (_title, _number) for one in added if part(one) == part(name)]
            words = messages.LESSON_RENAMED if new else messages.LESSON_REMOVED
            said.append(words.format(mine=name, new=new[0] if new else ""))
    return said


def holds(folder: Path) -> bool:
    """Whether the notebooks in a folder are the copies that `reset` starts again."""
    return folder.resolve() in (WORK.resolve(), (WORK / "studies").resolve())


def reset(lesson: str, notebooks: Path = NOTEBOOKS, work: Path = WORK) -> Path:
    """Start a notebook again from the course's version; return where the old one is kept.

    Args:
        lesson: its number or name: "01", "01a", "01_kernel_regression" or a path that ends so.
        notebooks: the course's versions.
        work: the learner's.

    Raises:
        ValueError: for an unknown notebook.
    """
    stem = Path(lesson).name.removesuffix(".ipynb")
    sources = _sources(notebooks)
    found = [source for source in sources if stem in (source.stem, _number(source.name))]
    if not found:
        numbers = ", ".join(sorted(_number(source.name) for source in sources))
        raise ValueError(messages.UNKNOWN_LESSON.format(lesson=lesson, numbers=numbers))
    name = found[0].relative_to(notebooks).as_posix()
    mine = work / name
    kept = _beside(mine, "old")
    if mine.exists():
        os.replace(mine, kept)
    _copy(found[0], mine)
    _write_record(work, _read_record(work) | {name: _fingerprint(found[0])})
    return kept


def _sources(notebooks: Path) -> list[Path]:
    """List the course's notebooks, without JupyterLab's checkpoints."""
    return sorted([*notebooks.glob("*.ipynb"), *notebooks.glob("studies/*.ipynb")])


def _number(name: str) -> str:
    """Return how the name of a notebook begins: "studies/01a_which_average.ipynb" → "01a"."""
    return Path(name).stem.split("_")[0]


def _title(name: str) -> str:
    """Return what follows the number: "studies/01a_which_average.ipynb" → "which_average"."""
    return Path(name).stem.partition("_")[2]


def _texts(path: Path) -> list[tuple[str, str]] | None:
    """Return kind and text of each cell; None where the file is no notebook."""
    try:
        cells = json.loads(path.read_bytes())["cells"]
        return [(cell["cell_type"], "".join(cell["source"])) for cell in cells]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _fingerprint(path: Path) -> str:
    """Return a hash of the text of the cells."""
    return hashlib.sha256(json.dumps(_texts(path)).encode()).hexdigest()


def _beside(path: Path, word: str) -> Path:
    """Return a name that is still free and can be told apart in a narrow list: `01_….ipynb` → `01_old_1_….ipynb`."""
    number, _, rest = path.name.partition("_")
    free = (path.with_name(f"{number}_{word}_{n}_{rest}") for n in itertools.count(1))
    return next(one for one in free if not one.exists())


def is_beside(path: Path) -> bool:
    """Whether a notebook is an older or newer version that was laid beside another one."""
    return re.match(r"[^_]+_(old|new)_\d+_", path.name) is not None


def _copy(source: Path, target: Path) -> None:
    """Copy a file so that nobody ever finds half of it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(".part")
    shutil.copyfile(source, part)
    os.replace(part, target)


def _edited_in_place(notebooks: Path) -> set[str]:
    """Name the notebooks that differ from the course's commit; none where there is no git."""
    command = ["git", "diff", "--name-only", "--relative", "-z", "HEAD", "--", "."]
    try:
        done = subprocess.run(command, cwd=notebooks, capture_output=True, text=True)
    except OSError:
        return set()
    return set(done.stdout.split("\0")) - {""} if done.returncode == 0 else set()


def _read_record(work: Path) -> dict[str, str]:
    """Read notebook → fingerprint of the version that the copy was last compared with."""
    try:
        return dict(json.loads((work / ".versions.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return {}  # what differs then counts as the learner's


def _write_record(work: Path, known: dict[str, str]) -> None:
    part = work / ".versions.part"
    part.write_text(json.dumps(known, indent=1, sort_keys=True), encoding="utf-8")
    os.replace(part, work / ".versions.json")


def main() -> None:
    """Update the copy, or reset a notebook in it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reset", metavar="LESSON", help="start a notebook again, e.g. 01 or 01a")
    lesson = parser.parse_args().reset
    try:
        if lesson is None:
            for line in update():
                print(line)
        else:
            print(messages.RESET_DONE.format(kept=reset(lesson).name))
    except (OSError, ValueError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
