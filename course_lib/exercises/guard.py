"""Run someone else's code so that nothing it does outlasts it."""

import contextlib
import ctypes
import io
import os
import random
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np
import torch

Result = TypeVar("Result")


class TimeIsUp(BaseException):
    """Raised inside code that runs longer than it may. Not an Exception: `except Exception` lets it pass."""


def within(seconds: float, work: Callable[[], Result]) -> Result:
    """Return what `work` returns, or raise `TimeIsUp` after `seconds`.

    The work runs in a thread of its own. When its time is up it is asked to stop, again and again for a
    second; work that swallows even that, or sleeps, is left behind, and the caller goes on all the same.
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
            _ask_to_stop(thread)
    if results:
        return results[0]
    raise errors[0] if errors else TimeIsUp


def _ask_to_stop(thread: threading.Thread, patience: float = 1.0) -> None:
    deadline = time.monotonic() + patience
    while thread.is_alive() and time.monotonic() < deadline:
        identity, exception = ctypes.c_ulong(thread.ident), ctypes.py_object(TimeIsUp)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(identity, exception)
        thread.join(0.01)


@contextlib.contextmanager
def nothing_lasts() -> Iterator[None]:
    """Put back what code can change behind its caller's back, from random states to the working folder.

    Whether gradients are on is a matter of the thread, and `within` gives the code one of its own.
    """
    python, numpy = random.getstate(), np.random.get_state()
    dtype, device = torch.get_default_dtype(), torch.get_default_device()
    folder, depth = os.getcwd(), sys.getrecursionlimit()
    deterministic = torch.get_deterministic_debug_mode()
    streams = sys.stdin, sys.stdout, sys.stderr
    with torch.random.fork_rng(), warnings.catch_warnings(), np.errstate(), _exit_is_an_exception():
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            sys.stdin, sys.stdout, sys.stderr = streams
            random.setstate(python)
            np.random.set_state(numpy)
            torch.set_default_dtype(dtype)
            torch.set_default_device(device)
            torch.set_deterministic_debug_mode(deterministic)
            sys.setrecursionlimit(depth)
            os.chdir(folder)


@contextlib.contextmanager
def _exit_is_an_exception() -> Iterator[None]:
    """Keep exit() and quit() from ending the kernel: in a notebook they ask the shell to shut down."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None or not hasattr(shell, "ask_exit"):
        yield
        return

    def leave() -> None:
        raise SystemExit

    shell.ask_exit = leave
    try:
        yield
    finally:
        del shell.ask_exit


class Overheard(io.StringIO):
    """Standard output for someone else's code: keeps the first thousand characters, cannot be closed."""

    limit = 1000

    def write(self, text: str) -> int:
        """Keep what still fits, in characters that can be sent."""
        kept = text[: max(0, self.limit - self.tell())]
        super().write(sendable(kept))
        return len(text)

    def close(self) -> None:
        """Stay open."""


def sendable(text: str) -> str:
    """Return a text without the lone surrogates that no message can carry."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
