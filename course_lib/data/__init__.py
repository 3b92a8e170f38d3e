"""Small data sets that need no download and are the same on every machine."""

from course_lib.data.batching import PairBatch, PairBatches, pad
from course_lib.data.coast import CoastMap, coast_map
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
from course_lib.data.docstrings import (
    BYTE_VOCABULARY,
    DOCSTRING_PACKAGES,
    DocstringText,
    docstring_text,
    text_windows,
)
from course_lib.data.phrasebook import (
    Phrase,
    alignment_error_rate,
    detokenize,
    english_words,
    held_out_pairs,
    phrasebook_vocabularies,
    phrases,
    strongest_links,
)
from course_lib.data.pronouns import (
    PronounSentence,
    pronoun_sentence,
    pronoun_sentences,
    pronoun_vocabulary,
)
from course_lib.data.series import Series, nile_series, wave, wave_series
from course_lib.data.table_model import table_model
from course_lib.data.vocabulary import Vocabulary

__all__ = [
    "BYTE_VOCABULARY",
    "CoastMap",
    "DATE_STYLES",
    "DOCSTRING_PACKAGES",
    "DocstringText",
    "HELD_OUT_STYLE",
    "LANGUAGES",
    "PairBatch",
    "PairBatches",
    "Phrase",
    "PronounSentence",
    "STYLES",
    "Series",
    "Vocabulary",
    "WrittenDate",
    "alignment_error_rate",
    "coast_map",
    "docstring_text",
    "date_vocabularies",
    "english_words",
    "held_out_pairs",
    "is_held_out",
    "nile_series",
    "pad",
    "phrasebook_vocabularies",
    "phrases",
    "pronoun_sentence",
    "pronoun_sentences",
    "pronoun_vocabulary",
    "strongest_links",
    "table_model",
    "text_windows",
    "wave",
    "wave_series",
    "write_date",
    "detokenize",
    "written_dates",
]
