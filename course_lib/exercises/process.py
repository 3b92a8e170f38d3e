"""Run a check in a process of its own, which can be stopped whatever the code does.

The attempt is pickled by cloudpickle and sent to a child of the zygote (see `zygote`), which grades it as this
process would and sends the report back. Code that holds the interpreter, exits, crashes or takes all memory ends
the child alone, and whatever it changes is gone with the child.

Only Linux can fork a process that has loaded PyTorch safely. Elsewhere, and for attempts that refer to something
that cannot be pickled (an open file, a lock, a widget) or to more than 64 MB, `run` raises `Unavailable`, and the
check runs in this process.
"""

import atexit
import builtins
import contextlib
import io
import json
import linecache
import os
import pickle
import signal
import site
import socket
import subprocess
import sys
import sysconfig
import time
import warnings
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from types import FunctionType, ModuleType
from typing import Any

import cloudpickle
import torch

from course_lib.exercises.sandbox import TimeLimitExceeded, captured_state, run_with_time_limit

_START_SECONDS = 60.0  # until the zygote must be ready
_LOAD_SECONDS = 20.0  # until the child must have loaded the attempt
_STOP_SECONDS = 5.0  # until the zygote must have ended a child
_MOST_BYTES = 64 << 20  # of a pickled attempt
_MOST_REPORT = 1 << 20


class Unavailable(Exception):
    """The check cannot run in a process of its own."""


class Ended(Exception):
    """The child ended without a report; `code` is its exit code, or minus the signal that ended it."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class _Zygote:
    """The zygote of this process, seen from here."""

    def __init__(self) -> None:
        self.owner, self.used = os.getpid(), False
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        code = (
            f"import sys; sys.path[:] = {sys.path!r}; "
            f"from course_lib.exercises.zygote import serve; serve({theirs.fileno()}, {torch.get_num_threads()})"
        )
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-c", code],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # an interrupt of the kernel's group does not reach it
                env=os.environ
                | {"MPLBACKEND": "agg", "OMP_WAIT_POLICY": "passive"},  # waiting threads sleep
            )

    def is_alive(self) -> bool:
        """Whether it runs, and belongs to this process and not to one that this one was forked from."""
        return self.owner == os.getpid() and self.process.poll() is None

    def child(self, seconds: float) -> tuple[int, Connection]:
        """Return the number of the child that waits, and its channel; raise OSError if there is none in time."""
        self.control.settimeout(seconds)
        while True:
            message, fds, _, _ = socket.recv_fds(self.control, 64, 1)
            if not message:
                raise OSError("the zygote has ended")
            if fds:  # else an earlier child has ended
                return int(message.split()[1]), Connection(fds[0])

    def exit_code(self, number: int) -> int | None:
        """Receive the exit code of the child; None for an earlier child's."""
        self.control.settimeout(_STOP_SECONDS)
        message = self.control.recv(64)
        if not message:
            raise OSError("the zygote has ended")
        _, ended, code = message.split()
        return int(code) if int(ended) == number else None

    def stop(self, number: int, name: str) -> None:
        """End the child, and have the next one forked."""
        try:
            self.control.send(b"stop %d %s" % (number, name.encode()))
        except OSError:
            self.kill()

    def kill(self) -> None:
        """End it, and with it its children."""
        self.control.close()
        self.process.kill()
        self.process.wait()


_zygote: _Zygote | None = None
_failed = False  # one never became ready: not tried again


def prepare() -> None:
    """Start the zygote where it can be used and none runs, and do not wait for it."""
    global _zygote, _failed
    if sys.platform != "linux":
        return
    if _failed or (_zygote is not None and _zygote.is_alive()):
        return
    try:
        _zygote = _Zygote()
    except (OSError, ValueError):
        _zygote, _failed = None, True


@atexit.register
def close() -> None:
    """End the zygote, if there is one."""
    if _zygote is not None and _zygote.is_alive():
        _zygote.kill()


def run(name: str, attempt: Any, seconds: float) -> dict[str, Any]:
    """Grade an attempt in a process of its own, and return the fields of the report.

    Raises:
        Unavailable: if that is not possible here or with this attempt.
        TimeLimitExceeded: if grading takes longer than `seconds`; loading the attempt does not count.
        Ended: if the process ended without a report.
    """
    if sys.platform != "linux":
        raise Unavailable
    prepare()
    request = _request(name, attempt)
    try:
        return _run_once(name, request, seconds)
    except _NotStarted:  # the child that waited was killed, e.g. where memory was short
        prepare()
        try:
            return _run_once(name, request, seconds)
        except _NotStarted:
            raise Unavailable from None


class _NotStarted(Exception):
    """The child ended before it had loaded the attempt."""


def _run_once(name: str, request: bytes, seconds: float) -> dict[str, Any]:
    global _failed
    zygote = _zygote
    if zygote is None or _failed:
        raise Unavailable
    try:
        number, channel = zygote.child(_LOAD_SECONDS if zygote.used else _START_SECONDS)
    except OSError:
        zygote.kill()
        _failed = not zygote.used
        raise _NotStarted from None
    zygote.used = True
    try:
        with channel:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                channel.send_bytes(request)
            return _answer(zygote, number, channel, seconds)
    finally:
        zygote.stop(number, name)


def _answer(zygote: _Zygote, number: int, channel: Connection, seconds: float) -> dict[str, Any]:
    sources, loaded = [channel, zygote.control], False
    deadline = time.monotonic() + _LOAD_SECONDS
    while ready := wait(sources, max(0.0, deadline - time.monotonic())):
        if channel in ready:
            answer = _receive(channel)
            if answer is None:  # closed; the child may still run
                sources.remove(channel)
            elif "not_loaded" in answer:
                raise Unavailable
            elif "report" in answer:
                for stream, text in zip((sys.stdout, sys.stderr), answer["streams"], strict=True):
                    stream.write(text)
                return answer["report"]
            else:
                loaded, deadline = True, time.monotonic() + seconds
            continue
        try:
            code = zygote.exit_code(number)
        except OSError:  # the zygote was killed
            code = -signal.SIGKILL
        if code is not None:
            raise Ended(code) if loaded else _NotStarted
    raise TimeLimitExceeded


def _receive(channel: Connection) -> dict[str, Any] | None:
    """Return the next message; None if the channel is closed, or holds what is no message."""
    try:
        answer = json.loads(channel.recv_bytes(_MOST_REPORT))
    except (EOFError, OSError, ValueError):
        return None
    return answer if isinstance(answer, dict) else None


# --- pickling the attempt --------------------------------------------------------------------


def _request(name: str, attempt: Any) -> bytes:
    """Return what the child needs; raise `Unavailable` if the attempt cannot be pickled."""
    try:  # pickling calls methods of the attempt's objects
        pickled, files = run_with_time_limit(_LOAD_SECONDS, lambda: _pickled(attempt))
    except (Exception, TimeLimitExceeded):
        raise Unavailable from None
    lines = {file: (0, None, text, file) for file in files if (text := linecache.getlines(file))}
    state = captured_state()
    return pickle.dumps((name, state, lines, torch.get_num_threads(), pickled))


def _pickled(attempt: Any) -> tuple[bytes, set[str]]:
    """Return the pickled attempt, and the files that its functions stand in."""
    buffer, files = _Buffer(), set()
    with _pickled_by_value(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pickler = _Pickler(buffer)
        pickler.files = files
        pickler.dump(attempt)
    return buffer.getvalue(), files


class _Buffer(io.BytesIO):
    def write(self, data) -> int:
        if self.tell() + memoryview(data).nbytes > _MOST_BYTES:
            raise Unavailable
        return super().write(data)


class _Pickler(cloudpickle.Pickler):
    files: set[str]

    def reducer_override(self, obj: Any) -> Any:
        if (
            isinstance(obj, torch.UntypedStorage | torch.TypedStorage)
            and obj.nbytes() > _MOST_BYTES
        ):
            raise Unavailable  # before it is copied
        if isinstance(obj, FunctionType):
            self.files.add(obj.__code__.co_filename)
        if type(obj).__name__.endswith("ExitAutocall"):  # `exit` and `quit` of a notebook
            return getattr, (builtins, "exit")
        if (original := _uncompiled(obj)) is not None:
            return _identity, (original,)
        return super().reducer_override(obj)


def _uncompiled(obj: Any) -> Any:
    """Return what `torch.compile` was called with; compiling it again would take longer than the time limit."""
    if isinstance(obj, FunctionType):
        return vars(obj).get("_torchdynamo_orig_callable")
    if isinstance(obj, torch.nn.Module):
        return vars(obj).get("_modules", {}).get("_orig_mod")
    return None


def _identity(obj: Any) -> Any:
    return obj


_INSTALLED = tuple(
    {
        os.path.join(path, "")
        for path in [
            *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
            *site.getsitepackages(),
            site.getusersitepackages(),
            os.path.dirname(os.path.dirname(__file__)),
        ]
    }
)


@contextlib.contextmanager
def _pickled_by_value() -> Iterator[None]:
    """Have modules of the learner's own pickled with their content: their files may have changed meanwhile."""
    known = cloudpickle.list_registry_pickle_by_value()
    own = [
        module
        for name, module in list(sys.modules.items())
        if isinstance(module, ModuleType)
        and name not in known
        and name == getattr(module, "__name__", None)
        and isinstance(file := getattr(module, "__file__", None), str)
        and not file.startswith(_INSTALLED)
    ]
    for module in own:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in own:
            cloudpickle.unregister_pickle_by_value(module)
