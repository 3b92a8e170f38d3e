"""How the runs of a ladder are trained: what is recorded, and one short training."""

import numpy as np
import pytest

from course_lib.experiments import ladder_runs
from course_lib.experiments.scaling_ladder import SEEDS, best_lr


def test_the_record_is_complete():
    recorded = ladder_runs.recorded()
    assert list(recorded["epochs"]) == [str(n) for n in ladder_runs.EPOCHS]
    assert list(recorded["schedules"]) == [f"{lr:g}" for lr in ladder_runs.RATES]
    for losses in recorded["schedules"].values():
        assert list(losses["own"]) == [str(n) for n in ladder_runs.CHECKED]
        for steps in ladder_runs.LONG:
            checked = [str(n) for n in ladder_runs.CHECKED if n <= steps / 2]
            assert list(losses[str(steps)]) == checked
        assert all(len(row) == SEEDS for arm in losses.values() for row in arm.values())


def test_halfway_a_long_run_is_worse_and_a_short_one_better_than_one_that_ends_there():
    for losses in ladder_runs.recorded()["schedules"].values():
        own = losses["own"]
        assert (np.array(losses["2048"]["1024"]) - own["1024"] > 0.015).all()
        assert (np.array(losses["512"]["256"]) - own["256"] < -0.015).all()


def test_four_epochs_cost_little_and_sixty_four_much():
    epochs = {int(n): np.array(losses) for n, losses in ladder_runs.recorded()["epochs"].items()}
    assert (epochs[4] - epochs[1] < 0.02).all()
    assert (epochs[64] > np.log(128)).all()


def test_training_ends_at_the_last_step_that_is_checked():
    lr = best_lr("8x1", 2**15)
    losses = ladder_runs.train("8x1", 8, lr, seed=0, checked=(2, 4))
    assert list(losses) == [2, 4]
    whole = ladder_runs.train("8x1", 8, lr, seed=0)
    assert list(whole) == [8]
    repeated = ladder_runs.train("8x1", 8, lr, seed=0, unique=128)
    assert repeated[8] == pytest.approx(whole[8])  # 8 steps read 128 windows, each once
