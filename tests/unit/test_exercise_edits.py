"""The language of edits: what is replaced, what belongs together, and what is refused."""

import pytest

from course_lib.exercises.edits import bugs, mistakes, pairs
from course_lib.exercises.exercise import Exercise


def solution(a, b):
    total = a + b
    for _ in range(2):
        total = total * b
    return total


def both(found, **given):
    texts = dict.fromkeys(("name", "notebook", "title"), "")
    settings = {"solution": solution, "cases": (), "hints": (), "mistakes": tuple(found)}
    exercise = Exercise(**texts, **settings, **given)
    return [(one.message, one.implementation(2, 3)) for one in pairs(exercise)]


def test_edits_of_one_place_alternatives_and_several_edits():
    table = r"""
    a + b -> a - b
    a + b -> a
        The sum
        is wrong.
    total = a + b -> total = a
    + return total -> return -total
        Two places.
    total * b -> total * b\ntotal += 1
        A new line, indented as the old one.
    total => rest
        Everywhere.
    a + b -> a
    || range(2) -> range(3) ; range(2) -> range(1) + return total -> return -total
        And more ways.
    """
    assert solution(2, 3) == 45
    assert [(one.message, one.implementation(2, 3)) for one in mistakes(solution, table)] == [
        ("The sum is wrong.", -9),
        ("The sum is wrong.", 18),
        ("Two places.", -18),
        ("A new line, indented as the old one.", 49),
        ("Everywhere.", 45),
        ("And more ways.", 18),
        ("And more ways.", 54),
        ("And more ways.", -6),
    ]


def test_two_mistakes_at_different_places_are_one_more():
    table = "a + b -> a\n    One.\nrange(2) -> range(3)\n    Two.\nrange(2) -> range(1)\n    Three."
    assert both(mistakes(solution, table)) == [
        ("There are two mistakes. One. Two.", 54),
        ("There are two mistakes. One. Three.", 6),
    ]


def test_the_bugs_of_a_hunt_and_its_partial_repairs():
    table = "a + b -> a\na + b -> b\n    no sum\nrange(2) -> range(3)\n    too often"
    given, left, said = bugs(solution, table)
    assert given(2, 3) == 54 and said == "None of the 2 bugs is repaired yet."
    assert {one.implementation(2, 3): one.message for one in left} == {
        135: "1 of 2 bugs repaired. Still wrong: too often.",
        18: "1 of 2 bugs repaired. Still wrong: no sum.",
        27: "1 of 2 bugs repaired. Still wrong: no sum.",
        81: "0 of 2 bugs repaired. Still wrong: no sum; too often.",
    }


def test_a_bug_that_is_left_and_a_new_mistake_are_named_together():
    given, left, said = bugs(solution, "a + b -> a\n    no sum")
    found = [*left, *mistakes(solution, "range(2) -> range(3)\n    Too often.")]
    message = "The bug is still there. And there is another mistake. Too often."
    assert both(found, given=given, given_message=said) == [(message, 54)]


@pytest.mark.parametrize(
    "table",
    [
        "a * b -> a\n    No such place.",
        "total = -> x\n    Two places.",
        "a + b\n    No arrow.",
        "|| a -> b\n    None above.",
    ],
)
def test_a_table_that_does_not_fit_the_solution_is_refused(table):
    with pytest.raises(ValueError, match="stands . times|an edit is|without a first"):
        mistakes(solution, table)
