"""How a wrong result is related to the expected one: what was measured, never why.

`measured` is asked once no known mistake gives the learner's results. Every relation it names holds on the first case
that is not right, which the report shows, and on all others that are large enough to tell.
"""

import itertools
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from course_lib import messages
from course_lib.exercises.comparison import Outcome, as_tensor, close, run, same_outcome
from course_lib.exercises.exercise import Case, Exercise

Pair = tuple[Tensor, Tensor]  # yours, expected, both float64
_SAID = messages.RELATIONS
_CHANGES = 8  # other values of an argument, before it is said to have no effect


def measured(
    exercise: Exercise, attempt: Callable, outcomes: list[Outcome], references: list[Outcome]
) -> str | None:
    """Return a sentence about results that are wrong, or None if nothing was found."""
    wrong = [
        index
        for index, (actual, expected) in enumerate(zip(outcomes, references, strict=True))
        if not same_outcome(actual, expected)
    ]
    pairs = [_pair(outcomes[index].output, references[index].output) for index in wrong]
    if any(outcome.error for outcome in outcomes) or None in pairs:
        return None
    same_shape = all(yours.shape == expected.shape for yours, expected in pairs)
    in_turn = [_near, _scaled, _moved, _function] if same_shape else [_moved, _reduced]
    in_turn.append(lambda _: _argument_without_effect(exercise, attempt, wrong))
    in_turn += [_in_part, _summing_to_one] if same_shape else []
    if said := next(filter(None, (relation(pairs) for relation in in_turn)), None):
        return said
    right = len(outcomes) - len(wrong)
    return _SAID["cases"].format(right=right, count=len(outcomes)) if right else None


def _pair(yours: Any, expected: Any) -> Pair | None:
    yours, expected = as_tensor(yours), as_tensor(expected)
    if yours is None or expected is None or torch.bool in (yours.dtype, expected.dtype):
        return None
    return yours.detach().double(), expected.detach().double()


def _same(yours: Tensor, expected: Tensor) -> bool:
    return yours.shape == expected.shape and bool(close(yours, expected, 1e-4).all())


def _first_that_holds(
    pairs: list[Pair], candidates: Callable[[Tensor, Tensor], Iterator[tuple[str, Tensor, Tensor]]]
) -> str | None:
    """Return the first sentence whose two tensors are equal, if it is the same for every pair."""
    # on two numbers much holds by chance
    told = [pair for pair in pairs if len(pair[1].unique()) > 2]
    if not told and len(pairs) > 2:
        told = pairs
    if not told:
        return None
    found = [
        [said for said, *two in candidates(*pair) if _same(*two)] for pair in (pairs[0], *told)
    ]
    return next((said for said in found[0] if all(said in said_of for said_of in found)), None)


def _near(pairs: list[Pair]) -> str | None:
    """Wrong, and by so little that a factor would round to 1."""
    sizes = []
    for yours, expected in pairs:
        off, size = (yours - expected).abs().max(), expected.abs().max()
        sizes.append((off / size).item() if size else math.inf)
    near = all(one < 5e-4 for one in sizes)  # not of NaN
    return _SAID["near"].format(size=max(sizes)) if near else None


def _scaled(pairs: list[Pair]) -> str | None:
    """A constant factor, or a constant difference."""
    factors, differences = [], []
    for yours, expected in pairs:
        if not (yours.isfinite().all() and expected.isfinite().all()) or not expected.any():
            return None
        place = expected.abs().argmax()
        factors.append((yours.flatten()[place] / expected.flatten()[place]).item())
        differences.append((yours - expected).flatten()[place].item())
    alone = all(yours.numel() == 1 for yours, _ in pairs)  # one number has always a factor
    multiples = [e * c for (_, e), c in zip(pairs, factors, strict=True)]
    shifted = [e + c for (_, e), c in zip(pairs, differences, strict=True)]
    for key, numbers, rebuilt in (("factor", factors, multiples), ("more", differences, shifted)):
        equal = max(numbers) - min(numbers) <= 1e-4 * max(map(abs, numbers))
        if alone and (len(pairs) == 1 or not equal):
            continue
        if not all(_same(yours, one) for (yours, _), one in zip(pairs, rebuilt, strict=True)):
            continue
        if key == "factor" and all(abs(c) < 1e-6 for c in numbers):
            return _SAID["zero"]
        if key == "factor" and equal and abs(numbers[0] + 1) < 1e-4:
            return _SAID["sign"]
        if key == "factor" and any(abs(c - 1) < 5e-4 for c in numbers):
            return None  # some cases are nearly right, so there is no factor
        if key == "more" and equal and numbers[0] < 0:
            return _SAID["less"].format(numbers=_number(-numbers[0]))
        shown = ", ".join(dict.fromkeys(map(_number, numbers[:1] if equal else numbers)))
        return _SAID[key if equal else f"{key}s"].format(numbers=shown)
    return None


def _number(value: float) -> str:
    """Format a factor, with the root or the fraction that it is."""
    for n in range(2, 65):
        for text, exact in (
            (f"√{n}", math.sqrt(n)),
            (f"1/√{n}", 1 / math.sqrt(n)),
            (f"1/{n}", 1 / n),
        ):
            if abs(abs(value) - exact) < 1e-4 * exact and not float(value).is_integer():
                return f"{value:.4g} (that is {'−' if value < 0 else ''}{text})"
    return f"{value:.4g}"


def _moved(pairs: list[Pair]) -> str | None:
    """The same numbers at other places: axes exchanged, another order, one late or early."""

    def candidates(yours: Tensor, expected: Tensor) -> Iterator[tuple[str, Tensor, Tensor]]:
        dims = yours.dim()
        if 2 <= dims == expected.dim() <= 4:
            for order in itertools.permutations(range(dims)):
                moved = [axis for axis in range(dims) if order[axis] != axis]
                key = "exchanged" if len(moved) == 2 else "permuted"
                said = _SAID[key].format(axes=" and ".join(map(str, moved)), order=order)
                if moved:
                    yield said, yours.permute(order), expected
        if yours.shape != expected.shape:
            if yours.numel() == expected.numel():
                yield _SAID["reshaped"], yours.flatten(), expected.flatten()
            return
        for axis in range(dims):
            length = yours.shape[axis]
            if length < 2:
                continue
            yield _SAID["flipped"].format(axis=axis), yours.flip(axis), expected
            first, last = (x.narrow(axis, 0, length - 1) for x in (yours, expected))
            late, early = yours.narrow(axis, 1, length - 1), expected.narrow(axis, 1, length - 1)
            yield _SAID["late"].format(axis=axis), late, last
            yield _SAID["early"].format(axis=axis), first, early
            by_value = [_sorted_slices(x, axis) for x in (yours, expected)]
            yield _SAID["order"].format(axis=axis), *by_value

    return _first_that_holds(pairs, candidates)


def _sorted_slices(x: Tensor, axis: int) -> Tensor:
    slices = [[round(v, 5) for v in part.flatten().tolist()] for part in x.unbind(axis)]
    return torch.tensor(sorted(slices), dtype=x.dtype)


_FUNCTIONS = {"exp": torch.exp, "log": torch.log, "abs": torch.abs, "1/x": torch.reciprocal}
_FUNCTIONS |= {"sqrt": torch.sqrt, "square": torch.square, "1 − x": lambda x: 1 - x}


def _function(pairs: list[Pair]) -> str | None:
    """A function of your elements gives the expected ones, or the other way round."""

    def candidates(yours: Tensor, expected: Tensor) -> Iterator[tuple[str, Tensor, Tensor]]:
        for name, function in _FUNCTIONS.items():
            yield _SAID["function"].format(name=name), function(yours), expected
        for axis in range(yours.dim()):
            yield _SAID["softmax"].format(axis=axis), yours.softmax(axis), expected
            yield _SAID["softmax_of"].format(axis=axis), yours, expected.softmax(axis)
            total = yours.sum(axis, keepdim=True)
            yield _SAID["normalised"].format(axis=axis), yours / total, expected

    if all(yours.numel() > 1 for yours, _ in pairs):
        return _first_that_holds(pairs, candidates)
    return None


def _reduced(pairs: list[Pair]) -> str | None:
    """One axis more or less: a sum, a mean, or one slice."""

    def candidates(yours: Tensor, expected: Tensor) -> Iterator[tuple[str, Tensor, Tensor]]:
        large, small, key = (yours, expected, "reduce")
        if yours.dim() < expected.dim():
            large, small, key = (expected, yours, "reduced")
        for axis in range(large.dim()):
            parts = {"sum": large.sum(axis), "mean": large.mean(axis), "maximum": large.amax(axis)}
            parts |= {"first slice": large.select(axis, 0), "last slice": large.select(axis, -1)}
            for name, part in parts.items():
                yield _SAID[key].format(name=name, axis=axis), part, small

    if all(abs(yours.dim() - e.dim()) == 1 and yours.numel() and e.numel() for yours, e in pairs):
        return _first_that_holds(pairs, candidates)
    return None


def _summing_to_one(pairs: list[Pair]) -> str | None:
    """The expected result sums to 1 along an axis along which yours does not."""

    def axes(x: Tensor) -> set[int]:
        sums = {axis: x.sum(axis) for axis in range(x.dim()) if x.shape[axis] > 1}
        return {axis for axis, total in sums.items() if _same(total, torch.ones_like(total))}

    wanted = set.intersection(*(axes(expected) for _, expected in pairs))
    came = set.intersection(*(axes(yours) for yours, _ in pairs))
    if not wanted or any(wanted & axes(yours) or not yours.isfinite().all() for yours, _ in pairs):
        return None
    key = "sum_elsewhere" if came else "sum_nowhere"
    return _SAID[key].format(wanted=min(wanted), came=min(came, default=None))


def _in_part(pairs: list[Pair]) -> str | None:
    """Right at some indices of an axis, wrong at the others."""
    for axis in range(min(yours.dim() for yours, _ in pairs)):
        kinds = set()
        for yours, expected in pairs:
            right = (
                close(yours, expected, 1e-4)
                .unsqueeze(-1)
                .movedim(axis, 0)
                .flatten(1)
                .all(1)
                .tolist()
            )
            shape = "".join("+" if one else "-" for one in right)
            patterns = {
                "only_first": r"\+-+",
                "only_last": r"-+\+",
                "not_first": r"-\++",
                "not_last": r"\++-",
            }
            kinds.add(frozenset(k for k, one in patterns.items() if re.fullmatch(one, shape)))
        common = frozenset.intersection(*kinds)
        if common:
            return _SAID[min(common)].format(axis=axis)
    return None


def _argument_without_effect(exercise: Exercise, attempt: Callable, wrong: list[int]) -> str | None:
    """An argument whose change changes the expected result, and not yours."""
    for name in exercise.cases[0]:
        answers = [_reacts(exercise.reference, attempt, exercise.cases[i], name) for i in wrong]
        if any(answers) and None not in answers:
            return _SAID["unused"].format(argument=name)
    return None


def _reacts(reference: Callable, attempt: Callable, case: Case, name: str) -> bool | None:
    """Whether only the reference's result depends on this argument; None if yours does, or that is unknown."""
    expected, yours = run(reference, case), run(attempt, case)
    reacts = None
    for changed in _changed(case[name]):
        other = case | {name: changed}
        wanted, came = run(reference, other), run(attempt, other)
        if wanted.error or came.error or not same_outcome(came, yours):
            return None
        reacts = reacts or not same_outcome(wanted, expected)
    return reacts


def _changed(value: Any) -> Iterator[Any]:
    """Other values for an argument: several, because counts and shares often stay the same by chance."""
    if isinstance(value, Tensor) and value.dtype == torch.bool:
        if not value.all():
            yield torch.ones_like(value)
    elif isinstance(value, Tensor) and value.is_floating_point():
        generator = torch.Generator().manual_seed(0)
        for _ in range(_CHANGES):
            noise = torch.randn(value.shape, generator=generator, dtype=torch.float64)
            yield value * 1.25 + noise.to(value.dtype)
    elif isinstance(value, bool):
        yield not value
    elif isinstance(value, float):
        yield from (value * factor for factor in (1.25, 0.8, 1.6))
