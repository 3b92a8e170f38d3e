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


class TokenBatches:
    """Batches of pairs of similar length that hold about equally many tokens: batch `n` is the same on every call.

    Every epoch is shuffled anew; pairs of similar length share a batch (length bucketing), as many as fit into a budget
    of tokens. No pair is dropped.

    Args:
        sources, targets: token ids, pair by pair.
        tokens: the budget: pairs in a batch times the length of its longest sequence, padding included.
        world: how many processes share a batch.
        pad_id: the padding token.
        seed: of the shuffling.
    """

    def __init__(
        self,
        sources: Sequence[Int[Tensor, " _source"]],
        targets: Sequence[Int[Tensor, " _target"]],
        tokens: int,
        *,
        world: int = 1,
        pad_id: int = 0,
        seed: int = 0,
    ) -> None:
        pairs = zip(sources, targets, strict=True)
        self._sources, self._targets = list(sources), list(targets)
        self._lengths = [max(len(source), len(target)) for source, target in pairs]
        self.tokens, self.world, self.pad_id, self.seed = tokens, world, pad_id, seed
        if len(self._lengths) < world:
            raise ValueError(f"{len(self._lengths)} pairs are fewer than world={world} processes")
        longest = max(self._lengths)
        if longest * world > tokens:
            raise ValueError(
                f"tokens={tokens} is less than the {longest} tokens of the longest sequence, of pair "
                f"{self._lengths.index(longest)}"
                + (f", times {world} processes" if world > 1 else "")
            )
        self._epochs: dict[int, list[list[int]]] = {}  # the last one asked for
        self._starts = [0]  # of each epoch, in batches

    def __getitem__(self, number: int) -> PairBatch:
        """Return batch `number`, 0, 1, 2, … without end."""
        return self.shard(number, 0, 1)

    def shard(self, number: int, rank: int, world: int) -> PairBatch:
        """Return every `world`-th pair of a batch, beginning with pair `rank`."""
        chosen = self._pairs(number)[rank::world]
        parts = ([some[n] for n in chosen] for some in (self._sources, self._targets))
        return PairBatch(*(pad(part, self.pad_id) for part in parts))

    def target_tokens(self, number: int) -> int:
        """Return how many tokens batch `number` predicts: all of its targets but their first."""
        return sum(len(self._targets[n]) - 1 for n in self._pairs(number))

    @property
    def largest(self) -> int:
        """The number of the batch of the first epoch with the most tokens, padding included."""
        batches = self._epoch(0)
        slots = [len(some) * max(self._lengths[n] for n in some) for some in batches]
        return slots.index(max(slots))

    def epoch_of(self, number: int) -> float:
        """Return how many epochs lie before batch `number`."""
        self._pairs(number)
        epoch = next(iter(self._epochs))
        return epoch + (number - self._starts[epoch]) / len(self._epochs[epoch])

    def _pairs(self, number: int) -> list[int]:
        """Return the pairs of a batch; epochs have slightly different numbers of batches, so they are counted."""
        epoch = next(n for n, start in reversed(list(enumerate(self._starts))) if start <= number)
        while True:
            batches = self._epoch(epoch)
            if number < self._starts[epoch] + len(batches):
                return batches[number - self._starts[epoch]]
            epoch += 1
            if epoch == len(self._starts):
                self._starts.append(self._starts[-1] + len(batches))

    def _epoch(self, epoch: int) -> list[list[int]]:
        if epoch not in self._epochs:
            random = torch.Generator().manual_seed(self.seed * 1_000_003 + epoch)
            order = torch.randperm(len(self._lengths), generator=random).tolist()
            order.sort(key=lambda n: (self._lengths[n], len(self._targets[n])))  # stable
            batches: list[list[int]] = [[]]
            for pair in order:  # ascending: the newest is the longest
                full = (len(batches[-1]) + 1) * self._lengths[pair] > self.tokens
                if full and len(batches[-1]) >= self.world:
                    batches.append([])
                batches[-1].append(pair)
            if len(batches[-1]) < self.world and len(batches) > 1:
                batches[-2] += batches.pop()
            mixed = torch.randperm(len(batches), generator=random).tolist()
            self._epochs = {epoch: [batches[n] for n in mixed]}
        return self._epochs[epoch]
