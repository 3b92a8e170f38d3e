"""The training loop."""

import copy
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.inputs import require_positive, require_whole


@dataclass(frozen=True)
class Progress:
    """What a watcher is told after each step.

    Attributes:
        step: from 1 to `steps`.
        steps: planned.
        loss: of this step's batch.
        score: of this step's evaluation, where there was one.
        seconds: since training began.
        stopped: None while training goes on; at the end, why it ended, as in `History`.
    """

    step: int
    steps: int
    loss: float
    score: float | None
    seconds: float
    stopped: str | None = None


@dataclass
class History:
    """What happened.

    Attributes:
        losses: one per step.
        scores: step → held-out score.
        stopped: why training ended: "steps", "goal", "patience", "interrupted" or, for a watcher that
            is told of an error, "failed".
        seconds: how long it took, evaluations included.
    """

    losses: list[float] = field(default_factory=list)
    scores: dict[int, float] = field(default_factory=dict)
    stopped: str = "steps"
    seconds: float = 0.0

    def __repr__(self) -> str:
        return f"History of {len(self.losses)} steps, stopped by {self.stopped}"


def fit(
    model: nn.Module,
    batches: Iterable[Any],
    loss: Callable[[nn.Module, Any], Tensor],
    *,
    steps: int,
    rate: float | Callable[[int], float] = 1e-3,
    clip: float = 1.0,
    evaluate: Callable[[nn.Module], float] | None = None,
    every: int = 100,
    goal: float | None = None,
    patience: int | None = None,
    watch: Callable[[Progress], None] | None = None,
    seed: int = 0,
) -> History:
    """Train a model with Adam, and leave it in evaluation mode.

    Interrupting it (the stop button, Ctrl-C) ends training early and keeps what was learned.

    Args:
        model: whose parameters are trained.
        batches: one per step; endless, or at least `steps` of them.
        loss: from the model and a batch to one number that carries gradients.
        steps: how many, at most.
        rate: the learning rate, or a function from the step (1, 2, …) to it.
        clip: gradients whose norm, over all parameters, is above it are shortened to it.
        evaluate: from the model, in evaluation mode and without gradients, to a held-out score;
            higher is better.
        every: evaluate every so many steps, and after the last one.
        goal: stop when the score reaches it.
        patience: stop after so many evaluations in a row that are no better than the best; the
            weights of the best one are put back.
        watch: called after each step, e.g. with a `LossPicture`.
        seed: of whatever the model and the loss draw while training, such as dropout.

    Raises:
        ValueError: for numbers out of range, a goal or patience without `evaluate`, and too few batches.
        FloatingPointError: when the loss or a gradient is no longer finite; the weights are those before
            that step.
    """
    _require_fit(model, rate, evaluate, goal, patience, watch)
    require_whole(steps=steps, every=every)
    require_positive(clip=clip)
    optimizer = torch.optim.Adam(model.parameters())
    history, best, started = History(), _Best(keep=patience is not None), time.perf_counter()
    source, stopped = iter(batches), None

    def tell(score: float | None) -> None:
        nonlocal watch
        history.seconds = time.perf_counter() - started
        if watch is not None:
            now = Progress(
                len(history.losses), steps, history.losses[-1], score, history.seconds, stopped
            )
            call, watch = watch, None  # a watcher that fails is not told about its failure
            call(now)
            watch = call

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            for step in range(1, steps + 1):
                for group in optimizer.param_groups:
                    group["lr"] = _rate(rate, step)
                history.losses.append(
                    _one_step(model, _next(source, step), loss, optimizer, clip, step)
                )
                score = None
                if evaluate is not None and (step % every == 0 or step == steps):
                    score = history.scores[step] = _score(model, evaluate, step)
                    best.see(score, model)
                stopped = "steps" if step == steps else None
                if patience is not None and best.waited >= patience:
                    stopped = "patience"
                if goal is not None and score is not None and score >= goal:
                    stopped = "goal"
                tell(score)
                if stopped:
                    break
        except KeyboardInterrupt:
            stopped = "interrupted"
        finally:
            ended = stopped in ("steps", "patience", "goal")
            history.stopped = stopped = stopped or "failed"
            if best.weights is not None:
                model.load_state_dict(best.weights)
            model.eval()
            if not ended and history.losses:
                tell(None)
    return history


def _require_fit(model, rate, evaluate, goal, patience, watch) -> None:
    if not isinstance(model, nn.Module):
        raise ValueError(f"model is a {type(model).__name__}; it must be an nn.Module")
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ValueError("model has no parameter that can be trained (requires_grad)")
    if not callable(rate):
        require_positive(rate=rate)
    for name, function in (("evaluate", evaluate), ("watch", watch)):
        if function is not None and (not callable(function) or isinstance(function, type)):
            raise ValueError(
                f"{name}={function!r} must be a function, or an object that can be called"
            )
    if patience is not None:
        require_whole(patience=patience)
    if goal is not None and (isinstance(goal, bool) or not isinstance(goal, Real) or goal != goal):
        raise ValueError(f"goal={goal!r} must be a number")
    if evaluate is None and (goal is not None or patience is not None):
        raise ValueError("goal and patience need evaluate, a function from the model to a score")


class _Best:
    """The best score so far, and the weights that reached it."""

    def __init__(self, *, keep: bool) -> None:
        self.keep, self.score, self.waited, self.weights = keep, -math.inf, 0, None

    def see(self, score: float, model: nn.Module) -> None:
        self.waited += 1
        if score > self.score:
            self.score, self.waited = score, 0
            if self.keep:
                self.weights = copy.deepcopy(model.state_dict())


def _rate(rate: float | Callable[[int], float], step: int) -> float:
    now = rate(step) if callable(rate) else rate
    if not isinstance(now, Real) or not 0 <= now < math.inf:
        raise ValueError(f"rate gave {now} at step {step}; it must give a finite number, 0 or more")
    return now


def _next(source, step: int):
    try:
        return next(source)
    except StopIteration:
        raise ValueError(
            f"batches ended before step {step}; give as many as steps, or an endless stream"
        ) from None


def _one_step(model, batch, loss, optimizer, clip, step) -> float:
    model.train()
    value = loss(model, batch)
    if not isinstance(value, Tensor) or value.numel() != 1 or not value.requires_grad:
        came = f"a {type(value).__name__}"
        if isinstance(value, Tensor):
            came = f"shape {tuple(value.shape)}, requires_grad={value.requires_grad}"
        raise ValueError(
            f"loss returned {came}; it must return a tensor of one number that carries gradients"
        )
    if not value.isfinite():
        raise FloatingPointError(
            f"the loss is {value.item()} at step {step}; a smaller rate may help"
        )
    optimizer.zero_grad()
    value.backward()
    if not nn.utils.clip_grad_norm_(model.parameters(), clip).isfinite():
        raise FloatingPointError(
            f"a gradient is not finite at step {step}, though the loss is; the weights were left as they are"
        )
    optimizer.step()
    return value.item()


def _score(model, evaluate, step) -> float:
    model.eval()
    with torch.no_grad():
        score = evaluate(model)
    if isinstance(score, Tensor) and score.numel() == 1:
        score = score.item()
    if isinstance(score, bool) or not isinstance(score, Real) or score != score:
        raise ValueError(f"evaluate returned {score!r} at step {step}; it must return a number")
    return float(score)
