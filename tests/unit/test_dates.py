"""Dates against Babel's own `format_date`, against Python's `date`, and all of them against each other."""

import random
import re
from datetime import date, timedelta

import numpy as np
import pytest
from babel import Locale
from babel.dates import format_date, format_skeleton

from course_lib import data

FIRST = date(1950, 1, 1)
DAYS = [FIRST + timedelta(n) for n in range((date(2050, 1, 1) - FIRST).days)]
SOME_DAYS = [*DAYS[:3], date(2000, 2, 29), *random.Random(0).sample(DAYS, 40), *DAYS[-3:]]
ALL_STYLES = [(language, style) for language in data.LANGUAGES for style in data.STYLES]


def babel(day, language, style):
    if style == "weekday":
        return format_skeleton("yMMMEd", day, locale=language)
    return format_date(day, style, locale=language)


# --- writing ---------------------------------------------------------------------------------


@pytest.mark.verifies("course_lib.data.write_date", against="Babel `format_date`")
@pytest.mark.parametrize(("language", "style"), ALL_STYLES)
def test_a_text_is_that_of_babel(ledger, language, style):
    for day in SOME_DAYS:
        written = data.write_date(day, language, style)
        assert written.text == babel(day, language, style)
        assert (written.language, written.style) == (language, style)
    ledger.holds()


@pytest.mark.verifies(
    "course_lib.data.WrittenDate", against="Python's `date` and `int`, and Babel's month names"
)
@pytest.mark.parametrize(("language", "style"), ALL_STYLES)
def test_the_fields_are_where_the_day_the_month_and_the_year_stand(ledger, language, style):
    for day in SOME_DAYS:
        written = data.write_date(day, language, style)
        assert isinstance(written, data.WrittenDate)
        assert written.iso == f"{day:%Y-%m-%d}"
        at = {name: written.text[r.start : r.stop] for name, r in written.fields.items()}
        assert int(at["year"]) in (day.year, day.year % 100) and len(at["year"]) in (2, 4)
        assert int(at["day"]) == day.day
        months = [format_date(day, "M" * width, locale=language) for width in range(1, 5)]
        assert at["month"] in (months[3:] if style in ("long", "full") else months)
        weekdays = {"full": "EEEE", "weekday": "EEE"}
        if style in weekdays:
            assert at["weekday"] == format_date(day, weekdays[style], locale=language)
        assert at.keys() == {"year", "month", "day", *["weekday"] * (style in weekdays)}
        places = [place for field in written.fields.values() for place in field]
        assert len(places) == len(set(places))
        rest = [letter for place, letter in enumerate(written.text) if place not in places]
        assert not re.search(r"\d", "".join(rest)), "a digit that belongs to no field"
    ledger.holds()


@pytest.mark.verifies("course_lib.data.LANGUAGES", against="Babel's names of the languages")
def test_the_languages_are_called_what_babel_calls_them(ledger):
    for code, name in data.LANGUAGES.items():
        assert Locale(code).get_display_name("en") == name
        ledger.holds()


@pytest.mark.verifies("course_lib.data.STYLES", against="Babel's `date_formats`")
def test_the_styles_are_those_of_the_cldr_and_one_more(ledger):
    for language in data.LANGUAGES:
        assert {*Locale(language).date_formats, "weekday"} == {*data.STYLES}
        ledger.holds()


# --- one reading -----------------------------------------------------------------------------


PIECES = {
    "year": lambda day: day.year,
    "month": lambda day: day.month,
    "day": lambda day: day.day,
    "weekday": lambda day: day.weekday(),
}


@pytest.fixture(scope="module")
def hashes():
    """(language, style) → the hash of its text for every day of the hundred years.

    Writing 1.8 million texts would take a minute and a half, so they are put together from the pieces
    of a few. That this gives the same texts is checked on some.
    """
    few = [date(year, 1, 1) for year in range(1950, 2050)]
    few += [date(2000, month, 1) for month in range(1, 13)]
    few += [date(2000, 1, day) for day in range(1, 32)]
    which = {name: [of(day) for day in DAYS] for name, of in PIECES.items()}
    checked, table = random.Random(1).sample(range(len(DAYS)), 12), {}
    for style in ALL_STYLES:
        pieces = {name: {} for name in PIECES}
        for day in few:
            written = data.write_date(day, *style)
            for name, where in written.fields.items():
                pieces[name][PIECES[name](day)] = written.text[where.start : where.stop]
        template = written.text
        for name, where in sorted(written.fields.items(), key=lambda field: -field[1].start):
            template = template[: where.start] + f"{{{name}}}" + template[where.stop :]
        columns = [
            [pieces[name][piece] for piece in which[name]]
            for name in re.findall(r"{(\w+)}", template)
        ]
        template = re.sub(r"{\w+}", "{}", template)
        texts = [*map(template.format, *columns)]
        for n in checked:
            assert texts[n] == data.write_date(DAYS[n], *style).text
        table[style] = np.array([*map(hash, texts)])
    return table


@pytest.mark.verifies(
    "course_lib.data.DATE_STYLES", against="each other: no text of 100 years has two readings"
)
def test_no_text_has_two_readings(ledger, hashes):
    texts = np.concatenate([hashes[style] for style in data.DATE_STYLES])
    days = np.tile(np.arange(len(DAYS)), len(data.DATE_STYLES))
    order = np.argsort(texts, kind="stable")
    same_text = texts[order][1:] == texts[order][:-1]
    assert same_text.any(), "the test shows too little: all texts differ"
    assert (days[order][1:] == days[order][:-1])[same_text].all()
    ledger.holds()


def test_the_american_short_style_is_left_out_because_it_has_two():
    left_out = {*ALL_STYLES} - {*data.DATE_STYLES}
    assert left_out == {("en", "short")}
    assert data.write_date(date(1987, 4, 7), "en", "short").text == "4/7/87"
    assert data.write_date(date(1987, 7, 4), "el", "short").text == "4/7/87"


# --- what is held out ------------------------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.data.HELD_OUT_STYLE", against="each other: no other style writes a text of it"
)
def test_no_other_style_writes_a_text_of_the_held_out_one(ledger, hashes):
    assert data.HELD_OUT_STYLE in data.DATE_STYLES
    others = [style for style in data.DATE_STYLES if style != data.HELD_OUT_STYLE]
    assert {language for language, _ in others} == {*data.LANGUAGES}
    assert {style for _, style in others} == {*data.STYLES}
    held_out = {*hashes[data.HELD_OUT_STYLE].tolist()}
    assert all(held_out.isdisjoint(hashes[style].tolist()) for style in others)
    ledger.holds()


@pytest.mark.verifies("course_lib.data.is_held_out", against="NumPy `diff`: every tenth day")
def test_every_tenth_day_is_held_out(ledger):
    held_out = np.array([data.is_held_out(day) for day in DAYS])
    assert (np.diff(np.flatnonzero(held_out)) == 10).all()
    assert held_out[:10].sum() == held_out[-10:].sum() == 1
    ledger.holds()


SPLITS = ("train", "held-out days", "held-out style")


@pytest.mark.verifies(
    "course_lib.data.written_dates", against="Python's `set`: the splits share no text"
)
def test_the_splits_share_nothing(ledger):
    train, days, style = (data.written_dates(900, split=split) for split in SPLITS)
    assert len(train) == len(days) == len(style) == 900
    texts = [{written.text for written in split} for split in (train, days, style)]
    assert not texts[0] & texts[1] and not texts[0] & texts[2] and not texts[1] & texts[2]
    isos = [{written.iso for written in split} for split in (train, days, style)]
    assert not isos[0] & isos[1] and isos[0] & isos[2] and not isos[1] & isos[2]
    assert all(data.is_held_out(date.fromisoformat(iso)) for iso in isos[1])
    styles = [{(one.language, one.style) for one in split} for split in (train, days, style)]
    assert styles[0] == styles[1] == {*data.DATE_STYLES} - {data.HELD_OUT_STYLE}
    assert styles[2] == {data.HELD_OUT_STYLE}
    drawn = [date.fromisoformat(iso) for iso in isos[0]]
    assert {day.year for day in drawn} == {*range(1950, 2050)}
    assert {day.month for day in drawn} == {*range(1, 13)}
    assert {day.day for day in drawn} == {*range(1, 32)}
    ledger.holds()


@pytest.mark.usefixtures("without_annotations")  # the checker draws lots itself
@pytest.mark.parametrize("split", SPLITS)
def test_the_same_seed_gives_the_same_dates_and_leaves_pythons_own_alone(split):
    random.seed(5)
    state = random.getstate()
    once, again, other = (data.written_dates(30, split=split, seed=seed) for seed in (1, 1, 2))
    assert once == again != other
    assert random.getstate() == state


def test_a_seed_means_the_same_dates_on_every_machine():
    drawn = [(written.iso, written.language, written.style) for written in data.written_dates(2)]
    assert drawn == [("2012-11-21", "pt", "long"), ("1959-09-22", "sv", "short")]


# --- the vocabularies ------------------------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.data.date_vocabularies", against="Python's `set` of the letters of 3,000 texts"
)
def test_the_vocabularies_have_every_letter_and_no_other(ledger):
    texts, isos = data.date_vocabularies()
    written = [data.write_date(day, *style) for style in data.DATE_STYLES for day in DAYS[::613]]
    written += [one for split in SPLITS for one in data.written_dates(100, split=split)]
    assert {*texts.tokens[3:]} == set().union(*(one.text for one in written))
    assert {*isos.tokens[3:]} == set().union(*(one.iso for one in written))
    for one in written[::50]:
        assert texts.text(texts.encode(one.text)) == one.text
        assert isos.text(isos.encode(one.iso)) == one.iso
    ledger.holds()


@pytest.mark.usefixtures("without_annotations")
def test_bad_input_is_refused_by_name():
    with pytest.raises(ValueError, match=r"day=2050-01-01 cannot .* 1950-01-01 to 2049-12-31"):
        data.write_date(date(2050, 1, 1), "en", "long")
    with pytest.raises(ValueError, match=r"language='German' is unknown; .*'de'"):
        data.write_date(date(1987, 4, 17), "German", "long")
    with pytest.raises(ValueError, match="split='test' is unknown; .*'train', 'held-out days'"):
        data.written_dates(2, split="test")
