"""Sums over many keys are computed in float32 at least, whatever the dtype of the inputs."""

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor


def in_full_precision(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Compute an attention function of query, key and value in float32 (float64 for float64).

    The output has the dtype of the query; under autocast that of autocast, as with PyTorch's fused kernel.
    """

    @functools.wraps(function)
    def computed(query: Tensor, key: Tensor, value: Tensor, *args, **kwargs) -> Tensor:
        with without_autocast(query):
            output = function(*map(widened, (query, key, value)), *args, **kwargs)
        return output.to(output_dtype(query))

    return computed


def widened(x: Tensor) -> Tensor:
    """Return x in float32, or as it is in float64."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def without_autocast(x: Tensor) -> AbstractContextManager:
    """Switch off autocast on the device of x."""
    return torch.autocast(x.device.type, enabled=False) if _autocast(x) else nullcontext()


def output_dtype(x: Tensor) -> torch.dtype:
    """Return the dtype of x, of whole numbers float32, or that to which autocast converts it."""
    converts = _autocast(x) and x.dtype != torch.float64
    if converts:
        return torch.get_autocast_dtype(x.device.type)
    return x.dtype if x.is_floating_point() else torch.float32


def _autocast(x: Tensor) -> bool:
    device = x.device.type
    return torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)
