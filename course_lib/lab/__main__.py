"""Start JupyterLab at the first notebook of the learner's copy, with settings that avoid requests to the internet.

It serves the folder above `work/`, because notebooks show pictures of `img/` beside it.

Further arguments go to JupyterLab, e.g. `python -m course_lib.lab --port 9000`.
"""

import os
import subprocess
import sys
from pathlib import Path

from course_lib import messages
from course_lib.lab import working_copy

HERE = Path(__file__).parent
#: JupyterLab asks the internet for nothing, and starts in a container too.
OPTIONS = [
    "--LabApp.news_url=",
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    "--LabApp.extension_manager=readonly",
    *(["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []),
]


def command(notebooks: Path, further: list[str]) -> list[str]:
    """Build the command line that opens the first notebook in `notebooks`."""
    first = min(path.name for path in notebooks.glob("*.ipynb") if not working_copy.is_beside(path))
    return [
        sys.executable,
        "-m",
        "jupyterlab",
        f"--ServerApp.root_dir={notebooks.parent}",
        f"--FileContentsManager.preferred_dir={notebooks.name}",
        f"--LabApp.default_url=/lab/tree/{notebooks.name}/{first}",
        f"--ServerApp.extra_static_paths={HERE / 'static'}",  # the icon of the tab
        *OPTIONS,
        *further,
    ]


def environment(work: Path) -> dict[str, str]:
    """Return the environment in which JupyterLab finds the course's settings and kernel before the user's own.

    Args:
        work: the user's copy of the notebooks, for kernels and terminals.
    """
    folders = {"JUPYTER_CONFIG_PATH": HERE / "config", "JUPYTER_PATH": HERE / "share"}
    return (
        os.environ
        | {"COURSE_WORK": str(work)}
        | {
            name: os.pathsep.join(filter(None, [str(folder), os.environ.get(name, "")]))
            for name, folder in folders.items()
        }
    )


def main() -> int:
    """Become JupyterLab, so that a signal which ends this process ends it too; on Windows, run it until it ends."""
    try:
        for line in working_copy.update():
            print(line, flush=True)
    except OSError as error:
        sys.exit(messages.CANNOT_WRITE_WORK.format(folder=working_copy.WORK, error=error))
    call = command(working_copy.WORK, sys.argv[1:])
    if os.name == "posix":
        os.execve(call[0], call, environment(working_copy.WORK))
    try:
        return subprocess.call(call, env=environment(working_copy.WORK))
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    sys.exit(main())
