"""Bug hunt: a BLEU near 0."""

import torch


def translate_all(sources, lengths, table, size):
    order = lengths.argsort(descending=True)  # long sentences first
    batches = sources[order].split(size)
    found = torch.cat([table[batch] for batch in batches])
    return found[order.argsort()]


def reference(sources, lengths, table, size):
    """Sentence by sentence."""
    return torch.stack([table[sentence] for sentence in sources])


GIVEN = "found[order.argsort()] -> found[order]"
MISTAKES = """
found[order.argsort()] -> found
    Your translations are in the order in which they were decoded: the longest sentence comes first, wherever it stood.
order.argsort() -> order.argsort(descending=True)
order.argsort() -> order.flip(0)
order.argsort() -> lengths.argsort()
order.argsort() -> lengths.argsort().argsort()
found[order.argsort()] -> found.flip(0)
    Another order, and still not the original one. Row n of found belongs to sentence order[n]; sort the rows by that
    number.
lengths.argsort(descending=True) -> lengths.argsort()
+ found[order.argsort()] -> found[order]
    You sort the other way round and still apply the order a second time. Undo it: row n of found belongs to sentence
    order[n].
sources[order].split -> sources.split
    The sources are no longer sorted, but at the end you still change the order. Sorting saves padding; keep it, and
    undo it.
table[batch] -> batch
    You return the sources. table[batch] translates them.
[table[batch] for batch in batches] -> [table[batch] for batch in batches][::-1]
    The batches come last first. Their order was right.
found[order.argsort()] -> found[(lengths[None] > lengths[:, None]).sum(dim=1)]
    Sentences of equal length get the same row: one translation is lost and another comes twice. Sort order, not lengths.
"""

CASES = (
    dict(  # the order is no inverse of itself
        sources=torch.tensor([[1, 0], [2, 3], [4, 5]]),
        lengths=torch.tensor([1, 3, 2]),
        table=torch.arange(6) + 10,
        size=2,
    ),
    dict(  # equal lengths
        sources=torch.tensor([[1, 2], [3, 1], [5, 0], [4, 6]]),
        lengths=torch.tensor([2, 2, 1, 3]),
        table=torch.arange(7) + 20,
        size=3,
    ),
    dict(
        sources=torch.tensor([[4, 0, 0], [1, 2, 3], [5, 6, 0], [2, 2, 2], [3, 1, 0]]),
        lengths=torch.tensor([1, 5, 3, 4, 2]),
        table=torch.tensor([0, 14, 11, 12, 16, 13, 15]),
        size=2,
    ),
    dict(  # nor is the ascending one
        sources=torch.tensor([[1, 2, 0], [2, 3, 1], [5, 0, 0], [3, 1, 4], [6, 4, 2]]),
        lengths=torch.tensor([2, 5, 1, 4, 3]),
        table=torch.tensor([0, 14, 11, 12, 16, 13, 15]),
        size=2,
    ),
)
HINTS = """
Translate three sentences of lengths 1, 3 and 2. Which sentence does each row of the result belong to?
Row n of found belongs to sentence order[n]. So sentence order[n] must get row n, not the other way round.
The inverse of a permutation is its argsort: found[order.argsort()].
"""
DIFFERENTIABLE = False
