"""Scaling: what a Transformer costs, and how its loss falls with size, text and compute."""

from course_lib.topics.scaling.counting import (
    ARCHITECTURES,
    ActivationBytes,
    FlopCount,
    ParameterCount,
    activation_bytes,
    flops_per_token,
    kv_cache_bytes,
    parameter_count,
)
from course_lib.topics.scaling.power_law import (
    PowerLaw,
    fit_power_law,
)
from course_lib.topics.scaling.surface import (
    Allocation,
    IsoflopMinimum,
    LossSurface,
    fit_loss_surface,
    isoflop_minimum,
)

__all__ = [
    "ARCHITECTURES",
    "ActivationBytes",
    "Allocation",
    "FlopCount",
    "IsoflopMinimum",
    "LossSurface",
    "ParameterCount",
    "PowerLaw",
    "activation_bytes",
    "fit_loss_surface",
    "fit_power_law",
    "flops_per_token",
    "isoflop_minimum",
    "kv_cache_bytes",
    "parameter_count",
]
