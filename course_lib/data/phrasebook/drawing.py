"""Draws clauses at random."""

import random

from course_lib.data.phrasebook.adjectives import (
    ADJECTIVES,
    COLOURS,
    FITTING,
    MOODS,
    NOT_AFTER_IS,
    Adjective,
)
from course_lib.data.phrasebook.clauses import Clause, NounPhrase
from course_lib.data.phrasebook.french import ADVERBS, SUBJECTS
from course_lib.data.phrasebook.nouns import NOT_MINE, NOUNS, SMALL, Noun
from course_lib.data.phrasebook.verbs import INTRANSITIVE, PREPOSITIONS, TRANSITIVE, Verb

_KNOWN = ("the", "the", "this", "my")
_ONE = ("the", "the", "the", "a", "a", "a", "this", "my")
_SEVERAL = ("the", "the", "a", "a", "this", "my", "two", "three")
_COUNTED = ("the", "the", "this", "my", "two", "three")
_SETTING = ("the", "the", "the", "a", "this", "my")
_FORMS = ("statement",) * 4 + ("negation", "question") * 2
_AFTER_IS = tuple(one for one in ADJECTIVES.values() if one not in NOT_AFTER_IS)


def draw_clause(draw: random.Random) -> Clause:
    """Return a clause that makes sense."""
    form = draw.choice(_FORMS)
    if draw.random() < 0.2:
        return _what_it_is(draw, form)
    return _what_happens(draw, form)


def _what_it_is(draw: random.Random, form: str) -> Clause:
    """Return a clause with "to be": "the old house is not white"."""
    adjective = draw.choice(_AFTER_IS)
    people = any(noun.kind == "person" for noun in adjective.nouns)
    if people and draw.random() < 0.4:
        subject = draw.choice(("he", "she", "they"))
    else:
        subject = _noun_phrase(draw, draw.choice(adjective.nouns), _KNOWN, _KNOWN, bare=True)
        fitting = _before(subject.noun)
        if not adjective.stands_before and fitting and draw.random() < 0.2:
            first = draw.choice(fitting)
            subject = NounPhrase(subject.determiner, subject.noun, subject.plural, (first,))
    adverb = draw.choice(tuple(ADVERBS)) if adjective in MOODS and draw.random() < 0.3 else ""
    return Clause(subject, None, adjective, form, adverb)


def _what_happens(draw: random.Random, form: str) -> Clause:
    """Return a clause with a verb."""
    verb = draw.choice(INTRANSITIVE if draw.random() < 0.2 else TRANSITIVE)
    frame = draw.choice(verb.frames)
    subjects, objects = frame
    if frame is verb.frames[0] and draw.random() < 0.5:
        subject = draw.choice(tuple(SUBJECTS))
    else:
        determiners = (_ONE, _SEVERAL) if form == "statement" else (_SETTING, _COUNTED)
        subject = _noun_phrase(draw, draw.choice(subjects), *determiners)
    taken = [] if isinstance(subject, str) else [subject.noun]

    complement = None
    if verb.clitics and draw.random() < 0.25:
        complement = draw.choice(verb.clitics)
    elif objects:
        noun = draw.choice([noun for noun in objects if noun not in taken])
        complement = _object(draw, noun, verb, form)
        taken.append(noun)
    adverb = draw.choice(tuple(ADVERBS)) if draw.random() < 0.2 else ""
    setting = None
    if verb.prepositions and draw.random() < (0.25 if objects else 0.6):
        setting = _setting(draw, draw.choice(verb.prepositions), subject, taken)
    return Clause(subject, verb, complement, form, adverb, setting)


def _object(draw: random.Random, noun: Noun, verb: Verb, form: str) -> NounPhrase:
    """Return an object; what one does not see is not counted."""
    determiners = (_KNOWN, _KNOWN) if verb.definite else (_ONE, _SEVERAL)
    phrase = _noun_phrase(draw, noun, *determiners)
    if form == "negation" and phrase.determiner in ("two", "three"):
        return NounPhrase("a", phrase.noun, phrase.plural, phrase.adjectives)
    return phrase


def _setting(
    draw: random.Random, preposition: str, subject: NounPhrase | str, taken: list[Noun]
) -> tuple[str, NounPhrase] | None:
    """Return where it happens, or None if no place is left.

    Only small animals are under a table, and only people in a school.
    """
    is_person = isinstance(subject, str) or subject.noun.kind == "person"
    if is_person or subject.noun not in SMALL:
        taken = [*taken, NOUNS["table"]]
    if not is_person:
        taken = [*taken, NOUNS["school"]]
    nouns = [noun for noun in PREPOSITIONS[preposition][1] if noun not in taken]
    if not nouns:
        return None
    return preposition, _noun_phrase(draw, draw.choice(nouns), _SETTING, _KNOWN, plural=0.15)


def _noun_phrase(
    draw: random.Random,
    noun: Noun,
    one: tuple[str, ...],
    several: tuple[str, ...],
    *,
    plural: float = 0.4,
    bare: bool = False,
) -> NounPhrase:
    """Return a noun with a determiner of `one`, or of `several`, and adjectives unless it stays bare."""
    is_plural = not noun.is_mass and draw.random() < plural
    determiner = draw.choice(_KNOWN if noun.is_mass else several if is_plural else one)
    if determiner == "my" and noun in NOT_MINE:
        determiner = "the"
    return NounPhrase(determiner, noun, is_plural, () if bare else _adjectives(draw, noun))


def _adjectives(draw: random.Random, noun: Noun) -> tuple[Adjective, ...]:
    luck = draw.random()
    if luck > 0.35 or not FITTING[noun]:
        return ()
    if luck < 0.05 and _BOTH[noun]:
        return draw.choice(_BOTH[noun])
    return (draw.choice(FITTING[noun]),)


def _before(noun: Noun) -> list[Adjective]:
    return [one for one in FITTING[noun] if one.stands_before]


#: Noun → pairs such as (small, black).
_BOTH = {
    noun: [(one, other) for one in _before(noun) for other in FITTING[noun] if other in COLOURS]
    for noun in NOUNS.values()
}
