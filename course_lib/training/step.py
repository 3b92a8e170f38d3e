"""One training step."""

import math
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.checks import training as checks
from course_lib.validation import validated


@validated(checks.train_step, calls_back=True)
def train_step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    loss: Callable[[nn.Module, Any], Tensor],
    batches: list[Any],
    *,
    max_grad_norm: float = 1.0,
    token_count: Callable[[Any], Any] | None = None,
    precision: str = "float32",
) -> float:
    r"""Take one step of the optimizer down the mean loss of one or more batches.

    $$L = \sum_i w_i L_i, \qquad w_i = \frac{n_i}{\sum_j n_j}$$

    With $n_i$ the number of tokens over which $L_i$ is a mean (`token_count`), $L$ is the mean over all
    tokens, as if the batches were one. Without `token_count` all $n_i$ are 1.

    Args:
        model: is put into training mode.
        optimizer: of the model's parameters.
        loss: from the model and a batch to one number that carries gradients.
        batches: their gradients are accumulated; `[batch]` for a single one.
        max_grad_norm, token_count, precision: as in `TrainingConfig`.

    Returns:
        The loss $L$ before the step.

    Raises:
        ValueError: for settings out of range, and a loss that is not one number with gradients.
        FloatingPointError: for a loss or gradient that is not finite; the weights are left unchanged.
    """
    model.train()
    optimizer.zero_grad()
    device, total = next(model.parameters()).device.type, 0.0
    for batch, weight in zip(batches, _weights(batches, token_count), strict=True):
        with torch.autocast(device, torch.bfloat16, enabled=precision == "bfloat16"):
            batch_loss = loss(model, batch)
        checks.returned_loss(batch_loss)
        (weight * batch_loss).backward()
        total += weight * batch_loss.detach()
    grad_norm = nn.utils.clip_grad_norm_(model.parameters(), max_grad_norm)
    total = total.item()  # a GPU is waited for here, after all its work was queued
    if not math.isfinite(total):
        raise FloatingPointError(f"the loss is {total}; a smaller lr may help")
    if not grad_norm.isfinite():
        raise FloatingPointError(
            "a gradient is not finite, though the loss is; the weights are unchanged"
        )
    optimizer.step()
    return total


def _weights(batches: list[Any], token_count: Callable[[Any], Any] | None) -> list[float]:
    """Return the weight of each batch in the mean loss."""
    counts = [1 if token_count is None else token_count(batch) for batch in batches]
    for count in counts:
        checks.returned_token_count(count)
    total = float(sum(counts))
    return [float(count) / total for count in counts]


def next_batches(source: Iterator[Any], count: int, step: int) -> list[Any]:
    """Return the batches of one step.

    Raises:
        ValueError: where fewer are left.
    """
    batches = list(islice(source, count))
    if len(batches) < count:
        many = "as many as steps" if count == 1 else f"{count} per step"
        raise ValueError(f"batches ended before step {step}; give {many}, or an endless stream")
    return batches
