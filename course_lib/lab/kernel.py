"""The kernel of the course: IPython's, with PyTorch imported while the browser still draws the notebook."""

import torch  # noqa: F401  a second or more, which the first cell would take otherwise
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp

from course_lib.lab import LANGUAGE, cell_errors


class CourseKernel(IPythonKernel):
    """IPython's kernel, which says the same of its language on every machine, and explains two errors."""

    language_info = LANGUAGE

    def __init__(self, **kwargs) -> None:
        super().__init__(**kwargs)
        cell_errors.explain(self.shell)


if __name__ == "__main__":
    IPKernelApp.launch_instance(kernel_class=CourseKernel)
