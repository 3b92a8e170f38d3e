"""What happened in training, step by step."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Progress:
    """What a watcher is told after each step.

    Attributes:
        step: from 1 to `steps`.
        steps: planned.
        loss: of this step.
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


class Watched:
    """Keeps the time of a history and tells a watcher; one that failed is told nothing more."""

    def __init__(
        self, history: History, steps: int, watch: Callable[[Progress], None] | None
    ) -> None:
        self.history, self.steps, self.watch = history, steps, watch
        self.start()

    def start(self) -> None:
        """Let the clock run on from the seconds of the history."""
        self._began = time.perf_counter() - self.history.seconds

    def tell(self, score: float | None, stopped: str | None) -> None:
        """Tell of the last step."""
        losses = self.history.losses
        self.history.seconds = time.perf_counter() - self._began
        if self.watch is not None:
            watch, self.watch = self.watch, None
            watch(
                Progress(len(losses), self.steps, losses[-1], score, self.history.seconds, stopped)
            )
            self.watch = watch
