"""From an attempt to a report."""

import dis
import html
import threading
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from types import CodeType

import torch
from torch import Tensor

from course_lib import texts
from course_lib.exercises.catalogue import EXERCISES
from course_lib.exercises.exercise import Case, Exercise
from course_lib.exercises.guard import TimeIsUp, nothing_lasts, within
from course_lib.exercises.outcome import (
    Outcome,
    close,
    difference,
    first_difference,
    own_line,
    plain,
    run,
    said,
    same,
)

_MARKS = {"passed": "✓", "new": "○", "given": "✗", "tried": "✗"}
_COLOURS = {"passed": "#3f8f5f", "new": "#6b7280", "given": "#d9650a", "tried": "#d9650a"}
_GRADIENT_TOLERANCE = 1e-3
_one_at_a_time = threading.Lock()  # a check inside a check would never end


@dataclass(frozen=True)
class Report:
    """What a check has to say.

    Attributes:
        name: the exercise.
        state: "passed", "tried", "new" (not attempted yet), or "given" (a bug hunt's code as it stood).
        says: the verdict, one or two sentences.
        details: lines below it.
        mistake: the name of the known mistake that the attempt repeats, if any.
    """

    name: str
    state: str
    says: str
    details: tuple[str, ...] = ()
    mistake: str | None = None

    def __str__(self) -> str:
        return "\n".join(
            [
                f"{_MARKS[self.state]} {self.name}: {self.says}",
                *(f"  {line}" for line in self.details),
            ]
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = f"<b>{_MARKS[self.state]} {html.escape(self.name)}</b> {html.escape(self.says)}"
        rest = html.escape("\n".join(self.details))
        below = f'<pre style="margin:4px 0 0; white-space:pre-wrap">{rest}</pre>' if rest else ""
        return (
            f'<div role="status" style="border-left:4px solid {_COLOURS[self.state]}; '
            f'padding:4px 10px; line-height:1.5">{head}{below}</div>'
        )


def examine(name: object, attempt: object, *, seconds: float = 5.0) -> Report:
    """Hold an attempt against the exercise called `name`. Never raises.

    Args:
        name: a key of `EXERCISES`.
        attempt: the learner's function; anything else is answered in words.
        seconds: how long all cases together may take.
    """
    exercise = EXERCISES.get(name) if isinstance(name, str) else None
    if exercise is None:
        return Report(_name(name), "new", unknown(name))
    if attempt is ... or attempt is None:
        return _not_attempted(exercise)
    if not _one_at_a_time.acquire(blocking=False):
        return Report(exercise.name, "tried", texts.NESTED_CHECK)
    try:
        with nothing_lasts():
            return within(seconds, lambda: _examine(exercise, attempt))
    except TimeIsUp:
        return _tried(exercise, "time", {"seconds": seconds})
    except KeyboardInterrupt:
        return _tried(exercise, "interrupted", {})
    except Exception as error:  # a return value that breaks whoever looks at it
        return _tried(exercise, "unreadable", {"came": said(error)})
    finally:
        _one_at_a_time.release()


def _examine(exercise: Exercise, attempt: object) -> Report:
    if _is_empty(attempt):
        return _not_attempted(exercise)
    if not callable(attempt):
        came = f"a {type(attempt).__name__}"
        return Report(
            exercise.name, "tried", texts.NOT_A_FUNCTION.format(name=exercise.name, came=came)
        )
    outcomes = []
    for case in exercise.cases:
        outcomes.append(run(attempt, case))
        if isinstance(outcomes[-1].error, KeyboardInterrupt):
            return _tried(exercise, "interrupted", {})
    report = _judge(exercise, attempt, outcomes)
    if report.state == "passed" and exercise.differentiable:
        return _judge_gradients(exercise, attempt) or report
    return report


def _name(name: object) -> str:
    return name if isinstance(name, str) else f"<{type(name).__name__}>"


def unknown(name: object) -> str:
    """Say that there is no such exercise, and which one may have been meant."""
    name = _name(name)
    near = get_close_matches(name, EXERCISES, n=1)
    meant = texts.DID_YOU_MEAN.format(name=near[0]) if near else ""
    return texts.UNKNOWN_EXERCISE.format(name=name, meant=meant)


def _judge(exercise: Exercise, attempt: Callable, outcomes: list[Outcome]) -> Report:
    if any(map(_says_not_attempted, outcomes)):
        return _not_attempted(exercise)
    wanted = [run(exercise.reference, case) for case in exercise.cases]
    for case, came, right in zip(exercise.cases, outcomes, wanted, strict=True):
        if came.error is None and came.changed is None and same(came, right):
            continue
        details = _details(case, came, right)
        if exercise.given and _repeats(exercise.given, exercise, outcomes):
            return Report(exercise.name, "given", exercise.given_says, details)
        for mistake in exercise.mistakes:
            if _repeats(mistake.wrong, exercise, outcomes):
                return Report(exercise.name, "tried", mistake.says, details, mistake.name)
        return _describe(exercise, attempt, came, right, details)
    says = texts.PASSED if exercise.differentiable else texts.PASSED_WITHOUT_GRADIENTS
    return Report(exercise.name, "passed", says.format(cases=len(exercise.cases)))


def _says_not_attempted(outcome: Outcome) -> bool:
    left_open = type(outcome.error) is NotImplementedError and not outcome.error.args
    return outcome.output is ... or left_open


def _repeats(wrong: Callable, exercise: Exercise, outcomes: list[Outcome]) -> bool:
    return all(
        same(came, run(wrong, case)) for case, came in zip(exercise.cases, outcomes, strict=True)
    )


def _describe(
    exercise: Exercise, attempt: Callable, came: Outcome, right: Outcome, details: tuple[str, ...]
) -> Report:
    if came.error is not None:
        details = (*_line_of(came.error, attempt), *details)
        return _tried(exercise, "exception", {"came": said(came.error)}, details)
    found = difference(came.output, right.output)
    if found is None:
        return _tried(exercise, "changed_input", {"argument": came.changed}, details)
    return _tried(exercise, *found, details)


def _judge_gradients(exercise: Exercise, attempt: Callable) -> Report | None:
    """Hold the gradients against the reference's; None where they agree.

    First in float64, where two ways to write one formula do not part by rounding. An attempt may be
    tied to float32 (`torch.ones(n) @ values`), so what fails there is asked again in float32.
    """
    for case in exercise.cases:
        report = None
        for dtype in (torch.float64, torch.float32):
            came = run(attempt, case, gradients=dtype)
            right = run(exercise.reference, case, gradients=dtype)
            report = _compare_gradients(exercise, attempt, case, came, right)
            if report is None:
                break
        if report is not None:
            return report
    return None


def _compare_gradients(
    exercise: Exercise, attempt: Callable, case: Case, came: Outcome, right: Outcome
) -> Report | None:
    details = _input_lines(case)
    for argument, wanted in right.gradients.items():
        if wanted is None:
            continue
        gradient = came.gradients[argument] if came.gradients else None
        if gradient is None:
            details = (*_line_of(came.error, attempt), *details)
            return _tried(exercise, "no_gradient", {"argument": argument}, details)
        if not close(gradient, wanted, _GRADIENT_TOLERANCE).all():
            kind = "gradient" if gradient.isfinite().all() else "nan_gradient"
            lines = _parting_lines(gradient, wanted, _GRADIENT_TOLERANCE)
            return _tried(exercise, kind, {"argument": argument}, (*details, *lines))
    return None


def _details(case: Case, came: Outcome, right: Outcome) -> tuple[str, ...]:
    lines = list(_input_lines(case))
    parts = difference(came.output, right.output) if came.error is None else None
    if parts and parts[0] in ("values", "nan"):
        lines += _parting_lines(came.output, right.output)
    elif parts and isinstance(right.output, Tensor):
        lines.append(f"  {texts.EXPECTED} {plain(right.output)}")
    if came.printed:
        lines.append(texts.PRINTED.format(text=came.printed.rstrip()))
    return tuple(lines)


def _line_of(error: BaseException | None, attempt: Callable) -> tuple[str, ...]:
    line = own_line(error, attempt) if error is not None else None
    return (texts.YOUR_LINE.format(number=line[0], text=line[1]),) if line else ()


def _input_lines(case: Case) -> tuple[str, ...]:
    return texts.SMALLEST_INPUT, *(f"  {name} = {plain(value)}" for name, value in case.items())


def _parting_lines(came: Tensor, wanted: Tensor, tolerance: float | None = None) -> tuple[str, ...]:
    where, expected, yours = first_difference(came, wanted, tolerance)
    heading = texts.FIRST_DIFFERENCE.format(where=f", {where}" if where else "")
    return heading, f"  {texts.EXPECTED} {expected}", f"  {texts.YOURS:8} {yours}"


def _tried(exercise: Exercise, kind: str, words: dict, details: tuple[str, ...] = ()) -> Report:
    return Report(exercise.name, "tried", texts.DIFFERENCES[kind].format(**words), details)


def _not_attempted(exercise: Exercise) -> Report:
    return Report(exercise.name, "new", texts.NOT_ATTEMPTED)


def _is_empty(function: object) -> bool:
    """Whether a function's body does nothing at all (only ..., pass or a docstring)."""
    if not isinstance(getattr(function, "__code__", None), CodeType):
        return False
    steps = list(dis.get_instructions(function))
    idle = {"RESUME", "NOP", "LOAD_CONST", "RETURN_VALUE", "RETURN_CONST"}
    constants = [step.argval for step in steps if step.opname in ("LOAD_CONST", "RETURN_CONST")]
    return all(step.opname in idle for step in steps) and constants == [None]
