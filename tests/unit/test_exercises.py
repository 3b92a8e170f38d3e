"""Every mistake is named, every kind of broken attempt gets a report, and global state is restored."""

import ast
import builtins
import importlib
import inspect
import json
import math
import os
import random
import re
import sys
import threading
import time
from pathlib import Path

import nbformat
import numpy as np
import pytest
import torch
from statsmodels.nonparametric.kernel_regression import KernelReg

from course_lib import messages
from course_lib.exercises import EXERCISES, catalogue, check, grading, hint, progress, solution
from course_lib.exercises.comparison import difference, run, same_outcome
from course_lib.exercises.sandbox import TimeLimitExceeded, run_with_time_limit
from course_lib.tools import normal_form

grade = grading.grade
ALL = [pytest.param(exercise, id=name) for name, exercise in EXERCISES.items()]
torch.broadcast_shapes((1,), (1,))  # imports SymPy, which takes seconds on a busy machine

#: The module; the package's `progress` is the function.
progress_file = importlib.import_module("course_lib.exercises.progress")


# --- the catalogue ---------------------------------------------------------------------------


def test_every_file_and_every_folder_of_the_catalogue_is_listed():
    root = Path(catalogue.__file__).parent
    folders = [path.name for path in root.iterdir() if (path / "__init__.py").is_file()]
    assert sorted(folders) == sorted(stem.partition("_")[2] for stem in catalogue.NOTEBOOKS)
    for folder in folders:
        files = [path.stem for path in root.joinpath(folder).glob("[!_]*.py")]
        listed = importlib.import_module(f"{catalogue.__name__}.{folder}").EXERCISES
        assert sorted(files) == sorted(listed), folder


def test_the_exercises_are_in_the_order_of_the_course():
    notebooks = [exercise.notebook for exercise in EXERCISES.values()]
    assert notebooks == sorted(notebooks)
    assert tuple(dict.fromkeys(notebooks)) == catalogue.NOTEBOOKS


# --- right answers and named mistakes --------------------------------------------------------


@pytest.mark.parametrize("exercise", ALL)
def test_the_solution_passes_and_every_mistake_gets_its_own_diagnosis(exercise):
    report = grade(exercise.name, exercise.solution, seconds=30)
    assert report.state == "passed", str(report)
    if exercise.differentiable:  # else the report must not speak of gradients
        found = run(exercise.reference, exercise.cases[-1], gradients=torch.float64).gradients
        assert any(gradient is not None for gradient in found.values())
    for mistake in exercise.mistakes:
        report = grade(exercise.name, mistake.implementation, seconds=30)
        assert (report.state, report.message) == ("tried", mistake.message), mistake.name
    if exercise.given:
        report = grade(exercise.name, exercise.given)
        assert (report.state, report.message) == ("given", exercise.given_message)
        assert not any(word in report.message for word in ("softmax", "axis", "dim", "exp("))


@pytest.mark.parametrize("exercise", ALL)
def test_the_smallest_case_comes_first_and_every_exercise_has_hints(exercise):
    sizes = [
        sum(v.numel() for v in case.values() if isinstance(v, torch.Tensor))
        for case in exercise.cases
    ]
    assert sizes == sorted(sizes) and exercise.hints and exercise.mistakes


def test_local_linear_is_the_local_linear_regression_of_statsmodels():
    exercise = EXERCISES["local_linear"]
    for case in exercise.cases:
        queries, keys, values, bandwidth = case.values()
        oracle = KernelReg(
            values.double().numpy(),
            keys.double().numpy(),
            "c",
            reg_type="ll",
            bw=[bandwidth],
            rng=0,
        )
        theirs = torch.from_numpy(oracle.fit(queries.double().numpy())[0])
        torch.testing.assert_close(
            exercise.reference(**case).double(), theirs, rtol=1e-5, atol=1e-5
        )


# --- every kind of broken attempt ------------------------------------------------------------


def right(queries, keys, bandwidth):
    return torch.softmax(-(((queries[:, None] - keys) / bandwidth) ** 2).sum(-1) / 2, dim=-1)


def in_place(queries, keys, bandwidth):
    queries *= 1
    queries += 1
    return right(queries - 1, keys, bandwidth)


def raises(queries, keys, bandwidth):
    widths = bandwidth
    return queries @ keys / widths


def prints(queries, keys, bandwidth):
    print("shape", tuple(queries.shape))
    return right(queries, keys, bandwidth) * 2


def leaves(queries, keys, bandwidth):
    sys.exit(3)


def needs_more(queries, keys, bandwidth, more):
    return right(queries, keys, bandwidth)


def recursive(queries, keys, bandwidth):
    return recursive(queries, keys, bandwidth)


def wrong_gradient(queries, keys, bandwidth):
    return right(queries, keys.detach(), bandwidth) + 0 * keys.sum()


BROKEN = [
    (lambda q, k, h: print(end=""), "tried", "returned None"),
    (lambda q, k, h: [1, 2], "tried", "returned a list; a tensor of shape (2, 3) is expected"),
    (lambda q, k, h: right(q, k, h)[:, :2], "tried", "yours is (2, 2), (2, 3) is expected"),
    (lambda q, k, h: right(q, k, h)[:, :2], "tried", "yours    [["),
    (lambda q, k, h: right(q, k, h) > 0.5, "tried", "yours is torch.bool"),
    (lambda q, k, h: right(q, k, h).double(), "passed", "Your result is torch.float64"),
    (lambda q, k, h: right(q, k, h).to("meta"), "tried", "yours is meta"),
    (lambda q, k, h: right(q, k, h) / 0, "tried", "NaN or infinity"),
    (lambda q, k, h: right(q, k, h) * 1.5, "tried", "Yours is 1.5 times the expected result"),
    (lambda q, k, h: right(q, k, h).detach(), "tried", "no gradient flows back"),
    (lambda q, k, h: scaled_in_place(q, k, h), "tried", "an operation in place"),
    (wrong_gradient, "tried", "the gradient with respect to keys is not"),
    (in_place, "tried", "changed its input queries in place"),
    (raises, "tried", "Your code raised RuntimeError"),
    (raises, "tried", "of your code: return queries @ keys / widths"),
    (prints, "tried", "Your code printed: shape (2, 2)"),
    (leaves, "tried", "Your code raised SystemExit: 3"),
    (needs_more, "tried", "missing 1 required positional argument: 'more'"),
    (recursive, "tried", "RecursionError"),
    (lambda q, k, h: ..., "new", "Not attempted yet"),
    (..., "new", "Not attempted yet"),
    (None, "new", "Not attempted yet"),
    (right(torch.zeros(2, 2), torch.zeros(3, 2), 1.0), "tried", "needs your function itself"),
]


@pytest.mark.parametrize(("attempt", "state", "says"), BROKEN)
def test_broken_attempts_get_a_diagnosis(attempt, state, says):
    report = grade("gaussian_weights", attempt)
    assert report.state == state
    assert says in str(report)


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


def unspeakable(queries, keys, bandwidth):
    raise Unspeakable


def surrogate(queries, keys, bandwidth):
    print("\ud800")
    raise ValueError("\ud800")


def closes(queries, keys, bandwidth):
    sys.stdout.close()
    return right(queries, keys, bandwidth) + 1


@pytest.mark.parametrize(
    "attempt",
    [
        lambda q, k, h: Breaks(),
        unspeakable,
        surrogate,
        closes,
        lambda q, k, h: right(q, k, h).to_sparse(),
        lambda q, k, h: (right(q, k, h), right(q, k, h)),
        lambda q, k, h: right(q, k, h).numpy(),
        lambda q, k, h: right(q, k, h).bool(),
        lambda q, k, h: torch.softmax(q.long(), -1),
    ],
)
def test_what_cannot_be_looked_at_is_survived(attempt):
    report = grade("gaussian_weights", attempt)
    assert report.state == "tried"
    str(report).encode("utf-8"), report._repr_html_()


def test_a_thing_that_breaks_whoever_touches_it_is_survived():
    assert grade("gaussian_weights", Breaks()).state == "tried"
    check(Breaks(), right)


@pytest.mark.parametrize("name", [["a"], {}, np.zeros(2)])
def test_names_that_are_no_names_are_survived(name):
    for ask in (hint, solution, lambda name: check(name, right)):
        ask(name)


def test_gradients_are_checked_even_where_they_are_switched_off():
    def detached(queries, keys, bandwidth):
        torch.set_grad_enabled(False)
        return right(queries, keys, bandwidth).detach()

    assert "no gradient flows back" in grade("gaussian_weights", detached).message
    with torch.no_grad():
        assert "no gradient flows back" in grade("gaussian_weights", detached).message


def scaled_in_place(queries, keys, bandwidth):
    weights = right(queries, keys, bandwidth)
    return weights.mul_(1.0)  # softmax keeps its output for the backward pass


def by_rows(queries, keys, bandwidth):
    weights = torch.zeros(len(queries), len(keys))
    for row, query in enumerate(queries):
        weights[row] = torch.softmax(-(((query - keys) / bandwidth) ** 2).sum(-1) / 2, dim=0)
    return weights


def by_elements(queries, keys, bandwidth):
    scores = torch.empty(len(queries), len(keys))
    for q in range(len(queries)):
        for k in range(len(keys)):
            scores[q, k] = -(((queries[q] - keys[k]) / bandwidth) ** 2).sum() / 2
    kernel = torch.exp(scores - scores.max(1, keepdim=True).values)
    return kernel / kernel.sum(1, keepdim=True)


def in_double(queries, keys, bandwidth):
    return right(queries.double(), keys.double(), bandwidth).float()


class AsModule(torch.nn.Module):
    def forward(self, queries, keys, bandwidth):
        return right(queries, keys, bandwidth)


@pytest.mark.parametrize(
    "attempt", [by_rows, by_elements, in_double, AsModule(), lambda *a: right(*a)]
)
def test_right_answers_written_differently_pass(attempt):
    report = grade("gaussian_weights", attempt)
    assert report.state == "passed", str(report)


@pytest.mark.parametrize(
    "bump",
    [
        lambda u: torch.where(u.abs() < 1, 0.75 * (1 - u**2), 0.0),
        lambda u: torch.relu(1 - u**2),
        lambda u: (1 - u**2) * (u.abs() < 1),
    ],
)
def test_an_epanechnikov_window_may_be_cut_off_in_any_way(bump):
    def weights(queries, keys, bandwidth):
        kernel = bump((queries[:, None] - keys) / bandwidth)
        total = kernel.sum(-1, keepdim=True)
        return torch.where(total > 0, kernel / torch.where(total > 0, total, 1.0), 0.0)

    report = grade("epanechnikov_weights", weights)
    assert report.state == "passed", str(report)


def test_a_report_shows_as_many_digits_as_it_takes():
    report = str(grade("gaussian_weights", lambda q, k, h: right(q, k, h) * 1.0003))
    expected, yours = re.findall(r"\n +(?:expected|yours) +(.*)", report)
    assert expected != yours


def test_a_body_that_does_nothing_is_not_attempted_and_a_missing_return_is():
    def only_dots(queries, keys, bandwidth): ...

    def only_words(queries, keys, bandwidth):
        """Weights."""

    def forgot(queries, keys, bandwidth):
        right(queries, keys, bandwidth)

    assert grade("gaussian_weights", only_dots).state == "new"
    assert grade("gaussian_weights", only_words).state == "new"
    assert "return statement" in grade("gaussian_weights", forgot).message


def test_an_unknown_exercise_is_answered_with_the_nearest_name():
    assert "Did you mean 'gaussian_weights'?" in str(grade("gausian_weights", right))
    assert "no exercise called '<int>'" in str(grade(3, right))


def test_the_details_show_the_smallest_input_and_the_first_row_that_differs():
    report = str(
        grade(
            "gaussian_weights",
            lambda q, k, h: right(q, k, h) * torch.tensor([[1.0], [2.0]])[: len(q)],
        )
    )
    assert "queries = [[0.0, 0.0], [1.0, 2.0]]" in report and "bandwidth = [1.0, 2.0]" in report
    assert "First difference at index [1]:" in report


def test_right_values_in_another_dtype_or_as_a_number_are_right_and_a_gradient_of_rounding_noise_counts_as_none():
    frontier, bleu = EXERCISES["on_frontier"].reference, EXERCISES["corpus_bleu"].reference
    assert grade("on_frontier", lambda *a: frontier(*a).float()).state == "tried"  # no booleans
    report = grade("corpus_bleu", lambda *a: bleu(*a).item())
    assert report.state == "passed" and "Your result is a Python float" in str(report)

    def stable(query, key, value, mask):
        scores = (query @ key.mT / key.shape[-1] ** 0.5).masked_fill(~mask, -torch.inf)
        largest = scores.max(-1, keepdim=True).values
        largest = largest.masked_fill(~mask.any(-1, keepdim=True), 0)
        kernel = (scores - largest).exp()
        total = kernel.sum(-1, keepdim=True)
        return kernel / torch.where(total == 0, 1, total) @ value

    assert grade("attention_from_scratch", stable).state == "passed"


def test_a_changed_input_is_named_before_values_that_differ():
    def adds(queries, keys, bandwidth):
        queries += 1
        return right(queries, keys, bandwidth)

    assert "changed its input queries" in grade("gaussian_weights", adds).message


def test_nan_is_said_only_where_a_finite_number_is_expected():
    infinite = torch.tensor([1.0, -torch.inf])
    assert difference(torch.tensor([2.0, -torch.inf]), infinite) == ("values", {})
    assert difference(torch.tensor([torch.nan, -torch.inf]), infinite) == ("nan", {})


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
    report = grade("gaussian_weights", attempt, seconds=0.5)
    assert "Stopped after 0.5 seconds" in report.message
    assert time.monotonic() - started < 5
    assert grade("gaussian_weights", right).state == "passed"


def test_an_endless_loop_is_stopped_off_the_main_thread_as_well():
    reports = []
    thread = threading.Thread(
        target=lambda: reports.append(grade("gaussian_weights", spins, seconds=0.5))
    )
    thread.start()
    thread.join(10)
    assert not thread.is_alive() and "Stopped after" in reports[0].message


def test_a_time_limit_passes_results_and_errors_through():
    assert run_with_time_limit(5, lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        run_with_time_limit(5, lambda: 1 / 0)
    with pytest.raises(TimeLimitExceeded):
        run_with_time_limit(0.1, lambda: time.sleep(3))


def swallows_twice(queries, keys, bandwidth):
    while not given_up.is_set():
        try:
            try:
                queries + 1
            except BaseException:
                pass
        except BaseException:
            pass


def sleeps_long_and_swallows(queries, keys, bandwidth):
    while not given_up.is_set():
        try:
            given_up.wait(6)
        except BaseException:
            pass


@pytest.mark.parametrize("attempt", [swallows_twice, sleeps_long_and_swallows])
def test_a_loop_that_catches_everything_is_stopped_too(attempt):
    started = time.monotonic()
    assert "Stopped after" in grade("gaussian_weights", attempt, seconds=0.5).message
    assert time.monotonic() - started < 20
    assert grade("gaussian_weights", right).state == "passed"


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


def test_a_check_leaves_random_states_dtype_and_gradients_as_they_were():
    def meddles(queries, keys, bandwidth):
        torch.manual_seed(7), np.random.seed(7), random.seed(7)
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)
        torch.set_default_device("meta")
        sys.setrecursionlimit(500)
        sys.stderr = None
        os.chdir("/")
        return right(queries, keys, bandwidth)

    folder = Path.cwd()
    torch.manual_seed(1), np.random.seed(1), random.seed(1)
    wanted = torch.rand(1).item(), np.random.rand(), random.random()
    torch.manual_seed(1), np.random.seed(1), random.seed(1)
    grade("gaussian_weights", meddles)
    assert (torch.rand(1).item(), np.random.rand(), random.random()) == wanted
    assert torch.get_default_dtype() == torch.float32 and torch.is_grad_enabled()
    assert torch.rand(1).device.type == "cpu" and sys.getrecursionlimit() > 500
    assert sys.stderr is not None and Path.cwd() == folder


counter = 0


def test_a_check_takes_back_global_names():
    def counts(queries, keys, bandwidth):
        global counter, left_behind
        counter, left_behind = counter + 1, 3
        return right(queries, keys, bandwidth)

    assert grade("gaussian_weights", counts).state == "passed"
    assert counter == 0 and "left_behind" not in globals()


def test_a_flood_of_output_is_cut():
    def floods(queries, keys, bandwidth):
        for _ in range(1000):
            print("x" * 1000)
        return queries

    assert len(str(grade("gaussian_weights", floods))) < 2000


def test_a_check_takes_back_what_code_has_replaced():
    def replaces(queries, keys, bandwidth):
        torch.softmax = torch.exp = torch.nn.functional.softmax = lambda *_, **__: torch.zeros(2, 3)
        torch.Tensor.sum = torch.Tensor.__sub__ = lambda *_, **__: 0
        builtins.len = builtins.print = math.sqrt = None
        torch.set_printoptions(precision=1, threshold=2)
        np.set_printoptions(precision=1)
        return torch.zeros(2, 3)

    names = [
        (torch, "softmax"),
        (torch, "exp"),
        (torch.nn.functional, "softmax"),
        (torch.Tensor, "sum"),
    ]
    names += [(torch.Tensor, "__sub__"), (builtins, "len"), (builtins, "print"), (math, "sqrt")]
    before = [getattr(*name) for name in names]
    shown = repr(torch.arange(20) / 7), repr(np.arange(3) / 7)
    report = grade("gaussian_weights", replaces)
    assert [getattr(*name) for name in names] == before
    assert (repr(torch.arange(20) / 7), repr(np.arange(3) / 7)) == shown
    assert report.state == "tried" and grade("gaussian_weights", right).state == "passed"


def test_the_text_of_an_error_is_cut():
    def says_much(queries, keys, bandwidth):
        raise ValueError("much " * 100_000)

    report = str(grade("gaussian_weights", says_much))
    assert len(report) < 2000 and "(500,000 characters)" in report


def test_a_check_does_not_change_the_cases():
    before = [
        run(EXERCISES["gaussian_weights"].reference, case)
        for case in EXERCISES["gaussian_weights"].cases
    ]
    grade("gaussian_weights", in_place)
    after = [
        run(EXERCISES["gaussian_weights"].reference, case)
        for case in EXERCISES["gaussian_weights"].cases
    ]
    assert all(map(same_outcome, before, after))


# --- what the learner sees -------------------------------------------------------------------


def test_progress_is_the_function_even_after_its_module_was_imported():
    importlib.import_module("course_lib.exercises.progress")
    from course_lib.exercises import progress as imported

    assert imported is progress and inspect.isfunction(imported)


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
    assert (
        f"1 of {len(EXERCISES)} exercises solved." in said and "solved     gaussian_weights" in said
    )


def test_progress_of_one_notebook_shows_that_one_only(own_progress, capsys):
    check("gaussian_weights", right)
    capsys.readouterr()
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
    assert json.loads(own_progress.read_text()) == {
        "batched_regression": "passed",
        "hunt_fit": "tried",
        "local_linear": "passed",
    }


def test_a_progress_file_that_cannot_be_read_is_renamed_and_not_lost(own_progress):
    own_progress.write_text("{broken")
    assert progress_file.recorded_states() == {}
    progress_file.record_state("hunt_fit", "tried")
    assert own_progress.with_suffix(".unreadable").read_text() == "{broken"


@pytest.mark.parametrize(
    "content", ["null", "[1]", '{"hunt_fit": {"a": 1}, "gone": "passed"}', "[" * 100_000]
)
def test_any_file_can_be_given_as_progress_file(own_progress, content, capsys):
    own_progress.write_text(content)
    progress()
    assert f"0 of {len(EXERCISES)} exercises solved." in capsys.readouterr().out


def test_a_folder_with_the_name_of_the_progress_file_is_left_alone(own_progress, capsys):
    own_progress.mkdir()
    (own_progress / "mine").write_text("kept")
    check("gaussian_weights", right)
    assert (own_progress / "mine").read_text() == "kept"
    assert progress_file.recorded_states() == {"gaussian_weights": "passed"}


def test_hints_come_one_by_one_and_end(own_progress, capsys):
    hints = EXERCISES["hunt_fit"].hints
    for _ in range(len(hints) + 1):
        hint("hunt_fit")
    said = capsys.readouterr().out
    assert said.startswith(f"Hint 1 of {len(hints)}. {hints[0]}")
    assert all(text in said for text in hints) and "You have seen all" in said


@pytest.mark.parametrize("exercise", ALL)
def test_a_solution_is_shown_and_runs_where_the_stub_stood(exercise, capsys):
    solution(exercise.name)
    source = capsys.readouterr().out.split("\n\n", 1)[1]
    (path,) = normal_form.paths([exercise.notebook])
    notebook = nbformat.read(path, as_version=4)
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    (stub,) = re.findall(rf'check\("{exercise.name}", (\w+)\)', "\n".join(cells))
    names = {}
    for node in ast.parse("\n".join(cells)).body:  # a solution knows what the notebook imported
        if isinstance(node, ast.Import | ast.ImportFrom):
            exec(compile(ast.Module([node], []), "imports", "exec"), names)
    exec(source, names)  # what is shown is complete, and has the name that the notebook checks
    assert grade(exercise.name, names[stub]).state == "passed"


@pytest.mark.parametrize(
    "attempt",
    [
        lambda q, k, v, h: (
            torch.softmax(-((q[..., None] - k[:, None]) ** 2) / (2 * h * h), dim=-1) @ v
        ),
        lambda q, k, v, h: (
            torch.softmax((q[..., None] - k[:, None] / 2) * k[:, None] / h**2, dim=-1) @ v
        ),
        lambda q, k, v, h: torch.stack(
            [
                right(*(one[:, None] for one in pair), h) @ v[n]
                for n, pair in enumerate(zip(q, k, strict=True))
            ]
        ),
    ],
)
def test_a_right_answer_written_in_float32_passes(attempt):
    assert grade("batched_regression", attempt).state == "passed"


def test_unknown_names_are_answered_everywhere(own_progress, capsys):
    for ask in (hint, solution, lambda name: check(name, right)):
        ask("gausian_weights")
        assert "Did you mean 'gaussian_weights'?" in capsys.readouterr().out


def test_a_report_is_readable_as_html_and_escapes_what_the_learner_wrote():
    page = grade("gaussian_weights", lambda q, k, h: print("<script>"))._repr_html_()
    assert 'role="status"' in page and "<script>" not in page and "&lt;script&gt;" in page
