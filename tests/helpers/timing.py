"""Functions timed in turn."""

from collections.abc import Callable
from statistics import median
from time import perf_counter


def in_turn(rounds: int = 40, **functions: Callable[[], object]) -> dict[str, float]:
    """Median milliseconds of each function; they take turns, so that a slow moment hits all alike."""
    seconds = {name: [] for name in functions}
    for turn in range(rounds + 3):
        for name, function in functions.items():
            started = perf_counter()
            function()
            if turn >= 3:  # the first calls set up
                seconds[name].append(perf_counter() - started)
    return {name: 1000 * median(times) for name, times in seconds.items()}
