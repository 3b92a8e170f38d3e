"""The training loop and its step."""

import math
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.validation import require_one_of, require_positive, require_whole

__all__ = ["Evaluation", "History", "Progress", "fit", "train_step"]


@dataclass(frozen=True)
class Evaluation:
    """How a model is evaluated while it trains, and which scores end training.

    Attributes:
        evaluate: from the model, in evaluation mode and without gradients, to a held-out score; higher
            is better.
        every: evaluate every so many steps, and after the last one.
        target_score: stop when the score reaches it.
    """

    evaluate: Callable[[nn.Module], Any]
    _: KW_ONLY
    every: int = 100
    target_score: float | None = None


@dataclass
class History:
    """What happened in one training.

    Attributes:
        losses: one per step.
        scores: step → held-out score.
        stopped: why training ended: "steps", "target_score", "interrupted" or, for a
            callback that is told of an error, "failed". None while training continues.
        seconds: how long it took, evaluations included.
    """

    losses: list[float] = field(default_factory=list)
    scores: dict[int, float] = field(default_factory=dict)
    stopped: str | None = None
    seconds: float = 0.0

    def __repr__(self) -> str:
        return f"History(steps={len(self.losses)}, stopped={self.stopped!r})"


@dataclass(frozen=True)
class Progress:
    """What a callback receives after each of the `steps` that are planned.

    `score` is None without an evaluation after this step; `seconds` and `stopped` are those of `History` so far.
    """

    step: int
    steps: int
    loss: float
    score: float | None
    seconds: float
    stopped: str | None = None


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
    r"""Take one step of the optimizer down the mean loss of one or more batches; return that loss.

    $$L = \sum_i w_i L_i, \qquad w_i = \frac{n_i}{\sum_j n_j}$$

    With $n_i$ the number of tokens over which $L_i$ is a mean (`token_count`), $L$ is the mean over all
    tokens, as if the batches were one. Without `token_count` all $n_i$ are 1.

    Args:
        model: is put into training mode.
        optimizer: of the model's parameters.
        loss: from the model and a batch to one number that carries gradients.
        batches: their gradients are accumulated; `[batch]` for a single one.
        max_grad_norm: gradients whose norm, over all parameters, is larger are scaled down to it.
        token_count: from a batch to the number of its target tokens, for a loss that is a mean over them:
            batches of a step then count by their tokens. None: they count equally.
        precision: "float32": the model computes in its own dtype; "bfloat16": under `torch.autocast`,
            while weights and optimizer keep their dtype.

    Raises:
        FloatingPointError: for a loss or gradient that is not finite; the weights are left unchanged.
    """
    require_positive(max_grad_norm=max_grad_norm)
    require_one_of(("float32", "bfloat16"), precision=precision)
    model.train()
    optimizer.zero_grad()
    device, total = next(model.parameters()).device.type, 0.0
    counts = [1.0 if token_count is None else float(token_count(batch)) for batch in batches]
    for batch, count in zip(batches, counts, strict=True):
        with torch.autocast(device, torch.bfloat16, enabled=precision == "bfloat16"):
            batch_loss = loss(model, batch)
        weight = count / sum(counts)
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


def _require_trainable(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Refuse parameters that would stay as they are, and nothing would say so."""
    held = {id(one) for group in optimizer.param_groups for one in group["params"]}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad and id(parameter) not in held:
            raise ValueError(
                f"optimizer lacks {name}, which requires gradients; make the optimizer from "
                f"model.parameters(), or freeze {name} with requires_grad_(False)"
            )
        if parameter.requires_grad and parameter.dtype == torch.float16:
            raise ValueError(
                f"model has {name} in float16, in which gradients and Adam's ε of 1e-8 become 0; train in "
                f'float32, e.g. model.float(), with precision="bfloat16" for speed'
            )


def fit(
    model: nn.Module,
    batches: Iterable[Any],
    loss: Callable[[nn.Module, Any], Tensor],
    *,
    steps: int,
    lr: float | Callable[[int], float] | None = None,
    optimizer: torch.optim.Optimizer | None = None,
    evaluation: Evaluation | None = None,
    callback: Callable[[Progress], None] | None = None,
    max_grad_norm: float = 1.0,
    seed: int = 0,
) -> History:
    """Repeat `train_step`, and leave the model in evaluation mode.

    Interrupting it (the stop button, Ctrl-C) ends training early and keeps what was learned.

    Args:
        model: whose parameters are trained.
        batches: one per step; endless, or enough of them.
        loss: from the model and a batch to one number that carries gradients.
        steps: how many, at most.
        lr: the learning rate of every parameter group, or a schedule: a function from the step (1, 2, …)
            to it. Left out, the optimizer's own learning rates stay (1e-3 in Adam).
        optimizer: of the model's parameters; its state continues from where it is. Left out, a new
            `torch.optim.Adam(model.parameters(), fused=True)`.
        evaluation: scores on held-out data, and a score to stop at.
        callback: called after each step, e.g. a `LossPicture`.
        max_grad_norm: as for `train_step`.
        seed: of everything that draws random numbers during training, such as dropout.

    Returns:
        Losses, scores, and why training ended.

    Raises:
        FloatingPointError: when the loss or a gradient is not finite; the weights are left unchanged.
    """
    require_whole(steps=steps)
    optimizer = optimizer or torch.optim.Adam(model.parameters(), fused=True)
    _require_trainable(model, optimizer)
    history, device = History(), next(model.parameters()).device

    def report(score: float | None = None) -> None:
        """Tell the callback of the last step."""
        history.seconds = time.perf_counter() - started
        if callback is not None and history.losses:
            step, last = len(history.losses), history.losses[-1]
            callback(Progress(step, steps, last, score, history.seconds, history.stopped))

    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        started, source = time.perf_counter(), iter(batches)
        try:
            while history.stopped is None:
                step, score = len(history.losses) + 1, None
                if lr is not None:
                    _set_lr(optimizer, lr(step) if callable(lr) else lr, step)
                batch = list(islice(source, 1))
                if not batch:
                    raise ValueError(f"batches ended before step {step}; give one per step")
                done = train_step(model, optimizer, loss, batch, max_grad_norm=max_grad_norm)
                history.losses.append(done)
                history.stopped = "steps" if step == steps else None
                if evaluation and (step % evaluation.every == 0 or step == steps):
                    score = _evaluate(model, evaluation, history)
                report(score)
        except KeyboardInterrupt:
            history.stopped = "interrupted"
            report()
        except Exception as error:
            history.stopped = "failed"
            error.add_note(f"in training step {step}")
            with suppress(Exception):  # the error may be the callback's own
                report()
            raise
        finally:
            model.eval()
    return history


def _set_lr(optimizer: torch.optim.Optimizer, lr: float, step: int) -> None:
    """Set the learning rate of this step in every parameter group."""
    if not 0 <= lr < math.inf:
        raise ValueError(f"lr is {lr} at step {step}; it must be a finite number, 0 or more")
    for group in optimizer.param_groups:
        group["lr"] = float(lr)


def _evaluate(model: nn.Module, evaluation: Evaluation, history: History) -> float:
    """Return the score after the last step, and note whether training ends."""
    model.eval()
    with torch.no_grad():
        score = float(evaluation.evaluate(model))
    history.scores[len(history.losses)] = score
    if evaluation.target_score is not None and score >= evaluation.target_score:
        history.stopped = "target_score"
    return score
