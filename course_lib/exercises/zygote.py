"""The process that checks are forked from; `process` starts it, once for each kernel.

A zygote is a process that has imported everything and then waits to be forked. A new Python with PyTorch takes
seconds to start, a fork takes milliseconds. Forking is safe here because the zygote has one thread and never runs
backward: it only imports, and the cases are computed on that thread. A kernel that has run backward, or an operation
on several threads, cannot be forked.

The zygote keeps one child, which warms up (the first operation, the first backward and the first thread cost more
than a whole check) and then waits for an attempt. It grades one and ends; the zygote ends every process that it has
left, says how it ended, and forks the next. It exits when the kernel does.
"""

import builtins
import contextlib
import ctypes
import gc
import itertools
import json
import linecache
import os
import pickle
import resource
import select
import signal
import socket
import sys
import warnings
from dataclasses import asdict
from multiprocessing.connection import Connection

import torch

from course_lib.exercises import grading
from course_lib.exercises.catalogue import EXERCISES
from course_lib.exercises.sandbox import CapturedOutput, apply_state, captured_state

_MOST_DATA = 1 << 30  # bytes that a check may allocate on top of what the zygote has
_MOST_STDERR = 10_000  # characters
_WARM_UP = "weighted_sum"  # a small exercise, with gradients
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36  # of prctl(2)
_libc = ctypes.CDLL(None)


def serve(control_fd: int, threads: int) -> None:
    """Fork one child after the other until the kernel closes its end of the control socket."""
    kernel = os.getppid()
    control = socket.socket(fileno=control_fd)
    _libc.prctl(
        _PR_SET_CHILD_SUBREAPER, 1
    )  # what a child leaves behind becomes a child of this process
    ended, ended_write = os.pipe()
    for end in (ended, ended_write):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(ended_write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    torch.set_num_threads(
        1
    )  # threads do not survive a fork, and a child would wait for them for ever
    EXERCISES[_WARM_UP]
    apply_state(captured_state())  # imports parts of PyTorch, as does the next line
    torch.broadcast_shapes((1,), (1,))
    gc.collect()
    gc.freeze()  # else a collection in the child would write to, and so copy, every page
    for number in itertools.count(1):
        theirs, ours = socket.socketpair()
        child = os.fork()
        if child == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for fd in (ended, ended_write, control.detach(), theirs.detach()):
                os.close(fd)
            _run_child(Connection(ours.detach()), threads)
        ours.close()
        with contextlib.suppress(BrokenPipeError), theirs:
            socket.send_fds(control, [b"child %d" % number], [theirs.fileno()])
        stop = b""
        while not stop.startswith(b"stop %d " % number):
            stop = _wait(control, ended, kernel, child)
            if child and not stop:
                control.send(b"ended %d %d" % (number, _end(child)))
                child = 0
        if child:
            _end(child)
        with contextlib.suppress(Exception):  # the next child is likely to need it again
            EXERCISES[stop.split()[2].decode()]


def _wait(control: socket.socket, ended: int, kernel: int, child: int) -> bytes:
    """Return the next message, or none once the child has ended. Exit when the kernel has."""
    while True:
        ready, _, _ = select.select([control, ended], [], [], 5.0)
        if ended in ready:
            os.read(ended, 4096)
        if child and os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT | os.WNOHANG):
            return b""
        message = control.recv(1024) if control in ready else None
        if message:
            return message
        if message == b"" or os.getppid() != kernel:
            if child:
                _end(child)
            os._exit(0)


def _end(child: int) -> int:
    """Kill the child, its group, and what has left the group; return the exit code."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    os.kill(
        child, signal.SIGKILL
    )  # not yet in a group of its own; not yet waited for, so still there
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    for _ in range(100):
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            left = [int(pid) for pid in file.read().split()]
        if not left:
            break
        for pid in left:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    return code


def _run_child(channel: Connection, threads: int) -> None:
    """Receive an attempt, grade it, send the report, and end. Runs in the forked child."""
    try:
        _limit_this_process()
        _add_builtins()
        torch.set_num_threads(threads)
        apply_state(pickle.loads(pickle.dumps(captured_state())))
        with warnings.catch_warnings():
            grading.grade_alone(EXERCISES[_WARM_UP], EXERCISES[_WARM_UP].solution)
        _limit_memory()
        name, state, lines, threads, pickled = pickle.loads(channel.recv_bytes())
        exercise = EXERCISES[name]
        sys.stdout, sys.stderr = CapturedOutput(_MOST_STDERR), CapturedOutput(_MOST_STDERR)
        streams = sys.stdout, sys.stderr
        warnings.simplefilter("ignore")
        if threads != torch.get_num_threads():
            torch.set_num_threads(threads)
        apply_state(state)
        linecache.cache.update(lines)
        try:
            attempt = pickle.loads(pickled)
        except BaseException as error:
            channel.send_bytes(json.dumps({"not_loaded": type(error).__name__}).encode())
            return
        channel.send_bytes(b"{}")  # the time limit starts now
        report = grading.grade_alone(exercise, attempt)
        answer = {"report": asdict(report), "streams": [stream.getvalue() for stream in streams]}
        channel.send_bytes(json.dumps(answer).encode())
    finally:
        os._exit(0)


def _limit_this_process() -> None:
    """Let this process die with the zygote and, where memory is short, before all others; without a core file."""
    os.setsid()
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")
    os.environ["COURSE_PROGRESS"] = "off"  # a check inside the attempt must not record


def _limit_memory() -> None:
    """Bound what this process may allocate, on top of what it has."""
    with open("/proc/self/statm") as file:
        most = int(file.read().split()[5]) * resource.getpagesize() + _MOST_DATA
    with contextlib.suppress(OSError, ValueError):  # a lower limit is set already
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _add_builtins() -> None:
    """Add what every cell of a notebook can call; `exit` must not close the standard input."""
    builtins.exit = builtins.quit = sys.exit
    builtins.display = lambda *objects, **_: print(*objects)
    builtins.get_ipython = lambda: None
