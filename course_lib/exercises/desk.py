"""What a learner calls: each function shows something and returns nothing."""

import inspect
import sys
import textwrap

from course_lib import texts
from course_lib.exercises import record
from course_lib.exercises.catalogue import EXERCISES
from course_lib.exercises.examine import examine, unknown


def check(name: object, attempt: object) -> None:
    """Show whether your function is right, or what is wrong with it.

    Args:
        name: the exercise's name.
        attempt: your function itself.
    """
    report = examine(name, attempt)
    if isinstance(name, str) and name in EXERCISES:
        record.note(name, report.state)
    _show(report, str(report))


def hint(name: object) -> None:
    """Show the next hint; each call goes one further."""
    if not isinstance(name, str) or name not in EXERCISES:
        return print(unknown(name))
    hints = EXERCISES[name].hints
    number = record.next_hint(name, len(hints))
    if number is None:
        return print(texts.NO_MORE_HINTS.format(count=len(hints), name=name))
    print(texts.HINT.format(number=number, count=len(hints), hint=hints[number - 1]))


def solution(name: object) -> None:
    """Show one solution."""
    if not isinstance(name, str) or name not in EXERCISES:
        return print(unknown(name))
    source = textwrap.dedent(inspect.getsource(EXERCISES[name].solution))
    print(f"{texts.SOLUTION.format(name=name)}\n\n{source}")


def progress(notebook: str = "") -> None:
    """Show which exercises you have solved and tried, in one notebook or in all of them.

    Args:
        notebook: how its name begins, e.g. "02"; all where left out.
    """
    chosen = {
        name: exercise
        for name, exercise in EXERCISES.items()
        if exercise.notebook.startswith(str(notebook))
    }
    if not chosen:
        return print(texts.UNKNOWN_NOTEBOOK.format(notebook=notebook))
    states = record.states()
    passed = sum(states.get(name) == "passed" for name in chosen)
    print(texts.PROGRESS_TITLE.format(passed=passed, count=len(chosen)))
    heading = None
    for name, exercise in chosen.items():
        if exercise.notebook != heading:
            heading = exercise.notebook
            print(f"\n{heading}")
        said = texts.PROGRESS_STATES[states.get(name, "new")]
        print(f"  {said:10} {name:22} {exercise.title}")


def _show(thing: object, plain: str) -> None:
    """Display richly in a notebook, print elsewhere."""
    if "IPython" in sys.modules and sys.modules["IPython"].get_ipython() is not None:
        from IPython.display import display

        display(thing)
    else:
        print(plain)
