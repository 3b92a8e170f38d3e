"""One step of the optimizer."""

import math
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from itertools import islice
from numbers import Real
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.inputs import require_one_of, require_positive, require_whole

PRECISIONS = ("float32", "bfloat16")


class Stepper:
    r"""Moves a model by Adam, each time down the weighted mean loss of several batches.

    $$L = \frac{\sum_i w_i L_i}{\sum_i w_i}$$

    With $w_i$ the number of tokens over which $L_i$ is a mean, this is the mean over all tokens, as if
    the batches were one. With equal weights, the tokens of a small batch would count for more.

    Arguments as in `fit`.
    """

    def __init__(
        self,
        model: nn.Module,
        loss: Callable[[nn.Module, Any], Tensor],
        *,
        rate: float | Callable[[int], float],
        clip: float,
        accumulate: int,
        weight: Callable[[Any], float] | None,
        precision: str,
    ) -> None:
        if not isinstance(model, nn.Module):
            raise ValueError(f"model is a {type(model).__name__}; it must be an nn.Module")
        if not any(parameter.requires_grad for parameter in model.parameters()):
            raise ValueError("model has no parameter that can be trained (requires_grad)")
        if not callable(rate):
            require_positive(rate=rate)
        require_positive(clip=clip)
        require_whole(accumulate=accumulate)
        require_one_of(PRECISIONS, precision=precision)
        self.model, self.loss, self.rate, self.clip = model, loss, rate, clip
        self.accumulate, self.weight, self.precision = accumulate, weight, precision
        self.device = next(model.parameters()).device
        self.optimizer = torch.optim.Adam(model.parameters())

    def batches(self, source: Iterator[Any], step: int) -> list[Any]:
        """Return those of one step."""
        batches = list(islice(source, self.accumulate))
        if len(batches) < self.accumulate:
            many = "as many as steps" if self.accumulate == 1 else f"{self.accumulate} per step"
            raise ValueError(f"batches ended before step {step}; give {many}, or an endless stream")
        return batches

    def take(self, batches: list[Any], step: int) -> float:
        """Take the step, and return its loss."""
        for group in self.optimizer.param_groups:
            group["lr"] = self._rate(step)
        self.model.train()
        self.optimizer.zero_grad()
        total = 0.0
        for batch, share in zip(batches, self._shares(batches, step), strict=True):
            with self._cast():
                loss = self.loss(self.model, batch)
            _require_loss(loss, step)
            loss.backward(torch.full_like(loss, share))
            total += share * loss.item()
        if not nn.utils.clip_grad_norm_(self.model.parameters(), self.clip).isfinite():
            raise FloatingPointError(
                f"a gradient is not finite at step {step}, though the loss is; the weights were left "
                f"as they are"
            )
        self.optimizer.step()
        return total

    def _rate(self, step: int) -> float:
        now = self.rate(step) if callable(self.rate) else self.rate
        if not isinstance(now, Real) or not 0 <= now < math.inf:
            raise ValueError(
                f"rate gave {now} at step {step}; it must give a finite number, 0 or more"
            )
        return now

    def _shares(self, batches: list[Any], step: int) -> list[float]:
        if self.weight is None:
            return [1 / len(batches)] * len(batches)
        weights = [self.weight(batch) for batch in batches]
        weights = [
            one.item() if isinstance(one, Tensor) and one.numel() == 1 else one for one in weights
        ]
        for one in weights:
            if not isinstance(one, Real) or not 0 < one < math.inf:
                raise ValueError(
                    f"weight gave {one!r} at step {step}; it must give a finite number above 0"
                )
        return [one / sum(weights) for one in weights]

    def _cast(self):
        if self.precision == "float32":
            return nullcontext()
        return torch.autocast(self.device.type, dtype=torch.bfloat16)


def _require_loss(loss: object, step: int) -> None:
    if not isinstance(loss, Tensor) or loss.numel() != 1 or not loss.requires_grad:
        came = f"a {type(loss).__name__}"
        if isinstance(loss, Tensor):
            came = f"shape {tuple(loss.shape)}, requires_grad={loss.requires_grad}"
        raise ValueError(
            f"loss returned {came}; it must return a tensor of one number that carries gradients"
        )
    if not loss.isfinite():
        raise FloatingPointError(
            f"the loss is {loss.item()} at step {step}; a smaller rate may help"
        )
