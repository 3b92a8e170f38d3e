"""Checks in a process of their own: whatever an attempt does, it is named, and nothing outlasts the check."""

import builtins
import ctypes
import functools
import gc
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from course_lib import messages
from course_lib.exercises import EXERCISES, grade, process

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs a safe fork")
NAME = "gaussian_weights"
FACTOR = torch.tensor(0.5)


def right(queries, keys, bandwidth):
    return torch.softmax(-(((queries[:, None] - keys) / bandwidth) ** 2).sum(-1) * FACTOR, dim=-1)


@pytest.fixture(autouse=True, scope="module")
def _no_zygote_left():
    yield
    zygote = process._zygote
    process.close()
    assert zygote is None or zygote.process.poll() is not None


@pytest.fixture
def isolated(monkeypatch):
    """A check must not fall back to this process: the attempt would end it."""

    def refuse(*_):
        raise AssertionError("the attempt was to run in this process")

    monkeypatch.setattr("course_lib.exercises.grading._grade", refuse)


# --- misbehaviour ----------------------------------------------------------------------------


def holds_the_interpreter(*case):
    return sum(range(10**10))


def matches_for_ever(*case):
    return re.match(r"(a+)+$", "a" * 60 + "b")


def sleeps_and_swallows(*case):
    while True:
        try:
            time.sleep(100)
        except BaseException:
            pass


def stopped_by_a_lock(*case):
    lock = threading.Lock()
    return lock.acquire() and lock.acquire()


def ignores_signals(*case):
    for number in set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}:
        try:
            signal.signal(number, signal.SIG_IGN)
        except OSError:
            pass
    while True:
        pass


def stops_itself(*case):
    os.kill(os.getpid(), signal.SIGSTOP)


def leaves_at_once(*case):
    os._exit(3)


def kills_itself(*case):
    os.kill(os.getpid(), signal.SIGKILL)


def kills_its_parent(*case):
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(10)


def kills_its_group(*case):
    os.killpg(0, signal.SIGKILL)


def aborts(*case):
    os.abort()


def reads_at_zero(*case):
    return ctypes.string_at(0)


def reads_an_emptied_storage(queries, keys, bandwidth):
    weights = torch.ones(10**7)
    weights.untyped_storage().resize_(0)
    return weights.sum()


def sets_an_alarm(*case):
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    time.sleep(10)


def takes_all_memory(*case):
    blocks = []
    while True:
        blocks.append(bytearray(1 << 28))


def takes_all_memory_as_tensors(*case):
    return torch.stack([torch.ones(1 << 26) for _ in range(1000)])


def recurses_in_c(*case):
    sys.setrecursionlimit(10**9)
    nested = []
    for _ in range(10**6):
        nested = [nested]
    return repr(nested)


def recurses(*case):
    sys.setrecursionlimit(10**9)
    return sum(recurses(*case) for _ in range(2))


def closes_every_file(queries, keys, bandwidth):
    os.closerange(0, 100)
    return right(queries, keys, bandwidth)


def writes_into_every_file(queries, keys, bandwidth):
    for fd in range(3, 20):
        try:
            os.write(fd, b"\0\0\0\5 not a report")
        except OSError:
            pass
    return right(queries, keys, bandwidth)


def asks(*case):
    return input("number?")


def says_much(*case):
    raise ValueError("much " * 100_000)


def prints_much(queries, keys, bandwidth):
    for _ in range(100):
        print("much " * 100_000)
    return 2 * right(queries, keys, bandwidth)


@pytest.mark.parametrize(
    ("attempt", "says"),
    [
        (holds_the_interpreter, "Stopped after 0.4 seconds"),
        (matches_for_ever, "Stopped after 0.4 seconds"),
        (sleeps_and_swallows, "Stopped after 0.4 seconds"),
        (stopped_by_a_lock, "Stopped after 0.4 seconds"),
        (ignores_signals, "Stopped after 0.4 seconds"),
        (stops_itself, "Stopped after 0.4 seconds"),
        (leaves_at_once, "ended its Python process (exit code 3)"),
        (closes_every_file, "ended its Python process (exit code"),
        (writes_into_every_file, "ended its Python process (exit code"),
        (kills_itself, "process was killed"),
        (kills_its_parent, "process was killed"),
        (kills_its_group, "process was killed"),
        (aborts, "crashed its Python process (aborted)"),
        (reads_at_zero, "crashed its Python process (segmentation fault)"),
        (reads_an_emptied_storage, "crashed its Python process (segmentation fault)"),
        (sets_an_alarm, "crashed its Python process (alarm clock)"),
        (takes_all_memory, "Your code raised MemoryError"),
        (takes_all_memory_as_tensors, "Your code raised RuntimeError"),
        (recurses, "Your code raised RecursionError"),
        (recurses_in_c, "RecursionError"),
        (asks, "Your code raised EOFError"),
        (says_much, "(500,000 characters)"),
        (prints_much, "Your code printed: much much"),
    ],
)
def test_code_that_would_end_or_hang_the_kernel_is_named(isolated, attempt, says):
    stopped = "Stopped" in says
    started = time.monotonic()
    report = grade(NAME, attempt, seconds=0.4 if stopped else 20)
    assert report.state == "tried" and says in str(report), str(report)
    assert len(str(report)) < 3000 and (not stopped or time.monotonic() - started < 10)
    assert grade(NAME, right, seconds=20).state == "passed"


def meddles(queries, keys, bandwidth):
    """Everything global that code can change."""
    torch.manual_seed(7), np.random.seed(7), random.seed(7)
    torch.set_default_dtype(torch.float64)
    torch.set_default_device("meta")
    torch.set_num_threads(7)
    torch.set_printoptions(precision=1)
    np.set_printoptions(precision=1)
    np.seterr(all="raise")
    torch.autograd.set_detect_anomaly(True)
    torch.softmax = torch.Tensor.sum = torch.nn.Module.__call__ = None
    builtins.len = builtins.print = None
    EXERCISES.clear = sys.modules["course_lib.exercises.grading"].grade = None
    for name in [name for name in sys.modules if name.startswith("course_lib")]:
        del sys.modules[name]
    sys.path.clear(), os.environ.clear(), gc.disable()
    warnings.simplefilter("error")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.settrace(lambda *_: None), threading.settrace(lambda *_: None)
    sys.stdout = sys.stderr = sys.stdin = sys.excepthook = None
    os.chdir("/"), os.umask(0)
    sys.setswitchinterval(10)
    FACTOR.fill_(3)


def test_nothing_that_code_changes_outlasts_the_check(isolated):
    def state():
        modules = [(torch, "softmax"), (torch.Tensor, "sum"), (builtins, "len"), (sys, "stdout")]
        umask = os.umask(0)
        os.umask(umask)
        return (
            [getattr(*one) for one in [*modules, (sys, "excepthook")]],
            [torch.get_default_dtype(), torch.get_default_device(), torch.get_num_threads()],
            [torch.rand(1).item(), np.random.rand(), random.random(), repr(torch.ones(1) / 3)],
            [np.geterr(), np.get_printoptions(), torch.is_anomaly_enabled(), gc.isenabled()],
            [list(sys.path), dict(os.environ), os.getcwd(), umask, sys.getswitchinterval()],
            [signal.getsignal(signal.SIGINT), sys.gettrace(), sorted(sys.modules), FACTOR.item()],
        )

    seeds = torch.get_rng_state(), np.random.get_state(), random.getstate()
    grade(NAME, right)
    before = state()
    torch.set_rng_state(seeds[0]), np.random.set_state(seeds[1]), random.setstate(seeds[2])
    grade(NAME, meddles, seconds=20)
    assert state() == before
    assert grade(NAME, right).state == "passed"


def children_of(pid):
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def test_processes_that_code_starts_are_ended(isolated):
    def leaves_processes(queries, keys, bandwidth):
        if os.fork() == 0:
            time.sleep(1000)
        subprocess.Popen(["sleep", "1000"])
        subprocess.Popen(["sleep", "1000"], start_new_session=True)
        threading.Thread(target=time.sleep, args=[1000]).start()
        return right(queries, keys, bandwidth)

    assert grade(NAME, leaves_processes, seconds=20).state == "passed"
    assert grade(NAME, right).state == "passed"  # the zygote has forked the next child by now
    assert len(children_of(process._zygote.process.pid)) <= 1


# --- attempts of every kind arrive, and get the same report in both ways --------------------


class AsModule(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = torch.nn.Parameter(torch.tensor(0.5))

    def forward(self, queries, keys, bandwidth):
        return right(queries, keys, bandwidth) + 0 * self.factor


class AsCallable:
    def __call__(self, *case):
        return helper(*case)


def helper(*case):
    return right(*case)


def decorated(function):
    @functools.wraps(function)
    def wrapper(*case):
        return function(*case)

    return wrapper


def closure(scale):
    def weights(*case):
        return scale * right(*case)

    return weights


def raises(queries, keys, bandwidth):
    widths = bandwidth
    return queries @ keys / widths


def prints(queries, keys, bandwidth):
    print("shape", tuple(queries.shape))
    return right(queries, keys, bandwidth) * 2


def random_numbers(queries, keys, bandwidth):
    return torch.rand(2, 3) + np.random.rand() + random.random()


@pytest.mark.parametrize(
    "attempt",
    [
        right,
        AsModule(),
        AsModule().forward,
        AsCallable(),
        AsCallable,
        decorated(right),
        closure(1),
        closure(2),
        functools.partial(right),
        functools.partial(lambda a, q, k, h: a * right(q, k, h), 3),
        lambda *case: helper(*case),
        lambda *case: torch.full((2, 3), torch.get_num_threads()),
        lambda *case: missing(*case),  # noqa: F821
        lambda *case: __file__,
        lambda *case: ...,
        raises,
        prints,
        random_numbers,
        3,
    ],
)
def test_a_report_does_not_depend_on_where_the_attempt_runs(attempt):
    reports = []
    for isolated in (True, False):
        torch.manual_seed(1), np.random.seed(1), random.seed(1)
        reports.append(grade(NAME, attempt, seconds=20, isolated=isolated))
    assert reports[0] == reports[1]


@pytest.mark.parametrize("attempt", [right, AsModule()])
def test_compiled_code_is_checked_without_compiling_it_again(isolated, attempt):
    assert grade(NAME, torch.compile(attempt), seconds=20).state == "passed"


@pytest.mark.parametrize("name", list(EXERCISES)[::9])
def test_every_kind_of_mistake_is_named_in_both_ways(name):
    exercise = EXERCISES[name]
    for attempt in [exercise.solution, *(one.implementation for one in exercise.mistakes[:3])]:
        reports = {
            grade(name, attempt, seconds=20, isolated=isolated) for isolated in (True, False)
        }
        assert len(reports) == 1, "\n".join(map(str, reports))


def test_a_check_on_several_threads_ends_whatever_the_zygote_has_imported(isolated):
    names, threads = ["hunt_five", "decoder_block", "encoder_stack", NAME], torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        for name in names:
            for _ in range(2):  # the second is forked when the exercise has been imported
                report = grade(name, EXERCISES[name].solution, seconds=20)
                assert report.state == "passed", str(report)
        zygote = process._zygote.process.pid
        assert len(os.listdir(f"/proc/{zygote}/task")) == 1
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize(
    "needed", [threading.Lock(), (n for n in [1]), sys.stdout, torch.zeros(20 << 20)]
)
def test_what_cannot_be_sent_is_checked_in_this_process(needed):
    ran_in = []

    def attempt(queries, keys, bandwidth):
        ran_in.append((os.getpid(), needed))
        return right(queries, keys, bandwidth)

    assert grade(NAME, attempt).state == "passed"
    assert {pid for pid, _ in ran_in} == {os.getpid()}


def test_an_object_that_raises_when_it_is_pickled_or_loaded_is_checked_in_this_process():
    class Loads:
        def __reduce__(self):
            return int, ("no number",)

    class Pickles:
        def __reduce__(self):
            raise RuntimeError

    for needed in Loads(), Pickles():
        assert grade(NAME, lambda *case, n=needed: right(*case)).state == "passed"


def test_a_stub_needs_no_process(monkeypatch):
    def weights(queries, keys, bandwidth):
        weights = ...
        return weights

    monkeypatch.setattr(process, "run", None)
    assert grade(NAME, weights).message == messages.NOT_ATTEMPTED


def test_without_a_zygote_the_check_runs_in_this_process(monkeypatch):
    process.close()
    monkeypatch.setattr(process, "_zygote", None)
    monkeypatch.setattr(process, "_failed", False)
    monkeypatch.setattr(sys, "executable", sys.executable + "-missing")
    assert grade(NAME, right).state == "passed" and process._failed


def test_a_zygote_that_was_killed_is_started_again(isolated):
    grade(NAME, right)
    process._zygote.process.kill()
    time.sleep(0.1)
    assert grade(NAME, right).state == "passed"
    (child,) = children_of(process._zygote.process.pid)
    os.kill(int(child), signal.SIGKILL)  # where memory is short, the child that waits is killed
    time.sleep(0.1)
    assert grade(NAME, right).state == "passed"


def test_an_interrupt_ends_the_check_and_its_child(isolated):
    def marked_loop(*case):
        while True:
            pass

    grade(NAME, right)
    timer = threading.Timer(0.5, os.kill, [os.getpid(), signal.SIGINT])
    timer.start()
    started = time.monotonic()
    report = grade(NAME, marked_loop, seconds=60)
    assert report.message == messages.DIFFERENCES["interrupted"]
    assert time.monotonic() - started < 20
    assert grade(NAME, right).state == "passed"


def test_the_zygote_ends_with_the_process_that_started_it():
    code = (
        "import os, signal, sys; from course_lib.exercises import process, EXERCISES, grade\n"
        "grade('weighted_sum', EXERCISES['weighted_sum'].solution)\n"
        "print(process._zygote.process.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    stat = Path(f"/proc/{int(ran.stdout)}/stat")
    deadline = time.monotonic() + 10
    while stat.exists() and stat.read_text().split()[2] != "Z" and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not stat.exists() or stat.read_text().split()[2] == "Z"


def test_a_check_inside_the_function_is_refused_and_nothing_is_recorded(monkeypatch, tmp_path):
    def nested(*case):
        print(grade(NAME, nested).message)
        return 2 * right(*case)

    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress.json"))
    assert messages.NESTED_CHECK in str(grade(NAME, nested, seconds=20))
    assert not list(tmp_path.iterdir())


def test_the_functions_of_a_module_of_the_learner_are_those_that_were_imported(
    tmp_path, monkeypatch
):
    file = tmp_path / "my_answers.py"
    file.write_text(
        "import torch\n\ndef mine(q, k, h):\n    return torch.softmax("
        "-(((q[:, None] - k) / h) ** 2).sum(-1) / 2, dim=-1)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import my_answers

    file.write_text("def mine(q, k, h):\n    return 0\n")
    assert grade(NAME, my_answers.mine).state == "passed"
    assert grade(NAME, lambda *case: my_answers.mine(*case)).state == "passed"


def test_what_code_writes_to_stderr_is_shown(capsys):
    def complains(*case):
        print("careful", file=sys.stderr)
        return right(*case)

    assert grade(NAME, complains, seconds=20).state == "passed"
    assert "careful" in capsys.readouterr().err
