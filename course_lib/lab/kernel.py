"""The kernel of the course: IPython's, with PyTorch imported while the browser still draws the notebook.

What the first cells of the lessons import as well is imported once the kernel rests, while one reads the first lines.
"""

import contextlib
import importlib

import torch  # noqa: F401  a second or more, which the first cell would take otherwise
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp

from course_lib.lab import LANGUAGE, cell_errors

#: Their modules take a second of CPU time, too.
FIRST = ("course_lib.notebook", "course_lib.checkpoints", "course_lib.exercises")
REST = 1.0  # seconds until then


class CourseKernel(IPythonKernel):
    """IPython's kernel, which says the same of its language on every machine, and explains two errors."""

    language_info = LANGUAGE

    def __init__(self, **kwargs) -> None:
        super().__init__(**kwargs)
        cell_errors.explain(self.shell)

    def start(self) -> None:
        """Start, and import what comes first as soon as nothing else is to be done."""
        super().start()
        self.io_loop.call_later(REST, import_first)  # where cells run: never at the same time


def import_first() -> None:
    """Import what the first cells need; what fails is said by them."""
    for name in FIRST:
        with contextlib.suppress(Exception):
            importlib.import_module(name)


if __name__ == "__main__":
    IPKernelApp.launch_instance(kernel_class=CourseKernel)
