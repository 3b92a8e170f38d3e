"""Sequences cut into blocks of queries, and the keys near each block: what sparse patterns compute with."""

import torch
import torch.nn.functional as F
from torch import Tensor


class Blocks:
    """A sequence in blocks of queries, each with the keys from `before` positions ahead of it to `after` behind.

    The last block is padded to full size, and so are the keys at both ends; `allowed` masks that padding.

    Args:
        length: of the sequence.
        size: how many queries a block has.
        before, after: how far its keys reach to the left and to the right of each query.
    """

    def __init__(self, length: int, size: int, before: int = 0, after: int = 0) -> None:
        self.length, self.size, self.before, self.after = length, size, before, after
        self.num_keys = before + size + after
        self._missing = -length % size  # in the last block

    def queries(self, x: Tensor) -> Tensor:
        """Cut (…, length, d) into (…, block, query, d)."""
        return F.pad(x, (0, 0, 0, self._missing)).unflatten(-2, (-1, self.size))

    def keys(self, x: Tensor) -> Tensor:
        """Give each block its keys: (…, length, d) becomes (…, block, key, d), a view where blocks overlap."""
        padded = F.pad(x, (0, 0, self.before, self._missing + self.after))
        return padded.unfold(-2, self.num_keys, self.size).mT

    def allowed(self, keys: Tensor) -> Tensor:
        """Return which key of its block a query may attend to.

        Args:
            keys: which keys exist, (…, length, 1).

        Returns:
            A mask, (…, block, query, key).
        """
        query = torch.arange(self.size, device=keys.device)[:, None]
        offset = torch.arange(self.num_keys, device=keys.device) - self.before - query
        band = (-self.before <= offset) & (offset <= self.after)  # (query, key)
        return band & self.keys(keys).mT

    def join(self, x: Tensor) -> Tensor:
        """Put blocks together: (…, block, query, d) becomes (…, length, d)."""
        return x.flatten(-3, -2)[..., : self.length, :]


def flat(x: Tensor, batch: torch.Size) -> Tensor:
    """Expand the leading axes of (…, length, d) to `batch`, and merge them into one."""
    return x.expand(*batch, *x.shape[-2:]).reshape(-1, *x.shape[-2:])


def unflat(x: Tensor, batch: torch.Size) -> Tensor:
    """Split the merged axis of (merged batch, length, d) again."""
    return x.reshape(*batch, *x.shape[-2:])


def batch_of(*tensors: Tensor) -> torch.Size:
    """Return the leading axes of queries, keys and values, broadcast to each other."""
    return torch.broadcast_shapes(*(x.shape[:-2] for x in tensors))


def present(padding_mask: Tensor | None, key: Tensor, batch: torch.Size) -> Tensor:
    """Return which keys are not padding, (merged batch or 1, length, 1)."""
    if padding_mask is None:
        return torch.ones(1, key.shape[-2], 1, dtype=torch.bool, device=key.device)
    return padding_mask.expand(*batch, 1, key.shape[-2]).reshape(-1, 1, key.shape[-2]).mT
