"""Typed English to tokens, French tokens to text, and the vocabularies of both."""

import re
from collections.abc import Iterable, Iterator
from functools import cache

from course_lib.data.phrasebook.grammar import Clause, NounPhrase, to_english, to_french
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

#: Pattern of an English contraction → its full form.
_CONTRACTIONS = (
    (r"\b(do|does|is|are)n't\b", r"\1 not"),
    (r"\b(he|she)'s\b", r"\1 is"),
    (r"\bthey're\b", "they are"),
)


def english_words(text: str) -> list[str]:
    """Tokenize a typed English sentence; a "." is added where it has no end mark.

    "He doesn't sleep" gives he, does, not, sleep and ".".
    """
    plain = text.lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    for contraction, full in _CONTRACTIONS:
        plain = re.sub(contraction, full, plain)
    words = re.findall(r"\w+(?:['-]\w+)*|[^\w\s]", plain)
    if not any(word[0].isalnum() for word in words):
        raise ValueError(f"text={text!r} has no words; type a sentence, e.g. 'the cat sleeps.'")
    ends = [position for position, word in enumerate(words) if word in (".", "?")]
    if ends and ends[0] < len(words) - 1:
        raise ValueError(
            f"text={text!r} continues after its first {words[ends[0]]!r}; type one sentence at a time"
        )
    return words if ends else [*words, "."]


def detokenize(tokens: Iterable[str]) -> str:
    """Join French tokens to text: "L'homme n'aime pas le chat.", with a space before "?"."""
    text = " ".join(tokens).replace("' ", "'").replace(" .", ".")
    return text[:1].upper() + text[1:]


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
