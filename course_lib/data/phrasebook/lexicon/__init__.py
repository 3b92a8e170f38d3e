"""The words of the phrasebook in both languages, their forms, and which of them go together."""

from course_lib.data.phrasebook.lexicon.adjectives import (
    ADJECTIVES,
    ADJECTIVES_OF,
    COLOURS,
    NOT_PREDICATIVE,
    STATES,
    Adjective,
)
from course_lib.data.phrasebook.lexicon.function_words import (
    ADVERBS,
    CLITICS,
    DETERMINERS,
    PREPOSITIONS,
    SUBJECTS,
)
from course_lib.data.phrasebook.lexicon.nouns import NOUNS, SMALL, WITHOUT_MY, Noun
from course_lib.data.phrasebook.lexicon.verbs import INTRANSITIVE, TRANSITIVE, Verb

__all__ = [
    "ADJECTIVES",
    "ADJECTIVES_OF",
    "ADVERBS",
    "Adjective",
    "CLITICS",
    "COLOURS",
    "DETERMINERS",
    "INTRANSITIVE",
    "NOT_PREDICATIVE",
    "NOUNS",
    "Noun",
    "PREPOSITIONS",
    "SMALL",
    "STATES",
    "SUBJECTS",
    "TRANSITIVE",
    "Verb",
    "WITHOUT_MY",
]
