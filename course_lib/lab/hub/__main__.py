"""Start the server of one user of a JupyterHub, with a copy of the notebooks that belongs to this user.

Whatever starts it, a process, a container or a pod, `HOME` is the user's own folder: `attention-course` in it holds the
copy, which is made once and never overwritten, and progress is kept beside it.
"""

import os
import shutil
import sys
from pathlib import Path

from course_lib.lab.__main__ import OPTIONS, environment
from course_lib.working_copy import NOTEBOOKS

FOLDER = "attention-course"


def copy_course(folder: Path) -> None:
    """Copy notebooks and pictures where there are none yet; a copy that is interrupted begins anew."""
    for source in (NOTEBOOKS, NOTEBOOKS.parent / "img"):
        if not (folder / source.name).exists():
            part = folder / f".{source.name}"
            shutil.rmtree(part, ignore_errors=True)
            shutil.copytree(source, part, ignore=shutil.ignore_patterns(".*"))
            part.rename(folder / source.name)


def main() -> None:
    """Become the server."""
    folder = Path.home() / FOLDER
    copy_course(folder)
    first = min(path.name for path in (folder / "notebooks").glob("*.ipynb"))
    call = [
        *(sys.executable, "-m", "jupyterhub.singleuser"),
        f"--ServerApp.root_dir={folder}",
        f"--LabApp.default_url=/lab/tree/notebooks/{first}",
        *OPTIONS,
        *sys.argv[1:],
    ]
    os.execve(call[0], call, environment())


if __name__ == "__main__":
    main()
