"""Sequences cut into blocks of queries, and the keys near each block: what sparse patterns compute with.

The last block is padded to full size, and so are the keys at both ends. Plain functions, so that
`torch.compile` can follow them.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.validation import require_mask


def in_blocks(x: Tensor, size: int) -> Tensor:
    """Cut (…, length, d) into blocks, (…, block, size, d)."""
    return F.pad(x, (0, 0, 0, -x.shape[-2] % size)).unflatten(-2, (-1, size))


def near_blocks(x: Tensor, size: int, before: int, after: int) -> Tensor:
    """Return the keys near each block, as views of one tensor: (…, length, d) becomes (…, block, key, d).

    Args:
        x: keys or values.
        size: of a block.
        before, after: how many positions the keys begin before the block, and end behind it.
    """
    padded = F.pad(x, (0, 0, before, -x.shape[-2] % size + after))
    return padded.unfold(-2, before + size + after, size).mT


def allowed_near(exists: Tensor, size: int, before: int, after: int) -> Tensor:
    """Return the mask over `near_blocks`, (…, block, query, key): a band, without keys that do not exist.

    Args:
        exists: which keys exist, (…, length, 1).
        size, before, after: as for `near_blocks`; they are the limits of the band, too.
    """
    query = torch.arange(size, device=exists.device)[:, None]
    offset = torch.arange(before + size + after, device=exists.device) - before - query
    band = (-before <= offset) & (offset <= after)  # (query, key)
    return band & near_blocks(exists, size, before, after).mT


def joined(x: Tensor, length: int) -> Tensor:
    """Put blocks together again: (…, block, size, d) becomes (…, length, d)."""
    return x.flatten(-3, -2)[..., :length, :]


def require_one_length(query: Tensor, key: Tensor, value: Tensor) -> None:
    """Refuse unequal numbers of positions: padded to whole blocks, they would fit each other by chance."""
    queries, keys, values = (x.shape[-2] for x in (query, key, value))
    if not queries == keys == values:
        raise ValueError(
            f"there are {queries} queries, {keys} keys and {values} values; positions are compared, so there "
            f"must be as many of each"
        )


def batch_of(*tensors: Tensor) -> torch.Size:
    """Return the leading axes of queries, keys and values, broadcast to each other."""
    return torch.broadcast_shapes(*(x.shape[:-2] for x in tensors))


def flat(x: Tensor, batch: torch.Size) -> Tensor:
    """Expand the leading axes of (…, length, d) to `batch`, and merge them into one."""
    return x.expand(*batch, *x.shape[-2:]).reshape(math.prod(batch), *x.shape[-2:])


def unflat(x: Tensor, batch: torch.Size) -> Tensor:
    """Split the merged axis of (merged batch, length, d) again."""
    return x.reshape(*batch, *x.shape[-2:])


def present(padding_mask: Tensor | None, key: Tensor, batch: torch.Size) -> Tensor:
    """Return which keys are not padding, (merged batch or 1, length, 1)."""
    length = key.shape[-2]
    if padding_mask is None:
        return torch.ones(1, length, 1, dtype=torch.bool, device=key.device)
    require_mask(padding_mask, (*batch, 1, length))
    return padding_mask.expand(*batch, 1, length).reshape(math.prod(batch), 1, length).mT
