"""Batches of sequences of unequal length, padded."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence


class PairBatch(NamedTuple):
    """`source` (batch, source) and `target` (batch, target): token ids, padded at the end."""

    source: Tensor
    target: Tensor


def pad(
    sequences: Sequence[Int[Tensor, " _length"]], pad_id: int = 0
) -> Int[Tensor, "batch longest"]:
    """Stack sequences into one tensor; shorter ones are padded with `pad_id` at the end."""
    return pad_sequence(list(sequences), batch_first=True, padding_value=int(pad_id))


class PairBatches:
    """An endless stream of batches of pairs, shuffled anew in each epoch.

    Pairs of similar length share a batch, which keeps padding short (length bucketing): the shuffled pairs
    are sorted by source length within pools of 16 batches, and the batches of a pool are shuffled again. The
    pairs that do not fill a last batch, different ones in each epoch, are dropped. Each iterator starts from
    the same seed.

    Args:
        sources, targets: token ids, pair by pair.
        batch_size: pairs in a batch.
        pad_id: the padding token.
        seed: of the shuffling.
    """

    def __init__(
        self,
        sources: Sequence[Int[Tensor, " _source"]],
        targets: Sequence[Int[Tensor, " _target"]],
        batch_size: int,
        *,
        pad_id: int = 0,
        seed: int = 0,
    ) -> None:
        if len(sources) < batch_size:  # there would be no batch, and no end of looking for one
            raise ValueError(
                f"batch_size={batch_size} is more than the {len(sources)} pairs in sources and targets"
            )
        self._sources, self._targets = pad(sources, pad_id), pad(targets, pad_id)
        self._lengths = torch.tensor(
            [[len(source), len(target)] for source, target in zip(sources, targets, strict=True)]
        )
        self.batch_size, self.seed = int(batch_size), int(seed)

    def __iter__(self) -> Iterator[PairBatch]:
        order = torch.Generator().manual_seed(self.seed)
        while True:
            yield from self._epoch(order)

    def _epoch(self, order: torch.Generator) -> Iterator[PairBatch]:
        shuffled = torch.randperm(len(self._lengths), generator=order)
        shuffled = shuffled[: len(shuffled) // self.batch_size * self.batch_size]
        for pool in shuffled.split(16 * self.batch_size):
            batches = pool[self._lengths[pool, 0].argsort(stable=True)].split(self.batch_size)
            for number in torch.randperm(len(batches), generator=order):
                yield self._batch(batches[number])

    def _batch(self, chosen: Tensor) -> PairBatch:
        source, target = self._lengths[chosen].amax(0).tolist()
        return PairBatch(self._sources[chosen, :source], self._targets[chosen, :target])
