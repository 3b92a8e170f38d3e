"""What an exercise is: a reference, cases, known mistakes, hints and a solution."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from course_lib import messages

Case = dict[str, Any]  #: one input, argument name → value, passed by position


@dataclass(frozen=True)
class Mistake:
    """An implementation that runs and is wrong, and the diagnosis for a learner who wrote the same.

    Attributes:
        name: a short name, unique within the exercise.
        implementation: takes the arguments of the reference.
        message: the diagnosis, one or two sentences to the learner.
        edits: of the solution's source, where they make the implementation; see `edits`.
        left: whether it is what is left of the bugs of a hunt.
    """

    name: str
    implementation: Callable
    message: str
    edits: tuple[tuple[str, str, bool], ...] = ()
    left: bool = False


@dataclass(frozen=True, kw_only=True)
class Exercise:
    """A function to write, or to repair.

    Attributes:
        name: what the learner passes to `check`.
        notebook: the stem of the notebook that sets it.
        title: a few words for the list of exercises.
        solution: right on every case, written as a learner would write it; its source is shown.
        cases: the smallest first.
        mistakes: the cases tell them apart from each other and from the solution.
        hints: from a nudge to nearly the answer.
        reference: what attempts are compared with, built on `course_lib`; the solution where left out.
        given: for a bug hunt, the wrong implementation that the notebook shows.
        given_message: the message for it as given; "The bug is still there." by default.
        differentiable: whether gradients must flow to every floating-point tensor in the cases.
        most_elements: of any tensor that an attempt makes in the last case, where the text sets a limit.
    """

    name: str
    notebook: str
    title: str
    solution: Callable
    cases: tuple[Case, ...]
    mistakes: tuple[Mistake, ...]
    hints: tuple[str, ...]
    reference: Callable = None
    given: Callable | None = None
    given_message: str = messages.STILL_AS_GIVEN
    differentiable: bool = True
    most_elements: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "reference", self.reference or self.solution)
