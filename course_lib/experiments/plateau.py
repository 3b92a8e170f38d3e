"""How many steps does a deep stack need before it has learned?

The arms are those of `course_lib.experiments.post_norm`, and 12 plain post-norm blocks at three other initialisations.
They are trained until the held-out loss is at most `LEARNED`, or until a budget is spent::

    python -m course_lib.experiments.plateau

trains every arm from three seeds; recorded is the training loss, a mean over every 50 steps (35 minutes of CPU time).
"""

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
from course_lib.experiments.runs import fill, read, where

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
BUDGETS = {(name, lr): steps for name, lr, steps in RUNS}


def curves(name: str, lr: float) -> list[list[float]]:
    """Return the recorded losses, one list per seed; one that ends before its budget had learned the task."""
    return [row["losses"] for row in where(read("plateau"), arm=name, lr=lr)]


def steps_needed(name: str, lr: float) -> list[int | None]:
    """Return after how many steps each seed had learned; None where the budget did not suffice."""
    lengths = [EVERY * len(losses) for losses in curves(name, lr)]
    return [length if length < BUDGETS[name, lr] else None for length in lengths]


def run(arm: str, lr: float, seed: int) -> list[dict]:
    """Train one stack; return the mean loss of every `EVERY` steps."""
    steps = BUDGETS[arm, lr]
    losses = train(**OPTIONS[arm], lr=lr, seed=seed, steps=steps, until=LEARNED)
    return [{"losses": torch.tensor(losses).view(-1, EVERY).mean(dim=1).tolist()}]


PLAN = [{"arm": name, "lr": lr, "seed": seed} for name, lr, _ in RUNS for seed in SEEDS]

if __name__ == "__main__":
    fill("plateau", run, PLAN, __doc__, spec=".3g")
