"""What can a fixed rank not retrieve? Linformer on the task "own fact", by rank and by its initialisation.

::

    python -m course_lib.experiments.fixed_rank

trains the two-layer encoder of `efficient` with each rank and each start of the compressing matrices, from three
seeds at each of four learning rates, scores it after 500 and after 1,500 steps, and trains some arms three to six times
as long (half an hour of CPU time).
"""

from course_lib.experiments import efficient
from course_lib.experiments.runs import best as best_of
from course_lib.experiments.runs import fill, grid, read, where

TASK = "own fact"
RATES, LONG_RATES = (2e-3, 4e-3, 8e-3, 1.6e-2), (2e-3, 4e-3)
RANKS = {"identity": (8, 16, 4, 32), "random": (32, 8, 64, 16, 4)}
#: Arms, and the number of steps of each; some are trained for longer, at two learning rates.
PLAN = (
    *grid(start=["identity"], rank=RANKS["identity"], steps=[1500]),
    *grid(start=["random"], rank=RANKS["random"], steps=[1500]),
    *grid(start=["identity"], rank=[8, 16], steps=[4500]),
    *grid(start=["random"], rank=[32], steps=[4500]),
    *grid(start=["random"], rank=[16, 8], steps=[9000]),
)


def run(start: str, rank: int, steps: int) -> list[dict]:
    """Train an arm at every learning rate from every seed; return the accuracies after each budget."""
    budgets = {1500: efficient.BUDGETS, 4500: (4500,), 9000: (4500, 9000)}[steps]
    arm = {"kinds": ("linformer", "linformer"), "rank": rank, "start": start}
    rates = RATES if steps == 1500 else LONG_RATES
    return efficient.rows_of(efficient.train(TASK, arm, rates, budgets=budgets)[0], rates)


def best(start: str, rank: int, budget: int = efficient.BUDGETS[-1]) -> list[float]:
    """Return the accuracies, one per seed, at the learning rate with the largest mean."""
    rows = where(read("fixed_rank"), start=start, rank=rank, budget=budget)
    return best_of(rows, "accuracy")[1]


def by_position(rank: int) -> float:
    """Return the accuracy of a model that reads `rank` of the positions and guesses the letters of the others."""
    known = min(rank / efficient.LENGTH, 1.0)
    return known + (1 - known) / efficient.LETTERS


if __name__ == "__main__":
    fill("fixed_rank", run, PLAN, __doc__, spec=".3f")
