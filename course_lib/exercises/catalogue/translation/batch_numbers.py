"""Batches by tokens."""

import torch


def batch_numbers(lengths, budget):
    numbers, batch, size = [], 0, 0
    for length in lengths.tolist():  # ascending: the newest is the longest
        if (size + 1) * length > budget:
            batch, size = batch + 1, 0
        size += 1
        numbers.append(batch)
    return torch.tensor(numbers)


FULL = "(size + 1) * length > budget"
NEXT = "batch, size = batch + 1, 0"
MISTAKES = f"""
{FULL} -> size * length > budget
    The sentence that is being added is not counted, so a batch exceeds the budget. It would have size + 1 rows.
{FULL} -> size * length >= budget
    The sentence that is being added is not counted: with it there are size + 1 rows.
{FULL} -> (size + 1) * length >= budget
    A batch may fill the budget exactly: begin a new one only where it would exceed it.
{FULL} -> size + length > budget
+ size += 1 -> size += length
    You add up the lengths. Shorter sentences are padded, so a batch holds rows times the longest length.
{FULL} -> size + 1 > budget
    You count sentences. The budget is of tokens: rows times the longest length.
{FULL} -> (size + 1) * lengths[0].item() > budget
    You multiply by the shortest length. Every row is padded to the longest, which is the one being added.
{FULL} -> (size + 1) * lengths[-1].item() > budget
    You multiply by the longest length of all sentences. Only the sentences of the batch itself determine its width.
{FULL} -> (size + 1) * lengths.float().mean().item() > budget
    You multiply by the mean length. Every row is padded to the longest of its batch.
{NEXT} -> batch += 1
    The count of rows is not reset when a new batch begins.
{NEXT} -> batch, size = batch + 1, -1
    The sentence that begins a new batch is not counted in it: the new batch has one row already.
{NEXT} -> batch, size = batch + 1, 1
    The first sentence of a new batch is counted twice: start from 0, since size += 1 follows.
numbers, batch, size = [], 0, 0 -> numbers, batch, size = [], 1, 0
    Batches are numbered from 0.
numbers.append(batch) -> numbers.append(size)
    You return the place within the batch. Return the number of the batch.
numbers, batch, size = [], 0, 0 -> numbers, batch, size, first = [], 0, 0, 0
+ (size + 1) * length > budget -> (size + 1) * (first if size else length) > budget
+ size += 1 -> first = first if size else length; size += 1
    You multiply by the shortest length of the batch. Every row is padded to the longest, which is the one being added.
"""

CASES = (
    dict(lengths=torch.tensor([2, 3, 3]), budget=6),
    dict(lengths=torch.tensor([1, 1, 2, 2, 3, 4, 4, 8]), budget=8),
    dict(lengths=torch.tensor([1, 2, 2, 2, 2, 2, 2, 2, 8]), budget=8),
    dict(lengths=torch.tensor([3, 3, 4, 5, 5, 7, 9, 9, 10, 16]), budget=20),
)
HINTS = """
The lengths ascend. How many tokens, padding included, has the batch if the next sentence joins?
It would have size + 1 rows, each as long as the newest sentence.
If (size + 1) * length > budget: batch, size = batch + 1, 0. Then size += 1, and note the batch.
"""
DIFFERENTIABLE = False
