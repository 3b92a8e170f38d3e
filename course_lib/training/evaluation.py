"""Held-out scores, and when they end training."""

import copy
import math
from collections.abc import Callable
from numbers import Real

import torch
from torch import Tensor, nn

from course_lib.inputs import require_whole


class Evaluation:
    """Scores a model now and then, and remembers the best score; arguments as in `fit`.

    Attributes:
        best: the best score so far.
        waited: how many scores there were since.
        weights: those that reached the best score; kept for patience only.
    """

    def __init__(
        self,
        evaluate: Callable[[nn.Module], float] | None,
        *,
        every: int,
        goal: float | None,
        patience: int | None,
    ) -> None:
        require_whole(every=every)
        if patience is not None:
            require_whole(patience=patience)
        if goal is not None and not _is_number(goal):
            raise ValueError(f"goal={goal!r} must be a number")
        if evaluate is None and (goal is not None or patience is not None):
            raise ValueError(
                "goal and patience need evaluate, a function from the model to a score"
            )
        self.evaluate, self.every, self.goal, self.patience = evaluate, every, goal, patience
        self.best, self.waited, self.weights = -math.inf, 0, None

    def score(self, model: nn.Module, step: int, *, last: bool) -> float | None:
        """Return the score after this step, or None where it is not yet time for one."""
        if self.evaluate is None or (step % self.every and not last):
            return None
        score = _score(model, self.evaluate, step)
        self.waited += 1
        if score > self.best:
            self.best, self.waited = score, 0
            if self.patience is not None:
                self.weights = copy.deepcopy(model.state_dict())
        return score

    def stops(self, score: float | None) -> str | None:
        """Return why training ends with this score, or None where it goes on."""
        if score is not None and self.goal is not None and score >= self.goal:
            return "goal"
        return "patience" if self.patience is not None and self.waited >= self.patience else None

    def state(self) -> dict:
        """Return what changes from score to score."""
        return {"best": self.best, "waited": self.waited, "weights": self.weights}


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and value == value


def _score(model: nn.Module, evaluate: Callable[[nn.Module], float], step: int) -> float:
    model.eval()
    with torch.no_grad():
        score = evaluate(model)
    if isinstance(score, Tensor) and score.numel() == 1:
        score = score.item()
    if not _is_number(score):
        raise ValueError(f"evaluate returned {score!r} at step {step}; it must return a number")
    return float(score)
