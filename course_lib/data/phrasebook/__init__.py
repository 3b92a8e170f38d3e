"""Sentences in English and French with their true word alignment.

A synchronous grammar (Aho and Ullman 1969): each rule has an English side and a French side, and every
English sentence has one French translation. `lexicon` holds the words, `grammar` writes a clause in both
languages, `alignment` links the words, `sampling` samples sentences, and `text` reads and writes them.
"""

from course_lib.data.phrasebook.alignment import Phrase, alignment_error_rate, strongest_links
from course_lib.data.phrasebook.sampling import held_out_pairs, phrases
from course_lib.data.phrasebook.text import detokenize, english_words, phrasebook_vocabularies

__all__ = [
    "Phrase",
    "alignment_error_rate",
    "detokenize",
    "english_words",
    "held_out_pairs",
    "phrasebook_vocabularies",
    "phrases",
    "strongest_links",
]
