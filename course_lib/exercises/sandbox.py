"""Run a learner's code with a time limit, and restore the global state that it changed."""

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


class TimeLimitExceeded(BaseException):
    """Raised inside code that exceeds its time limit; `except Exception` does not catch it."""


def run_with_time_limit(seconds: float, work: Callable[[], Result]) -> Result:
    """Return what `work` returns, or raise `TimeLimitExceeded` after `seconds`.

    The work runs in its own thread. After the time limit the exception is raised in that thread,
    repeatedly for one second; a thread that catches it or sleeps is abandoned, and the caller goes on.
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
        if thread.is_alive():
            _stop_thread(thread)
    if results:
        return results[0]
    raise errors[0] if errors else TimeLimitExceeded


def _stop_thread(thread: threading.Thread, timeout: float = 1.0) -> None:
    deadline = time.monotonic() + timeout
    while thread.is_alive() and time.monotonic() < deadline:
        identity, exception = ctypes.c_ulong(thread.ident), ctypes.py_object(TimeLimitExceeded)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(identity, exception)
        thread.join(0.01)


def captured_state() -> dict[str, Any]:
    """Return the global state that code can change, from random states to the working directory."""
    return {
        "python": random.getstate(),
        "numpy": np.random.get_state(),
        "torch": torch.get_rng_state(),
        "dtype": torch.get_default_dtype(),
        "device": torch.get_default_device(),
        "deterministic": torch.get_deterministic_debug_mode(),
        "matmul": torch.get_float32_matmul_precision(),
        "printing": (dict(vars(torch._tensor_str.PRINT_OPTS)), np.get_printoptions()),
        "recursion": sys.getrecursionlimit(),
        "directory": os.getcwd(),
        "path": list(sys.path),
    }


def apply_state(state: dict[str, Any]) -> None:
    """Set the global state to one that `captured_state` returned."""
    random.setstate(state["python"])
    np.random.set_state(state["numpy"])
    torch.set_rng_state(state["torch"])
    torch.set_default_dtype(state["dtype"])
    if (
        torch.get_default_device() != state["device"]
    ):  # it costs time and torch.compile, if set at all
        cpu = state["device"] == torch.device("cpu")
        torch.set_default_device(None if cpu else state["device"])
    torch.set_deterministic_debug_mode(state["deterministic"])
    torch.set_float32_matmul_precision(state["matmul"])
    vars(torch._tensor_str.PRINT_OPTS).update(state["printing"][0])
    np.set_printoptions(**state["printing"][1])
    sys.setrecursionlimit(state["recursion"])
    os.chdir(state["directory"])
    sys.path[:] = state["path"]


@contextlib.contextmanager
def restored_global_state() -> Iterator[None]:
    """Restore the global state that code can change.

    Whether gradients are enabled is local to a thread, and `run_with_time_limit` starts a new one.
    """
    state, streams = captured_state(), (sys.stdin, sys.stdout, sys.stderr)
    with (
        torch.random.fork_rng(enabled=torch.cuda.is_initialized()),  # else it would initialise CUDA
        warnings.catch_warnings(),
        np.errstate(),
        _exit_raises(),
    ):
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            sys.stdin, sys.stdout, sys.stderr = streams
            apply_state(state)


#: What code may replace functions of, by mistake (`torch.softmax = …`) or to try something.
_NAMESPACES = (
    builtins,
    math,
    sys,
    torch,
    torch.nn,
    torch.nn.functional,
    torch.Tensor,
    torch.nn.Module,
)
_STREAMS = {"stdin", "stdout", "stderr"}  # restored on their own


@contextlib.contextmanager
def restored_attributes() -> Iterator[None]:
    """Put back every attribute of Python and PyTorch that code has replaced, and PyTorch's print options.

    New attributes of modules stay: PyTorch imports parts of itself when they are first used. Meanwhile the recursion
    limit can be lowered only: above it, deep recursion may end Python instead of raising.
    """
    before = [(namespace, dict(vars(namespace))) for namespace in _NAMESPACES]
    options, raw = dict(vars(torch._tensor_str.PRINT_OPTS)), sys.setrecursionlimit
    most = sys.getrecursionlimit()
    sys.setrecursionlimit = lambda limit: raw(min(limit, most))
    try:
        yield
    finally:
        vars(torch._tensor_str.PRINT_OPTS).update(options)
        for namespace, attributes in before:
            now = dict(vars(namespace))
            for name, value in attributes.items():
                if now.get(name, before) is not value and name not in _STREAMS:
                    setattr(namespace, name, value)
            if isinstance(namespace, type):  # what shadows an inherited method
                for name in now.keys() - attributes.keys():
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

    shell.ask_exit = raise_exit
    try:
        yield
    finally:
        del shell.ask_exit


class CapturedOutput(io.StringIO):
    """Captured output: keeps the first characters, cannot be closed."""

    def __init__(self, limit: int = 1000) -> None:
        super().__init__()
        self.limit = limit

    def write(self, text: str) -> int:
        """Keep what still fits, without lone surrogates."""
        kept = text[: max(0, self.limit - self.tell())]
        super().write(replace_surrogates(kept))
        return len(text)

    def close(self) -> None:
        """Stay open."""


def replace_surrogates(text: str) -> str:
    """Escape lone surrogates, which cannot be encoded as UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
