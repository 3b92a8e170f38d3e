"""Notebook 03 in a real JupyterLab: type a date, step through the output."""

import pytest

from course_lib.checkpoints import date_translator
from tests.helpers.lab import Explorer

NOTEBOOK = "03_seq2seq_with_attention.ipynb"


@pytest.fixture(scope="module")
def loaded(lab, screen):
    """The notebook after its first two cells have run."""
    screen.open(lab, NOTEBOOK)
    screen.run("start(seed=3)")
    screen.run("explorer = date_explorer(date_translator()")
    return screen


@pytest.fixture
def explorer(loaded):
    """The first explorer, reset."""
    found = Explorer(loaded.page, "From a written date to ISO 8601")
    found.reset()
    return found


@pytest.mark.parametrize(
    ("typed", "iso", "weekday"),
    [("5 mars 2024", "2024-03-05", "Tuesday"), ("Freitag, 23. Mai 1980", "1980-05-23", "Friday")],
)
def test_a_typed_date_is_written_in_iso_and_the_alignment_moves(explorer, typed, iso, weekday):
    before, looked = explorer.picture(), explorer.summary().split("attends to ")[1]
    explorer.type("date", typed)
    said = explorer.summary()
    assert f"output {iso}, {weekday};" in said
    assert explorer.picture() != before
    assert said.split("attends to ")[1] != looked
    weights = date_translator()(typed).weights[0]
    most = weights.argmax().item()
    assert f"attends to {typed[most]} at {most} ({weights[most]:.2f})" in said


def test_the_first_year_digit_looks_at_the_year_and_the_last_day_digit_at_the_day(explorer):
    explorer.type("date", "17 September 1998")
    at = int(explorer.summary().split("attends to ")[1].split(" at ")[1].split()[0])
    assert at in range(13, 17)
    explorer.press("step", "ArrowRight", times=9)
    assert "step 10 of 11, generates 7" in explorer.summary()
    at = int(explorer.summary().split("attends to ")[1].split(" at ")[1].split()[0])
    assert at in range(0, 2)


@pytest.mark.parametrize(
    ("typed", "says"),
    [("5 März 2024 日", "'日'"), ("", "the text is empty"), ("1" * 41, "at most 40 can be shown")],
)
def test_what_cannot_be_read_is_said_and_the_picture_stays(explorer, typed, says):
    before = explorer.picture()
    explorer.type("date", typed, settled=False)
    explorer.page.wait_for_function(
        "([root, words]) => root.innerText.includes(words)",
        arg=[explorer.root.element_handle(), says],
    )
    assert "cannot be drawn" in explorer.problem()
    if typed == "":
        assert explorer.picture() == before


def test_nothing_left_this_machine_and_nothing_complained(loaded):
    assert loaded.complaints() == []
