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
        stopped: why training ended: "steps", "goal", "patience" or "interrupted".
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
        FloatingPointError: when the loss is no longer finite.
    """
    require_whole(steps=steps, every=every)
    require_positive(clip=clip)
    if not callable(rate):
        require_positive(rate=rate)
    if patience is not None:
        require_whole(patience=patience)
    if evaluate is None and (goal is not None or patience is not None):
        raise ValueError("goal and patience need evaluate, a function from the model to a score")
    optimizer = torch.optim.Adam(model.parameters())
    history, best, started = History(), _Best(keep=patience is not None), time.perf_counter()
    source = iter(batches)

    def tell(step: int, score: float | None, stopped: str | None) -> None:
        history.seconds = time.perf_counter() - started
        if watch is not None:
            watch(Progress(step, steps, history.losses[-1], score, history.seconds, stopped))

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
                    score = history.scores[step] = _score(model, evaluate)
                    best.see(score, model)
                stopped = "steps" if step == steps else None
                if patience is not None and best.waited >= patience:
                    stopped = "patience"
                if goal is not None and score is not None and score >= goal:
                    stopped = "goal"
                tell(step, score, stopped)
                if stopped:
                    history.stopped = stopped
                    break
        except KeyboardInterrupt:
            history.stopped = "interrupted"
            if history.losses:
                tell(len(history.losses), None, "interrupted")
    if best.weights is not None:
        model.load_state_dict(best.weights)
    model.eval()
    return history


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
    nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()
    return value.item()


def _score(model, evaluate) -> float:
    model.eval()
    with torch.no_grad():
        return float(evaluate(model))
