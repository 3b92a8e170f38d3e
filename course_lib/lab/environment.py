"""Say in plain words what is missing on this machine.

Run as a script before anything is installed (``python3 course_lib/lab/environment.py``), so it uses only
the standard library and only syntax that an old Python can read. With the address of PyTorch's CPU wheels it
prints the options that let pip take them, where that is better.
"""

import os
import shutil
import sys

OLDEST = (3, 11)
DISTRIBUTION = "attention-course"


def python_problems():
    """List what is wrong with this Python: too old, or without the modules that make a .venv."""
    problems = []
    if sys.version_info[:2] < OLDEST:
        problems.append(
            "This is Python {0}.{1}; the course needs {2}.{3} or newer. If you have one, name it: "
            "make PYTHON=/path/to/python3.12 lab".format(*(tuple(sys.version_info[:2]) + OLDEST))
        )
    for module in ("venv", "ensurepip"):
        try:
            __import__(module)
        except ImportError:
            problems.append(
                "This Python has no {0} module, so no .venv can be made. "
                "On Debian or Ubuntu: apt-get install python3-venv".format(module)
            )
            break
    return problems


def package_problems():
    """List the packages that are missing, or older than the course can use."""
    from importlib import metadata

    try:
        needed = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return ["The course itself is not installed in this Python ({0}).".format(sys.executable)]
    from packaging.requirements import Requirement

    problems = []
    for requirement in map(Requirement, needed):
        if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
            continue  # of an optional extra, or of another platform
        try:
            found = metadata.version(requirement.name)
        except metadata.PackageNotFoundError:
            problems.append("{0} is not installed.".format(requirement.name))
            continue
        if not requirement.specifier.contains(found, prereleases=True):
            problems.append(
                "{0} is version {1}; the course needs {2}.".format(
                    requirement.name, found, requirement.specifier
                )
            )
    return problems


def torch_options(index, seconds=4):
    """List pip's options for PyTorch without CUDA: on Linux without an NVIDIA GPU, where `index` answers."""
    if not sys.platform.startswith("linux") or not index or _has_nvidia_gpu():
        return []
    from urllib.request import urlopen

    try:
        urlopen(index.rstrip("/") + "/torch/", timeout=seconds).close()
    except (OSError, ValueError) as error:
        said = "No NVIDIA GPU, but {0} does not answer ({1}): PyTorch comes from the usual index.\n"
        sys.stderr.write(said.format(index, error))
        return []
    sys.stderr.write("No NVIDIA GPU: installing PyTorch for CPUs, without CUDA.\n")
    return ["--extra-index-url", index]


def _has_nvidia_gpu():
    """Return whether there is a driver of an NVIDIA GPU, on Linux or in Windows' Linux."""
    return bool(shutil.which("nvidia-smi")) or os.path.exists("/dev/nvidiactl")


def prepare_colab():
    """On Google Colab, allow widgets that Colab does not bring itself; elsewhere do nothing."""
    if "google.colab" in sys.modules:
        from google.colab import output

        output.enable_custom_widget_manager()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(" ".join(torch_options(sys.argv[1])))
        sys.exit()
    found_problems = python_problems()
    for problem in found_problems:
        sys.stderr.write(problem + "\n")
    sys.exit(1 if found_problems else 0)
