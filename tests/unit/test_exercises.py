"""Every mistake is named, every kind of broken attempt is survived, and nothing lasts."""

import itertools
import json
import random
import sys
import threading
import time

import numpy as np
import pytest
import torch
from statsmodels.nonparametric.kernel_regression import KernelReg

from course_lib import texts
from course_lib.exercises import EXERCISES, check, examine, hint, progress, record, solution
from course_lib.exercises.guard import TimeIsUp, time_limit
from course_lib.exercises.outcome import run, same

ALL = [pytest.param(exercise, id=name) for name, exercise in EXERCISES.items()]
MISTAKES = [
    pytest.param(exercise, mistake, id=f"{name}-{mistake.name}")
    for name, exercise in EXERCISES.items()
    for mistake in exercise.mistakes
]


# --- right answers and named mistakes --------------------------------------------------------


@pytest.mark.parametrize("exercise", ALL)
def test_the_solution_passes(exercise):
    report = examine(exercise.name, exercise.solution)
    assert report.state == "passed", str(report)


@pytest.mark.parametrize(("exercise", "mistake"), MISTAKES)
def test_every_mistake_is_named(exercise, mistake):
    report = examine(exercise.name, mistake.wrong)
    assert (report.state, report.mistake, report.says) == ("tried", mistake.name, mistake.says)


@pytest.mark.parametrize("exercise", ALL)
def test_every_mistake_is_told_from_every_other_and_from_the_right_answer(exercise):
    functions = {"reference": exercise.reference, "given": exercise.given}
    functions |= {mistake.name: mistake.wrong for mistake in exercise.mistakes}
    outcomes = {
        name: [run(function, case) for case in exercise.cases]
        for name, function in functions.items()
        if function is not None
    }
    assert len(functions) == 2 + len(exercise.mistakes), "two mistakes share a name"
    for one, other in itertools.combinations(outcomes, 2):
        alike = all(map(same, outcomes[one], outcomes[other]))
        assert not alike, f"the cases cannot tell {one} from {other}"


@pytest.mark.parametrize("exercise", [p for p in ALL if p.values[0].given])
def test_the_code_given_in_a_bug_hunt_is_wrong_and_its_bug_is_not_given_away(exercise):
    report = examine(exercise.name, exercise.given)
    assert report.state == "tried" and report.says == texts.STILL_AS_GIVEN
    assert not any(word in str(report) for word in ("softmax", "axis", "dim", "exp("))


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
    return torch.softmax(-(((queries[:, None] - keys) / bandwidth) ** 2) / 2, dim=-1)


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
    (lambda q, k, h: right(q, k, h).T, "tried", "yours is (3, 2), (2, 3) is expected"),
    (lambda q, k, h: right(q, k, h).double(), "tried", "yours is torch.float64"),
    (lambda q, k, h: right(q, k, h).to("meta"), "tried", "yours is meta"),
    (lambda q, k, h: right(q, k, h) / 0, "tried", "NaN or infinity"),
    (lambda q, k, h: right(q, k, h) * 1.5, "tried", "The values differ."),
    (lambda q, k, h: right(q, k, h).detach(), "tried", "no gradient flows back"),
    (wrong_gradient, "tried", "the gradient with respect to keys is not"),
    (in_place, "tried", "changed its input queries in place"),
    (raises, "tried", "Your code raised RuntimeError"),
    (raises, "tried", "of your code: return queries @ keys / widths"),
    (prints, "tried", "Your code printed: shape (2,)"),
    (leaves, "tried", "Your code raised SystemExit: 3"),
    (needs_more, "tried", "missing 1 required positional argument: 'more'"),
    (recursive, "tried", "RecursionError"),
    (lambda q, k, h: ..., "new", "Not attempted yet"),
    (..., "new", "Not attempted yet"),
    (None, "new", "Not attempted yet"),
    (right(torch.zeros(2), torch.zeros(3), 1.0), "tried", "needs your function itself"),
]


@pytest.mark.parametrize(("attempt", "state", "says"), BROKEN)
def test_broken_attempts_get_a_diagnosis(attempt, state, says):
    report = examine("gaussian_weights", attempt)
    assert report.state == state
    assert says in str(report)


def test_a_body_that_does_nothing_is_not_attempted_and_a_missing_return_is():
    def only_dots(queries, keys, bandwidth): ...

    def only_words(queries, keys, bandwidth):
        """Weights."""

    def forgot(queries, keys, bandwidth):
        right(queries, keys, bandwidth)

    assert examine("gaussian_weights", only_dots).state == "new"
    assert examine("gaussian_weights", only_words).state == "new"
    assert "return statement" in examine("gaussian_weights", forgot).says


def test_an_unknown_exercise_is_answered_with_the_nearest_name():
    assert "Did you mean 'gaussian_weights'?" in str(examine("gausian_weights", right))
    assert "no exercise called 3" in str(examine(3, right))


def test_the_details_show_the_smallest_input_and_the_first_row_that_differs():
    report = str(
        examine(
            "gaussian_weights",
            lambda q, k, h: right(q, k, h) * torch.tensor([[1.0], [2.0]])[: len(q)],
        )
    )
    assert "queries = [0.5, 2.0]" in report and "bandwidth = 0.7" in report
    assert "First difference, row 1:" in report


# --- loops that never end --------------------------------------------------------------------


def spins(queries, keys, bandwidth):
    while True:
        pass


def sleeps(queries, keys, bandwidth):
    time.sleep(600)


def swallows(queries, keys, bandwidth):
    while True:
        try:
            time.sleep(0.001)
        except BaseException:
            pass


@pytest.mark.parametrize("attempt", [spins, sleeps, swallows])
def test_an_endless_loop_is_stopped_and_life_goes_on(attempt):
    started = time.monotonic()
    report = examine("gaussian_weights", attempt, seconds=0.5)
    assert "Stopped after 0.5 seconds" in report.says
    assert time.monotonic() - started < 5
    assert examine("gaussian_weights", right).state == "passed"


def test_an_endless_loop_is_stopped_off_the_main_thread_as_well():
    reports = []
    thread = threading.Thread(
        target=lambda: reports.append(examine("gaussian_weights", spins, seconds=0.5))
    )
    thread.start()
    thread.join(10)
    assert not thread.is_alive() and "Stopped after" in reports[0].says


def test_the_time_limit_leaves_quick_code_and_other_alarms_alone():
    with time_limit(0.2):
        pass
    time.sleep(0.4)
    with pytest.raises(TimeIsUp), time_limit(0.1):
        time.sleep(5)


# --- nothing lasts ---------------------------------------------------------------------------


def test_a_check_leaves_random_states_dtype_and_gradients_as_they_were():
    def meddles(queries, keys, bandwidth):
        torch.manual_seed(7), np.random.seed(7), random.seed(7)
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)
        return right(queries, keys, bandwidth)

    torch.manual_seed(1), np.random.seed(1), random.seed(1)
    wanted = torch.rand(1).item(), np.random.rand(), random.random()
    torch.manual_seed(1), np.random.seed(1), random.seed(1)
    examine("gaussian_weights", meddles)
    assert (torch.rand(1).item(), np.random.rand(), random.random()) == wanted
    assert torch.get_default_dtype() == torch.float32 and torch.is_grad_enabled()


def test_a_check_does_not_change_the_cases():
    before = [
        run(EXERCISES["gaussian_weights"].reference, case)
        for case in EXERCISES["gaussian_weights"].cases
    ]
    examine("gaussian_weights", in_place)
    after = [
        run(EXERCISES["gaussian_weights"].reference, case)
        for case in EXERCISES["gaussian_weights"].cases
    ]
    assert all(map(same, before, after))


# --- what the learner sees -------------------------------------------------------------------


@pytest.fixture
def own_record(monkeypatch, tmp_path):
    """A record of its own: the file, and an empty session."""
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress.json"))
    monkeypatch.setattr(record, "_this_session", {})
    monkeypatch.setattr(record, "_hints_shown", {})
    return tmp_path / "progress.json"


def test_progress_is_kept_and_a_later_failure_does_not_take_it_away(own_record, capsys):
    check("gaussian_weights", lambda q, k, h: q)
    assert record.states() == {"gaussian_weights": "tried"}
    check("gaussian_weights", right)
    check("gaussian_weights", lambda q, k, h: q)
    assert json.loads(own_record.read_text()) == {"gaussian_weights": "passed"}
    capsys.readouterr()
    progress()
    said = capsys.readouterr().out
    assert (
        f"1 of {len(EXERCISES)} exercises solved." in said and "solved     gaussian_weights" in said
    )


def test_two_notebooks_do_not_overwrite_each_others_progress(own_record):
    record.note("average_pooling", "passed")
    own_record.write_text(json.dumps({"local_linear": "passed", "average_pooling": "passed"}))
    record.note("hunt_fit", "tried")
    assert json.loads(own_record.read_text()) == {
        "average_pooling": "passed",
        "hunt_fit": "tried",
        "local_linear": "passed",
    }


def test_a_record_that_cannot_be_read_is_put_aside_and_not_lost(own_record):
    own_record.write_text("{broken")
    assert record.states() == {}
    record.note("hunt_fit", "tried")
    assert own_record.with_suffix(".unreadable").read_text() == "{broken"


def test_hints_come_one_by_one_and_end(own_record, capsys):
    hints = EXERCISES["hunt_fit"].hints
    for _ in range(len(hints) + 1):
        hint("hunt_fit")
    said = capsys.readouterr().out
    assert said.startswith(f"Hint 1 of {len(hints)}. {hints[0]}")
    assert all(text in said for text in hints) and "You have seen all" in said


def test_a_solution_is_shown_and_runs(capsys):
    solution("epanechnikov_weights")
    source = capsys.readouterr().out.split("\n\n", 1)[1]
    names = {"torch": torch}
    exec(source, names)  # what is shown is complete
    assert examine("epanechnikov_weights", names["epanechnikov_weights"]).state == "passed"


def test_unknown_names_are_answered_everywhere(own_record, capsys):
    for ask in (hint, solution, lambda name: check(name, right)):
        ask("gausian_weights")
        assert "Did you mean 'gaussian_weights'?" in capsys.readouterr().out


def test_a_report_is_readable_as_html_and_escapes_what_the_learner_wrote():
    page = examine("gaussian_weights", lambda q, k, h: print("<script>"))._repr_html_()
    assert 'role="status"' in page and "<script>" not in page and "&lt;script&gt;" in page
