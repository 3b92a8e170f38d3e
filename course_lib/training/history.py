"""What happened in training, step by step."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Progress:
    """What a callback receives after each step.

    Attributes:
        step: from 1 to `steps`.
        steps: planned.
        loss: of this step.
        score: of this step's evaluation, where there was one.
        seconds: since training began.
        stopped: None while training continues; at the end, why it ended, as in `History`.
    """

    step: int
    steps: int
    loss: float
    score: float | None
    seconds: float
    stopped: str | None = None


@dataclass
class History:
    """What happened in one training.

    Attributes:
        losses: one per step.
        scores: step → held-out score.
        stopped: why training ended: "steps", "target_score", "patience", "interrupted" or, for a
            callback that is told of an error, "failed". None while training continues.
        seconds: how long it took, evaluations included.
    """

    losses: list[float] = field(default_factory=list)
    scores: dict[int, float] = field(default_factory=dict)
    stopped: str | None = "steps"
    seconds: float = 0.0

    def __repr__(self) -> str:
        return f"History(steps={len(self.losses)}, stopped={self.stopped!r})"


class ProgressReporter:
    """Measures the time of a training and reports each step to a callback; arguments as in `fit`."""

    def __init__(
        self, callback: Callable[[Progress], None] | None, history: History, steps: int
    ) -> None:
        self.callback, self.history, self.steps = callback, history, steps
        self._last = time.perf_counter()

    def report(self, score: float | None = None) -> None:
        """Report the last step. A callback that raised an error is not called again."""
        now, history = time.perf_counter(), self.history
        history.seconds += now - self._last
        self._last = now
        callback, self.callback = self.callback, None
        if callback is not None:
            step, loss = len(history.losses), history.losses[-1]
            callback(Progress(step, self.steps, loss, score, history.seconds, history.stopped))
        self.callback = callback
