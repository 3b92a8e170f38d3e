"""An experiment that takes no time, for `test_experiment_record`; `python -m tests.helpers.arms RECORD …` runs it."""

import sys
import time
from pathlib import Path

import torch

from course_lib.experiments.record import run_arms
from course_lib.train import fit

ARMS = [(part, name) for part in ("first", "second") for name in ("short", "longer", "the longest")]


def measured(part, name):
    """The length of a name, a fraction, and the threads of the process."""
    time.sleep(0.2 / len(name))  # the first one ends last
    return {"length": len(part + name), "third": len(name) / 3, "threads": torch.get_num_threads()}


def failing(part, name):
    """As `measured`, but for one arm."""
    if name == "longer":
        raise RuntimeError(f"no memory for {name}")
    return measured(part, name)


def endless(part, name):
    """As `measured`, but all arms save one train without an end."""
    if name == "short":
        return measured(part, name)
    model, batches = torch.nn.Linear(1, 1), iter(lambda: torch.ones(1, 1), None)
    fit(model, batches, lambda model, x: model(x).square().sum(), steps=10**9)
    return measured(part, name)


if __name__ == "__main__":
    run_arms(Path(sys.argv.pop(1)), ARMS, endless, __doc__)
