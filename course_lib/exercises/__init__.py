"""Exercises that check themselves: `check`, `hint`, `solution`, `progress`.

A check runs the learner's function beside the reference. Where they differ, it compares with every
known `Mistake` and names the one that fits; else it says what kind of difference it is. A check
never raises, never changes what it was given, and stops code that does not end.
"""

from course_lib.exercises.catalogue import EXERCISES
from course_lib.exercises.desk import check, hint, progress, solution
from course_lib.exercises.examine import Report, examine
from course_lib.exercises.exercise import Case, Exercise, Mistake

__all__ = [
    "EXERCISES",
    "Case",
    "Exercise",
    "Mistake",
    "Report",
    "check",
    "examine",
    "hint",
    "progress",
    "solution",
]
