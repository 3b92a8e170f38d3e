"""Sums over many keys are computed in float32 at least, whatever the dtype of the inputs."""

import functools
from collections.abc import Callable
from contextlib import nullcontext

import torch
from torch import Tensor


def in_full_precision(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Compute an attention function of query, key and value in float32 (float64 for float64).

    The output has the dtype of the query; under autocast that of autocast, as PyTorch's fused kernel does it.
    """

    @functools.wraps(function)
    def computed(query: Tensor, key: Tensor, value: Tensor, *args, **kwargs) -> Tensor:
        device, dtype = query.device.type, query.dtype
        wide = torch.promote_types(dtype, torch.float32)
        autocast = torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)
        if autocast and dtype != torch.float64:
            dtype = torch.get_autocast_dtype(device)
        with torch.autocast(device, enabled=False) if autocast else nullcontext():
            output = function(*(x.to(wide) for x in (query, key, value)), *args, **kwargs)
        return output.to(dtype)

    return computed
