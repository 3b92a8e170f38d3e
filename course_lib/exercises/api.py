"""What a learner calls: each function shows something and returns nothing."""

import inspect
import sys
import textwrap
from pathlib import Path

from course_lib import messages
from course_lib.exercises.catalogue import EXERCISES
from course_lib.exercises.grading import Report, grade, unknown_exercise
from course_lib.exercises.progress import Progress, next_hint, record_state, recorded_states
from course_lib.lab import working_copy


def check(name: object, attempt: object) -> None:
    """Show whether your function is right, or what is wrong with it: its values and, where they can flow, its gradients.

    Your function runs on copies of the inputs, and is stopped after five seconds. Random states, settings and names of
    the notebook that it changes get their values back.

    Args:
        name: the exercise's name.
        attempt: your function itself.
    """
    report = grade(name, attempt)
    if isinstance(name, str) and name in EXERCISES:
        record_state(name, report.state)
    _show(report)


def hint(name: object) -> None:
    """Show the next hint; each call goes one further."""
    if not isinstance(name, str) or name not in EXERCISES:
        return print(unknown_exercise(name))
    hints = EXERCISES[name].hints
    number = next_hint(name, len(hints))
    if number is None:
        return print(messages.NO_MORE_HINTS.format(count=len(hints), name=name))
    print(messages.HINT.format(number=number, count=len(hints), hint=hints[number - 1]))


def solution(name: object) -> None:
    """Show one solution."""
    if not isinstance(name, str) or name not in EXERCISES:
        return print(unknown_exercise(name))
    source = textwrap.dedent(inspect.getsource(EXERCISES[name].solution))
    print(f"{messages.SOLUTION.format(name=name)}\n\n{source}")


def progress(notebook: str = "") -> None:
    """Show which exercises you have solved and tried, in one notebook or in all of them.

    In your copy of the course, a button below the table starts the notebook again.

    Args:
        notebook: how its name begins, e.g. "02"; all where left out.
    """
    selected = {
        name: exercise
        for name, exercise in EXERCISES.items()
        if exercise.notebook.startswith(str(notebook))
    }
    if not selected:
        return print(messages.UNKNOWN_NOTEBOOK.format(notebook=notebook))
    _show(Progress(selected, recorded_states()))
    if _in_notebook() and working_copy.holds(Path.cwd()):
        from IPython.display import display

        from course_lib.widgets.reset_button import ResetButton

        display(ResetButton())


def _show(report: Report | Progress) -> None:
    """Display it as HTML in a notebook, print it elsewhere."""
    if _in_notebook():
        from IPython.display import display

        display(report)
    else:
        print(report)


def _in_notebook() -> bool:
    return "IPython" in sys.modules and sys.modules["IPython"].get_ipython() is not None
