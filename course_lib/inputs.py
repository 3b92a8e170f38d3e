"""Bad input is refused at the door, by name.

Every function here raises a `ValueError` that says which argument is wrong, what came, and what
would be right. `course_lib` calls them first thing in a public function.
"""

import math
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from numbers import Integral, Real

import torch
from torch import Tensor


def require_tensor(**tensors: Tensor) -> None:
    """Refuse what is not a tensor."""
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise ValueError(
                f"{name} is a {type(tensor).__name__}; a tensor is needed, "
                f"e.g. torch.tensor([0.0, 1.0])"
            )


def require_floating(**tensors: Tensor) -> None:
    """Refuse what is not a floating-point tensor."""
    require_tensor(**tensors)
    for name, tensor in tensors.items():
        if not tensor.is_floating_point():
            raise ValueError(
                f"{name} has dtype {short_name(tensor.dtype)}; a floating-point tensor is needed, "
                f"e.g. {name}.float()"
            )


def require_finite(**tensors: Tensor) -> None:
    """Refuse what is not a floating-point tensor, what is empty, and what is not finite."""
    require_floating(**tensors)
    for name, tensor in tensors.items():
        if tensor.numel() == 0:
            raise ValueError(
                f"{name} is empty (shape {tuple(tensor.shape)}); it needs at least one element"
            )
        broken = (~tensor.isfinite()).nonzero()
        if len(broken):
            where = tuple(broken[0].tolist())
            raise ValueError(
                f"{name} holds {tensor[where].item()} at index {where if len(where) > 1 else where[0]}; "
                f"every element must be finite"
            )


def require_dimensions(allowed: Mapping[int, str], **tensors: Tensor) -> None:
    """Refuse tensors whose number of dimensions is not a key of `allowed` (its values say the shape)."""
    for name, tensor in tensors.items():
        if tensor.dim() not in allowed:
            raise ValueError(
                f"{name} has shape {tuple(tensor.shape)}; it must be {' or '.join(allowed.values())}"
            )


def require_axes(at_least: int, shape: str, **tensors: Tensor) -> None:
    """Refuse what is not a tensor with so many axes; `shape` says what it must be."""
    require_tensor(**tensors)
    for name, tensor in tensors.items():
        if tensor.dim() < at_least:
            raise ValueError(f"{name} has shape {tuple(tensor.shape)}; it must be {shape}")


def require_vectors(**tensors: Tensor) -> None:
    """Refuse what is not floating-point of shape (…, how many, size)."""
    require_floating(**tensors)
    for name, tensor in tensors.items():
        if tensor.dim() < 2:
            raise ValueError(
                f"{name} has shape {tuple(tensor.shape)}; it must be (…, {name}, size), "
                f"e.g. {name}[None, :] for a single {name}"
            )


def require_alike(**tensors: Tensor) -> None:
    """Refuse tensors that do not share one dtype and one device."""
    (first_name, first), *others = tensors.items()
    for name, tensor in others:
        for what in ("dtype", "device"):
            mine, theirs = getattr(first, what), getattr(tensor, what)
            if mine != theirs:
                raise ValueError(
                    f"{first_name} has {what} {short_name(mine)} but {name} has {what} {short_name(theirs)}; "
                    f"they must be the same, e.g. {name}.to({first_name}.{what})"
                )


def require_same_length(**tensors: Tensor) -> None:
    """Refuse tensors whose first axes differ in length."""
    lengths = {name: len(tensor) for name, tensor in tensors.items()}
    if len(set(lengths.values())) > 1:
        said = " and ".join(f"{name} has length {length}" for name, length in lengths.items())
        raise ValueError(f"{said}; they must be equally long")


def require_positive(**numbers: float | Tensor) -> None:
    """Refuse numbers (or tensors of one number) that are not finite and above zero."""
    for name, number in numbers.items():
        if isinstance(number, Tensor):
            if number.numel() != 1:
                raise ValueError(
                    f"{name} has shape {tuple(number.shape)}; it must be one number above 0"
                )
            number = number.item()
        if isinstance(number, bool) or not isinstance(number, Real):
            raise ValueError(f"{name} is a {type(number).__name__}; it must be a number above 0")
        if not (number > 0 and number < math.inf):
            raise ValueError(f"{name}={number:g} is not a finite number above 0")


def as_positive(like: Tensor, **number: float | Tensor) -> Tensor:
    """Return one positive number as a tensor without axes, in the dtype and on the device of `like`.

    Refuses what `require_positive` refuses, and what rounds to zero or infinity in that dtype.
    """
    require_positive(**number)
    ((name, value),) = number.items()
    if not isinstance(value, Tensor):
        try:
            value = torch.tensor(float(value), dtype=torch.float64)
        except OverflowError:  # an int too large for any float
            value = torch.tensor(math.inf)
    tensor = value.reshape(()).to(like)
    if not (tensor > 0 and tensor.isfinite()):
        raise ValueError(
            f"{name}={value.item():g} is {tensor.item():g} in {short_name(like.dtype)}; "
            f"it must be a finite number above 0 there too"
        )
    return tensor


def require_tokens(vocabulary_size: int, **tensors: Tensor) -> None:
    """Refuse what is not whole numbers below `vocabulary_size`, of shape (batch, length)."""
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
        lowest, highest = (bound.item() for bound in tokens.aminmax())
        if lowest < 0 or highest >= vocabulary_size:
            raise ValueError(
                f"{name} holds {lowest if lowest < 0 else highest}; the vocabulary has "
                f"{vocabulary_size} tokens, 0 to {vocabulary_size - 1}"
            )


def require_kernel_values(similarity: Tensor, shape: tuple[int, ...]) -> None:
    """Refuse what a kernel returned unless it is a tensor of `shape`, finite and nowhere negative."""
    if not isinstance(similarity, Tensor):
        raise ValueError(f"kernel returned a {type(similarity).__name__}; it must return a tensor")
    if similarity.shape != shape:
        raise ValueError(
            f"kernel returned shape {tuple(similarity.shape)} for u of shape {shape}; "
            f"it must work element by element"
        )
    if similarity.is_floating_point() and not similarity.isfinite().all():
        raise ValueError("kernel returned NaN or infinity; K(u) must be finite for every u")
    if (similarity < 0).any():
        raise ValueError("kernel returned a negative number; K(u) must be 0 or more for every u")


def require_mask(
    mask: Tensor,
    shape: tuple[int, ...],
    axes: tuple[str, ...] = (),
    device: torch.device | None = None,
) -> None:
    """Refuse a mask that is not boolean or does not broadcast to `shape`.

    Args:
        mask: True = may attend.
        shape: of what it masks.
        axes: the names of the axes of `shape`; "axis -1" and so on where left out.
        device: where it must be; anywhere where left out.
    """
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        came = short_name(mask.dtype) if isinstance(mask, Tensor) else type(mask).__name__
        raise ValueError(
            f"mask is {came}; it must be a boolean tensor where True means 'may attend': mask == 1 "
            f"for one of ones and zeros, mask == 0 for one of zeros and -inf"
        )
    if device is not None and mask.device != device:
        raise ValueError(
            f"mask is on device {mask.device} but masks something on {device}; use mask.to({str(device)!r})"
        )
    wanted = f"({', '.join(axes)})" if axes else "the shape of scores"
    said = f"mask has shape {tuple(mask.shape)}; it must broadcast to {wanted} = {tuple(shape)}"
    if mask.dim() > len(shape):
        raise ValueError(f"{said}: it has {mask.dim()} axes, at most {len(shape)} fit")
    wrong = [
        f"{axes[place] if axes else f'axis {place}'} is {mask.shape[place]} and not {shape[place]} or 1"
        for place in range(-mask.dim(), 0)
        if mask.shape[place] not in (1, shape[place])
    ]
    if wrong:
        raise ValueError(f"{said}: {', '.join(wrong)}")


def require_broadcast(shape: tuple[int, ...], what: str, **tensors: Tensor) -> None:
    """Refuse tensors that do not broadcast to `shape`, that of `what`."""
    for name, tensor in tensors.items():
        fits = tensor.dim() <= len(shape) and all(
            mine in (1, theirs)
            for mine, theirs in zip(tensor.shape[::-1], shape[::-1], strict=False)
        )
        if not fits:
            raise ValueError(
                f"{name} has shape {tuple(tensor.shape)}; it must broadcast to {what} = {tuple(shape)}"
            )


def require_size(size: int, why: str, **tensors: Tensor) -> None:
    """Refuse tensors whose last axis is not `size` long; `why` says who asks for it."""
    for name, tensor in tensors.items():
        if tensor.shape[-1] != size:
            raise ValueError(
                f"{name} has shape {tuple(tensor.shape)}, so its vectors have {tensor.shape[-1]} "
                f"numbers; {why}"
            )


def require_made_for(layer: torch.nn.Linear, owner: str, **tensors: Tensor) -> None:
    """Refuse tensors of another dtype or device than the parameters of `layer`, unless autocast converts."""
    weight = layer.weight
    for name, tensor in tensors.items():
        for what in ("dtype", "device"):
            mine, came = getattr(weight, what), getattr(tensor, what)
            if mine == came or (what == "dtype" and torch.is_autocast_enabled(tensor.device.type)):
                continue
            raise ValueError(
                f"{name} has {what} {short_name(came)}, but the parameters of the {owner} have "
                f"{short_name(mine)}; convert one of them, e.g. {owner}.to({name}.{what})"
            )


def require_attention_inputs(
    layers: tuple[torch.nn.Linear, torch.nn.Linear, torch.nn.Linear],
    query: Tensor,
    key: Tensor,
    value: Tensor,
) -> None:
    """Refuse what three projections cannot turn into queries, keys and values that belong together.

    Args:
        layers: the projections of query, key and value.
        query, key, value: must be (batch, length, size), of one batch, with a value per key.
    """
    require_floating(query=query, key=key, value=value)
    for layer, name, tensor in zip(
        layers, ("query", "key", "value"), (query, key, value), strict=True
    ):
        if tensor.dim() != 3:
            raise ValueError(
                f"{name} has shape {tuple(tensor.shape)}; it must be (batch, length, size), "
                f"e.g. {name}[None] for a single sequence"
            )
        require_made_for(layer, "layer", **{name: tensor})
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


def require_value_per_key(key: Tensor, value: Tensor) -> None:
    """Refuse keys and values of unequal number."""
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(
            f"key has shape {tuple(key.shape)} but value has shape {tuple(value.shape)}, that is "
            f"{key.shape[-2]} keys and {value.shape[-2]} values; there must be one value per key"
        )


def require_same_batch(**tensors: Tensor) -> None:
    """Refuse tensors whose axes before the last two do not broadcast with each other."""
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


def require_whole(at_least: int = 1, **numbers: int) -> None:
    """Refuse what is not a whole number, and what is below `at_least`."""
    for name, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, Integral):
            raise ValueError(
                f"{name}={number!r} is a {type(number).__name__}; it must be a whole number"
            )
        if number < at_least:
            raise ValueError(f"{name}={number} is below {at_least}")


def require_even(**numbers: int) -> None:
    """Refuse what is not an even whole number above 0."""
    require_whole(**numbers)
    for name, number in numbers.items():
        if number % 2:
            raise ValueError(f"{name}={number} is odd; it must be even, because numbers are paired")


def require_sequence(size: int, **tensors: Tensor) -> None:
    """Refuse what is not floating-point of shape (batch, length, size)."""
    require_floating(**tensors)
    for name, tensor in tensors.items():
        if tensor.dim() != 3 or tensor.shape[-1] != size:
            raise ValueError(
                f"{name} has shape {tuple(tensor.shape)}; it must be (batch, length, {size})"
            )


def require_divides(**numbers: int) -> None:
    """Refuse two whole numbers, part and whole, unless the first divides the second."""
    require_whole(**numbers)
    (part_name, part), (whole_name, whole) = numbers.items()
    if whole % part:
        divisors = [n for n in range(1, whole + 1) if whole % n == 0]
        below = max(n for n in divisors if n < part)
        above = [n for n in divisors if n > part][:1]
        near = " or ".join(map(str, [below, *above]))
        raise ValueError(
            f"{whole_name}={whole} is not divisible by {part_name}={part}; try {part_name}={near}"
        )


def require_probability(**numbers: float) -> None:
    """Refuse a probability of dropping that is not in [0, 1)."""
    for name, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, Real) or not 0 <= number < 1:
            raise ValueError(f"{name}={number!r} must be a number from 0 up to but not including 1")


def require_one_of(allowed: Iterable[str], **choices: str) -> None:
    """Refuse a name that is not in `allowed`, and suggest the nearest one that is."""
    allowed = list(allowed)
    for name, choice in choices.items():
        if choice not in allowed:
            near = get_close_matches(str(choice), allowed, n=1)
            meant = f" Did you mean {near[0]!r}?" if near else ""
            raise ValueError(
                f"{name}={choice!r} is unknown; it must be one of "
                f"{', '.join(map(repr, allowed))}.{meant}"
            )


def short_name(thing: torch.dtype | torch.device) -> str:
    """Return a dtype or device as messages write it: float32, not torch.float32."""
    return str(thing).removeprefix("torch.")
