"""An experiment that takes no time, for `test_runs`; `python -m tests.helpers.runs TABLE …` runs it."""

import sys
import time

import torch

from course_lib.experiments.runs import fill, grid
from course_lib.train import fit

PLAN = grid(part=["first", "second"], name=["short", "longer", "the longest"])


def measured(part, name):
    """The length of the names, a fraction, and the threads of the process."""
    time.sleep(0.2 / len(name))  # the first one ends last
    return [
        {"length": len(part + name), "third": len(name) / 3, "threads": torch.get_num_threads()}
    ]


def failing(part, name):
    """As `measured`, but for one name."""
    if name == "longer":
        raise RuntimeError(f"no memory for {name}")
    return measured(part, name)


def endless(part, name):
    """As `measured`, but all save one train without an end."""
    if name == "short":
        return measured(part, name)
    model, batches = torch.nn.Linear(1, 1), iter(lambda: torch.ones(1, 1), None)
    fit(model, batches, lambda model, x: model(x).square().sum(), steps=10**9)
    return measured(part, name)


if __name__ == "__main__":
    fill(sys.argv.pop(1), endless, PLAN, __doc__)
