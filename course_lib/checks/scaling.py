"""Checks of `course_lib.scaling`."""

import math

import torch

from course_lib.checks.transformer import model_init
from course_lib.validation import (
    require_bool,
    require_floating_dtype,
    require_one_of,
    require_positive,
    require_whole,
)

# --- counting --------------------------------------------------------------------------------


def parameter_count(allowed, config, *, embeddings=True, architecture="decoder_only"):
    """A configuration, and one of the architectures."""
    model_init(None, config)
    require_bool(embeddings=embeddings)
    require_one_of(allowed, architecture=architecture)


def flops_per_token(allowed, config, length, *, training=False, architecture="decoder_only"):
    """A configuration, a length, and one of the architectures."""
    model_init(None, config)
    require_whole(length=length)
    require_bool(training=training)
    require_one_of(allowed, architecture=architecture)


def activation_bytes(config, batch, length, dtype=torch.float32):
    """A configuration, numbers above 0, and a dtype."""
    model_init(None, config)
    require_whole(batch=batch, length=length)
    require_floating_dtype(dtype)


def kv_cache_bytes(
    allowed, config, length, batch=1, dtype=torch.float32, *, architecture="decoder_only"
):
    """A configuration, numbers above 0, a dtype, and one of the architectures."""
    model_init(None, config)
    require_whole(length=length, batch=batch)
    require_floating_dtype(dtype)
    require_one_of(allowed, architecture=architecture)


# --- fits ------------------------------------------------------------------------------------


def predict(self, x):
    """Numbers above 0."""
    _points("x", x)


def surface(given, name="surface"):
    """A fitted surface."""
    if type(given).__name__ != "LossSurface":
        raise ValueError(
            f"{name} is a {type(given).__name__}; it must be a LossSurface, as fit_loss_surface returns"
        )


def surface_predict(self, parameters, tokens):
    """Numbers above 0 that fit together."""
    shapes = [
        _points(name, v).shape for name, v in (("parameters", parameters), ("tokens", tokens))
    ]
    try:
        torch.broadcast_shapes(*shapes)
    except RuntimeError:
        raise ValueError(
            f"parameters has shape {tuple(shapes[0])} but tokens has shape {tuple(shapes[1])}; they "
            f"must broadcast to each other"
        ) from None


def surface_optimal(self, flops, *, flops_per_parameter=6.0):
    """Numbers above 0."""
    require_positive(flops=flops, flops_per_parameter=flops_per_parameter)
    if not 1 <= flops / flops_per_parameter <= 1e60:
        raise ValueError(
            f"flops={float(flops):g} with flops_per_parameter={float(flops_per_parameter):g} allows no "
            f"training: their ratio, parameters times tokens, must be from 1 to 1e60"
        )


def fit_power_law(x, loss, *, irreducible=True):
    """As many distinct points as the law has parameters."""
    require_bool(irreducible=irreducible)
    points, losses = _points("x", x, 1), _points("loss", loss, 1)
    _require_equal_number(x=points, loss=losses)
    _require_distinct(3 if irreducible else 2, "a power law with these parameters", x=points)


def bootstrap_power_law(x, loss, *, irreducible=True, samples=1000, level=0.95, seed=0):
    """As for `fit_power_law`, with several runs per point."""
    require_bool(irreducible=irreducible)
    require_whole(samples=samples)
    require_whole(0, seed=seed)
    require_positive(level=level)
    if not level < 1:
        raise ValueError(f"level={level} must be below 1, e.g. 0.95")
    points, losses = _points("x", x, 1), _points("loss", loss)
    if losses.dim() not in (1, 2) or (losses.dim() == 2 and losses.shape[1] < 2):
        raise ValueError(
            f"loss has shape {tuple(losses.shape)}; it must be (point, run) with two runs or more, or "
            f"(point,)"
        )
    _require_equal_number(x=points, loss=losses)
    _require_distinct(3 if irreducible else 2, "a power law with these parameters", x=points)


def fit_loss_surface(parameters, tokens, loss, *, delta=1e-3, start=None):
    """Enough runs, of several sizes and numbers of tokens."""
    require_positive(delta=delta)
    if start is not None:
        surface(start, "start")
    given = {"parameters": parameters, "tokens": tokens, "loss": loss}
    points = {name: _points(name, values, 1) for name, values in given.items()}
    _require_equal_number(**points)
    sizes, tokens = points["parameters"], points["tokens"]
    _require_distinct(3, "a loss surface", parameters=sizes, tokens=tokens)
    pairs = len(set(zip(sizes.tolist(), tokens.tolist(), strict=True)))
    if pairs < 5:
        raise ValueError(
            f"parameters and tokens hold {pairs} distinct pairs; a loss surface needs at least 5"
        )


def isoflop_minimum(parameters, loss):
    """Three sizes or more."""
    sizes, losses = _points("parameters", parameters, 1), _points("loss", loss, 1)
    _require_equal_number(parameters=sizes, loss=losses)
    _require_distinct(3, "a parabola", parameters=sizes)


def _points(name, values, axes=None):
    """Return finite numbers above 0 as a tensor; refuse anything else."""
    try:
        points = torch.as_tensor(values)
        points = points.to(torch.float64) if not points.is_complex() else None
    except (TypeError, ValueError, RuntimeError, OverflowError):
        points = None
    if points is None or points.layout != torch.strided or points.is_meta:
        raise ValueError(f"{name} is a {type(values).__name__}; it must be numbers above 0")
    if axes is not None and points.dim() != axes:
        raise ValueError(
            f"{name} has shape {tuple(points.shape)}; it must be a sequence of numbers, one per point"
        )
    if points.numel() == 0:
        raise ValueError(f"{name} is empty; it needs at least one number above 0")
    for place, value in enumerate(points.flatten().tolist()):
        if not 0 < value < math.inf:
            raise ValueError(
                f"{name} holds {value:g} as element {place}; all must be finite and above 0"
            )
        if not 1e-100 <= value <= 1e100:
            raise ValueError(
                f"{name} holds {value:g} as element {place}; its powers do not fit into a float"
            )
    return points


def _require_equal_number(**points):
    (first, wanted), *others = points.items()
    for name, values in others:
        if len(values) != len(wanted):
            raise ValueError(
                f"{first} has {len(wanted)} points but {name} has {len(values)}; there must be one "
                f"per run"
            )


def _require_distinct(least, what, **points):
    for name, values in points.items():
        distinct = len(values.unique())
        if distinct < least:
            raise ValueError(
                f"{name} holds {distinct} distinct value{'s' * (distinct != 1)}; {what} needs at least "
                f"{least}"
            )
