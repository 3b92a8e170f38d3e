"""The language of edits: what is replaced, what belongs together, and what is refused."""

import pytest

from course_lib.exercises.edits import bugs, mistakes, pairs
from course_lib.exercises.exercise import Exercise


def solution(a, b):
    total = a + b
    for _ in range(2):
        total = total * b
    return total


def test_edits_of_one_place_alternatives_and_several_edits():
    table = r"""
    a + b -> a - b
    a + b -> a
        The sum
        is wrong.
    total = a + b -> total = a
    + return total -> return -total
        Two places.
    total * b -> total * b\\ntotal += 1
        A new line, indented as the old one.
    total => rest
        Everywhere.
    """
    found = mistakes(solution, table.replace(r"\\n", r"\n"))
    assert [one.message for one in found] == ["The sum is wrong."] * 2 + [
        "Two places.",
        "A new line, indented as the old one.",
        "Everywhere.",
    ]
    assert solution(2, 3) == 45
    assert [one.implementation(2, 3) for one in found] == [-9, 18, -18, 49, 45]


def test_two_mistakes_at_different_places_are_one_more():
    found = mistakes(
        solution,
        "a + b -> a\n    One.\nrange(2) -> range(3)\n    Two.\nrange(2) -> range(1)\n    Three.",
    )
    exercise = Exercise(title="", solution=solution, cases=(), mistakes=found, hints=())
    both = list(pairs(exercise))
    assert [one.message for one in both] == [
        "There are two mistakes. One. Two.",
        "There are two mistakes. One. Three.",
    ]
    assert [one.implementation(2, 3) for one in both] == [54, 6]


def test_the_bugs_of_a_hunt_and_its_partial_repairs():
    given, left, said = bugs(
        solution, "a + b -> a\na + b -> b\n    no sum\nrange(2) -> range(3)\n    too often"
    )
    assert given(2, 3) == 54 and said == "None of the 2 bugs is repaired yet."
    assert {one.implementation(2, 3): one.message for one in left} == {
        135: "1 of 2 bugs repaired. Still wrong: too often.",
        18: "1 of 2 bugs repaired. Still wrong: no sum.",
        27: "1 of 2 bugs repaired. Still wrong: no sum.",
        81: "0 of 2 bugs repaired. Still wrong: no sum; too often.",
    }


def test_a_bug_that_is_left_and_a_new_mistake_are_named_together():
    given, left, said = bugs(solution, "a + b -> a\n    no sum")
    found = mistakes(solution, "range(2) -> range(3)\n    Too often.")
    exercise = Exercise(
        title="",
        solution=solution,
        cases=(),
        mistakes=(*left, *found),
        hints=(),
        given=given,
        given_message=said,
    )
    (both,) = pairs(exercise)
    assert both.message == "The bug is still there. And there is another mistake. Too often."
    assert both.implementation(2, 3) == 54


@pytest.mark.parametrize(
    "table",
    ["a * b -> a\n    No such place.", "total -> x\n    Five places.", "a + b\n    No arrow."],
)
def test_a_table_that_does_not_fit_the_solution_is_refused(table):
    with pytest.raises(ValueError, match="stands . times|an edit is"):
        mistakes(solution, table)
