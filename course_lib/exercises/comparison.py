"""Run a function on a case, and find where two outcomes differ."""

import contextlib
import copy
import linecache
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_lib.exercises.exercise import Case
from course_lib.exercises.sandbox import (
    CapturedOutput,
    TimeLimitExceeded,
    replace_surrogates,
    restored,
)

_MAX_ELEMENTS = 20  # elements shown in a report
_TOLERANCE = {torch.float16: 1e-2, torch.bfloat16: 2e-2, torch.float32: 1e-4, torch.float64: 1e-6}


@dataclass
class Outcome:
    """The result of calling a function on a case.

    Attributes:
        output: what it returned; None where it raised.
        error: what it raised, if it did.
        changed: the first argument that was changed in place, if any.
        gradients: argument name → gradient (None where none flowed), if requested.
        printed: its standard output.
    """

    output: Any = None
    error: BaseException | None = None
    changed: str | None = None
    gradients: dict[str, Tensor | None] | None = None
    printed: str = ""


def run(function: Callable, case: Case, *, gradients: torch.dtype | None = None) -> Outcome:
    """Call `function` on a copy of the case and catch what it raises, except `TimeLimitExceeded`.

    Args:
        function: the reference, a mistake or an attempt.
        case: what to call it with.
        gradients: compute gradients as well, with every floating-point tensor in this dtype.
    """
    inputs = {name: _copy(value, gradients) for name, value in case.items()}
    outcome, stdout = Outcome(), CapturedOutput()
    try:
        with (
            restored(function),
            contextlib.redirect_stdout(stdout),
            torch.inference_mode(False),
            torch.enable_grad(),
        ):
            outcome.output = function(*inputs.values())
            if gradients:
                outcome.gradients = _gradients(outcome.output, inputs)
    except TimeLimitExceeded:
        raise
    except BaseException as error:  # SystemExit and KeyboardInterrupt too: the kernel must survive
        outcome.error = error
    outcome.printed = stdout.getvalue()
    if gradients is None:
        outcome.changed = _first_changed(inputs, case)
    return outcome


def gives(implementation: Callable, cases: tuple[Case, ...], outcomes: list[Outcome]) -> bool:
    """Whether a function of the catalogue, which needs no protection, has these outcomes."""
    for case, outcome in zip(cases, outcomes, strict=True):
        found, inputs = Outcome(), {name: _copy(value, None) for name, value in case.items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found.output = implementation(*inputs.values())
            except Exception as error:
                found.error = error
        if found.error is None and as_tensor(found.output) is None:
            return False
        if outcome.changed != (
            outcome.changed and _first_changed(inputs, case)
        ) or not same_outcome(outcome, found):
            return False
    return True


def same_outcome(one: Outcome, other: Outcome) -> bool:
    """Whether two outcomes have equal values, or the same error with the same message."""
    if one.error is not None or other.error is not None:
        return type(one.error) is type(other.error) and str(one.error) == str(other.error)
    return difference(one.output, other.output) is None


def difference(actual: Any, expected: Any) -> tuple[str, dict[str, str]] | None:
    """Return the kind of difference (a key of `messages.DIFFERENCES`) with its format arguments, or None.

    Right values in another integer or floating-point dtype are right, and so is a number for a tensor of shape ().
    """
    if actual is None:
        return "none", {}
    came, wanted = as_tensor(actual), as_tensor(expected)
    if came is None or wanted is None:
        return "kind", {"came": _describe_type(actual), "wanted": _describe_type(expected)}
    expected = wanted
    if came.shape != expected.shape:
        return "shape", {"came": str(tuple(came.shape)), "wanted": str(tuple(expected.shape))}
    if _kind(came.dtype) != _kind(expected.dtype):
        return "dtype", {"came": str(came.dtype), "wanted": str(expected.dtype)}
    if came.device != expected.device:
        return "device", {"came": str(came.device), "wanted": str(expected.device)}
    equal = close(came, expected)
    if equal.all():
        return None
    return ("nan" if (~came.isfinite() & expected.isfinite()).any() else "values"), {}


def as_tensor(value: Any) -> Tensor | None:
    """Return a result as a tensor, or None if it is neither a tensor nor a number."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        whole = isinstance(value, int) and abs(value) < 2**63
        return torch.tensor(value, dtype=torch.int64 if whole else torch.float64)
    is_tensor = isinstance(value, Tensor) and value.layout == torch.strided and not value.is_nested
    return value if is_tensor else None


def _kind(dtype: torch.dtype) -> torch.dtype | None:
    """The dtype itself for booleans and complex numbers; None for all other numbers."""
    return dtype if dtype == torch.bool or dtype.is_complex else None


def close(
    actual: Tensor, expected: Tensor, tolerance: float | None = None, least: float = 0.0
) -> Tensor:
    """Elementwise: equal up to the rounding of the dtype at the size of the tensor; NaN equals NaN.

    Args:
        tolerance: in place of that of the dtype of `expected`.
        least: an absolute difference that is always allowed.
    """
    if not expected.is_floating_point():
        return actual == expected
    if tolerance is None:
        tolerance = _TOLERANCE.get(expected.dtype, 0.0)
    size = expected.abs().nan_to_num(posinf=0.0).max().item() if expected.numel() else 0.0
    allowed = max(tolerance * size / 10, least)
    both = (x.to(torch.promote_types(actual.dtype, expected.dtype)) for x in (actual, expected))
    return torch.isclose(*both, rtol=tolerance, atol=allowed, equal_nan=True)


def first_difference(
    actual: Tensor, expected: Tensor, tolerance: float | None = None
) -> tuple[str, str, str]:
    """Return where two tensors differ first, and both values there: (where, expected, actual).

    NaN or infinity in place of a finite number goes before any other difference.
    """
    if expected.dim() == 0:
        return "", *_format_both(expected, actual)
    wrong = ~actual.isfinite() & expected.isfinite()
    if not wrong.any():
        wrong = ~close(actual, expected, tolerance)
    index = tuple(wrong.nonzero()[0].tolist())
    if expected.dim() > 1 and expected.shape[-1] <= _MAX_ELEMENTS:
        index = index[:-1]  # a whole row is more informative than one element
        return f"at index {list(index)}", *_format_both(expected[index], actual[index])
    return f"at index {list(index)}", *_format_both(expected[index], actual[index])


def format_value(value: Any, digits: int = 6) -> str:
    """Format an input or output for a report."""
    if not isinstance(value, Tensor):
        return repr(value)
    if value.numel() > _MAX_ELEMENTS:
        named = "" if value.dtype in (torch.float32, torch.int64, torch.bool) else f"{value.dtype} "
        return f"{named}tensor of shape {tuple(value.shape)}"
    return str(_round(value.detach().tolist(), digits))


def _format_both(expected: Tensor, actual: Tensor) -> tuple[str, str]:
    """Format both with three digits, or with as many as are needed to show the difference."""
    for digits in range(3, 10):
        formatted = format_value(expected, digits), format_value(actual, digits)
        if formatted[0] != formatted[1]:
            break
    return formatted


_MOST_CHARACTERS = 500  # of an error's text


def error_text(error: BaseException) -> str:
    """Return type and message of an error, even if its `__str__` raises."""
    try:
        message = str(error)
    except Exception:
        message = ""
    if len(message) > _MOST_CHARACTERS:
        message = f"{message[:_MOST_CHARACTERS]}… ({len(message):,} characters)"
    return replace_surrogates(
        f"{type(error).__name__}: {message}" if message else type(error).__name__
    )


def failing_line(error: BaseException, function: Callable) -> tuple[int, str] | None:
    """Return number and text of the last line of the learner's code in the traceback."""
    code = getattr(function, "__code__", None)
    file = code.co_filename if isinstance(code, CodeType) else None
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file
    ]
    if not frames:
        return None
    number = frames[-1].lineno
    return number, linecache.getline(file, number).strip()


def _copy(value: Any, gradients: torch.dtype | None) -> Any:
    if isinstance(value, Tensor):
        if gradients is not None and value.is_floating_point():
            return value.detach().clone().to(gradients).requires_grad_()
        return value.detach().clone()
    return copy.deepcopy(value)


def _first_changed(inputs: dict[str, Any], case: Case) -> str | None:
    return next((name for name, x in inputs.items() if not _is_unchanged(x, case[name])), None)


def _is_unchanged(value: Any, original: Any) -> bool:
    if isinstance(original, Tensor):
        unchanged = value.shape == original.shape and value.dtype == original.dtype
        return unchanged and torch.equal(value, original)
    return value == original


def _gradients(output: Any, inputs: dict[str, Any]) -> dict[str, Tensor | None]:
    """Gradients of a fixed weighted sum of the output with respect to every floating-point tensor."""
    leaves = {
        name: value
        for name, value in inputs.items()
        if isinstance(value, Tensor) and value.requires_grad
    }
    if not isinstance(output, Tensor) or not output.requires_grad:
        return dict.fromkeys(leaves)
    coefficients = torch.linspace(0.5, 1.5, output.numel(), dtype=output.dtype)
    weighted_sum = (output * coefficients.reshape(output.shape)).sum()
    gradients = torch.autograd.grad(weighted_sum, list(leaves.values()), allow_unused=True)
    return dict(zip(leaves, gradients, strict=True))


def _describe_type(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    return "a NumPy array" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"


def _round(nested: Any, digits: int) -> Any:
    if isinstance(nested, list):
        return [_round(item, digits) for item in nested]
    return float(f"{nested:.{digits}g}") if isinstance(nested, float) else nested
