"""Clear errors for bad input, kept out of the code that computes.

`@validated(check)` runs a check before a function. The checks are in `course_lib.checks`, and are made of
the `require_*` functions below. Each of these raises a `ValueError` that names the argument, says what was
given, and says what would be right.
"""

import functools
import inspect
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from numbers import Integral, Real

import torch
from torch import Tensor
from torch.compiler import is_compiling

_CHECKING: ContextVar[bool] = ContextVar("checking", default=True)


def validated(
    check: Callable[..., None], *, calls_back: bool = False
) -> Callable[[Callable], Callable]:
    """Call `check` with the arguments of a function before the function runs.

    A public call checks its input once: calls that the library makes on the way are not checked again,
    and nothing is checked inside a graph that `torch.compile` records. ::

        @validated(checks.causal_mask)
        def causal_mask(query_length, key_length=None): ...

    Args:
        check: takes what the function takes, returns nothing, and raises a `ValueError`.
        calls_back: whether the function runs code that its caller handed in (a loss, a sublayer); the calls
            on the way are then checked as well.
    """

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def checked(*args, **kwargs):
            if is_compiling() or not _CHECKING.get():
                return function(*args, **kwargs)
            try:
                check(*args, **kwargs)
            except TypeError:
                inspect.signature(function).bind(*args, **kwargs)  # names a wrong argument
                raise
            if calls_back:
                return function(*args, **kwargs)
            with unchecked():
                return function(*args, **kwargs)

        # A code object per function: torch.compile limits how often it compiles one code object.
        checked.__code__ = checked.__code__.replace(co_name=function.__name__)
        return checked

    return decorate


@contextmanager
def unchecked() -> Iterator[None]:
    """Skip all checks in a `with` block: for input that is known to be right, and to measure what they cost."""
    token = _CHECKING.set(False)
    try:
        yield
    finally:
        _CHECKING.reset(token)


# --- tensors and their dtypes ----------------------------------------------------------------


def require_tensor(**tensors: Tensor) -> None:
    """Refuse anything but a tensor."""
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise ValueError(
                f"{name} is a {type(tensor).__name__}; a tensor is needed, "
                f"e.g. torch.tensor([0.0, 1.0])"
            )
        if tensor.layout != torch.strided:
            raise ValueError(
                f"{name} has layout {short_name(tensor.layout)}; use {name}.to_dense()"
            )


def require_floating(**tensors: Tensor) -> None:
    """Refuse anything but a floating-point tensor."""
    require_tensor(**tensors)
    for name, tensor in tensors.items():
        if not tensor.is_floating_point():
            raise ValueError(
                f"{name} has dtype {short_name(tensor.dtype)}; a floating-point tensor is needed, "
                f"e.g. {name}.float()"
            )


def require_floating_dtype(dtype: torch.dtype) -> None:
    """Refuse anything but a floating-point dtype."""
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise ValueError(f"dtype={dtype} must be a floating-point dtype, e.g. torch.float32")


def require_finite(**tensors: Tensor) -> None:
    """Refuse anything but a floating-point tensor, an empty one, and one with NaN or infinity."""
    require_floating(**tensors)
    for name, tensor in tensors.items():
        if tensor.numel() == 0:
            raise ValueError(
                f"{name} is empty (shape {tuple(tensor.shape)}); it needs at least one element"
            )
        if tensor.is_meta:  # shapes without values
            continue
        wrong = (~tensor.isfinite()).nonzero()
        if len(wrong):
            index = tuple(wrong[0].tolist())
            raise ValueError(
                f"{name} holds {tensor[index].item()} at index {index if len(index) > 1 else index[0]}; "
                f"every element must be finite"
            )


def require_alike(**tensors: Tensor) -> None:
    """Refuse tensors of different dtypes or on different devices.

    Under autocast floating-point dtypes may differ: autocast converts them.
    """
    (first_name, first), *others = tensors.items()
    for name, tensor in others:
        for what in ("dtype", "device"):
            wanted, given = getattr(first, what), getattr(tensor, what)
            if wanted != given and not (what == "dtype" and _autocast_converts(first, tensor)):
                raise ValueError(
                    f"{first_name} has {what} {short_name(wanted)} but {name} has {what} "
                    f"{short_name(given)}; they must be the same, e.g. {name}.to({first_name}.{what})"
                )


def _autocast_converts(*tensors: Tensor) -> bool:
    half_or_single = (torch.float16, torch.bfloat16, torch.float32)
    return all(
        tensor.device.type in ("cpu", "cuda")
        and torch.is_autocast_enabled(tensor.device.type)
        and tensor.dtype in half_or_single
        for tensor in tensors
    )


def require_same_dtype_and_device_as(layer: torch.nn.Linear, owner: str, **tensors: Tensor) -> None:
    """Refuse tensors whose dtype or device is not that of the parameters of `layer`.

    Under autocast another dtype is allowed: autocast converts it.

    Args:
        layer: one of the layers of the module that was called.
        owner: what messages call that module, e.g. "block".
        tensors: the inputs, by name.
    """
    for name, tensor in tensors.items():
        for what in ("dtype", "device"):
            wanted, given = getattr(layer.weight, what), getattr(tensor, what)
            if wanted == given or (what == "dtype" and _autocast_converts(layer.weight, tensor)):
                continue
            raise ValueError(
                f"{name} has {what} {short_name(given)}, but the parameters of the {owner} have "
                f"{short_name(wanted)}; convert one of them, e.g. {owner}.to({name}.{what})"
            )


def short_name(thing: torch.dtype | torch.device | torch.layout) -> str:
    """Return a dtype, device or layout as messages write it: float32, not torch.float32."""
    return str(thing).removeprefix("torch.")


# --- shapes ----------------------------------------------------------------------------------


def require_axes(at_least: int, shape: str, at_most: int | None = None, **tensors: Tensor) -> None:
    """Refuse anything but a tensor with that many axes.

    Args:
        at_least: the smallest number of axes.
        shape: what the shape must be, for the message, e.g. "(…, length, d_head)".
        at_most: the largest number of axes; no limit where left out.
        tensors: the inputs, by name.
    """
    require_tensor(**tensors)
    for name, tensor in tensors.items():
        if tensor.dim() < at_least or (at_most is not None and tensor.dim() > at_most):
            raise ValueError(f"{name} has shape {tuple(tensor.shape)}; it must be {shape}")


def require_vectors(**tensors: Tensor) -> None:
    """Refuse anything but a floating-point tensor of shape (…, how many, dimension), the dimension above 0."""
    require_floating(**tensors)
    for name, tensor in tensors.items():
        require_axes(
            2, f"(…, {name}, dimension), e.g. {name}[None, :] for a single {name}", **{name: tensor}
        )
        if tensor.shape[-1] == 0:
            raise ValueError(
                f"{name} has shape {tuple(tensor.shape)}; its vectors have no components"
            )


def require_sequence(size: int, **tensors: Tensor) -> None:
    """Refuse anything but a floating-point tensor of shape (batch, length, `size`)."""
    require_floating(**tensors)
    for name, tensor in tensors.items():
        if tensor.dim() != 3 or tensor.shape[-1] != size:
            raise ValueError(
                f"{name} has shape {tuple(tensor.shape)}; it must be (batch, length, {size})"
            )


def require_size(size: int, why: str, **tensors: Tensor) -> None:
    """Refuse tensors whose vectors, along the last axis, do not have dimension `size`.

    Args:
        size: the dimension.
        why: the end of the message: what asks for that dimension.
        tensors: the inputs, by name.
    """
    for name, tensor in tensors.items():
        if tensor.shape[-1] != size:
            raise ValueError(
                f"{name} has shape {tuple(tensor.shape)}, so its vectors have dimension "
                f"{tensor.shape[-1]}; {why}"
            )


def require_same_batch(**tensors: Tensor) -> None:
    """Refuse tensors whose axes before the last two do not broadcast to each other."""
    (first_name, first), *others = tensors.items()
    for name, tensor in others:
        if first.shape[:-2] == tensor.shape[:-2]:
            continue
        try:
            torch.broadcast_shapes(first.shape[:-2], tensor.shape[:-2])
        except RuntimeError:
            raise ValueError(
                f"{first_name} has shape {tuple(first.shape)} but {name} has shape "
                f"{tuple(tensor.shape)}; all axes but the last two must be equal or 1"
            ) from None


def require_broadcast(shape: tuple[int, ...], what: str, **tensors: Tensor) -> None:
    """Refuse tensors that do not broadcast to `shape`, which is the shape of `what`."""
    for name, tensor in tensors.items():
        if not _broadcasts(tensor.shape, shape):
            raise ValueError(
                f"{name} has shape {tuple(tensor.shape)}; it must broadcast to {what} = {tuple(shape)}"
            )


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    pairs = zip(shape[::-1], to[::-1], strict=False)
    return len(shape) <= len(to) and all(length in (1, wanted) for length, wanted in pairs)


def require_value_per_key(key: Tensor, value: Tensor) -> None:
    """Refuse unequal numbers of keys and values."""
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(
            f"key has shape {tuple(key.shape)} but value has shape {tuple(value.shape)}, that is "
            f"{key.shape[-2]} keys and {value.shape[-2]} values; there must be one value per key"
        )


# --- what attention takes --------------------------------------------------------------------


def require_attention_inputs(
    layers: tuple[torch.nn.Linear, torch.nn.Linear, torch.nn.Linear],
    query: Tensor,
    key: Tensor,
    value: Tensor,
) -> None:
    """Refuse inputs that three projections cannot turn into queries, keys and values of one batch.

    Args:
        layers: the projections of query, key and value.
        query, key, value: must be (batch, length, dimension), of one batch, with one value per key.
    """
    require_floating(query=query, key=key, value=value)
    for layer, name, tensor in zip(
        layers, ("query", "key", "value"), (query, key, value), strict=True
    ):
        if tensor.dim() != 3:
            raise ValueError(
                f"{name} has shape {tuple(tensor.shape)}; it must be (batch, length, dimension), "
                f"e.g. {name}[None] for a single sequence"
            )
        require_same_dtype_and_device_as(layer, "layer", **{name: tensor})
        require_size(
            layer.in_features,
            f"the layer was made for {layer.in_features} in each {name}",
            **{name: tensor},
        )
        if len(tensor) != len(query):
            raise ValueError(
                f"query has shape {tuple(query.shape)} but {name} has shape {tuple(tensor.shape)}: "
                f"batches of {len(query)} and {len(tensor)}; they must be equal"
            )
    require_value_per_key(key, value)


def require_mask(
    mask: Tensor,
    shape: tuple[int, ...],
    axes: tuple[str, ...] = (),
    device: torch.device | None = None,
    name: str = "mask",
) -> None:
    """Refuse a mask that is not boolean or does not broadcast to `shape`.

    Args:
        mask: True = may attend.
        shape: that of the tensor that is masked.
        axes: the names of the axes of `shape`; "axis -1" and so on where left out.
        device: the device the mask must be on; any where left out.
        name: of the argument.
    """
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        given = short_name(mask.dtype) if isinstance(mask, Tensor) else type(mask).__name__
        raise ValueError(
            f"{name} is {given}; it must be a boolean tensor where True means 'may attend': mask == 1 "
            f"for one of ones and zeros, mask == 0 for one of zeros and -inf"
        )
    require_tensor(**{name: mask})
    if device is not None and mask.device != device:
        raise ValueError(
            f"{name} is on device {mask.device}, but the scores are on {device}; use {name}.to({str(device)!r})"
        )
    if _broadcasts(mask.shape, shape):
        return
    wanted = f"({', '.join(axes)})" if axes else "the shape of scores"
    said = f"{name} has shape {tuple(mask.shape)}; it must broadcast to {wanted} = {tuple(shape)}"
    if mask.dim() > len(shape):
        raise ValueError(f"{said}: it has {mask.dim()} axes, at most {len(shape)} fit")
    wrong = [
        f"{axes[axis] if axes else f'axis {axis}'} is {mask.shape[axis]} and not {shape[axis]} or 1"
        for axis in range(-mask.dim(), 0)
        if mask.shape[axis] not in (1, shape[axis])
    ]
    raise ValueError(f"{said}: {', '.join(wrong)}")


def require_causal(is_causal: bool, mask: Tensor | None, queries: int, keys: int) -> None:
    """Refuse `is_causal` beside a mask, and with fewer keys than queries."""
    require_bool(is_causal=is_causal)
    if is_causal and mask is not None:
        raise ValueError(
            "is_causal=True stands for a mask, so mask must be None; for both, give "
            "combine_masks(causal_mask(query_length, key_length), mask) alone"
        )
    if is_causal and keys < queries:
        raise ValueError(
            f"is_causal=True with {queries} queries and {keys} keys: the queries are the last of the keys, so "
            f"there must be at least as many keys"
        )


def require_tokens(vocabulary_size: int, **tensors: Tensor) -> None:
    """Refuse anything but token ids below `vocabulary_size`, whole numbers of shape (batch, length)."""
    require_tensor(**tensors)
    for name, tokens in tensors.items():
        if (
            tokens.dim() != 2
            or tokens.numel() == 0
            or tokens.dtype not in (torch.int64, torch.int32)
        ):
            raise ValueError(
                f"{name} has shape {tuple(tokens.shape)} and dtype {short_name(tokens.dtype)}; it must be "
                f"whole numbers (int64 or int32) of shape (batch, length), at least one"
            )
        if tokens.is_meta:  # shapes without values
            continue
        lowest, highest = tokens.aminmax()
        if lowest < 0 or highest >= vocabulary_size:
            raise ValueError(
                f"{name} holds {lowest if lowest < 0 else highest}; the vocabulary has "
                f"{vocabulary_size} tokens, 0 to {vocabulary_size - 1}"
            )


def require_next_token(token: Tensor, batch: int, vocabulary_size: int) -> None:
    """Refuse anything but token ids below `vocabulary_size`, one per sequence of the batch."""
    if not isinstance(token, Tensor):
        came = f"is a {type(token).__name__}"
    elif token.shape != (batch,) or token.dtype not in (torch.int64, torch.int32):
        came = f"has shape {tuple(token.shape)} and dtype {short_name(token.dtype)}"
    else:
        require_tokens(vocabulary_size, token=token[:, None])
        return
    raise ValueError(
        f"token {came}; it must be whole numbers (int64 or int32) of shape ({batch},), one per sequence"
    )


# --- numbers ---------------------------------------------------------------------------------


def require_whole(at_least: int = 1, **numbers: int) -> None:
    """Refuse anything but a whole number (Python's or NumPy's) that is at least `at_least`."""
    for name, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, Integral):
            raise ValueError(
                f"{name}={number!r} is a {type(number).__name__}; it must be a whole number"
            )
        if number < at_least:
            raise ValueError(f"{name}={number} is below {at_least}")
        if number >= 2**63:
            raise ValueError(f"{name}={number} does not fit into 64 bits; it must be below 2**63")


def require_even(**numbers: int) -> None:
    """Refuse anything but an even whole number above 0."""
    require_whole(**numbers)
    for name, number in numbers.items():
        if number % 2:
            raise ValueError(f"{name}={number} is odd; it must be even")


def require_divides(**numbers: int) -> None:
    """Refuse two whole numbers, part and whole, unless the first divides the second."""
    require_whole(**numbers)
    (part_name, part), (whole_name, whole) = ((name, int(n)) for name, n in numbers.items())
    if whole % part:
        near = " or ".join(map(str, _near_divisors(part, whole)))
        raise ValueError(
            f"{whole_name}={whole} is not divisible by {part_name}={part}; try {part_name}={near}"
        )


def _near_divisors(part: int, whole: int, steps: int = 1000) -> list[int]:
    """Return the divisor of `whole` next below `part` and the one next above, looking `steps` far.

    1, which divides everything, stands for one below that is farther away.
    """
    below = range(min(part - 1, whole), 0, -1)[:steps]
    above = range(part + 1, whole + 1)[:steps]
    nearest = [next((n for n in numbers if whole % n == 0), None) for numbers in (below, above)]
    return [n for n in (nearest[0] or 1, nearest[1]) if n is not None]


def require_positive(**numbers: float | Tensor) -> None:
    """Refuse anything but a finite number above 0, or a tensor that holds one such number."""
    for name, number in numbers.items():
        if isinstance(number, Tensor):
            if number.numel() != 1:
                raise ValueError(
                    f"{name} has shape {tuple(number.shape)}; it must be one number above 0"
                )
            number = number.item()
        if isinstance(number, bool) or not isinstance(number, Real):
            raise ValueError(f"{name} is a {type(number).__name__}; it must be a number above 0")
        if isinstance(number, Integral) and abs(number) >= 2**63:
            raise ValueError(f"{name} is a whole number of more than 64 bits; give a float")
        if not 0 < number < math.inf:
            raise ValueError(f"{name}={float(number):g} is not a finite number above 0")


def require_probability(**numbers: float) -> None:
    """Refuse anything but a number in [0, 1), the probability of dropping an element."""
    for name, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, Real) or not 0 <= number < 1:
            raise ValueError(f"{name}={number!r} must be a number from 0 up to but not including 1")


def require_bool(**switches: bool) -> None:
    """Refuse anything but True or False."""
    for name, value in switches.items():
        if not isinstance(value, bool):
            raise ValueError(
                f"{name}={value!r} is a {type(value).__name__}; it must be True or False"
            )


# --- choices ---------------------------------------------------------------------------------


def require_one_of(allowed: Iterable[str], **choices: str) -> None:
    """Refuse a name that is not in `allowed`, and suggest the most similar one that is."""
    allowed = list(allowed)
    for name, choice in choices.items():
        if not isinstance(choice, str) or choice not in allowed:
            near = get_close_matches(str(choice).lower(), allowed, n=1)
            meant = f" Did you mean {near[0]!r}?" if near else ""
            raise ValueError(
                f"{name}={choice!r} is unknown; it must be one of "
                f"{', '.join(map(repr, allowed))}.{meant}"
            )


def short_name(thing: torch.dtype | torch.device) -> str:
    """Return a dtype or device as messages write it: float32, not torch.float32."""
    return str(thing).removeprefix("torch.")


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
    names = ("batch", "heads", "query", "key") if len(shape) == 4 else ("batch", "query", "key")
    for name, tensor in tensors.items():
        axes = zip(names[::-1], tensor.shape[::-1], shape[::-1], strict=False)
        wrong = [f"{axis} is {n} and not {m} or 1" for axis, n, m in axes if n not in (1, m)]
        if tensor.dim() > len(shape):
            wrong = [f"it has {tensor.dim()} axes, at most {len(shape)} fit"]
        if wrong:
            raise ValueError(
                f"{name} has shape {tuple(tensor.shape)}; it must broadcast to that of the scores, "
                f"{tuple(shape)}: {', '.join(wrong)}"
            )


def require_tokens(vocabulary_size: int, **tensors: Tensor) -> None:
    """Refuse token ids outside the vocabulary, which an embedding reports without a number, or as a crash of CUDA."""
    for name, tokens in tensors.items():
        if tokens.is_meta or not tokens.numel():
            continue
        lowest, highest = tokens.aminmax()
        if lowest < 0 or highest >= vocabulary_size:
            raise ValueError(
                f"{name} holds {lowest if lowest < 0 else highest}; the vocabulary has "
                f"{vocabulary_size} tokens, 0 to {vocabulary_size - 1}"
            )


def require_finite(**tensors: Tensor) -> None:
    """Refuse an empty tensor, and one with NaN or infinity."""
    for name, tensor in tensors.items():
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
    (part_name, part), (whole_name, whole) = numbers.items()
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
