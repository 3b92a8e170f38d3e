"""Sentences that are written in English and in French at once, with the links between their words.

A synchronous grammar (Aho and Ullman 1969): each rule has an English side and a French side. Every
English sentence has one French sentence.
"""

from course_lib.data.phrasebook.alignment import alignment_error_rate, strongest_links
from course_lib.data.phrasebook.holdout import held_out_pairs
from course_lib.data.phrasebook.phrases import Phrase, phrases
from course_lib.data.phrasebook.words import phrasebook_vocabularies
from course_lib.data.phrasebook.written import english_words, written

__all__ = [
    "Phrase",
    "alignment_error_rate",
    "english_words",
    "held_out_pairs",
    "phrasebook_vocabularies",
    "phrases",
    "strongest_links",
    "written",
]
