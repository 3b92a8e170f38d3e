"""The lookups of `heads`, trained for longer: who is unable to learn, and who is slow?

::

    python -m course_lib.experiments.heads_longer

trains every arm at the learning rates and from the seeds that `ARMS` names, with the accuracy on held-out questions
along the way (twenty minutes of CPU time). The rates are those that were best in the sweeps of `heads`, and their
neighbours.
"""

from dataclasses import dataclass

from course_lib.experiments import heads
from course_lib.experiments.heads import PATHS
from course_lib.experiments.runs import fill, read, where
from course_lib.train import Evaluation

Curve = dict[int, float]  # step → accuracy


@dataclass(frozen=True)
class Arm:
    """What is trained: learning rate → number of seeds, the budget, how often it is evaluated, and the options."""

    rates: dict[float, int]
    steps: int
    every: int
    options: dict


SHARED = {"num_heads": 4, "attributes": True}
ONE = SHARED | {"num_kv_heads": 1}
WIDE, WIDE_KV = {0.005: 3, 0.01: 3}, {0.0025: 5, 0.005: 3}
FFN = {"num_heads": 1, "path": PATHS[2]}
ARMS = {
    "1 KV head": Arm({0.00125: 3, 0.0025: 3, 0.005: 1}, 12_000, 500, ONE),
    "4 KV heads": Arm({0.0025: 3, 0.005: 5, 0.01: 3}, 1500, 100, SHARED),
    "1 KV head, d_head 16": Arm({0.0025: 3}, 1500, 100, ONE | {"d_head": 16}),
    "1 KV head, d_model 64, d_head 8": Arm(
        {0.00125: 3, 0.0025: 3, 0.005: 3, 0.01: 3}, 1500, 100, ONE | {"d_model": 64, "d_head": 8}
    ),
    "1 head, FFN": Arm({0.0025: 3}, 6000, 200, FFN),
    "2 heads": Arm({0.0025: 8}, 1200, 100, {"num_heads": 2}),
    "1 head, FFN, 18,000 steps": Arm({0.00125: 1}, 18_000, 600, FFN),
    "32 heads": Arm({0.005: 3}, 6000, 200, {"num_heads": 32}),
    "32 heads, values of 8": Arm(WIDE, 600, 100, {"num_heads": 32, "d_value": 8}),
    "32 heads, scores of 8": Arm(WIDE, 600, 100, {"num_heads": 32, "d_head": 8, "d_value": 1}),
    "1 KV head, keys of 16": Arm(WIDE_KV, 1500, 100, ONE | {"d_head": 16, "d_value": 8}),
    "1 KV head, values of 16": Arm(WIDE_KV, 1500, 100, ONE | {"d_value": 16}),
    "1 head": Arm({0.0025: 2}, 3000, 200, {"num_heads": 1}),
    "2 heads, 4,000 steps": Arm({0.0025: 2}, 4000, 200, {"num_heads": 2}),
}


def curves(arm: str) -> dict[float, list[Curve]]:
    """Return the recorded curves of an arm: learning rate → one per seed."""
    found: dict[float, list[Curve]] = {}
    for row in where(read("heads_longer"), arm=arm):
        steps = range(row["every"], ARMS[arm].steps + 1, row["every"])
        found.setdefault(row["lr"], []).append(dict(zip(steps, row["right"], strict=True)))
    return found


def best(arm: str) -> list[Curve]:
    """Return the curves, one per seed, at the learning rate that is best at the end."""
    end = ARMS[arm].steps
    return max(curves(arm).values(), key=lambda runs: sum(run[end] for run in runs) / len(runs))


PLAN = [
    {"arm": name, "lr": lr, "seed": seed}
    for name, arm in ARMS.items()
    for lr, seeds in arm.rates.items()
    for seed in range(seeds)
]


def run(arm: str, **setting) -> list[dict]:
    """Train once; return the accuracies on held-out questions."""
    evaluation = Evaluation(heads.accuracy, every=ARMS[arm].every)
    options = {"steps": ARMS[arm].steps, **setting, **ARMS[arm].options}
    _, history = heads.training(evaluation=evaluation, **options)
    return [{"every": ARMS[arm].every, "right": list(history.scores.values())}]


if __name__ == "__main__":
    fill("heads_longer", run, PLAN, __doc__, spec=".3f")
