"""What a function did with one case, and where two outcomes differ."""

import contextlib
import copy
import linecache
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType
from typing import Any

import torch
from torch import Tensor

from course_lib.exercises.exercise import Case
from course_lib.exercises.guard import Overheard, TimeIsUp, sendable

_MOST = 12  # elements shown in a report
_TOLERANCE = {torch.float16: 1e-2, torch.bfloat16: 2e-2, torch.float32: 1e-4, torch.float64: 1e-6}


@dataclass
class Outcome:
    """What came of calling a function on a case.

    Attributes:
        output: what it returned; None where it raised.
        error: what it raised, if it did.
        changed: the first argument that was changed in place, if any.
        gradients: argument name → gradient (None where none flowed), if they were asked for.
        printed: what it wrote to standard output.
    """

    output: Any = None
    error: BaseException | None = None
    changed: str | None = None
    gradients: dict[str, Tensor | None] | None = None
    printed: str = ""


def run(function: Callable, case: Case, *, gradients: torch.dtype | None = None) -> Outcome:
    """Call `function` on a copy of the case; keep whatever happens. Only `TimeIsUp` comes through.

    Args:
        function: the reference, a mistake or an attempt.
        case: what to call it with.
        gradients: take gradients as well, with every floating-point tensor in this dtype.
    """
    inputs = {name: _copied(value, gradients) for name, value in case.items()}
    outcome, overheard = Outcome(), Overheard()
    try:
        with (
            contextlib.redirect_stdout(overheard),
            torch.inference_mode(False),
            torch.enable_grad(),
        ):
            outcome.output = function(*inputs.values())
            if gradients:
                outcome.gradients = _gradients(outcome.output, inputs)
    except TimeIsUp:
        raise
    except BaseException as error:  # SystemExit and KeyboardInterrupt too: the kernel lives on
        outcome.error = error
    outcome.printed = overheard.getvalue()
    outcome.changed = next(
        (
            name
            for name, value in inputs.items()
            if gradients is None and not _untouched(value, case[name])
        ),
        None,
    )
    return outcome


def same(mine: Outcome, other: Outcome) -> bool:
    """Whether two outcomes are alike: equal values, or errors of one kind."""
    if mine.error is not None or other.error is not None:
        return type(mine.error) is type(other.error)
    return difference(mine.output, other.output) is None


def difference(came: Any, wanted: Any) -> tuple[str, dict[str, str]] | None:
    """Return the kind of difference (a key of `texts.DIFFERENCES`) with its words, or None."""
    if came is None:
        return "none", {}
    if not isinstance(came, Tensor) or came.layout != torch.strided or came.is_nested:
        return "kind", {"came": _called(came), "wanted": _called(wanted)}
    if came.shape != wanted.shape:
        return "shape", {"came": str(tuple(came.shape)), "wanted": str(tuple(wanted.shape))}
    if came.dtype != wanted.dtype:
        return "dtype", {"came": str(came.dtype), "wanted": str(wanted.dtype)}
    if came.device != wanted.device:
        return "device", {"came": str(came.device), "wanted": str(wanted.device)}
    if close(came, wanted).all():
        return None
    return ("values" if came.isfinite().all() else "nan"), {}


def close(came: Tensor, wanted: Tensor, tolerance: float | None = None) -> Tensor:
    """Elementwise: equal up to the rounding of the dtype at the size of the tensor; NaN equals NaN."""
    if not wanted.is_floating_point():
        return came == wanted
    if tolerance is None:
        tolerance = _TOLERANCE.get(wanted.dtype, 0.0)
    size = wanted.abs().nan_to_num(posinf=0.0).max().item() if wanted.numel() else 0.0
    return torch.isclose(came, wanted, rtol=tolerance, atol=tolerance * size / 10, equal_nan=True)


def first_difference(
    came: Tensor, wanted: Tensor, tolerance: float | None = None
) -> tuple[str, str, str]:
    """Say where two tensors part for the first time, and what each holds there: (where, expected, yours)."""
    if wanted.dim() == 0:
        return "", *_told_apart(wanted, came)
    index = tuple((~close(came, wanted, tolerance)).nonzero()[0].tolist())
    if wanted.dim() > 1 and wanted.shape[-1] <= _MOST:
        index = index[:-1]  # a whole row says more than one element of it
        return f"row {', '.join(map(str, index))}", *_told_apart(wanted[index], came[index])
    place = index[0] if len(index) == 1 else index
    return f"element {place}", *_told_apart(wanted[index], came[index])


def plain(value: Any, digits: int = 6) -> str:
    """A short form of an input or output for a report."""
    if not isinstance(value, Tensor):
        return repr(value)
    if value.numel() > _MOST:
        return f"tensor of shape {tuple(value.shape)}"
    return str(_rounded(value.detach().tolist(), digits))


def _told_apart(wanted: Tensor, came: Tensor) -> tuple[str, str]:
    """Both with three digits, or with as many as it takes to see that they differ."""
    for digits in range(3, 10):
        said = plain(wanted, digits), plain(came, digits)
        if said[0] != said[1]:
            break
    return said


def said(error: BaseException) -> str:
    """Return the words of an error, whatever its class does when it is asked for them."""
    try:
        words = str(error)
    except Exception:
        words = ""
    return sendable(f"{type(error).__name__}: {words}" if words else type(error).__name__)


def own_line(error: BaseException, function: Callable) -> tuple[int, str] | None:
    """Return number and text of the last line of the learner's code that the error went through."""
    code = getattr(function, "__code__", None)
    file = code.co_filename if isinstance(code, CodeType) else None
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file
    ]
    if not frames:
        return None
    number = frames[-1].lineno
    return number, linecache.getline(file, number).strip()


def _copied(value: Any, gradients: torch.dtype | None) -> Any:
    if isinstance(value, Tensor):
        if gradients is not None and value.is_floating_point():
            return value.detach().clone().to(gradients).requires_grad_()
        return value.detach().clone()
    return copy.deepcopy(value)


def _untouched(value: Any, original: Any) -> bool:
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
    mix = torch.linspace(0.5, 1.5, output.numel(), dtype=output.dtype).reshape(output.shape)
    found = torch.autograd.grad((output * mix).sum(), list(leaves.values()), allow_unused=True)
    return dict(zip(leaves, found, strict=True))


def _called(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    return f"a {type(value).__name__}"


def _rounded(nested: Any, digits: int) -> Any:
    if isinstance(nested, list):
        return [_rounded(item, digits) for item in nested]
    return float(f"{nested:.{digits}g}") if isinstance(nested, float) else nested
