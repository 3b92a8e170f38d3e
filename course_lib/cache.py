"""What a layer keeps while a sequence is written token by token: its projected keys and values."""

import torch
from jaxtyping import Float
from torch import Tensor

from course_lib.inputs import (
    require_alike,
    require_axes,
    require_floating,
    require_value_per_key,
)

__all__ = ["KeyValueCache"]


class KeyValueCache:
    """The projected keys and values of one attention layer, of all tokens so far.

    A new token needs the keys and values of all tokens before it, and they do not change. So a layer
    projects the new token alone, adds it here, and attends to everything that is kept.

    Attributes:
        key: (batch, heads, length, d_head), None while empty; `heads` counts the heads of the keys.
        value: likewise.
    """

    def __init__(self) -> None:
        self.key: Tensor | None = None
        self.value: Tensor | None = None

    @property
    def length(self) -> int:
        """How many tokens are kept."""
        return 0 if self.key is None else self.key.shape[-2]

    @property
    def nbytes(self) -> int:
        """How many bytes the kept numbers take."""
        return 0 if self.key is None else self.key.nbytes + self.value.nbytes

    def extend(
        self,
        key: Float[Tensor, "batch heads new d_head"],
        value: Float[Tensor, "batch heads new d_value"],
    ) -> tuple[Float[Tensor, "batch heads key d_head"], Float[Tensor, "batch heads key d_value"]]:
        """Keep new keys and values behind the old ones; return all of them.

        Raises:
            ValueError: for keys and values of unequal number, and for those of another batch, head count,
                size, dtype or device than what is kept, as when the cache is that of another layer.
        """
        require_floating(key=key, value=value)
        require_axes(4, "(batch, heads, new, size)", key=key, value=value)
        require_value_per_key(key, value)
        if self.key is None:
            _require_pair(key, value)
        else:
            for name, kept, new in (("key", self.key, key), ("value", self.value, value)):
                _require_continues(name, kept, new)
            key = torch.cat([self.key, key], dim=-2)  # (batch, heads, key, d_head)
            value = torch.cat([self.value, value], dim=-2)  # (batch, heads, key, d_value)
        self.key, self.value = key, value
        return key, value

    def __repr__(self) -> str:
        return f"KeyValueCache of {self.length} tokens, {self.nbytes} bytes"


def _require_pair(key: Tensor, value: Tensor) -> None:
    require_alike(key=key, value=value)
    if key.shape[:2] != value.shape[:2]:
        raise ValueError(
            f"key has shape {tuple(key.shape)} but value has shape {tuple(value.shape)}; both must have "
            f"the same batch and heads"
        )


def _require_continues(name: str, kept: Tensor, new: Tensor) -> None:
    require_alike(**{f"the kept {name}": kept, f"the new {name}": new})
    for axis, what in ((0, "sequences"), (1, "heads"), (-1, "numbers per vector")):
        if kept.shape[axis] != new.shape[axis]:
            raise ValueError(
                f"cache keeps {kept.shape[axis]} {what}, but the new {name} has {new.shape[axis]}; "
                f"use one cache per layer and per batch, and a new one for each"
            )


def require_cache(cache: object) -> None:
    """Refuse what is neither None nor a cache."""
    if cache is not None and not isinstance(cache, KeyValueCache):
        raise ValueError(
            f"cache is a {type(cache).__name__}; it must be a KeyValueCache, or None for no cache"
        )
