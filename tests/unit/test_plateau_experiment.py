"""The experiment behind study 07a: how many steps deep stacks need."""

from course_lib.experiments import plateau
from course_lib.experiments.post_norm import EVERY, LEARNED


def test_every_run_ended_when_it_had_learned():
    for name, lr, steps in plateau.RUNS:
        runs, needed = plateau.curves(name, lr), plateau.steps_needed(name, lr)
        assert len(runs) == len(needed) == 3, (name, lr)
        for losses, after in zip(runs, needed, strict=True):
            assert EVERY * len(losses) == (after or steps)
            assert after is None or losses[-1] < 10 * LEARNED < losses[0]
