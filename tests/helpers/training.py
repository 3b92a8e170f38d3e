"""A small model, batches for it, and the loop of training with nothing around it."""

import torch
from torch import nn


class Line(nn.Module):
    """Linear regression, with dropout where it is asked for."""

    def __init__(self, dropout=0.0, dtype=torch.float64):
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(4)
            self.weights = nn.Linear(3, 1, dtype=dtype)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.weights(self.dropout(x))[:, 0]


def points(count=30, sizes=(8,), dtype=torch.float64):
    """Batches of points near a plane, of these sizes in turn."""
    random = torch.Generator().manual_seed(0)
    for number in range(count):
        x = torch.randn(sizes[number % len(sizes)], 3, generator=random, dtype=torch.float64)
        y = x @ torch.tensor([5.0, -3, 1], dtype=torch.float64) + 2
        yield x.to(dtype), y.to(dtype)


def squares(model, batch):
    x, y = batch
    return (model(x) - y).square().mean()


def size(batch):
    return len(batch[0])


def numbers(model, of=lambda parameter: parameter):
    return torch.cat([of(one).detach().flatten().clone() for one in model.parameters()])


def by_hand(model, groups, optimizer=None, lr=None, max_grad_norm=1.0, cast=False):
    """The losses of a loop that takes a step for each group of batches."""
    optimizer, losses = optimizer or torch.optim.Adam(model.parameters(), fused=True), []
    for step, group in enumerate(groups, 1):
        if lr is not None:
            optimizer.param_groups[0]["lr"] = lr(step) if callable(lr) else lr
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=cast):
            loss = sum(squares(model, one) * size(one) for one in group) / sum(map(size, group))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_grad_norm)
        optimizer.step()
        losses.append(loss.item())
    return losses
