"""From lexicon entries to an English and a French sentence: agreement, contractions, word order.

`Clause` says what a sentence means; `to_english` and `to_french` write it as words, each with a tag
that says which part of the meaning it expresses. Words of the two languages with one tag are aligned.
"""

from course_lib.data.phrasebook.grammar.clause import Clause, NounPhrase
from course_lib.data.phrasebook.grammar.english import to_english
from course_lib.data.phrasebook.grammar.french import to_french
from course_lib.data.phrasebook.grammar.tokenization import detokenize, english_words
from course_lib.data.phrasebook.grammar.vocabulary import phrasebook_vocabularies

__all__ = [
    "Clause",
    "NounPhrase",
    "detokenize",
    "english_words",
    "phrasebook_vocabularies",
    "to_english",
    "to_french",
]
