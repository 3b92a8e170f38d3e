"""Every word that the grammar can write, as vocabularies."""

from collections.abc import Iterator
from functools import cache

from course_lib.data.phrasebook.grammar.clause import Clause, NounPhrase
from course_lib.data.phrasebook.grammar.english import to_english
from course_lib.data.phrasebook.grammar.french import to_french
from course_lib.data.phrasebook.lexicon import (
    ADJECTIVES_OF,
    ADVERBS,
    CLITICS,
    INTRANSITIVE,
    NOUNS,
    PREPOSITIONS,
    SUBJECTS,
    TRANSITIVE,
)
from course_lib.data.vocabulary import Vocabulary

_FORMS = ("statement", "negation", "question")


@cache
def phrasebook_vocabularies() -> tuple[Vocabulary, Vocabulary]:
    """Return the vocabularies of the English and of the French sentences."""
    clauses = [*_every_verb(), *_every_noun()]
    english, french = (
        Vocabulary.of([word for word, _ in write(clause)] for clause in clauses)
        for write in (to_english, to_french)
    )
    return english, french


def _every_verb() -> Iterator[Clause]:
    """Yield clauses with every verb, pronoun, adverb and preposition; not all of them make sense."""
    cat = NounPhrase("the", NOUNS["cat"])
    for verb in (*TRANSITIVE, *INTRANSITIVE):
        for subject in SUBJECTS:
            for form in _FORMS:
                yield Clause(subject, verb, None, form)
    for clitic in CLITICS:
        yield Clause("he", TRANSITIVE[0], clitic)
    for adverb in ADVERBS:
        yield Clause("he", TRANSITIVE[0], None, adverb=adverb)
    for preposition in PREPOSITIONS:
        yield Clause("he", TRANSITIVE[0], None, setting=(preposition, cat))


def _every_noun() -> Iterator[Clause]:
    """Yield clauses with every noun and each of its determiners and adjectives."""
    for noun in NOUNS.values():
        numbers = (False,) if noun.is_mass else (False, True)
        for plural in numbers:
            determiners = ("the", "this", "my") + ("a",) * (not noun.is_mass)
            for determiner in determiners + ("two", "three") * plural:
                yield from _each_form(NounPhrase(determiner, noun, plural))
                for adjective in ADJECTIVES_OF[noun]:
                    yield from _each_form(NounPhrase(determiner, noun, plural, (adjective,)))
            for adjective in ADJECTIVES_OF[noun]:
                yield Clause(NounPhrase("the", noun, plural), None, adjective)


def _each_form(phrase: NounPhrase) -> Iterator[Clause]:
    for form in _FORMS:
        yield Clause("he", TRANSITIVE[0], phrase, form)
