"""The kernel of the course: IPython's, with PyTorch imported while the browser still draws the notebook."""

import torch  # noqa: F401  a second or more, which the first cell would take otherwise
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp

from course_lib.lab import LANGUAGE


class CourseKernel(IPythonKernel):
    """IPython's kernel, which says the same of its language on every machine."""

    language_info = LANGUAGE


if __name__ == "__main__":
    IPKernelApp.launch_instance(kernel_class=CourseKernel)
