"""Run someone else's code so that nothing it does outlasts it."""

import contextlib
import ctypes
import io
import random
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType

import numpy as np
import torch


class TimeIsUp(BaseException):
    """Raised inside code that runs longer than it may. Not an Exception: `except Exception` lets it pass."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `TimeIsUp` in the body once it has run for `seconds`, and again until the body gives up.

    On the main thread of Linux and macOS a signal does it, which also wakes a sleeping body; elsewhere
    a second thread does, at the next Python instruction. A body that catches everything in a loop is
    stopped at a line that stands outside its `try`. Neither stops one long tensor operation early.
    """
    on_main_thread = threading.current_thread() is threading.main_thread()
    by_signal = hasattr(signal, "setitimer") and on_main_thread
    with _limit_by_signal(seconds) if by_signal else _limit_by_thread(seconds):
        yield


@contextlib.contextmanager
def _limit_by_signal(seconds: float) -> Iterator[None]:
    signals = 0

    def stop(_, frame):
        nonlocal signals
        signals += 1
        if signals > 3:  # whoever is still running has a bare `except`
            _stop_at_a_later_line(frame)
        else:
            raise TimeIsUp

    old_trace = sys.gettrace()
    old_handler = signal.signal(signal.SIGALRM, stop)
    old_timer = signal.setitimer(signal.ITIMER_REAL, seconds, 0.05)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        if signals > 3:
            sys.settrace(old_trace)
        signal.signal(signal.SIGALRM, old_handler)
        signal.setitimer(signal.ITIMER_REAL, *old_timer)


def _stop_at_a_later_line(frame: FrameType | None) -> None:
    """Raise `TimeIsUp` a few lines on; a different line each time, so that one is outside every `try`.

    An endless loop is always among the frames that are running now, so only those are watched.
    """
    lines = random.Random(time.monotonic_ns()).randrange(6)

    def trace(*_):
        nonlocal lines
        lines -= 1
        if lines < 0:
            raise TimeIsUp
        return trace

    while frame is not None:
        frame.f_trace = trace
        frame = frame.f_back
    sys.settrace(lambda *_: None)  # switches tracing on; new calls are not watched


@contextlib.contextmanager
def _limit_by_thread(seconds: float) -> Iterator[None]:
    target, finished, lock = threading.get_ident(), threading.Event(), threading.Lock()

    def raise_in_target(exception) -> None:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(target), ctypes.py_object(exception) if exception else None
        )

    def watch() -> None:
        wait = seconds
        while not finished.wait(wait):
            wait = 0.05
            with lock:  # so that nothing is raised after the body has ended
                if not finished.is_set():
                    raise_in_target(TimeIsUp)

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        with lock:
            finished.set()
            raise_in_target(None)


@contextlib.contextmanager
def nothing_lasts() -> Iterator[None]:
    """Put back what code can change behind its caller's back: random states, default dtype, gradients on or off."""
    python, numpy, default = random.getstate(), np.random.get_state(), torch.get_default_dtype()
    grad = torch.is_grad_enabled()
    with torch.random.fork_rng():
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)
            torch.set_default_dtype(default)
            torch.set_grad_enabled(grad)


class Overheard(io.StringIO):
    """Standard output for someone else's code: keeps the first thousand characters."""

    limit = 1000

    def write(self, text: str) -> int:
        """Keep what still fits."""
        super().write(text[: max(0, self.limit - self.tell())])
        return len(text)
