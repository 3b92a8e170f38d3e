"""Every mistake is named, every kind of broken attempt gets a report, and global state is restored."""

import ast
import builtins
import functools
import json
import math
import os
import random
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import nbformat
import numpy as np
import pytest
import torch
from statsmodels.nonparametric.kernel_regression import KernelReg

from course_lib import messages
from course_lib.exercises import EXERCISES, catalogue, check, grading, hint, progress, solution
from course_lib.exercises.comparison import difference, run, same_outcome
from course_lib.exercises.sandbox import TimeLimitExceeded, restored, run_with_time_limit
from course_lib.tools import normal_form

pytestmark = pytest.mark.usefixtures("without_annotations")

grade = grading.grade
ALL = [pytest.param(exercise, id=name) for name, exercise in EXERCISES.items()]
torch.broadcast_shapes((1,), (1,))  # imports SymPy, which takes seconds on a busy machine
progress_file = sys.modules["course_lib.exercises.progress"]  # the package's is the function


# --- the catalogue ---------------------------------------------------------------------------


def test_every_file_of_the_catalogue_is_listed_once_in_the_order_of_the_course():
    files = Path(catalogue.__file__).parent.glob("*/[!_]*.py")
    listed = [(one.notebook.partition("_")[2], name) for name, one in EXERCISES.items()]
    assert sorted((file.parent.name, file.stem) for file in files) == sorted(listed)
    assert list(catalogue.NOTEBOOKS) == sorted(catalogue.NOTEBOOKS)


# --- right answers and named mistakes --------------------------------------------------------


@pytest.mark.parametrize("exercise", ALL)
def test_the_solution_passes_and_every_mistake_gets_its_own_diagnosis(exercise):
    report = grade(exercise.name, exercise.solution, seconds=30)
    assert report.state == "passed", str(report)
    if exercise.differentiable:  # else the report must not speak of gradients
        found = run(exercise.reference, exercise.cases[-1], gradients=torch.float64).gradients
        assert any(gradient is not None for gradient in found.values())
    for mistake in exercise.mistakes:
        assert " -> " not in mistake.message  # an edit with an indentation would be one
        report = grade(exercise.name, mistake.implementation, seconds=30)
        assert (report.state, report.message) == ("tried", mistake.message), mistake.name
    if exercise.given:
        report = grade(exercise.name, exercise.given)
        assert (report.state, report.message) == ("given", exercise.given_message)
        assert not any(word in report.message for word in ("softmax", "axis", "dim", "exp("))


@pytest.mark.parametrize("exercise", ALL)
def test_the_smallest_case_comes_first_and_every_exercise_has_hints(exercise):
    tensors = [filter(torch.is_tensor, case.values()) for case in exercise.cases]
    sizes = [sum(map(torch.numel, case)) for case in tensors]
    assert sizes == sorted(sizes) and exercise.hints and exercise.mistakes


def test_local_linear_is_the_local_linear_regression_of_statsmodels():
    exercise = EXERCISES["local_linear"]
    for case in exercise.cases:
        *tensors, bandwidth = case.values()
        queries, keys, values = (one.double().numpy() for one in tensors)
        oracle = KernelReg(values, keys, "c", reg_type="ll", bw=[bandwidth], rng=0)
        theirs = torch.from_numpy(oracle.fit(queries)[0])
        ours = exercise.reference(**case).double()
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


def right(queries, keys, bandwidth):
    return torch.softmax(-(((queries[:, None] - keys) / bandwidth) ** 2).sum(-1) / 2, dim=-1)


def by_elements(queries, keys, bandwidth):
    scores = torch.empty(len(queries), len(keys))
    for q in range(len(queries)):
        for k in range(len(keys)):
            scores[q, k] = -(((queries[q] - keys[k]) / bandwidth) ** 2).sum() / 2
    kernel = torch.exp(scores - scores.max(1, keepdim=True).values)
    return kernel / kernel.sum(1, keepdim=True)


class AsModule(torch.nn.Module):
    def forward(self, queries, keys, bandwidth):
        return right(queries, keys, bandwidth)


def window(bump):
    def weights(queries, keys, bandwidth):
        kernel = bump((queries[:, None] - keys) / bandwidth)
        total = kernel.sum(-1, keepdim=True)
        return torch.where(total > 0, kernel / torch.where(total > 0, total, 1.0), 0.0)

    return weights


def expanded(q, k, v, h):
    return torch.softmax((q[..., None] - k[:, None] / 2) * k[:, None] / h**2, dim=-1) @ v


def stable(scores, lengths, value):
    """Gradients that are 0 come out as rounding noise."""
    mask = torch.arange(scores.shape[-1]) < lengths[:, None, None]
    scores = scores.masked_fill(~mask, -torch.inf)
    largest = scores.max(-1, keepdim=True).values
    kernel = (scores - largest.masked_fill(~mask.any(-1, keepdim=True), 0)).exp()
    total = kernel.sum(-1, keepdim=True)
    return kernel / torch.where(total == 0, 1, total) @ value


def with_closure(model, new_optimizer, batches):
    optimizer = new_optimizer(model.parameters())
    for source, target in batches:

        def closure():
            optimizer.zero_grad()
            logits = model(source, target[:, :-1])  # noqa: B023 (step calls it at once)
            loss = torch.nn.functional.cross_entropy(logits.mT, target[:, 1:], ignore_index=0)  # noqa: B023
            loss.backward()
            return loss

        assert optimizer.step(closure) > 0  # as in PyTorch: step returns the loss
    return model.weight


@pytest.mark.parametrize(
    ("name", "attempt"),
    [
        ("training_steps", with_closure),
        ("gaussian_weights", by_elements),
        ("gaussian_weights", lambda q, k, h: right(q.double(), k.double(), h).float()),
        ("gaussian_weights", AsModule()),
        ("gaussian_weights", lambda *a: right(*a)),
        ("epanechnikov_weights", window(lambda u: torch.where(u.abs() < 1, 1 - u**2, 0.0))),
        ("epanechnikov_weights", window(lambda u: torch.relu(1 - u**2))),
        ("epanechnikov_weights", window(lambda u: (1 - u**2) * (u.abs() < 1))),
        ("batched_regression", expanded),
        ("masked_attention", stable),
        ("corpus_bleu", lambda *a: EXERCISES["corpus_bleu"].reference(*a).item()),
    ],
)
def test_right_answers_written_differently_pass(name, attempt):
    report = grade(name, attempt)
    assert report.state == "passed", str(report)
    assert ("Your result is a Python float" in str(report)) == (name == "corpus_bleu")


def of_equal_lengths(sources, lengths, table, size):
    order = lengths.argsort(descending=True)
    found = torch.cat([table[batch] for batch in sources[order].split(size)])
    return found[(lengths[None] > lengths[:, None]).sum(dim=1)]


def of_short_references(candidate, references, n):
    if len(candidate) < n or references.shape[1] < n:
        return torch.tensor([0, 0])
    return EXERCISES["clipped_matches"].reference(candidate, references, n)


def of_empty_parts(logits, labels):
    total, loss = labels.count_nonzero(), 0.0
    for z, y in zip(logits, labels, strict=True):
        mean = torch.nn.functional.cross_entropy(z, y, ignore_index=0)
        loss = loss + mean * y.count_nonzero() / total
    return loss


def of_no_clip(length, clip):
    counts = torch.ones(2 * clip + 1, dtype=torch.long)
    for i in range(2 * clip + 1):
        counts[i] = abs(i - clip) < length
    counts[0] = counts[-1] = max(0, length - clip)
    return counts


@pytest.mark.parametrize(
    ("name", "attempt", "says"),
    [
        ("hunt_order", of_equal_lengths, "equal length"),
        ("clipped_matches", of_short_references, "shorter than n"),
        ("hunt_accumulation", of_empty_parts, "0 / 0 is NaN"),
        ("trained_offsets", of_no_clip, "a clip of 0"),
    ],
)
def test_answers_that_are_wrong_only_at_the_edge_are_told_where(name, attempt, says):
    assert says in grade(name, attempt).message


def test_a_first_check_imports_nothing_while_the_clock_runs():
    code = """
import sys
from course_lib.exercises import EXERCISES, grading
timed = grading.run_with_time_limit
def measured(seconds, work):
    before = set(sys.modules)
    report = timed(60, work)
    print(report.state, len(set(sys.modules) - before))
    return report
grading.run_with_time_limit = measured
grading.grade("within_blocks", EXERCISES["within_blocks"].solution)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    state, imported = done.stdout.split()
    assert state == "passed" and int(imported) < 20


# --- every kind of broken attempt ------------------------------------------------------------


class Breaks:
    def __repr__(self):
        raise RuntimeError("no repr")

    def __eq__(self, other):
        raise RuntimeError("no equality")

    def __getattr__(self, name):
        raise RuntimeError("no attributes")


class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError("no words")


def throw(error):
    raise error


def raises(queries, keys, bandwidth):
    widths = bandwidth
    return queries @ keys / widths


def recursive(queries, keys, bandwidth):
    return recursive(queries, keys, bandwidth)


def only_dots(queries, keys, bandwidth): ...


def only_words(queries, keys, bandwidth):
    """Weights."""


BROKEN = [
    (lambda q, k, h: print(end=""), "tried", "returned None. Is a return statement missing"),
    (lambda q, k, h: [1, 2], "tried", "returned a list; a tensor of shape (2, 3) is expected"),
    (lambda q, k, h: right(q, k, h)[:, :2], "tried", "yours is (2, 2), (2, 3) is expected"),
    (lambda q, k, h: right(q, k, h)[:, :2], "tried", "yours    [["),
    (lambda q, k, h: right(q, k, h) > 0.5, "tried", "yours is torch.bool"),
    (lambda q, k, h: right(q, k, h).double(), "passed", "Your result is torch.float64"),
    (lambda q, k, h: right(q, k, h).to("meta"), "tried", "yours is meta"),
    (lambda q, k, h: right(q, k, h) / 0, "tried", "NaN or infinity"),
    (lambda q, k, h: right(q, k, h) * 1.5, "tried", "Yours is 1.5 times the expected result"),
    (lambda q, k, h: right(q, k, h).detach(), "tried", "no gradient flows back"),
    (lambda q, k, h: right(q, k, h).mul_(1.0), "tried", "an operation in place"),
    (lambda q, k, h: right(q, k.detach(), h) + 0 * k.sum(), "tried", "with respect to keys is not"),
    (lambda q, k, h: right(q.add_(1) - 1, k, h), "tried", "changed its input queries in"),
    (lambda q, k, h: right(q.add_(1), k, h), "tried", "changed its input queries in"),
    (raises, "tried", "Your code raised RuntimeError"),
    (raises, "tried", "of your code: return queries @ keys / widths"),
    (lambda q, k, h: print("shape", *q.shape) or q, "tried", "Your code printed: shape 2 2"),
    (lambda q, k, h: sys.exit(3), "tried", "Your code raised SystemExit: 3"),
    (lambda q, k, h, more: q, "tried", "missing 1 required positional argument: 'more'"),
    (recursive, "tried", "RecursionError"),
    (lambda q, k, h: throw(ValueError("much " * 10**5)), "tried", "(500,000 characters)"),
    (lambda q, k, h: ..., "new", "Not attempted yet"),
    (only_dots, "new", "Not attempted yet"),
    (only_words, "new", "Not attempted yet"),
    (..., "new", "Not attempted yet"),
    (None, "new", "Not attempted yet"),
    (right(torch.zeros(2, 2), torch.zeros(3, 2), 1.0), "tried", "needs your function itself"),
    (lambda q, k, h: (torch.set_grad_enabled(False), right(q, k, h).detach())[1], "tried", "no gradient"),
    # what cannot be looked at
    (lambda q, k, h: Breaks(), "tried", ""),
    (lambda q, k, h: throw(Unspeakable), "tried", "Unspeakable"),
    (lambda q, k, h: print("\ud800") or throw(ValueError("\ud800")), "tried", "ValueError"),
    (lambda q, k, h: sys.stdout.close() or q, "tried", ""),
    (lambda q, k, h: right(q, k, h).to_sparse(), "tried", ""),
    (lambda q, k, h: any(print("x" * 1000) for _ in range(1000)), "tried", "bool"),
]  # fmt: skip


@pytest.mark.parametrize(("attempt", "state", "says"), BROKEN)
def test_broken_attempts_get_a_diagnosis(attempt, state, says):
    report = grade("gaussian_weights", attempt)
    assert report.state == state
    assert says in str(report) and len(str(report)) < 2500
    str(report).encode("utf-8"), report._repr_html_()


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("gausian_weights", "Did you mean 'gaussian_weights'?"),
        (3, "no exercise called '<int>'"),
        (np.zeros(2), "no exercise called"),
        (object(), "no exercise called"),
    ],
)
def test_unknown_names_are_answered_everywhere(name, says, capsys):
    for ask in (hint, solution, lambda name: check(name, right)):
        ask(name)
        assert says in capsys.readouterr().out


def test_the_details_show_the_smallest_input_and_the_first_row_that_differs():
    rows = torch.tensor([[1.0], [2.0]])
    report = str(grade("gaussian_weights", lambda q, k, h: right(q, k, h) * rows[: len(q)]))
    assert "queries = [[0.0, 0.0], [1.0, 2.0]]" in report and "bandwidth = [1.0, 2.0]" in report
    assert "First difference at index [1]:" in report


def test_a_report_shows_as_many_digits_as_it_takes():
    report = str(grade("gaussian_weights", lambda q, k, h: right(q, k, h) * 1.0003))
    expected, yours = re.findall(r"\n +(?:expected|yours) +(.*)", report)
    assert expected != yours


def test_gradients_are_checked_even_where_they_are_switched_off():
    with torch.no_grad():
        report = grade("gaussian_weights", lambda q, k, h: right(q, k, h).detach())
        assert "no gradient flows back" in report.message
        assert grade("gaussian_weights", right).state == "passed"


def test_nan_is_said_only_where_a_finite_number_is_expected():
    infinite = torch.tensor([1.0, -torch.inf])
    assert difference(torch.tensor([2.0, -torch.inf]), infinite) == ("values", {})
    assert difference(torch.tensor([torch.nan, -torch.inf]), infinite) == ("nan", {})


def test_a_report_as_html_escapes_what_the_learner_wrote():
    for wrong in (lambda *_: print("<script>"), lambda *_: throw(ValueError("<script>"))):
        page = grade("gaussian_weights", wrong)._repr_html_()
        assert 'role="status"' in page and "<script>" not in page and "&lt;script&gt;" in page


# --- loops that never end --------------------------------------------------------------------


given_up = threading.Event()


@pytest.fixture(autouse=True)
def _end_what_was_left_behind():
    given_up.clear()
    yield
    given_up.set()


def spins(queries, keys, bandwidth):
    while True:
        pass


def sleeps(queries, keys, bandwidth):
    given_up.wait(600)  # as time.sleep, but the test can end it


def swallows(queries, keys, bandwidth):
    while not given_up.is_set():
        try:
            time.sleep(0.001)
        except BaseException:
            pass


@pytest.mark.parametrize("attempt", [spins, sleeps, swallows])
def test_an_endless_loop_is_stopped_and_life_goes_on(attempt):
    started = time.monotonic()
    report = grade("gaussian_weights", attempt, seconds=0.3)
    assert "Stopped after 0.3 seconds" in report.message
    assert time.monotonic() - started < 5
    assert grade("gaussian_weights", right).state == "passed"


def test_a_slow_search_for_two_mistakes_ends_and_is_not_taken_for_an_endless_loop(monkeypatch):
    def many(exercise):
        for one in exercise.mistakes * 10_000:
            time.sleep(0.01)
            yield one

    monkeypatch.setattr(grading, "pairs", many)
    solution = EXERCISES["masked_attention"].solution
    report = grade("masked_attention", lambda *given: solution(*given) + 0.3, seconds=2)
    assert report.message.startswith("The values differ.")


def test_an_endless_loop_is_stopped_off_the_main_thread_as_well():
    reports = []
    stopped = lambda: reports.append(grade("gaussian_weights", spins, seconds=0.3))  # noqa: E731
    thread = threading.Thread(target=stopped)
    thread.start()
    thread.join(10)
    assert not thread.is_alive() and "Stopped after" in reports[0].message


def test_a_time_limit_passes_results_and_errors_through():
    assert run_with_time_limit(5, lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        run_with_time_limit(5, lambda: 1 / 0)
    with pytest.raises(TimeLimitExceeded):
        run_with_time_limit(0.1, lambda: given_up.wait(3))


def test_a_check_inside_the_function_it_checks_is_refused():
    def nested(queries, keys, bandwidth):
        said.append(grade("gaussian_weights", nested).message)
        return right(queries, keys, bandwidth)

    said = []
    assert grade("gaussian_weights", nested).state == "passed"
    assert set(said) == {messages.NESTED_CHECK}


def test_one_interrupt_is_enough():
    calls = []

    def interrupted(queries, keys, bandwidth):
        calls.append(1)
        raise KeyboardInterrupt

    assert grade("gaussian_weights", interrupted).message == messages.DIFFERENCES["interrupted"]
    assert len(calls) == 1


# --- global state is restored ----------------------------------------------------------------


def test_a_right_answer_is_right_whatever_default_dtype_the_notebook_has():
    """In a process of its own: inputs are made when an exercise is first asked for."""
    code = """
import torch
from course_lib.exercises import EXERCISES, grade
torch.set_default_dtype(torch.float64)
for name in ("hunt_fit", "hunt_forecast", "local_linear"):
    print(grade(name, EXERCISES[name].solution, seconds=60).state, torch.get_default_dtype())
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    assert said.splitlines() == ["passed torch.float64"] * 3


def test_a_check_leaves_random_states_and_settings_as_they_were():
    def meddles(queries, keys, bandwidth):
        torch.manual_seed(7), np.random.seed(7), random.seed(7)
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)
        torch.set_default_device("meta")
        torch.set_printoptions(precision=1, threshold=2)
        np.set_printoptions(precision=1)
        sys.setrecursionlimit(500)
        sys.stderr = None
        os.chdir("/")
        return right(queries, keys, bandwidth)

    folder, shown = Path.cwd(), (repr(torch.arange(20) / 7), repr(np.arange(3) / 7))
    torch.manual_seed(1), np.random.seed(1), random.seed(1)
    wanted = torch.rand(1).item(), np.random.rand(), random.random()
    torch.manual_seed(1), np.random.seed(1), random.seed(1)
    grade("gaussian_weights", meddles)
    assert (torch.rand(1).item(), np.random.rand(), random.random()) == wanted
    assert torch.get_default_dtype() == torch.float32 and torch.is_grad_enabled()
    assert torch.rand(1).device.type == "cpu" and sys.getrecursionlimit() > 500
    assert (repr(torch.arange(20) / 7), repr(np.arange(3) / 7)) == shown
    assert sys.stderr is not None and Path.cwd() == folder


counter = 0


def test_a_check_takes_back_global_names():
    def counts(queries, keys, bandwidth):
        global counter, left_behind
        counter, left_behind = counter + 1, 3
        return right(queries, keys, bandwidth)

    assert grade("gaussian_weights", counts).state == "passed"
    assert counter == 0 and "left_behind" not in globals()


def test_a_check_takes_back_what_code_has_replaced():
    def replaces(queries, keys, bandwidth):
        torch.softmax = torch.nn.functional.softmax = lambda *_, **__: torch.zeros(2, 3)
        torch.Tensor.sum = torch.Tensor.__sub__ = lambda *_, **__: 0
        builtins.len = builtins.print = math.sqrt = None
        return torch.zeros(2, 3)

    names = [(torch, "softmax"), (torch.nn.functional, "softmax"), (torch.Tensor, "sum")]
    names += [(torch.Tensor, "__sub__"), (builtins, "len"), (builtins, "print"), (math, "sqrt")]
    before = [getattr(*name) for name in names]
    report = grade("gaussian_weights", replaces)
    assert [getattr(*name) for name in names] == before
    assert report.state == "tried" and grade("gaussian_weights", right).state == "passed"


def test_exit_raises_also_where_one_attempt_runs_inside_another(monkeypatch):
    class Shell:
        def ask_exit(self):
            raise AssertionError("the kernel is shut down")

    shell = Shell()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    with restored(lambda: None):
        with restored(lambda: None), pytest.raises(SystemExit):
            shell.ask_exit()
        with pytest.raises(SystemExit):  # the outer attempt still runs
            shell.ask_exit()
    assert vars(shell) == {}


def test_a_check_does_not_change_the_cases():
    exercise = EXERCISES["gaussian_weights"]
    before, _, after = (
        [run(one, case) for case in exercise.cases]
        for one in (exercise.reference, lambda q, k, h: q.add_(1), exercise.reference)
    )
    assert all(map(same_outcome, before, after))


# --- what the learner sees -------------------------------------------------------------------


@pytest.fixture
def own_progress(monkeypatch, tmp_path):
    """A progress file of its own, and an empty session."""
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress.json"))
    monkeypatch.setattr(progress_file, "_session_states", {})
    monkeypatch.setattr(progress_file, "_hints_shown", {})
    return tmp_path / "progress.json"


def test_progress_is_kept_and_a_later_failure_does_not_take_it_away(own_progress, capsys):
    check("gaussian_weights", lambda q, k, h: q)
    assert progress_file.recorded_states() == {"gaussian_weights": "tried"}
    check("gaussian_weights", right)
    check("gaussian_weights", lambda q, k, h: q)
    assert json.loads(own_progress.read_text()) == {"gaussian_weights": "passed"}
    capsys.readouterr()
    progress()
    said = capsys.readouterr().out
    assert f"1 of {len(EXERCISES)} exercises solved." in said
    assert "solved     gaussian_weights" in said
    progress("01")
    said = capsys.readouterr().out
    count = sum(exercise.notebook.startswith("01") for exercise in EXERCISES.values())
    assert f"1 of {count} exercises solved." in said and "02_" not in said
    progress("99")
    assert "begins with '99'" in capsys.readouterr().out


def test_two_notebooks_do_not_overwrite_each_others_progress(own_progress):
    progress_file.record_state("batched_regression", "passed")
    own_progress.write_text(json.dumps({"local_linear": "passed", "batched_regression": "passed"}))
    progress_file.record_state("hunt_fit", "tried")
    progress_file.record_state("hunt_forecast", "given")
    both = {"batched_regression": "passed", "hunt_fit": "tried", "local_linear": "passed"}
    assert json.loads(own_progress.read_text()) == both


def test_what_was_solved_under_an_old_name_stays_solved(own_progress):
    assert set(progress_file.RENAMED.values()) <= set(EXERCISES)
    assert not set(progress_file.RENAMED) & set(EXERCISES)
    own_progress.write_text(json.dumps({"mix": "passed", "hunt_turned": "tried"}))
    progress_file.record_state("hunt_cross", "passed")
    known = json.loads(own_progress.read_text())
    assert (known["weighted_sum"], known["hunt_cross"], known["mix"]) == ("passed", *["passed"] * 2)


@pytest.mark.parametrize(
    "content", ["{broken", "null", '{"hunt_fit": {"a": 1}, "gone": "passed"}', "[" * 100_000]
)
def test_any_file_can_be_given_as_progress_file_and_none_is_lost(own_progress, content, capsys):
    own_progress.write_text(content)
    progress()
    assert f"0 of {len(EXERCISES)} exercises solved." in capsys.readouterr().out
    progress_file.record_state("hunt_fit", "tried")
    kept = own_progress.with_suffix(".unreadable")
    assert "hunt_fit" in content or kept.read_text() == content


def test_hints_come_one_by_one_and_end(own_progress, capsys):
    hints = EXERCISES["hunt_fit"].hints
    for _ in range(len(hints) + 1):
        hint("hunt_fit")
    said = capsys.readouterr().out
    assert said.startswith(f"Hint 1 of {len(hints)}. {hints[0]}")
    assert all(text in said for text in hints) and "You have seen all" in said


@functools.cache
def code_of(notebook):
    (path,) = normal_form.paths([notebook])
    cells = nbformat.read(path, as_version=4).cells
    return "\n".join(cell.source for cell in cells if cell.cell_type == "code")


@pytest.mark.parametrize("exercise", ALL)
def test_a_solution_is_shown_and_runs_where_the_stub_stood(exercise, capsys):
    solution(exercise.name)
    source = capsys.readouterr().out.split("\n\n", 1)[1]
    code, names = code_of(exercise.notebook), {}
    (stub,) = re.findall(rf'check\("{exercise.name}", (\w+)\)', code)
    for node in ast.parse(code).body:  # a solution knows what the notebook imported
        if isinstance(node, ast.Import | ast.ImportFrom):
            exec(compile(ast.Module([node], []), "imports", "exec"), names)
    exec(source, names)  # what is shown is complete, and has the name that the notebook checks
    assert grade(exercise.name, names[stub], seconds=30).state == "passed"
