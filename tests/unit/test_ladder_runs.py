"""How the runs of a ladder are trained: what is recorded, and one short training."""

import numpy as np
import pytest

from course_lib.experiments import ladder_runs
from course_lib.experiments.scaling_ladder import best_lr


def losses(**setting):
    return np.array(ladder_runs.losses(**setting))


def test_halfway_a_long_run_is_worse_and_a_short_one_better_than_one_that_ends_there():
    for lr in ladder_runs.RATES:
        own = {n: losses(lr=lr, steps=n, step=n) for n in (256, 1024)}
        assert (losses(lr=lr, steps=2048, step=1024) - own[1024] > 0.015).all()
        assert (losses(lr=lr, steps=512, step=256) - own[256] < -0.015).all()


def test_four_epochs_cost_little_and_sixty_four_much():
    epochs = {n: losses(epochs=n) for n in ladder_runs.EPOCHS}
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
