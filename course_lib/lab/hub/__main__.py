"""Start the server of one user of a JupyterHub, with a copy of the notebooks that belongs to this user.

Whatever starts it, a process, a container or a pod, `HOME` is the user's own folder: `attention-course` in it holds the
copy, which every start brings up to date without touching answers, and progress is kept beside it.
"""

import os
import shutil
import sys
from pathlib import Path

from course_lib.lab.__main__ import OPTIONS, environment
from course_lib.lab.working_copy import NOTEBOOKS, update

FOLDER = "attention-course"


def copy_course(folder: Path, course: Path = NOTEBOOKS.parent) -> None:
    """Make the copy, or bring it up to date as `course_lib.lab.working_copy` does: what the user changed stays."""
    for line in update(course / "notebooks", folder / "notebooks"):
        print(line)
    shutil.copytree(course / "img", folder / "img", dirs_exist_ok=True)


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
    os.execve(call[0], call, environment(folder / "notebooks"))


if __name__ == "__main__":
    main()
