"""From what an argument can be to the control that chooses it; other values are refused."""

import math
import re

import ipywidgets
import pytest

from course_lib.widgets.controls import Numbers, Powers, Text, make_control, round_step

NUMBERS, POWERS = Numbers(0.25, 4, 0.25), Powers(1e9, 1e14, 0.25)


@pytest.mark.parametrize(
    ("choices", "value", "kind", "first", "last"),
    [
        (range(2, 6), 5, ipywidgets.IntSlider, 2, 5),
        (range(0, 360, 5), 40, ipywidgets.IntSlider, 0, 355),
        (NUMBERS, 0.25, ipywidgets.FloatSlider, 0.25, 4),
        (POWERS, 1e12, ipywidgets.FloatLogSlider, 9, 14),
    ],
)
def test_a_range_of_numbers_is_a_slider_between_its_ends(choices, value, kind, first, last):
    control = make_control("x", value, choices, "label")
    assert type(control) is kind and control.description == "label"
    assert (control.value, control.min, control.max) == (pytest.approx(value), first, last)
    assert control.step == choices.step


@pytest.mark.parametrize(
    ("choices", "value", "kind", "names"),
    [
        (("a", "b"), "b", ipywidgets.Dropdown, ("a", "b")),
        ((1, 1.5, 1000), 1.5, ipywidgets.SelectionSlider, (("1", 1), ("1.5", 1.5), ("1000", 1000))),
        ({"½ ×": 0.5, "1 ×": 1.0}, 1.0, ipywidgets.SelectionSlider, (("½ ×", 0.5), ("1 ×", 1.0))),
    ],
)
def test_a_few_values_are_a_menu_of_words_or_a_slider_along_names(choices, value, kind, names):
    control = make_control("x", value, choices, "label")
    assert type(control) is kind and control.value == value
    assert tuple(control.options) == names


def test_a_text_is_a_box_and_nothing_to_choose_is_no_control():
    typed = Text("any words")
    assert make_control("x", "words", typed, "label").value == "words"
    for value, choices in ((None, typed), ("a", ["a"]), (0, range(1)), (2.0, (2.0,))):
        assert make_control("x", value, choices, "label") is None


@pytest.mark.parametrize(
    ("value", "choices", "says"),
    [
        (-1, range(6), "x=-1 must be a whole number from 0 to 5"),
        (6, range(6), "x=6 must be a whole number from 0 to 5"),
        (1.5, range(6), "x=1.5 must be a whole number"),
        ("2", range(6), "x='2' must be a whole number"),
        (True, range(6), "x=True must be a whole number"),
        (3, range(0, 360, 5), "x=3 must be a whole number from 0 to 355 in steps of 5"),
        (1, range(1), "x=1 must be a whole number from 0 to 0"),
        (0.2, NUMBERS, "x=0.2 must be 0.25 to 4"),
        (4.25, NUMBERS, "x=4.25 must be 0.25 to 4"),
        (math.nan, NUMBERS, "x=nan must be 0.25 to 4"),
        ("1", NUMBERS, "x='1' must be 0.25 to 4"),
        (1e8, POWERS, "x=100000000.0 must be 1e+09 to 1e+14"),
        (3, (1, 2.5), "x=3 must be one of 1, 2.5"),
        (3, {"a": 1, "b": 2}, "x=3 must be one of 1, 2"),
        ("map", ("a", "b"), "x='map' is unknown; it must be one of 'a', 'b'"),
        ("layer.0", ["layers.0"], "Did you mean 'layers.0'?"),
    ],
)
def test_a_value_that_cannot_be_chosen_is_refused_by_name(value, choices, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        make_control("x", value, choices, "label")


def test_a_slider_begins_at_a_whole_step_from_its_first_value():
    """The browser would move it there, and the picture would not follow."""
    assert make_control("x", 0.6, Numbers(0.25, 4, 0.25), "x").value == 0.5
    assert make_control("x", 2.3, Numbers(0.3, 4, 0.5), "x").value == 2.3
    powers = make_control("x", 0.3, Powers(0.0123, 9, 0.02), "x")
    for number in (powers.min, powers.max, math.log10(powers.value)):
        assert number / 0.02 == pytest.approx(round(number / 0.02))


@pytest.mark.parametrize(("span", "step"), [(99, 0.5), (5, 0.02), (1, 0.005), (2000, 10)])
def test_slider_steps_are_round(span, step):
    assert round_step(span) == pytest.approx(step)
