"""The exercises: a folder for each notebook, a file for each exercise.

To add an exercise to a notebook (CONTRIBUTING.md goes through it with an example):

1. Write `catalogue/<notebook>/<name>.py`: the solution as a learner would write it, then `EXERCISE = Exercise(…)` with its
   cases, the smallest first, its mistakes and its hints. `start_here/weighted_sum.py` is a short one to start from;
   `Exercise` explains each field, and `course_lib.exercises.edits` how mistakes are written.
2. Add the name to the list in `catalogue/<notebook>/__init__.py`, in the order of the notebook.
3. In the notebook, write a stub of the solution, followed by `check("<name>", <function>)`, and run it with
   `make notebooks NAMES=<notebook>`.

Helpers of several exercises of one notebook stand in `_shared.py` of its folder, helpers of several
notebooks in `catalogue/_shared.py`. `tests/unit/test_exercises.py` tests every exercise: that the
solution passes, that each mistake is recognised, and that the cases tell all mistakes apart.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib import import_module

from course_lib.exercises.exercise import NOTEBOOKS, Exercise


class Catalogue(Mapping[str, Exercise]):
    """Every exercise and bug hunt by name; an exercise is imported when it is first asked for."""

    def __getitem__(self, name: str) -> Exercise:
        folder = self._folders[name]
        return import_module(f"{__name__}.{folder}.{name}").EXERCISE

    def __iter__(self) -> Iterator[str]:
        return iter(self._folders)

    def __len__(self) -> int:
        return len(self._folders)

    @cached_property
    def _folders(self) -> dict[str, str]:
        """Name of the exercise → its folder, in the order of the course."""
        return {
            name: folder
            for folder in (notebook.partition("_")[2] for notebook in NOTEBOOKS)
            for name in import_module(f"{__name__}.{folder}").EXERCISES
        }


EXERCISES = Catalogue()
