"""Data to learn from: small, offline, the same on every machine."""

from course_lib.data.batching import PairBatch, PairBatches, pad
from course_lib.data.dates import (
    DATE_STYLES,
    HELD_OUT_STYLE,
    LANGUAGES,
    STYLES,
    WrittenDate,
    date_vocabularies,
    is_held_out,
    write_date,
    written_dates,
)
from course_lib.data.pronouns import (
    PronounSentence,
    pronoun_sentence,
    pronoun_sentences,
    pronoun_vocabulary,
)
from course_lib.data.series import Series, nile_series, wave, wave_series
from course_lib.data.vocabulary import Vocabulary

__all__ = [
    "DATE_STYLES",
    "HELD_OUT_STYLE",
    "LANGUAGES",
    "PairBatch",
    "PairBatches",
    "PronounSentence",
    "STYLES",
    "Series",
    "Vocabulary",
    "WrittenDate",
    "date_vocabularies",
    "is_held_out",
    "nile_series",
    "pad",
    "pronoun_sentence",
    "pronoun_sentences",
    "pronoun_vocabulary",
    "wave",
    "wave_series",
    "write_date",
    "written_dates",
]
