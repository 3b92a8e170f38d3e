"""Held-out scores during training, and early stopping."""

import copy
import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import torch
from torch import nn

from course_lib.checks import training as checks
from course_lib.validation import validated


@dataclass(frozen=True)
class Evaluation:
    """How a model is evaluated while it trains, and which scores end training.

    Attributes:
        evaluate: from the model, in evaluation mode and without gradients, to a held-out score; higher
            is better.
        every: evaluate every so many steps, and after the last one.
        target_score: stop when the score reaches it.
        patience: early stopping: stop after so many evaluations in a row without a new best score. The
            weights of the best one are restored.

    Raises:
        ValueError: for an `evaluate` that is not a function, and numbers out of range.
    """

    evaluate: Callable[[nn.Module], Any]
    _: KW_ONLY
    every: int = 100
    target_score: float | None = None
    patience: int | None = None

    @validated(checks.evaluation)
    def __post_init__(self) -> None: ...


class Evaluator:
    """Carries out an `Evaluation` (None: there is none) during one training.

    Attributes:
        best_score: so far.
        since_best: the number of evaluations after the one with the best score.
        best_weights: those that reached the best score; kept only for patience.
    """

    def __init__(self, evaluation: Evaluation | None) -> None:
        self.evaluation = evaluation
        self.best_score, self.since_best, self.best_weights = -math.inf, 0, None

    def score(self, model: nn.Module, step: int, *, last: bool) -> float | None:
        """Return the score after this step, or None where no evaluation is due."""
        if self.evaluation is None or (step % self.evaluation.every and not last):
            return None
        model.eval()
        with torch.no_grad():
            score = self.evaluation.evaluate(model)
        checks.returned_score(score, step)
        score, self.since_best = float(score), self.since_best + 1
        if score > self.best_score:
            self.best_score, self.since_best = score, 0
            if self.evaluation.patience is not None:
                self.best_weights = copy.deepcopy(model.state_dict())
        return score

    def stops(self, score: float | None) -> str | None:
        """Return why training ends with this score, or None where it continues."""
        if score is None:
            return None
        target, patience = self.evaluation.target_score, self.evaluation.patience
        if target is not None and score >= target:
            return "target_score"
        return "patience" if patience is not None and self.since_best >= patience else None

    def state_dict(self) -> dict[str, Any]:
        """Return what changes from evaluation to evaluation."""
        return {name: value for name, value in vars(self).items() if name != "evaluation"}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` returned."""
        vars(self).update(state)
