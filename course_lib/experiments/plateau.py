"""How many steps does a deep stack need before it has learned?

The arms are those of `course_lib.experiments.post_norm`, and 12 plain post-norm blocks at three other initialisations.
They are trained until the held-out loss is at most `LEARNED`, or until a budget is spent::

    python -m course_lib.experiments.plateau

trains every arm from three seeds and records the training loss, a mean over every 50 steps, beside this file (35
minutes of CPU time). Runs that are recorded already are kept; delete the file to start anew.
"""

from pathlib import Path

import torch

from course_lib.experiments.post_norm import (
    ARMS,
    EVERY,
    INITIALISATIONS,
    LEARNED,
    SEEDS,
    arm,
    train,
)
from course_lib.experiments.record import read, run_arms

RECORD = Path(__file__).with_suffix(".json")
PLAIN, WARM = arm(12, "post"), arm(12, "post", warmup=200)
SIX, SMALL = arm(6, "post"), arm(12, "post", scale=0.1)
MEDIUM, PRE = arm(12, "post", scale=0.3), arm(12, "pre")
STACKED, LINEAR, LAYER = (f"{PLAIN}, {how}" for how in INITIALISATIONS[1:])
OPTIONS = dict(ARMS)
OPTIONS |= {
    name: {"depth": 12, "initialisation": how}
    for name, how in zip((STACKED, LINEAR, LAYER), INITIALISATIONS[1:], strict=True)
}
#: Arm, learning rate, and number of steps at most.
RUNS = (
    (PLAIN, 1e-3, 6000),
    (WARM, 1e-3, 6000),
    (SMALL, 3e-3, 4000),
    (MEDIUM, 1e-3, 4000),
    (PRE, 3e-3, 4000),
    (SIX, 1e-3, 4000),
    (LINEAR, 1e-3, 4000),
    (LINEAR, 3e-3, 4000),
    (STACKED, 1e-3, 4000),
    (LAYER, 1e-3, 4000),
    (LAYER, 3e-3, 4000),
    (STACKED, 3e-3, 1000),
)
BUDGETS = {(name, f"{lr:g}"): steps for name, lr, steps in RUNS}


def recorded() -> dict[str, dict[str, list[list[float]]]]:
    """Return the recorded result: arm → learning rate → for each seed the mean loss of every 50 steps.

    A run that ended before its budget had learned the task.
    """
    return read(RECORD)


def steps_needed(name: str, lr: float) -> list[int | None]:
    """Return after how many steps each seed had learned; None where the budget did not suffice."""
    lengths = [EVERY * len(losses) for losses in recorded()[name][f"{lr:g}"]]
    return [length if length < BUDGETS[name, f"{lr:g}"] else None for length in lengths]


def train_until_learned(name: str, lr: float, steps: int, seed: int) -> list[float]:
    """Train one stack; return the mean loss of every `EVERY` steps."""
    losses = train(**OPTIONS[name], lr=lr, seed=seed, steps=steps, until=LEARNED)
    windows = torch.tensor(losses).view(-1, EVERY).mean(dim=1)
    return [float(f"{loss:.3g}") for loss in windows.tolist()]


def _run(name: str, lr: str) -> list[list[float]]:
    """Train from the seeds that are not recorded yet."""
    runs, steps = recorded().get(name, {}).get(lr, []), BUDGETS[name, lr]
    return runs + [train_until_learned(name, float(lr), steps, seed) for seed in SEEDS[len(runs) :]]


def main() -> None:
    """Run what is not recorded yet."""
    run_arms(RECORD, BUDGETS, _run, __doc__, indent=None)


if __name__ == "__main__":
    main()
