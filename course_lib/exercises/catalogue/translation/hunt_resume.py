"""Bug hunt: a resumed run."""

import torch


def steps_taken(start, end, pairs, warmup):
    taken = []
    for step in range(start, end):
        epoch, position = divmod(step, pairs)
        shuffle = torch.Generator().manual_seed(epoch)
        order = torch.randperm(pairs, generator=shuffle)  # of this epoch
        lr = min(1.0, (step + 1) / warmup)
        taken.append((lr, order[position].item()))
    return torch.tensor(taken)  # (steps, 2)


BUGS = """
divmod(step, pairs) -> divmod(step - start, pairs)
    after resuming, the data starts again with the first pair of epoch 0
(step + 1) / warmup -> (step - start + 1) / warmup
    after resuming, the warm-up starts again
"""
MISTAKES = """
divmod(step, pairs) -> step // pairs, (step - start) % pairs
+ (step + 1) / warmup -> (step - start + 1) / warmup
divmod(step, pairs) -> step // pairs, (step - start) % pairs
    The epoch is right, but the position within it still counts from the restart.
(step + 1) / warmup -> step / warmup
    The first step has a learning rate of 0 now: the step that is being taken counts.
(step + 1) / warmup -> 1.0
    There is no warm-up left.
min(1.0, -> max(1.0,
    The learning rate grows without end, and the warm-up is gone: min was right.
manual_seed(epoch) -> manual_seed(0)
    Now every epoch has the same order. The seed was right: a new order in each epoch.
manual_seed(epoch) -> manual_seed(start)
    The order depends on where you resumed. It must depend on the epoch alone.
manual_seed(epoch) -> manual_seed(step)
    The order changes at every step, so an epoch no longer contains each pair once.
order[position].item() -> position
    The pairs are no longer shuffled.
range(start, end) -> range(end)
    Steps before `start` are taken again.
range(start, end) -> range(start + 1, end)
    The step `start` is left out.
range(start, end) -> range(start, end + 1)
    One step too many: `end` is not taken.
"""

CASES = (
    dict(start=1, end=2, pairs=3, warmup=2),
    dict(start=0, end=7, pairs=3, warmup=4),
    dict(start=5, end=12, pairs=4, warmup=8),
    dict(start=9, end=14, pairs=5, warmup=3),
)
HINTS = """
Compare steps_taken(0, 6, …) with steps_taken(0, 3, …) followed by steps_taken(3, 6, …).
A step must depend on its number alone, not on where the run was resumed.
Replace step - start by step in both places.
"""
DIFFERENTIABLE = False
