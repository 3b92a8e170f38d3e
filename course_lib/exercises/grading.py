"""Grade an attempt: from a function to a `Report`."""

import dis
import html
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from types import FunctionType, MethodType

import torch
from torch import Tensor

from course_lib import messages
from course_lib.exercises.catalogue import EXERCISES
from course_lib.exercises.comparison import (
    Outcome,
    as_tensor,
    close,
    difference,
    error_text,
    failing_line,
    first_difference,
    format_value,
    gives,
    run,
    same_outcome,
)
from course_lib.exercises.edits import pairs
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.exercises.relations import measured
from course_lib.exercises.sandbox import TimeLimitExceeded, restored, run_with_time_limit
from course_lib.exercises.watch import LargestTensor, load

_MARKS = {"passed": "✓", "new": "○", "given": "✗", "tried": "✗"}
_COLOURS = {"passed": "#3f8f5f", "new": "#6b7280", "given": "#d9650a", "tried": "#d9650a"}
_GRADIENT_TOLERANCE = 1e-3
_LEAST_GRADIENT = {torch.float64: 1e-12, torch.float32: 1e-6}  # smaller ones are rounding noise
_LINE = 78  # columns of a report
_SEARCH = 0.5  # share of the time limit after which no further pair of mistakes is tried
_lock = threading.Lock()  # held during a check: a check inside a check would never end


@dataclass(frozen=True)
class Report:
    """The result of a check.

    Attributes:
        name: the exercise.
        state: "passed", "tried", "new" (not attempted yet), or "given" (a bug hunt's code, unchanged).
        message: the verdict, one or two sentences.
        details: further lines: the input, the first difference.
        mistake: the name of the known mistake that gives the same results, if any.
    """

    name: str
    state: str
    message: str
    details: tuple[str, ...] = ()
    mistake: str | None = None

    def __str__(self) -> str:
        return "\n".join(
            [
                f"{_MARKS[self.state]} {self.name}: {self.message}",
                *(f"  {line}" for line in self.details),
            ]
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = f"<b>{_MARKS[self.state]} {html.escape(self.name)}</b> {html.escape(self.message)}"
        rest = html.escape("\n".join(self.details))
        below = f'<pre style="margin:4px 0 0; white-space:pre-wrap">{rest}</pre>' if rest else ""
        return (
            f'<div role="status" style="border-left:4px solid {_COLOURS[self.state]}; '
            f'padding:4px 10px; line-height:1.5">{head}{below}</div>'
        )


def grade(name: object, attempt: object, *, seconds: float = 5.0) -> Report:
    """Compare an attempt with the reference of the exercise `name`. Never raises.

    Args:
        name: a key of `EXERCISES`.
        attempt: the learner's function; for anything else the report says what is needed.
        seconds: time limit for all cases together.
    """
    exercise = EXERCISES.get(name) if isinstance(name, str) else None
    if exercise is None:
        return Report(_shown_name(name), "new", unknown_exercise(name))
    if attempt is ... or attempt is None or _has_empty_body(attempt):
        return _not_attempted(exercise)
    if not _lock.acquire(blocking=False):
        return Report(exercise.name, "tried", messages.NESTED_CHECK)
    try:
        if exercise.most_elements is not None:
            load()  # before the clock starts
        until = time.monotonic() + _SEARCH * seconds
        with restored(attempt):  # once more around: a thread that was left behind restores nothing
            return run_with_time_limit(seconds, lambda: _grade(exercise, attempt, until))
    except TimeLimitExceeded:
        return _failed(exercise, "time", {"seconds": seconds})
    except KeyboardInterrupt:
        return _failed(exercise, "interrupted", {})
    except Exception as error:  # a return value that raises when it is inspected
        return _failed(exercise, "unreadable", {"came": error_text(error)})
    finally:
        _lock.release()


def _grade(exercise: Exercise, attempt: object, until: float) -> Report:
    if not callable(attempt):
        attempt_type = f"a {type(attempt).__name__}"
        message = messages.NOT_A_FUNCTION.format(name=exercise.name, came=attempt_type)
        return Report(exercise.name, "tried", message)
    outcomes = []
    for case in exercise.cases:
        outcomes.append(run(attempt, case))
        if isinstance(outcomes[-1].error, KeyboardInterrupt):
            return _failed(exercise, "interrupted", {})
    report = _compare_with_reference(exercise, attempt, outcomes, until)
    if report.state == "passed" and exercise.most_elements is not None:
        report = _check_size(exercise, attempt, exercise.most_elements) or report
    if report.state == "passed" and exercise.differentiable:
        return _check_gradients(exercise, attempt) or report
    return report


def _shown_name(name: object) -> str:
    return name if isinstance(name, str) else f"<{type(name).__name__}>"


def unknown_exercise(name: object) -> str:
    """Return the message for an unknown name, with the nearest known name."""
    name = _shown_name(name)
    matches = get_close_matches(name, EXERCISES, n=1)
    suggestion = messages.DID_YOU_MEAN.format(name=matches[0]) if matches else ""
    return messages.UNKNOWN_EXERCISE.format(name=name, meant=suggestion)


def _compare_with_reference(
    exercise: Exercise, attempt: Callable, outcomes: list[Outcome], until: float
) -> Report:
    if any(map(_is_unanswered, outcomes)):
        return _not_attempted(exercise)
    references = [run(exercise.reference, case) for case in exercise.cases]
    wrong = [
        (case, actual, expected)
        for case, actual, expected in zip(exercise.cases, outcomes, references, strict=True)
        if actual.error or actual.changed is not None or not same_outcome(actual, expected)
    ]
    if wrong:
        return _wrong(exercise, attempt, outcomes, references, wrong, until)
    message = messages.PASSED if exercise.differentiable else messages.PASSED_WITHOUT_GRADIENTS
    remark = _remark(outcomes[0].output, references[0].output)
    return Report(exercise.name, "passed", message.format(cases=len(exercise.cases)), remark)


def _wrong(
    exercise: Exercise,
    attempt: Callable,
    outcomes: list[Outcome],
    references: list[Outcome],
    wrong: list[tuple[Case, Outcome, Outcome]],
    until: float,
) -> Report:
    """Name the mistake, or say what was measured, with the first case that shows it."""
    case, actual, expected = wrong[0]
    details = _detail_lines(case, actual, expected, attempt)
    raised = (messages.RAISED.format(came=error_text(actual.error)),) if actual.error else ()
    if exercise.given and gives(exercise.given, exercise.cases, outcomes):
        return Report(exercise.name, "given", exercise.given_message, raised + details)
    if mistake := _known_mistake(exercise, outcomes, until):
        return Report(exercise.name, "tried", mistake.message, raised + details, mistake.name)
    if actual.changed is not None:
        return _failed(exercise, "changed_input", {"argument": actual.changed}, details)
    if actual.error is not None:
        came = error_text(actual.error).removesuffix(".")  # the sentence has its own
        return _failed(exercise, "exception", {"came": came}, details)
    kind, values = difference(actual.output, expected.output)
    if kind == "values":  # NaN says more than a wrong number
        for one in wrong:
            if not one[1].error and difference(one[1].output, one[2].output) == ("nan", {}):
                return _failed(exercise, "nan", {}, _detail_lines(*one, attempt))
    comparable = kind in ("shape", "values", "nan")
    relation = comparable and measured(exercise, attempt, outcomes, references)
    if relation and kind == "shape":
        details = (relation, *details)
    values = values | {"measured": f" {relation}" if relation else ""}
    return _failed(exercise, kind, values, details)


def _remark(output: object, expected: object) -> tuple[str, ...]:
    """Say that the dtype is another one, or that a number came for a tensor."""
    if isinstance(output, Tensor) and output.dtype == expected.dtype:
        return ()
    came = output.dtype if isinstance(output, Tensor) else f"a Python {type(output).__name__}"
    return (messages.OTHER_DTYPE.format(came=came, wanted=expected.dtype),)


def _known_mistake(exercise: Exercise, outcomes: list[Outcome], until: float) -> Mistake | None:
    """Return the mistake that gives these outcomes, or two that do together, if they are found in time."""
    for mistake in exercise.mistakes:
        if gives(mistake.implementation, exercise.cases, outcomes):
            return mistake
    if any(outcome.error for outcome in outcomes):
        return None
    both = []
    for pair in pairs(exercise):
        if time.monotonic() > until:  # a slow search is not the learner's infinite loop
            return None
        if gives(pair.implementation, exercise.cases, outcomes):
            both.append(pair)
    same = len({pair.message for pair in both}) == 1  # else several explanations fit
    return both[0] if same else None


def _is_unanswered(outcome: Outcome) -> bool:
    error = outcome.error
    not_implemented = type(error) is NotImplementedError and not error.args
    return outcome.output is ... or not_implemented


def _check_size(exercise: Exercise, attempt: Callable, most: int) -> Report | None:
    """Run the last case again; None where no tensor on the way has more than `most` elements."""
    case, largest = exercise.cases[-1], LargestTensor()

    def watched(*inputs: object) -> object:
        with largest:
            return attempt(*inputs)

    if run(watched, case).error is not None or largest.elements <= most:
        return None
    values = {"shape": largest.shape, "most": most}
    return _failed(exercise, "too_large", values, _input_lines(case)[1:])


def _check_gradients(exercise: Exercise, attempt: Callable) -> Report | None:
    """Compare the gradients with those of the reference; None where they agree.

    First in float64, where two ways to write one formula do not differ by rounding. An attempt may
    require float32 (`torch.ones(n) @ values`), so a case that fails is repeated in float32.
    """
    for case in exercise.cases:
        report = None
        for dtype in (torch.float64, torch.float32):
            actual = run(attempt, case, gradients=dtype)
            expected = run(exercise.reference, case, gradients=dtype)
            least = _LEAST_GRADIENT[dtype]
            report = _compare_gradients(exercise, attempt, case, actual, expected, least)
            if report is None:
                break
        if report is not None:
            return report
    return None


def _compare_gradients(
    exercise: Exercise,
    attempt: Callable,
    case: Case,
    actual: Outcome,
    expected: Outcome,
    least: float,
) -> Report | None:
    details = _input_lines(case)
    for argument, expected_gradient in expected.gradients.items():
        if expected_gradient is None or not expected_gradient.numel():
            continue
        gradient = actual.gradients[argument] if actual.gradients else None
        if gradient is None:
            details = (*_error_lines(actual.error, attempt), *details)
            in_place = any(word in str(actual.error) for word in ("inplace", "in-place"))
            kind = "no_backward" if in_place else "no_gradient"
            return _failed(exercise, kind, {"argument": argument}, details)
        if not close(gradient, expected_gradient, _GRADIENT_TOLERANCE, least).all():
            kind = "gradient" if gradient.isfinite().all() else "nan_gradient"
            lines = _difference_lines(gradient, expected_gradient, _GRADIENT_TOLERANCE)
            return _failed(exercise, kind, {"argument": argument}, (*details, *lines))
    return None


def _detail_lines(
    case: Case, actual: Outcome, expected: Outcome, attempt: Callable
) -> tuple[str, ...]:
    lines = list(_input_lines(case))
    if actual.error is not None:
        lines = [*_error_lines(actual.error, attempt), *lines]
    elif found := difference(actual.output, expected.output):
        came = as_tensor(actual.output)
        if found[0] in ("values", "nan"):
            lines += _difference_lines(came, expected.output)
        elif isinstance(expected.output, Tensor):
            lines.append(f"  {messages.EXPECTED} {format_value(expected.output)}")
            if found[0] in ("kind", "shape", "dtype"):
                yours = actual.output if came is None else came
                lines.append(f"  {messages.YOURS:8} {format_value(yours)}")
    if actual.printed:
        lines.append(messages.PRINTED.format(text=actual.printed.rstrip()))
    return tuple(lines)


def _error_lines(error: BaseException | None, attempt: Callable) -> tuple[str, ...]:
    line = failing_line(error, attempt) if error is not None else None
    return (messages.YOUR_LINE.format(number=line[0], text=line[1]),) if line else ()


def _input_lines(case: Case) -> tuple[str, ...]:
    """Name the inputs, several on a line where they fit."""
    lines = [messages.SMALLEST_INPUT]
    for name, value in case.items():
        text = f"{name} = {format_value(value)}"
        if len(lines) > 1 and len(lines[-1]) + len(text) + 2 <= _LINE:
            lines[-1] += f", {text}"
        else:
            lines.append(f"  {text}")
    return tuple(lines)


def _difference_lines(
    actual: Tensor, expected: Tensor, tolerance: float | None = None
) -> tuple[str, ...]:
    where, expected_text, actual_text = first_difference(actual, expected, tolerance)
    heading = messages.FIRST_DIFFERENCE.format(where=f" {where}" if where else "")
    return heading, f"  {messages.EXPECTED} {expected_text}", f"  {messages.YOURS:8} {actual_text}"


def _failed(exercise: Exercise, kind: str, values: dict, details: tuple[str, ...] = ()) -> Report:
    return Report(exercise.name, "tried", messages.DIFFERENCES[kind].format(**values), details)


def _not_attempted(exercise: Exercise) -> Report:
    return Report(exercise.name, "new", messages.NOT_ATTEMPTED)


_IDLE = {"RESUME", "NOP", "LOAD_CONST", "RETURN_VALUE", "RETURN_CONST"}


def _has_empty_body(function: object) -> bool:
    """Whether a function's body does nothing at all (only ..., pass or a docstring)."""
    instructions = _instructions(function)
    constants = [one.argval for one in instructions if one.opname in ("LOAD_CONST", "RETURN_CONST")]
    return all(one.opname in _IDLE for one in instructions) and constants == [None]


def _instructions(function: object) -> list[dis.Instruction]:
    is_function = isinstance(function, FunctionType | MethodType)
    return list(dis.get_instructions(function)) if is_function else []
