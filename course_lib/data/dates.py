"""Dates as people write them in ten languages, and their ISO 8601 form.

The formats are those of the Unicode Common Locale Data Repository (CLDR), as Babel ships them. Every text
has one reading: the American all-number style, month first, is left out, because every other all-number
style here puts the day first or starts with a year of four digits. Two-digit years are unambiguous because
each pair of last digits occurs once from 1950 to 2049.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache

from babel import Locale
from babel.dates import DateTimeFormat, get_date_format, tokenize_pattern

from course_lib.data.vocabulary import Vocabulary
from course_lib.validation import require_one_of

#: Code → name of the languages.
LANGUAGES: Mapping[str, str] = {
    "en": "English",
    "de": "German",
    "fr": "French",
    "es": "Spanish",
    "it": "Italian",
    "pt": "Portuguese",
    "nl": "Dutch",
    "sv": "Swedish",
    "pl": "Polish",
    "el": "Greek",
}

#: The styles of a date: CLDR's four, and "weekday", the medium one with a short day of the week.
STYLES = ("short", "medium", "long", "full", "weekday")

#: Every (language, style) whose texts have one reading.
DATE_STYLES = tuple(
    (language, style)
    for language in LANGUAGES
    for style in STYLES
    if (language, style) != ("en", "short")
)

#: Never in the training data, though its language and its style both are. No other format produces the
#: same text by chance, as Portuguese and Spanish do: "17 de abril de 1987" is both.
HELD_OUT_STYLE = ("de", "long")

FIRST_DAY, LAST_DAY = date(1950, 1, 1), date(2049, 12, 31)
_FIELDS = {"y": "year", "M": "month", "d": "day", "E": "weekday"}
_SPLITS = ("train", "held-out days", "held-out style")


@dataclass(frozen=True)
class WrittenDate:
    """One date as a text.

    Attributes:
        text: as people write it.
        iso: as ISO 8601 writes it, year-month-day.
        language: a key of `LANGUAGES`.
        style: one of `STYLES`.
        fields: "year", "month", "day" and perhaps "weekday" → the positions of its characters in `text`.
    """

    text: str
    iso: str
    language: str
    style: str
    fields: Mapping[str, range]


def write_date(day: date, language: str, style: str) -> WrittenDate:
    """Format a date in a language and a style of CLDR.

    Args:
        day: from 1950-01-01 to 2049-12-31.
        language: a key of `LANGUAGES`.
        style: one of `STYLES`.
    """
    require_one_of(LANGUAGES, language=language)
    if not FIRST_DAY <= day <= LAST_DAY:
        raise ValueError(
            f"day={day.isoformat()} cannot be expressed; two-digit years have one meaning only from "
            f"{FIRST_DAY} to {LAST_DAY}"
        )
    text, fields = "", {}
    words = DateTimeFormat(day, Locale(language))
    for kind, content in _pattern(language, style):
        if kind == "field":
            letter, width = content
            content = words[letter * width]
            fields[_FIELDS[letter]] = range(len(text), len(text) + len(content))
        text += content
    return WrittenDate(text, day.isoformat(), language, style, fields)


@cache
def _pattern(language: str, style: str) -> tuple:
    """CLDR's pattern in pieces: ("field", (letter, width)) or ("chars", text)."""
    if style == "weekday":
        pattern = Locale(language).datetime_skeletons["yMMMEd"].pattern
    else:
        pattern = get_date_format(style, language).pattern
    return tuple(tokenize_pattern(pattern))


def is_held_out(day: date) -> bool:
    """Whether a day, in every style, is kept out of the training data: every tenth one is."""
    return day.toordinal() % 10 == 0


def written_dates(count: int, *, split: str = "train", seed: int = 0) -> list[WrittenDate]:
    """Sample dates, each in a random language and style, with replacement.

    Args:
        count: how many.
        split: "train"; "held-out days", which are in no training text, in all styles but the held-out
            one; or "held-out style", training days in `HELD_OUT_STYLE`.
        seed: the same seed gives the same dates.
    """
    require_one_of(_SPLITS, split=split)
    rng = random.Random(f"{split} {int(seed)}")
    days = [FIRST_DAY + timedelta(n) for n in range((LAST_DAY - FIRST_DAY).days + 1)]
    days = [day for day in days if is_held_out(day) == (split == "held-out days")]
    styles = [pair for pair in DATE_STYLES if pair != HELD_OUT_STYLE]
    if split == "held-out style":
        styles = [HELD_OUT_STYLE]
    return [write_date(rng.choice(days), *rng.choice(styles)) for _ in range(count)]


@cache
def date_vocabularies() -> tuple[Vocabulary, Vocabulary]:
    """Return the vocabularies of the texts and of the ISO dates; their tokens are characters."""
    year = [date(2000, 1, 1) + timedelta(n) for n in range(366)]  # all months, weekdays and digits
    written = [write_date(day, *style) for day in year for style in DATE_STYLES]
    return Vocabulary.of(one.text for one in written), Vocabulary("-0123456789")
