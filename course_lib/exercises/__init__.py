"""Exercises that check themselves: `check`, `hint`, `solution`, `progress`.

A check runs the learner's function and the reference on the same cases. Where the results differ, it compares the
attempt with every known `Mistake` and names the one that gives the same results; if none does, it says what it
measured: the kind of difference, and a relation of the two results. A check never raises, never changes its inputs,
and stops code that does not end.

    api         what a learner calls
    grading     from an attempt to a `Report`
    comparison  run a function on a case, and compare two outcomes
    edits       mistakes as edits of a solution's source
    relations   how an unknown wrong result is related to the expected one
    watch       how large the tensors are that an attempt makes
    sandbox     a time limit, and global state restored afterwards
    progress    the file of solved exercises (`course_lib.exercises.progress` is the function)
    exercise    `Exercise`, `Case`, `Mistake`
    catalogue   the exercises themselves
"""

from course_lib.exercises.api import check, hint, progress, solution
from course_lib.exercises.catalogue import EXERCISES
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.exercises.grading import Report, grade

__all__ = [
    "EXERCISES",
    "Case",
    "Exercise",
    "Mistake",
    "Report",
    "check",
    "grade",
    "hint",
    "progress",
    "solution",
]
