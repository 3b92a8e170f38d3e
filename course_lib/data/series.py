"""One-dimensional series: keys (where) and values (what was observed there)."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Series:
    """Keys and values with their labels.

    Attributes:
        keys: where something was observed, ascending, float32.
        values: what was observed there, float32.
        key_label, value_label: axis labels, with units.
        name: one short phrase for captions.
        truth: the true function, where it is known.
    """

    keys: Float[Tensor, " key"]
    values: Float[Tensor, " key"]
    name: str
    key_label: str
    value_label: str
    truth: Callable[[Tensor], Tensor] | None = None

    def __len__(self) -> int:
        return len(self.keys)


def wave(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    r"""The true function of the synthetic series: $f(x) = \sin(2x) + x/2$."""
    return torch.sin(2 * x) + x / 2


def wave_series(count: int = 50, noise: float = 0.4, seed: int = 0) -> Series:
    r"""Noisy samples of `wave` at `count` uniformly sampled keys in $[0, 5]$.

    Args:
        count: how many keys, at least 2.
        noise: standard deviation $\sigma$ of the Gaussian noise, at least 0.
        seed: the same seed gives the same series on every machine.
    """
    random = np.random.default_rng(seed)  # NumPy's random numbers do not depend on the processor
    keys = torch.from_numpy(np.sort(random.uniform(0, 5, count)))
    values = wave(keys) + noise * torch.from_numpy(random.standard_normal(count))
    return Series(keys.float(), values.float(), "noisy wave", "x", "y", wave)


def nile_series() -> Series:
    """Return the yearly flow of the Nile at Aswan, 1871-1970, in 10⁸ m³.

    G. W. Cobb, "The problem of the Nile", Biometrika 65 (1978). 100 years; the flow drops near 1899.
    """
    years, flows = np.loadtxt(
        Path(__file__).with_name("nile.csv"), np.float32, delimiter=",", skiprows=4
    ).T
    return Series(
        torch.from_numpy(years.copy()),
        torch.from_numpy(flows.copy()),
        "flow of the Nile",
        "year",
        "flow (10⁸ m³)",
    )
