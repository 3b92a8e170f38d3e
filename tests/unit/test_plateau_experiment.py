"""The experiment behind study 07a: how many steps deep stacks need."""

import pytest

from course_lib.experiments import plateau
from course_lib.experiments.post_norm import EVERY, LEARNED, SEEDS, train


def test_every_run_is_recorded_from_every_seed_and_ended_when_it_had_learned():
    for name, lr, steps in plateau.RUNS:
        runs = plateau.recorded()[name][f"{lr:g}"]
        assert len(runs) == len(SEEDS), (name, lr)
        for losses, needed in zip(runs, plateau.steps_needed(name, lr), strict=True):
            assert EVERY * len(losses) == (needed or steps)
            assert needed is None or losses[-1] < 10 * LEARNED < losses[0]


def test_the_recorded_losses_are_means_of_windows():
    name = plateau.PLAIN
    losses = train(12, "post", lr=1e-3, seed=1, steps=EVERY)
    assert plateau.recorded()[name]["0.001"][1][0] == pytest.approx(sum(losses) / EVERY, rel=0.02)
    assert plateau.train_until_learned(name, 1e-3, EVERY, 1) == pytest.approx(
        [sum(losses) / EVERY], rel=0.02
    )
