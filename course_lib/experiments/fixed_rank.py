"""What can a fixed rank not retrieve? Linformer on the task "own fact", by rank and by its initialisation.

::

    python -m course_lib.experiments.fixed_rank

trains the two-layer encoder of `efficient` with each rank and each start of the compressing matrices, from three
seeds at each of four learning rates, scores it after 500 and after 1,500 steps, trains some arms three to six times
as long, and records the result beside this file (half an hour of CPU time). With names of jobs behind it, such as
"random 8, longer", it runs these alone and keeps what is recorded of the others.
"""

from pathlib import Path

from course_lib.experiments import efficient
from course_lib.experiments.record import read, run_arms

RECORD = Path(__file__).with_suffix(".json")
TASK = "own fact"
RATES = (2e-3, 4e-3, 8e-3, 1.6e-2)
RANKS = {"identity": (8, 16, 4, 32), "random": (32, 8, 64, 16, 4)}
#: Arms that are trained for longer, at two learning rates.
LONGER = {
    ("identity", 8): (4500,),
    ("identity", 16): (4500,),
    ("random", 32): (4500,),
    ("random", 16): (4500, 9000),
    ("random", 8): (4500, 9000),
}
LONG_RATES = (2e-3, 4e-3)
#: Name of a job → start, rank, learning rates, and budgets.
JOBS = {f"{s} {r}": (s, r, RATES, efficient.BUDGETS) for s in RANKS for r in RANKS[s]} | {
    f"{s} {r}, longer": (s, r, LONG_RATES, budgets) for (s, r), budgets in LONGER.items()
}


def _sweep(job: str) -> dict:
    """Do a job; return budget → learning rate → an accuracy per seed."""
    start, rank, rates, budgets = JOBS[job]
    arm = {"kinds": ("linformer", "linformer"), "rank": rank, "start": start}
    accuracies, _ = efficient.train(TASK, arm, rates, budgets=budgets)
    return {
        str(budget): {f"{rate:g}": row for rate, row in zip(rates, found.tolist(), strict=True)}
        for budget, found in accuracies.items()
    }


def _place(record: dict, new: dict, job: str) -> dict:
    """Add the budgets of a job to the record."""
    start, rank, *_ = JOBS[job]
    record.setdefault(start, {}).setdefault(str(rank), {}).update(new)
    return record


def recorded() -> dict[str, dict[str, dict]]:
    """Return the record: start → rank → budget → learning rate → an accuracy per seed."""
    return read(RECORD)


def best(start: str, rank: int, budget: int = efficient.BUDGETS[-1]) -> list[float]:
    """Return the accuracies, one per seed, at the learning rate with the largest mean."""
    return max(recorded()[start][str(rank)][str(budget)].values(), key=sum)


def by_position(rank: int) -> float:
    """Return the accuracy of a model that reads `rank` of the positions and guesses the letters of the others."""
    known = min(rank / efficient.LENGTH, 1.0)
    return known + (1 - known) / efficient.LETTERS


def main() -> None:
    """Run the long version and record it."""
    run_arms(RECORD, JOBS, _sweep, __doc__, place=_place, spec=".3f")


if __name__ == "__main__":
    main()
