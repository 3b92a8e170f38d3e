"""Batches by tokens, of both sides."""

import torch


def batch_numbers(lengths, budget):
    numbers, batch, rows = [], 0, []
    for pair in lengths:  # (2,): source, target
        rows.append(pair)
        widths = torch.stack(rows).amax(dim=0)  # (2,)
        if len(rows) * widths.sum() > budget:
            batch, rows = batch + 1, [pair]
        numbers.append(batch)
    return torch.tensor(numbers)


FULL = "len(rows) * widths.sum() > budget"
LONGEST = "torch.stack(rows).amax(dim=0)"
NEXT = "batch, rows = batch + 1, [pair]"
MISTAKES = f"""
{FULL} -> (len(rows) - 1) * widths.sum() > budget
    The pair that is being added is not counted, so a batch exceeds the budget: with it there is one row more.
{FULL} -> len(rows) * widths.sum() >= budget
    A batch may fill the budget exactly: begin a new one only where it would exceed it.
{FULL} -> torch.stack(rows).sum() > budget
    You add up the lengths. Shorter sentences are padded, so each side holds rows times its longest length.
{FULL} -> len(rows) > budget
    You count pairs. The budget is of tokens: rows times the longest length, of both sides together.
{FULL} -> len(rows) * widths.amax() > budget
    You count one side alone, the longer one. Both are padded: add the longest source and the longest target.
{FULL} -> len(rows) * 2 * widths.amax() > budget
    You pad both sides to one width. Each side is padded to its own longest length: add the two.
{FULL} -> len(rows) * widths[0] > budget
    You count the sources alone. The targets are padded, too: add the longest source and the longest target.
{FULL} -> len(rows) * widths[1] > budget
    You count the targets alone. The sources are padded, too: add the longest source and the longest target.
{LONGEST} -> torch.stack(rows).sum(dim=1).amax()
    You take the pair with the most tokens. The longest source and the longest target may be of different pairs.
{LONGEST} -> torch.stack(rows).amin(dim=0)
    You multiply by the shortest lengths. Every row is padded to the longest of its side.
{LONGEST} -> pair
    You multiply by the lengths of the pair that is being added. An earlier pair of the batch may be longer.
{LONGEST} -> rows[0]
    You multiply by the lengths of the first pair of the batch. A later one may be longer.
{LONGEST} -> lengths.amax(dim=0)
    You multiply by the longest lengths of all pairs. Only the pairs of the batch itself determine its width.
{NEXT} -> batch, rows = batch + 1, []
    The pair that begins a new batch is not counted in it: the new batch has one row already.
{NEXT} -> batch += 1
    The rows are not reset when a new batch begins: keep the new pair alone.
numbers, batch, rows = [], 0, [] -> numbers, batch, rows = [], 1, []
    Batches are numbered from 0.
numbers.append(batch) -> numbers.append(len(rows))
    You return the position within the batch. Return the number of the batch.
"""

CASES = (
    dict(lengths=torch.tensor([[2, 3], [3, 1], [3, 3]]), budget=12),
    dict(lengths=torch.tensor([[1, 3], [3, 1], [1, 1], [2, 2]]), budget=9),
    dict(lengths=torch.tensor([[3, 4], [4, 4], [4, 3], [5, 6], [6, 5], [9, 8]]), budget=20),
    dict(lengths=torch.tensor([[1, 2], [2, 1], [2, 2], [4, 3], [3, 5], [5, 5], [1, 9]]), budget=16),
    dict(lengths=torch.tensor([[3, 1], [1, 1], [1, 1], [1, 1], [1, 6], [7, 2], [2, 2]]), budget=18),
)
HINTS = """
How many rows has the batch if the next pair joins, and how long are its longest source and its longest target then?
Keep the pairs of the batch in a list `rows`: torch.stack(rows).amax(dim=0) holds both longest lengths.
If len(rows) times the sum of these two exceeds the budget: batch, rows = batch + 1, [pair]. Then note the batch.
"""
DIFFERENTIABLE = False
