"""The loss of each process."""

import torch


def process_losses(sums, counts):
    world, total = len(sums), counts.sum()
    return world * sums / total  # (process,)


LOSSES = "world * sums / total"
MISTAKES = f"""
{LOSSES} -> sums / counts
    You take the mean of each process. Their mean counts a token of a process with few tokens more than others.
{LOSSES} -> sums / total
    DistributedDataParallel divides the sum of the gradients by the number of processes. Your gradients become too
    small by that factor.
{LOSSES} -> world * sums / counts
    You divide each sum by the tokens of its own process. Divide by the tokens of all of them.
{LOSSES} -> sums
    The sums are not divided by the number of tokens.
{LOSSES} -> world * sums
    You undo the mean over the processes, and have a sum over tokens left. Divide by their number.
{LOSSES} -> sums / world
    You divide by the number of processes, which DistributedDataParallel does anyway, and not by the tokens.
{LOSSES} -> sums * counts / total
    You weight the sums by tokens. A sum contains that weight already; the means would need it.
{LOSSES} -> world * sums * counts / total
    You weight the sums by tokens. A sum contains that weight already.
{LOSSES} -> world * sums.sum() / total + 0 * sums
{LOSSES} -> sums.sum() / total + 0 * sums
    Every process has only its own sum to differentiate. Return the part of each.
{LOSSES} -> sums.sum() / total
    This is the loss of the whole batch. A process can only differentiate its own sum: return one number for each.
"""

CASES = (
    dict(sums=torch.tensor([6.0, 1.0]), counts=torch.tensor([3, 1])),
    dict(sums=torch.tensor([4.0, 9.0, 2.0]), counts=torch.tensor([5, 3, 2])),
    dict(sums=torch.tensor([30.0, 12.5, 8.0, 41.0]), counts=torch.tensor([12, 5, 4, 19])),
)
HINTS = """
Which single number do you want the gradient of? Write it with sums and counts.
It is sums.sum() / counts.sum(). The mean over the processes of what you return must be that.
len(sums) * sums / counts.sum()
"""
