"""From sequences of unequal length to rectangular batches."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from course_lib.inputs import require_whole, short_name


class PairBatch(NamedTuple):
    """`source` (batch, source) and `target` (batch, target): token numbers, padded at the end."""

    source: Tensor
    target: Tensor


def pad(
    sequences: Sequence[Int[Tensor, " _length"]], pad_id: int = 0
) -> Int[Tensor, "batch longest"]:
    """Put sequences on top of each other; the shorter ones are filled up with `pad_id` at the end.

    Raises:
        ValueError: without sequences, and for sequences that are not whole numbers of one axis.
    """
    _require_sequences(sequences=sequences)
    return pad_sequence(list(sequences), batch_first=True, padding_value=pad_id)


def _require_sequences(**several: Sequence[Tensor]) -> None:
    for name, sequences in several.items():
        if len(sequences) == 0:
            raise ValueError(f"{name} is empty; a batch needs at least one sequence")
        for place, sequence in enumerate(sequences):
            if not isinstance(sequence, Tensor):
                came = f"is a {type(sequence).__name__}"
            elif sequence.dim() != 1 or sequence.is_floating_point():
                came = f"has shape {tuple(sequence.shape)} and dtype {short_name(sequence.dtype)}"
            else:
                continue
            raise ValueError(
                f"{name}[{place}] {came}; it must be a tensor of whole numbers of shape (length,)"
            )


class PairBatches:
    """An endless stream of batches of pairs, in a new order each time around.

    Pairs of similar length travel together, so that little is padded: the shuffled pairs are sorted by
    source length within pools of 16 batches, and the batches of a pool are shuffled again. Pairs that do not
    fill a last batch, others each time, are left out of a round. Iterating anew starts from the same seed.

    Args:
        sources, targets: token numbers, pair by pair, each of shape (length,).
        batch_size: pairs in a batch.
        pad_id: what fills up the shorter ones.
        seed: of the order.

    Raises:
        ValueError: for unequal numbers of sources and targets, and for fewer pairs than a batch holds.
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
        require_whole(batch_size=batch_size)
        if len(sources) != len(targets):
            raise ValueError(
                f"sources has {len(sources)} sequences but targets has {len(targets)}; "
                f"they belong together pair by pair"
            )
        if len(sources) < batch_size:
            raise ValueError(
                f"batch_size={batch_size} is more than the {len(sources)} pairs in sources and targets"
            )
        _require_sequences(sources=sources, targets=targets)
        self._sources, self._targets = pad(sources, pad_id), pad(targets, pad_id)
        self._lengths = torch.tensor(
            [[len(source), len(target)] for source, target in zip(sources, targets, strict=True)]
        )
        self.batch_size, self.seed = batch_size, seed

    def __iter__(self) -> Iterator[PairBatch]:
        order = torch.Generator().manual_seed(self.seed)
        while True:
            yield from self._round(order)

    def _round(self, order: torch.Generator) -> Iterator[PairBatch]:
        shuffled = torch.randperm(len(self._lengths), generator=order)
        shuffled = shuffled[: len(shuffled) // self.batch_size * self.batch_size]
        for pool in shuffled.split(16 * self.batch_size):
            batches = pool[self._lengths[pool, 0].argsort(stable=True)].split(self.batch_size)
            for place in torch.randperm(len(batches), generator=order):
                yield self._batch(batches[place])

    def _batch(self, chosen: Tensor) -> PairBatch:
        source, target = self._lengths[chosen].amax(0).tolist()
        return PairBatch(self._sources[chosen, :source], self._targets[chosen, :target])
