"""Run a learner's code with a time limit, and put back the global state that it changes.

The code runs in this process, as it would in the notebook's next cell. What cannot be interrupted there, such as one
very large matrix product, is not interrupted here either: the check goes on without it.
"""

import builtins
import contextlib
import ctypes
import io
import math
import os
import random
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
import torch

Result = TypeVar("Result")
#: What code may replace functions of, by mistake (`torch.softmax = …`) or to try something.
_NAMESPACES = (builtins, math, torch, torch.nn.functional, torch.Tensor)


class TimeLimitExceeded(BaseException):
    """Raised inside code that exceeds its time limit; `except Exception` does not catch it."""


def run_with_time_limit(seconds: float, work: Callable[[], Result]) -> Result:
    """Return what `work` returns, or raise `TimeLimitExceeded` after `seconds`.

    The work runs in its own thread. After the time limit the exception is raised in that thread, repeatedly for one
    second; a thread that catches it or sleeps is abandoned, and the caller goes on.
    """
    results: list[Result] = []
    errors: list[BaseException] = []

    def target() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    try:
        thread.join(seconds)
    finally:  # also when the caller is interrupted while it waits
        deadline = time.monotonic() + 1.0
        while thread.is_alive() and time.monotonic() < deadline:
            identity, exception = ctypes.c_ulong(thread.ident), ctypes.py_object(TimeLimitExceeded)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(identity, exception)
            thread.join(0.01)
    if results:
        return results[0]
    raise errors[0] if errors else TimeLimitExceeded


@contextlib.contextmanager
def restored(function: Callable) -> Iterator[None]:
    """Put back what code can change outside itself, from random states to the global names of `function`.

    New attributes of modules stay: PyTorch imports parts of itself when they are first used. Whether gradients are
    enabled is local to a thread, and `run_with_time_limit` starts a new one.
    """
    attributes = [(namespace, dict(vars(namespace))) for namespace in _NAMESPACES]
    names = getattr(function, "__globals__", {})
    own = dict(names)
    streams = sys.stdin, sys.stdout, sys.stderr
    generators = random.getstate(), np.random.get_state(), torch.get_rng_state()
    dtype, device = torch.get_default_dtype(), torch.get_default_device()
    printing, numpy_printing = dict(vars(torch._tensor_str.PRINT_OPTS)), np.get_printoptions()
    recursion, folder = sys.getrecursionlimit(), os.getcwd()
    with warnings.catch_warnings(), np.errstate(), _exit_raises():
        warnings.simplefilter("ignore")
        torch.set_default_dtype(torch.float32)  # as the inputs are; a lesson may have set another
        try:
            yield
        finally:
            sys.stdin, sys.stdout, sys.stderr = streams
            _put_back(attributes)
            names.update(own)
            for name in names.keys() - own.keys():
                del names[name]
            random.setstate(generators[0])
            np.random.set_state(generators[1])
            torch.set_rng_state(generators[2])
            torch.set_default_dtype(dtype)
            if torch.get_default_device() != device:  # setting it costs time, if it is set at all
                torch.set_default_device(None if device.type == "cpu" else device)
            vars(torch._tensor_str.PRINT_OPTS).update(printing)
            np.set_printoptions(**numpy_printing)
            sys.setrecursionlimit(recursion)
            os.chdir(folder)


def _put_back(attributes: list[tuple[Any, dict[str, Any]]]) -> None:
    for namespace, before in attributes:
        now = dict(vars(namespace))
        for name, value in before.items():
            if now.get(name, attributes) is not value:
                setattr(namespace, name, value)
        if isinstance(namespace, type):  # what shadows an inherited method
            for name in now.keys() - before.keys():
                delattr(namespace, name)


@contextlib.contextmanager
def _exit_raises() -> Iterator[None]:
    """Make exit() and quit() raise SystemExit: in a notebook they would shut down the kernel."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None or not hasattr(shell, "ask_exit"):
        yield
        return

    def raise_exit() -> None:
        raise SystemExit

    before = vars(shell).get("ask_exit")  # of an attempt that runs inside another
    shell.ask_exit = raise_exit
    try:
        yield
    finally:
        if before is None:
            vars(shell).pop("ask_exit", None)
        else:
            shell.ask_exit = before


class CapturedOutput(io.StringIO):
    """Captured output: keeps the first characters, cannot be closed."""

    def __init__(self, limit: int = 1000) -> None:
        super().__init__()
        self.limit = limit

    def write(self, text: str) -> int:
        """Keep what still fits, without lone surrogates."""
        super().write(replace_surrogates(text[: max(0, self.limit - self.tell())]))
        return len(text)

    def close(self) -> None:
        """Stay open."""


def replace_surrogates(text: str) -> str:
    """Escape lone surrogates, which cannot be encoded as UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
