"""Clear errors for bad input: each function raises a `ValueError` that names the argument, what came, and what is right."""

import math
from collections.abc import Iterable
from difflib import get_close_matches
from numbers import Integral, Real

import torch
from torch import Tensor


def short_name(thing: torch.dtype | torch.device) -> str:
    """Return a dtype or device as messages write it: float32, not torch.float32."""
    return str(thing).removeprefix("torch.")


def is_traced() -> bool:
    """Whether PyTorch records what runs, for other inputs: the values of these must then decide nothing."""
    return torch.compiler.is_compiling() or torch.jit.is_tracing()


def require_mask(mask: Tensor, shape: tuple[int, ...], name: str = "mask") -> None:
    """Refuse a mask that is not boolean (True = may attend) or does not broadcast to `shape`."""
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        came = short_name(mask.dtype) if isinstance(mask, Tensor) else type(mask).__name__
        raise ValueError(
            f"{name} is {came}; it must be a boolean tensor where True means 'may attend': mask == 1 "
            f"for one of ones and zeros, mask == 0 for one of zeros and -inf"
        )
    require_broadcast(shape, **{name: mask})


def require_broadcast(shape: tuple[int, ...], **tensors: Tensor) -> None:
    """Refuse a tensor that does not broadcast to `shape`, that of scores: it would make the result larger."""
    names = ["batch", *["heads"] * (len(shape) - 3), "query", "key"][-len(shape) :]
    for name, tensor in tensors.items():
        # no strict=False: older PyTorch compiles it as strict=True
        axes = zip(names[::-1], tensor.shape[::-1], shape[::-1])  # noqa: B905
        wrong = [f"{axis} is {n} and not {m} or 1" for axis, n, m in axes if n not in (1, m)]
        if tensor.dim() > len(shape):
            wrong = [f"it has {tensor.dim()} axes, at most {len(shape)} fit"]
        if wrong:
            raise ValueError(
                f"{name} has shape {tuple(tensor.shape)}; it must broadcast to that of the scores, "
                f"{tuple(shape)}: {', '.join(wrong)}"
            )


def require_tokens(vocabulary_size: int, **tensors: Tensor) -> None:
    """Refuse token ids outside the vocabulary, which an embedding reports without a number.

    On a GPU nothing waits for the answer: the error comes with the next result that is read, as an assertion of CUDA.
    """
    for name, tokens in tensors.items():
        if tokens.is_meta or not tokens.numel():
            continue
        lowest, highest = tokens.aminmax()
        if tokens.is_cuda:  # comparing numbers here would wait for all the GPU has still to do
            inside = (lowest >= 0) & (highest < vocabulary_size)
            torch._assert_async(inside, f"{name}: ids outside the vocabulary")
            continue
        if lowest < 0 or highest >= vocabulary_size:
            raise ValueError(
                f"{name} holds {lowest if lowest < 0 else highest}; the vocabulary has "
                f"{vocabulary_size} tokens, 0 to {vocabulary_size - 1}"
            )


def require_finite(**tensors: Tensor) -> None:
    """Refuse what is no tensor, an empty one, and one with NaN or infinity."""
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise ValueError(f"{name} is a {type(tensor).__name__}; a tensor is needed")
        if tensor.numel() == 0:
            raise ValueError(
                f"{name} is empty (shape {tuple(tensor.shape)}); it needs at least one element"
            )
        wrong = () if tensor.is_meta else (~tensor.isfinite()).nonzero()
        if len(wrong):
            index = tuple(wrong[0].tolist())
            raise ValueError(
                f"{name} holds {tensor[index].item()} at index {index if len(index) > 1 else index[0]}; "
                f"every element must be finite"
            )


def require_whole(at_least: int = 1, **numbers: int) -> None:
    """Refuse anything but a whole number (Python's or NumPy's) that is at least `at_least`."""
    for name, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, Integral):
            raise ValueError(
                f"{name}={number!r} is a {type(number).__name__}; it must be a whole number"
            )
        if number < at_least:
            raise ValueError(f"{name}={number} is below {at_least}")


def require_divides(**numbers: int) -> None:
    """Refuse two whole numbers, part and whole, unless the first divides the second."""
    require_whole(**numbers)
    (part_name, part), (whole_name, whole) = ((name, int(n)) for name, n in numbers.items())
    if whole % part:
        divisors = [n for n in range(1, min(whole, 10_000) + 1) if whole % n == 0]
        below, above = max(n for n in divisors if n < part), [n for n in divisors if n > part][:1]
        near = " or ".join(map(str, [below, *above]))
        raise ValueError(
            f"{whole_name}={whole} is not divisible by {part_name}={part}; try {part_name}={near}"
        )


def require_positive(**numbers: float | Tensor) -> None:
    """Refuse anything but a finite number above 0, or a tensor that holds one such number."""
    for name, number in numbers.items():
        value = number.item() if isinstance(number, Tensor) and number.numel() == 1 else number
        if isinstance(value, bool) or not isinstance(value, Real):
            raise ValueError(f"{name}={value!r} must be a number above 0")
        if not 0 < value < math.inf:
            raise ValueError(f"{name}={float(value):g} is not a finite number above 0")


def require_probability(**numbers: float) -> None:
    """Refuse anything but a number in [0, 1), the probability of dropping an element."""
    for name, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, Real) or not 0 <= number < 1:
            raise ValueError(f"{name}={number!r} must be a number from 0 up to but not including 1")


def require_one_of(allowed: Iterable[str], **choices: str) -> None:
    """Refuse a name that is not in `allowed`, and suggest the most similar one that is."""
    allowed = list(allowed)
    for name, choice in choices.items():
        if choice not in allowed:
            near = get_close_matches(str(choice).lower(), allowed, n=1)
            meant = f" Did you mean {near[0]!r}?" if near else ""
            raise ValueError(
                f"{name}={choice!r} is unknown; it must be one of "
                f"{', '.join(map(repr, allowed))}.{meant}"
            )
